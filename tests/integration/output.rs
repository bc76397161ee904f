//! Output into a pipe that nobody reads. Transcripts show all other output.

use testbed::Call;

use crate::bench::{Bench, PLAIN};

#[test]
fn a_closed_pipe_ends_the_output_and_not_the_run() {
    let bench = Bench::web(PLAIN);
    let mut child = bench.spawn("web");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(err.starts_with("warning: "), "{err}");
    assert!(!err.contains("error: "), "{err}");
    assert_eq!(bench.calls(Call::Create).len(), 1);
}
