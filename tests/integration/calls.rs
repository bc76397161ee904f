//! C55: a response that does not fit into a line of a transcript, which show all other calls.

use testbed::Call;

use crate::bench::{Bench, PLAIN, done};

#[test]
fn c55_a_body_that_is_not_json_is_shown_as_it_came() {
    let bench = Bench::on_disk(PLAIN);
    let body = "upstream is \u{1b}[31mdown\nsecond line";
    bench.always(Call::Create, done(502, body));
    bench.fails("web", "upstream is \\u{1b}[31mdown\nsecond line");
}
