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
fn c30_lines_of_env_file_are_deleted() {
    let text = "services:\n  a:\n    image: x\n    env_file: .env\n  b:\n    image: x\n\tenv_file:\n    #env_file: a\n    env_file:\n      - path: a\n    my_env_file: b\n  env_file: ./c ./d";
    let expected = "services:\n  a:\n    image: x\n  b:\n    image: x\n    #env_file: a\n      - path: a\n    my_env_file: b\n";
    assert_eq!(sent(text).0, expected);
}

#[test]
fn c31_items_of_env_are_deleted() {
    let text = "a:\n  - .env\n-   .env\t\n\t-\t.env  \n  -.env\n  - .env.local\n  - \".env\"\n  - .env # x\n  - a.env\n  - ./.env\n";
    let (sent, dir) = sent(text);
    let expected = format!(
        "a:\n  -.env\n  - .env.local\n  - \".env\"\n  - .env # x\n  - a.env\n  - {dir}/.env\n"
    );
    assert_eq!(sent, expected);
}

#[test]
fn c32_every_dot_slash_becomes_the_directory() {
    let text = "# ./comment\na: ./x\nb: ../y\nc: 'http://h/./z'\nd: .././w\ne: .//\nf: a./b\n";
    let (sent, dir) = sent(text);
    let expected = format!(
        "# {dir}/comment\na: {dir}/x\nb: .{dir}/y\nc: 'http://h/{dir}/z'\nd: .{dir}/{dir}/w\ne: {dir}//\nf: a{dir}/b\n"
    );
    assert_eq!(sent, expected);
}

#[test]
fn c33_all_other_bytes_are_kept() {
    let text = "\u{feff}# c  \r\nservices:\r\n  a: {image: \"x\"}\t\r\n    env_file: .env\r\n  - .env \r\n\r\n  b: &b [\u{e4}, \u{1f600}]   ";
    let expected =
        "\u{feff}# c  \r\nservices:\r\n  a: {image: \"x\"}\t\r\n\r\n  b: &b [\u{e4}, \u{1f600}]   ";
    assert_eq!(sent(text).0, expected);
    assert_eq!(sent(PLAIN).0, PLAIN);
}

#[test]
fn c34_not_utf8() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    let file = dir.join("docker-compose.yml");
    fs::write(&file, b"services:\n  a\xff: {}\n").expect("the file");
    let why = "docker-compose.yml is not UTF-8 at byte 13";
    bench.fails("web", &[why, "Nothing was changed"]);
    assert!(bench.backups("web").is_empty(), "nothing is touched");
    assert!(bench.requests().is_empty());
}
