//! `stacklift doctor`.

use std::{
    fs,
    net::TcpListener,
    time::{Duration, Instant},
};

use crate::bench::{Bench, PLAIN, Run, set_mode};

/// A bench with a Compose program, one stack, and a state directory.
fn healthy() -> Bench {
    let bench = Bench::on_disk(PLAIN);
    fs::create_dir(bench.state()).expect("a directory");
    set_mode(bench.state(), 0o700);
    bench.script("docker-compose", "echo 2.26.1\n");
    bench
}

/// Runs `doctor` with these variables.
fn doctor(bench: &Bench, args: &str, variables: &[(&str, &str)]) -> Run {
    let mut command = bench.command(&format!("doctor {args}"));
    Run::of(command.envs(variables.iter().copied()))
}

/// The same, with a report in JSON.
fn report(bench: &Bench, args: &str) -> Run {
    doctor(bench, &format!("{args} --output json"), &[])
}

/// Status and fact of a subject in JSON, which must conform to the schema.
#[track_caller]
fn checked(run: &Run, subject: &str) -> (String, String) {
    let json = run.report("doctor");
    let checks = json["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["subject"] == subject);
    let found = found.unwrap_or_else(|| panic!("no {subject} in {json:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    let is_bad = ["warning", "failed"].contains(&text("status").as_str());
    assert_eq!(!found["hint"].is_null(), is_bad, "{found:#}");
    (text("status"), text("message"))
}

/// Asserts what the check of a subject found.
#[track_caller]
fn finds(run: &Run, subject: &str, status: &str, fact: &str) {
    let (found, text) = checked(run, subject);
    assert_eq!((&*found, &*text), (status, fact));
}

#[test]
fn a_portainer_that_hangs_is_not_waited_for() {
    let bench = healthy();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let started = Instant::now();
    let run = report(&bench, &format!("--base-url {url} --timeout 20m"));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    let run = run.code(1);
    assert_eq!(checked(&run, "Portainer").0, "failed");
    assert_eq!(checked(&run, "TLS").0, "ok");
    let fact = "not checked: Portainer does not answer";
    finds(&run, "environment", "not-checked", fact);
}
