//! The order in which a migration reports.

use std::{fs::File, process::Stdio};

use crate::bench::Bench;

const LOSES: &str = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n";

/// The places of `words` in `text`, which must all be there.
#[track_caller]
fn places(text: &str, words: &[&str]) -> Vec<usize> {
    words
        .iter()
        .map(|word| {
            text.find(word)
                .unwrap_or_else(|| panic!("no {word:?} in {text}"))
        })
        .collect()
}

#[test]
fn losses_and_warnings_come_before_the_steps_that_they_belong_to() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", LOSES, Some("A=1\nodd\n"));
    let log = bench.root().join("log");
    let file = File::create(&log).expect("a file");
    let mut command = bench.command("web");
    command
        .stdout(Stdio::from(file.try_clone().expect("a copy")))
        .stderr(Stdio::from(file));
    assert!(command.status().expect("the binary runs").success());
    let text = std::fs::read_to_string(&log).expect("a log");
    let places = places(
        &text,
        &[
            " migrate web from",
            ".env: line 2",
            "the stack will lose:",
            " backup ",
            " snapshot ",
            " delete Portainer stack",
            " created stack web",
        ],
    );
    assert!(places.is_sorted(), "{text}");
}
