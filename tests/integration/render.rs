//! `stacklift render`.

use std::{fs, process::Command};

use crate::bench::{Bench, PLAIN, Run};

#[test]
fn reveal_gives_the_bytes_that_a_migration_sends() {
    let bench = Bench::new();
    let text =
        "services:\n  a:\n    image: x # \u{e4}\n    env_file: .env\n    volumes: [./d:/d]\n";
    bench.stack("web", text, Some("TOKEN=\"very secret\"\nB=2\n"));
    let rendered = bench.run(&["render", "web", "--reveal"]).code(0);
    bench.run(&["web"]).code(0);
    let sent = &bench.calls(stacklift::rehearsal::Call::Create)[0].body;
    assert_eq!(rendered.out.as_bytes(), sent);
}

#[test]
fn values_are_masked_unless_revealed() {
    let bench = Bench::new();
    bench.stack(
        "web",
        PLAIN,
        Some("TOKEN=s3cr3t-very-long-value\nPIN=1234\n"),
    );
    let run = bench
        .run(&["render", "web"])
        .code(0)
        .hides("s3cr3t-very-long-value");
    let json: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(
        json["env"][0],
        serde_json::json!({"name": "TOKEN", "value": "***"})
    );
    assert_eq!(
        json["env"][1],
        serde_json::json!({"name": "PIN", "value": "***"})
    );
    assert_eq!(json["stackFileContent"], PLAIN);
}

#[test]
fn it_needs_no_key_and_touches_nothing() {
    let bench = Bench::new();
    let dir = bench.stack("web", PLAIN, None);
    let mut command: Command = bench.command(&["render", "web"]);
    command.env_remove("STACKMGR_API_KEY");
    Run::of(&mut command).code(0);
    assert!(bench.rehearsal.requests().is_empty());
    assert_eq!(fs::read_dir(dir).expect("read").count(), 1);
    bench
        .run(&["render", "absent"])
        .code(1)
        .says(&["is missing"]);
    bench.run(&["render"]).code(2);
}
