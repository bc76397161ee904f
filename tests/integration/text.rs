//! C30–C34: the Compose text.

use std::fs;

use crate::bench::{Bench, PLAIN};

/// What is sent for `text`, and the stack's directory.
fn sent(text: &str) -> (String, String) {
    let bench = Bench::new();
    let dir = bench.stack("web", text, None);
    // Portainer may reject the text: the test is about what was sent.
    bench.run("web --force");
    assert_eq!(
        fs::read_to_string(dir.join("docker-compose.yml")).expect("the file"),
        text,
        "the file on disk never changes"
    );
    (bench.sent_text(), dir.to_str().expect("UTF-8").to_owned())
}

#[test]
fn c33_all_other_bytes_are_kept() {
    let text = "\u{feff}# c  \r\nservices:\r\n  a: {image: \"x\"}\t\r\n    env_file: .env\r\n  - .env \r\n\r\n  b: &b [\u{e4}, \u{1f600}]   ";
    let expected =
        "\u{feff}# c  \r\nservices:\r\n  a: {image: \"x\"}\t\r\n\r\n  b: &b [\u{e4}, \u{1f600}]   ";
    assert_eq!(sent(text).0, expected);
    assert_eq!(sent(PLAIN).0, PLAIN);
}
