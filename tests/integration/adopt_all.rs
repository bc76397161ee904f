//! `stacklift adopt --all`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testbed::{Call, FaultKind, Rule};

use crate::{
    bench::{Bench, MARKED, PLAIN, Run},
    confirming::on_terminal,
};

const ALL: &str = "adopt --all --wait 2s";

/// A stack that cannot be adopted.
const BLOCKED: &str = "\
services:
  a:
    image: busybox:1.36
    command: sleep 1000
networks:
  default:
    external: true
    name: missing
";

/// Three stacks to adopt, and one of each other kind.
fn host() -> Bench {
    let bench = Bench::new();
    for name in ["mongo", "web", "zoo"] {
        bench.started(name, PLAIN, Some(&format!("TOKEN={MARKED}\n")));
    }
    bench.stack("broken", BLOCKED, None);
    bench.started("traefik", PLAIN, None);
    let gone = bench.started("gone", PLAIN, None);
    fs::remove_dir_all(gone).expect("a directory");
    bench
}

fn all(bench: &Bench, more: &str) -> Run {
    bench.run(&format!("{ALL} {more}"))
}

/// Each stack and what became of it.
fn results(run: &Run) -> Vec<String> {
    let report = run.report("adopt-all");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let stacks = report["stacks"].as_array().expect("stacks").iter();
    stacks
        .map(|one| format!("{} {}", text(&one["name"]), text(&one["result"])))
        .collect()
}

#[track_caller]
fn results_include(run: &Run, expected: &[&str]) {
    let results = results(run);
    for result in expected {
        assert!(results.iter().any(|one| one == result), "{results:?}");
    }
}

/// A migration of the stack is killed after it removed the containers.
fn interrupt(bench: &Bench, name: &str) {
    bench.once(Call::Create, FaultKind::Hang);
    let mut child = bench.spawn(&format!("migrate {name}"));
    bench.wait_for(Call::Create, &mut child);
    child.kill().expect("killed");
    child.wait().expect("ended");
}

#[test]
fn what_an_interrupted_run_left_is_restored_first_only_if_the_stack_is_named() {
    let bench = Bench::new();
    for name in ["mongo", "web"] {
        bench.started(name, PLAIN, None);
    }
    interrupt(&bench, "web");
    bench.forget_requests();
    let run = all(&bench, "--dry-run").code(0);
    run.prints(
        "STACK  CONTAINERS  STATE            ADOPT
mongo  1/1         by hand          keeps running
web    0/0         interrupted run  stacklift migrate web\n",
    );
    let left_out = all(&bench, "--dry-run --output json").code(0);
    assert_eq!(results(&left_out), ["mongo planned", "web unfinished"]);
    let said = "web: what an interrupted run left is restored first. [y/N]";
    let args = "adopt mongo web --wait 2s";
    on_terminal(&bench, args, "n\n").fails(&["interrupted run  restored first", said, "Canceled"]);
    assert!(bench.nothing_was_changed());
    let run = bench.run(&format!("{args} --yes --output json")).code(0);
    assert_eq!(results(&run), ["mongo adopted", "web adopted"]);
}

#[test]
fn an_interrupt_reports_what_was_done() {
    let bench = host();
    // Portainer does not respond to the second create.
    let rule = Rule::new(Call::Create, FaultKind::Hang).after(1);
    bench.faults().add(rule);
    let mut child = bench.spawn("adopt --all --output json --timeout 5m -v");
    let mut shown = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
    while shown.matches("snapshot").count() < 2 {
        assert_ne!(lines.read_line(&mut shown).expect("a line"), 0, "{shown}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("sent");
    lines.read_to_string(&mut shown).expect("the rest");
    let output = child.wait_with_output().expect("an end");
    let run = Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: shown,
    };
    let run = run.code(130).says("state: web: ");
    results_include(&run, &["mongo adopted", "web interrupted", "zoo planned"]);
}
