//! `stacklift adopt --all`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
};

use rehearsal::{Call, FaultKind, Rule};
use serde_json::Value;

use crate::{
    bench::{Bench, MARKED, PLAIN, Run},
    confirming::{on_terminal, on_terminal_after},
    plan::conforms,
};

pub const SCHEMA: &str = include_str!("../../docs/schemas/adopt-all-v1.json");

const ALL: [&str; 4] = ["adopt", "--all", "--wait", "2s"];

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

fn all(bench: &Bench, more: &[&str]) -> Run {
    let mut args = ALL.to_vec();
    args.extend(more);
    bench.run(&args)
}

fn report(run: &Run) -> Value {
    let report = serde_json::from_str(&run.out).expect("JSON");
    conforms(SCHEMA, &report);
    report
}

/// Each stack and what became of it.
fn results(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let stacks = report["stacks"].as_array().expect("stacks").iter();
    stacks
        .map(|one| (text(&one["name"]), text(&one["result"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(stack, result): &(&str, &str)| ((*stack).to_owned(), (*result).to_owned());
    expected.iter().map(own).collect()
}

/// The names of Portainer's stacks, in the order in which they were created.
fn adopted(bench: &Bench) -> Vec<String> {
    bench
        .rehearsal
        .world(|world| world.records.values().map(|one| one.name.clone()).collect())
}

fn refusal() -> FaultKind {
    let body = "{\"message\":\"no\",\"details\":\"no\"}";
    FaultKind::Status(500, body.to_owned())
}

#[test]
fn every_stack_is_adopted_in_the_order_of_the_list() {
    let bench = host();
    let before = bench.containers("web");
    let run = all(&bench, &["--output", "json"]).code(1);
    let first = report(&run);
    assert_eq!(
        results(&first),
        pairs(&[
            ("broken", "blocked"),
            ("gone", "no-file"),
            ("mongo", "adopted"),
            ("traefik", "refused"),
            ("web", "adopted"),
            ("zoo", "adopted"),
        ])
    );
    let of_web = &first["stacks"][4];
    conforms(crate::adopt::SCHEMA, &of_web["report"]);
    assert_eq!(of_web["report"]["outcome"], "adopted");
    assert_eq!(adopted(&bench), ["mongo", "web", "zoo"]);
    assert_eq!(bench.containers("web"), before);
    // Done is done: nothing is sent again. What is blocked still counts, what is refused does not.
    bench.rehearsal.forget_requests();
    let again = all(&bench, &["--output", "json"]).code(1);
    let again = results(&report(&again));
    assert_eq!(again[0].1, "blocked");
    assert_eq!(again[2].1, "nothing-to-do");
    fs::remove_dir_all(bench.dir("broken")).expect("a directory");
    all(&bench, &[]).code(0);
    assert!(bench.nothing_was_changed());
}

#[test]
fn the_table_and_the_report_as_text() {
    let bench = host();
    bench.rehearsal.faults().once(Call::Create, refusal());
    let run = all(&bench, &["--keep-going"]).code(1);
    let table = run.out.split("\n\n").next().expect("a table").to_owned();
    assert_eq!(
        table,
        "STACK    ADOPT
broken   blocked: external networks or volumes do not exist
gone     no Compose file
mongo    ready; may recreate a
traefik  refused: refusing to move traefik: it is part of the management plane, and recreating it would cut off access to Portainer
web      ready; may recreate a
zoo      ready; may recreate a"
    );
    let end = run.out.split("Report\n").nth(1).expect("a report");
    assert_eq!(
        end,
        "STACK    RESULT
broken   blocked: external networks or volumes do not exist
gone     no Compose file
mongo    failed: failed to adopt mongo; none of its containers was changed: the request failed: status 500: no
traefik  refused: refusing to move traefik: it is part of the management plane, and recreating it would cut off access to Portainer
web      adopted
zoo      adopted\n"
    );
    run.says(&[
        "\nmongo (1 of 3)\n",
        "\nzoo (3 of 3)\n",
        "error: failed to adopt mongo",
    ]);
    assert_eq!(adopted(&bench), ["web", "zoo"]);
}

#[test]
fn the_first_failure_ends_the_run_and_the_next_run_continues() {
    let bench = host();
    bench.rehearsal.faults().once(Call::Create, refusal());
    let run = all(&bench, &["--output", "json"]).code(1);
    let first = report(&run);
    let expected = [("mongo", "failed"), ("web", "planned"), ("zoo", "planned")];
    for (name, result) in expected {
        assert!(
            results(&first).contains(&pairs(&[(name, result)])[0]),
            "{first:#}"
        );
    }
    assert_eq!(first["stacks"][2]["report"]["outcome"], "unchanged");
    assert!(adopted(&bench).is_empty());
    all(&bench, &[]).code(1).says(&["web      adopted"]);
    assert_eq!(adopted(&bench), ["mongo", "web", "zoo"]);
}

#[test]
fn a_dry_run_changes_nothing_and_its_exit_code_can_tell() {
    let bench = host();
    let run = all(&bench, &["--dry-run", "--output", "json"]).code(0);
    let plan = report(&run);
    assert_eq!(plan["dry_run"], true);
    assert_eq!(results(&plan)[2].1, "planned");
    all(&bench, &["--dry-run", "--exit-code"]).code(1);
    fs::remove_dir_all(bench.dir("broken")).expect("a directory");
    let run = all(&bench, &["--dry-run", "--exit-code"]).code(0);
    assert!(run.out.starts_with("STACK "), "{run:?}");
    assert!(bench.nothing_was_changed());
    assert!(!bench.state().exists());
}

#[test]
fn b08_all_stacks_are_asked_about_once() {
    let bench = host();
    on_terminal(&bench, &ALL, "n\n").code(1).says(&[
        "Adopt mongo, web, zoo? mongo: ",
        "Canceled. Nothing was changed.",
    ]);
    assert!(bench.nothing_was_changed());
    let run = on_terminal(&bench, &ALL, "y\n").code(1);
    assert_eq!(run.err.matches("[y/N]").count(), 1, "{run:#?}");
    assert_eq!(adopted(&bench), ["mongo", "web", "zoo"]);
}

#[test]
fn b08_a_plan_that_became_worse_is_asked_about_again() {
    let volume = format!("{PLAIN}    volumes: [/cache]\n");
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let edit = || {
        bench.started("other", PLAIN, None);
        bench.stack(
            "web",
            &format!("{volume}  b:\n    image: busybox:1.36\n"),
            None,
        );
    };
    // The new service was not in the table.
    let run = on_terminal_after(&bench, &ALL, "Adopt web? ", edit, "y\nn\n");
    run.code(1).says(&[
        "the plan for web became worse after it was shown:",
        " - b: started: ",
        "Adopt web? ",
        "Canceled. Nothing was changed.",
    ]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn an_interrupt_reports_what_was_done() {
    let bench = host();
    // Portainer does not respond to the second create.
    bench
        .rehearsal
        .faults()
        .add(Rule::new(Call::Create, FaultKind::Hang).after(1));
    let mut child = bench
        .command(&["adopt", "--all", "--output", "json"])
        .env("STACKLIFT_TIMEOUT", "5m")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut shown = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
    while shown.matches("snapshot").count() < 2 {
        assert_ne!(lines.read_line(&mut shown).expect("a line"), 0, "{shown}");
    }
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill").success());
    lines.read_to_string(&mut shown).expect("the rest");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130), "{shown}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    conforms(SCHEMA, &report);
    let results = results(&report);
    for expected in [
        ("mongo", "adopted"),
        ("web", "interrupted"),
        ("zoo", "planned"),
    ] {
        assert!(results.contains(&pairs(&[expected])[0]), "{report:#}");
    }
    assert!(shown.contains("state: web: "), "{shown}");
}

#[test]
fn all_is_not_used_with_one_stack() {
    let bench = host();
    for more in [&["web"][..], &["--dir", "/x"], &["--file", "x.yml"]] {
        all(&bench, more).code(2).says(&["cannot be used with"]);
    }
    bench.run(&["adopt"]).code(2).says(&["<STACK>"]);
    assert!(bench.journal().is_empty());
}
