//! C40–C43: the variables.

use std::fs;

use serde_json::json;

use crate::bench::{Bench, PLAIN, Run};

/// Migrates a stack with this `.env`, and returns the variables that were sent.
fn sent(env: &str) -> (Vec<(String, String)>, Run) {
    let bench = Bench::new();
    bench.stack("web", PLAIN, Some(env));
    let run = bench.run("web");
    (bench.sent_env(), run)
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    expected.iter().map(owned).collect()
}

#[test]
fn c40_no_env_file() {
    let bench = Bench::on_disk(PLAIN);
    bench.run("web").code(0);
    assert_eq!(bench.sent()["env"], json!([]));
    assert_eq!(sent("").0, []);
}

#[test]
fn c40_an_env_that_is_not_a_file_is_an_error() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    fs::create_dir(dir.join(".env")).expect("a directory");
    let says = [".env: it is not a regular file", "Nothing was changed"];
    bench.fails("web", &says);
    assert!(bench.requests().is_empty());
}

#[test]
fn c41_blank_lines_and_comments() {
    let env = "\n  \t\n# A=1\n   # B=2\r\n\r\nC=3\n#\n";
    assert_eq!(sent(env).0, pairs(&[("C", "3")]));
}

#[test]
fn c42_names_and_values_are_verbatim() {
    let env = "A=1=2==\nB = \"x y\" # z\r\nexport C='q'\nA=again\t \nD=\n=e\n  F=g\nG=$A${B}";
    let expected = pairs(&[
        ("A", "1=2=="),
        ("B ", " \"x y\" # z"),
        ("export C", "'q'"),
        ("A", "again\t "),
        ("D", ""),
        ("", "e"),
        ("  F", "g"),
        ("G", "$A${B}"),
    ]);
    assert_eq!(sent(env).0, expected);
}

#[test]
fn c43_a_line_without_an_equals_sign() {
    let (env, run) = sent("A=1\n\nsecret-without-sign\nB=2\n");
    assert_eq!(env, pairs(&[("A", "1"), ("B", "2")]));
    run.succeeds(&["warning:", ".env", "line 3"])
        .hides("secret-without-sign");
}
