//! `stacklift render`.

use crate::{bench::Bench, screen::screen};

#[test]
fn a_diff_on_a_terminal_has_no_escape_sequences() {
    let bench = Bench::new();
    let title = ("\x1b]0;title\x07\u{9b}", r"\u{1b}]0;title\u{7}\u{9b}");
    // The faithful rewrite rejects control characters.
    let direction = ("\u{202e}", r"\u{202e}");
    for (way, (evil, escaped)) in [("literal", title), ("adopt", direction)] {
        let text = format!("services:\n  a:\n    image: x # {evil}\n    volumes: [./d:/d]\n");
        bench.stack("web", &text, None);
        let arguments = ["render", "web", "--diff", "--reveal", "--as", way];
        // A patch is exact.
        let patch = bench.run(&arguments).code(0);
        assert!(patch.out.contains(evil), "{patch:?}");
        let mut inner = bench.command(&arguments);
        let shown = screen(inner.env("TERM", "dumb"), 80);
        assert!(shown.contains(escaped) && !shown.contains(evil), "{shown}");
    }
}
