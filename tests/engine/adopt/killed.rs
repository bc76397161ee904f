//! SIGKILL of a run, then a second run or a restore: the stack is whole, in the new or in the old state.

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use super::{Case, by_each_portainer, failing::Before};
use crate::bench;

by_each_portainer! {
    a_second_run_finishes
    a_restore_rolls_back
    a_second_run_after_each_request
}

/// Kills an adoption while Portainer deploys.
fn kill_in_flight(before: &Before) {
    let name = before.scenario.host.project.as_str();
    let portainer = before.scenario.portainer.as_ref().unwrap();
    portainer.before_deployment("sleep 2");
    let mut child = before
        .scenario
        .command(&["adopt", name])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !portainer.is_busy() {
        assert!(started.elapsed() < Duration::from_mins(5));
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills an adoption after this number of requests. Returns the requests.
fn kill_after(before: &Before, count: usize) -> Vec<String> {
    let name = before.scenario.host.project.as_str();
    bench::kill_after(before.scenario.command(&["adopt", name]), count)
}

fn a_second_run_finishes(case: Case) {
    let before = Before::new(case);
    kill_in_flight(&before);
    before.adopt(&["--timeout=60s"]).code(0);
    before.assert_new();
}

fn a_restore_rolls_back(case: Case) {
    let before = Before::new(case);
    kill_in_flight(&before);
    let name = before.scenario.host.project.as_str();
    let restore = ["restore", name, "--timeout=60s"];
    before.scenario.run(&restore).code(0);
    before.assert_old();
}

fn a_second_run_after_each_request(case: Case) {
    let before = Before::new(case);
    for count in 1.. {
        let requests = kill_after(&before, count);
        if requests.len() < count {
            break;
        }
        assert!(count < 200, "the run does not end: {requests:#?}");
        if requests.iter().any(|one| one.contains(" POST ")) {
            before.adopt(&["--timeout=60s"]).code(0);
            before.assert_new();
            return;
        }
        before.assert_old();
    }
    panic!("the run sent nothing");
}
