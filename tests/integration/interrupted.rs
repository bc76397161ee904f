//! A run that was killed, or is in progress, is a state of its stack.

use std::{
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use testbed::{Call, Era, FaultKind};

use crate::{
    bench::{Bench, PLAIN, Run, refusal},
    requests::ended,
};

/// Starts a run that waits for the answer to its create, does `meanwhile`, and kills it.
fn killed(bench: &Bench, args: &str, fault: FaultKind, meanwhile: impl Fn()) {
    killed_at(Call::Create, bench, args, fault, meanwhile);
}

/// The same at another call.
pub fn killed_at(call: Call, bench: &Bench, args: &str, fault: FaultKind, meanwhile: impl Fn()) {
    killed_running(bench.command(args), call, bench, fault, meanwhile);
}

/// The same of a command.
pub fn killed_running(
    mut command: Command,
    call: Call,
    bench: &Bench,
    fault: FaultKind,
    meanwhile: impl Fn(),
) {
    bench.once(call, fault);
    // It must wait for all of `meanwhile`, however slow this machine is.
    command.env("STACKLIFT_TIMEOUT", "10m");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    bench.wait_for(call, &mut child);
    thread::sleep(Duration::from_millis(50));
    meanwhile();
    child.kill().expect("killed");
    child.wait().expect("ended");
}

fn listed(bench: &Bench) -> (Value, Value) {
    let report = bench.run("list --output json").code(0).report("list");
    let one = &report["stacks"][0];
    (one["state"].clone(), one["interrupted_run"].clone())
}

fn plan(bench: &Bench) -> Run {
    bench.run("plan web --output json").report("plan");
    bench.run("plan web")
}

fn checked(bench: &Bench) -> Option<String> {
    let report = bench.run("doctor --output json").report("doctor");
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["subject"] == "runs");
    found.map(|check| check["message"].as_str().expect("a fact").to_owned())
}

#[test]
fn an_interrupted_run_that_left_nothing_running_continues_or_is_undone() {
    let bench = Bench::web(PLAIN);
    assert_eq!(listed(&bench), (json!("by-hand"), Value::Null));
    killed(&bench, "migrate web", FaultKind::Hang, || {
        let (state, run) = listed(&bench);
        assert_eq!(state, "in-progress");
        assert_eq!(run, json!({"kind": "in-progress"}));
        plan(&bench)
            .says("A run is in progress: wait until it has ended.")
            .hides(&["loses", "Next:", "An interrupted run"]);
        assert_eq!(checked(&bench), None);
    });
    let again = json!({"kind": "continue", "command": "stacklift migrate web"});
    assert_eq!(listed(&bench), (json!("interrupted"), again));
    bench.succeeds("list", &["interrupted run", "stacklift migrate web"]);
    let waits = "an interrupted run was creating the Portainer stack web: the restore first waits";
    bench.run("restore web --dry-run").says(waits);
    let undo = "The last run did not finish. To undo it, run: stacklift restore web\n";
    let shown = plan(&bench).succeeds(&[undo, "\n\nNext: stacklift migrate web\n"]);
    shown.hides(&["stacklift adopt", "Adopting"]);
    assert_eq!(checked(&bench).as_deref(), Some("interrupted: web"));
    // B15: a dry run leaves the mark.
    let files = |bench: &Bench| [bench.saved("unfinished"), bench.saved("reserve")];
    let before = files(&bench);
    assert_eq!(before[0].len(), 1);
    bench.run("restore web --dry-run").code(0);
    assert_eq!(files(&bench), before);
    assert_eq!(checked(&bench).as_deref(), Some("interrupted: web"));
    bench.succeeds("restore web", "restored web");
    assert_eq!(listed(&bench), (json!("by-hand"), Value::Null));
    assert_eq!(checked(&bench), None);
}

#[test]
fn an_interrupted_adoption_names_everywhere_the_same_way_on() {
    let bench = Bench::web(PLAIN);
    bench.once(Call::Create, FaultKind::Hang);
    let mut child = bench.spawn("adopt web");
    bench.wait_for(Call::Create, &mut child);
    bench.world(|world| world.containers.clear());
    let err = ended(&mut child, Signal::INT);
    let hint = "to continue, run the same command again";
    let continues = err.contains(hint) && err.contains("stacklift restore web ");
    assert!(continues, "{err}");
    let row = "web    0/0         interrupted run  stacklift adopt web\n";
    bench.succeeds("list", row);
    let undo = "The last run did not finish. To undo it, run: stacklift restore web\n";
    plan(&bench).succeeds(&[undo, "\n\nNext: stacklift adopt web\n"]);
    let all = bench.run("adopt --all --dry-run");
    all.says("stacklift adopt web");
    bench.forget_requests();
    let left = "an interrupted run left web incomplete: it is restored first";
    let sent = "warning: an earlier run that sent this version did not finish, and left";
    bench.succeeds("adopt web --yes", &[left, sent]);
    assert_eq!(listed(&bench), (json!("in-portainer"), Value::Null));
}

#[test]
fn what_an_edit_in_portainer_deployed_after_a_killed_run_is_left_alone() {
    let two = format!("{PLAIN}  b:\n    image: busybox:1.36\n");
    let bench = Bench::web(&two);
    bench.run("adopt web").code(0);
    bench.stack("web", &two.replace("1.36", "1.37"), None);
    bench.world(|world| world.add_image("busybox:1.37"));
    killed_at(
        Call::Update,
        &bench,
        "adopt web --yes",
        FaultKind::HangAfter,
        || {},
    );
    bench.skip(Duration::from_hours(1));
    bench.change_record(|record| record.text = format!("{PLAIN}# theirs\n"));
    bench.world(|world| world.containers.retain(|_, one| one.name != "web-b-1"));
    let edited = "web was edited in Portainer since the last adoption";
    bench.fails("adopt web --yes", &[edited, "Nothing was changed"]);
    plan(&bench)
        .says("  stacklift plan web --overwrite\n")
        .hides("Next: ");
    bench.succeeds("list", "stacklift plan web");
}

#[test]
fn an_interrupted_run_whose_stack_runs_is_run_again() {
    let bench = Bench::web(PLAIN);
    killed(&bench, "adopt web", FaultKind::HangAfter, || {});
    let again = json!({"kind": "run-again"});
    assert_eq!(listed(&bench), (json!("interrupted"), again));
    let next = "\n\nNext: stacklift adopt web\n";
    plan(&bench).says(&["The last run failed, or did not finish.\n", next]);
    bench.run("adopt web").code(0);
    assert_eq!(listed(&bench), (json!("in-portainer"), Value::Null));
}

#[test]
fn an_interrupted_run_is_no_reason_to_migrate() {
    let bench = Bench::web(&format!("{PLAIN}  b:\n    image: busybox:1.36\n"));
    killed(&bench, "adopt web", FaultKind::Hang, || {});
    // Only the adoption is blocked: it would leave the container of `b` behind.
    bench.stack("web", PLAIN, None);
    plan(&bench)
        .says("The last run failed, or did not finish.\n")
        .hides("migrate");
}

#[test]
fn a_restore_that_failed_is_run_again_although_every_container_runs() {
    let healthcheck = "    healthcheck: {test: [CMD, 'true']}\n";
    let bench = Bench::migrated(&format!("{PLAIN}{healthcheck}"));
    bench.world(|world| world.health.insert("web/a".to_owned(), None));
    bench.fails("restore web --yes", "expected healthy, got unhealthy");
    let heal = json!({"kind": "restore", "command": "stacklift restore web"});
    assert_eq!(listed(&bench), (json!("failed"), heal));
    bench.change_container("web-a-1", |one| one.healthy_at = Some(0));
    bench.succeeds("restore web --yes", "match");
    assert_eq!(listed(&bench), (json!("by-hand"), Value::Null));
}

#[test]
fn a_restore_that_was_interrupted_before_anything_stopped_is_run_again() {
    let bench = Bench::adopted(PLAIN);
    let fault = FaultKind::Hang;
    killed_at(Call::Delete, &bench, "restore web --yes", fault, || {});
    let row = "web    1/1         interrupted run  stacklift restore web";
    bench.succeeds("list", row);
    let shown =
        plan(&bench).says("The last run failed, or did not finish: restore what ran before");
    shown.says("\n\nNext: stacklift restore web\n");
    bench.forget_requests();
    bench.succeeds("restore web --yes", "match");
    assert_eq!(listed(&bench), (json!("by-hand"), Value::Null));
    // Of another snapshot than the default, too.
    let bench = Bench::adopted(PLAIN);
    let list = bench.run("restore web --list").out;
    let id = list.lines().nth(1).and_then(|line| line.split(' ').next());
    let to = format!("restore web --to {}", id.expect("an ID"));
    killed_at(
        Call::Delete,
        &bench,
        &format!("{to} --yes"),
        FaultKind::Hang,
        || {},
    );
    bench.succeeds("list", &format!("interrupted run  stacklift {to}\n"));
}

#[test]
fn an_update_that_failed_twice_can_be_undone() {
    let bench = Bench::of(Era::Async);
    let of_b = |command| format!("{PLAIN}  b:\n    image: busybox:1.36\n    command: {command}\n");
    bench.started("web", &of_b("sleep 1"), None);
    bench.run("adopt web").code(0);
    let undo = json!({"kind": "not-deployed", "command": "stacklift restore web"});
    let crashes = || bench.world(|world| world.exits.insert("web/b".to_owned(), 127));
    crashes();
    bench.stack("web", &of_b("sleep 2"), None);
    let left = "Nothing was restored, because of --on-failure leave";
    bench.fails("adopt web --yes --on-failure leave", left);
    bench.world(|world| world.exits.clear());
    let missing = of_b("sleep 2") + "    env_file: absent.env\n";
    bench.stack("web", &missing, None);
    let repaired = &["it is restored first", ", but the Portainer stack does not"];
    bench.fails("adopt web --yes", repaired);
    assert_eq!(listed(&bench), (json!("failed"), undo.clone()));
    bench.stack("web", &of_b("sleep 2"), None);
    for _ in 0..2 {
        crashes();
        // What the restore creates runs.
        bench.world_with(Call::EngineCreate, |world| world.exits.clear());
        let error = "error: b of web does not run: it exited with code 127\nContainer web-b-1 had been changed and was restored: ";
        let run = bench.fails("adopt web --yes", error);
        run.says("to put the old ones back, run: ");
        assert_eq!(listed(&bench), (json!("failed"), undo.clone()));
        let to_undo = "The last adoption failed: the earlier containers run, but Portainer has what was sent. To undo that: stacklift restore web\n";
        let next = "Next: stacklift restore web\n";
        let run = plan(&bench).says(&[to_undo, next]).hides("by hand");
        run.hides("outside of");
        assert_eq!(checked(&bench).as_deref(), Some("failed: web"));
        bench.succeeds("list", &["failed run", "stacklift restore web"]);
        bench.stack("web", &of_b("sleep 3"), None);
        plan(&bench).says(&[to_undo, "Next: stacklift adopt web\n"]);
        bench.succeeds("list", &["failed run", "stacklift adopt web"]);
        bench.stack("web", &of_b("sleep 2"), None);
    }
    // What was written since the first failure is in the snapshot.
    let snapshots = bench.run("restore web --list").out;
    let newest = snapshots.lines().find(|line| line.contains("  adopt  "));
    assert!(
        newest.is_some_and(|line| line.ends_with("default")),
        "{snapshots}"
    );
    bench.succeeds("restore web --yes", "restored web");
    let text = bench.first_record().text;
    assert!(text.contains("sleep 1"), "{text}");
    assert_eq!(listed(&bench).1, Value::Null);
}

#[test]
fn an_interrupted_run_of_a_stack_that_did_not_run_is_run_again() {
    let bench = Bench::on_disk(PLAIN);
    bench.world(|world| world.add_image("busybox:1.36"));
    killed(&bench, "adopt web", FaultKind::Hang, || {});
    assert_eq!(listed(&bench).1, json!({"kind": "run-again"}));
    bench.run("adopt web").code(0);
    assert_eq!(listed(&bench), (json!("in-portainer"), Value::Null));
}

#[test]
fn a_run_that_failed_was_not_interrupted_until_the_next_one_is() {
    let bench = Bench::web(PLAIN);
    bench.started("blog", PLAIN, None);
    killed(&bench, "migrate blog", FaultKind::Hang, || {});
    bench.once(Call::Create, refusal());
    bench.run("migrate web").code(1);
    let run = bench.run("list").code(0);
    run.prints(
        "STACK  CONTAINERS  STATE            ADOPT
blog   0/0         interrupted run  stacklift migrate blog
web    0/0         failed run       stacklift restore web\n",
    );
    let both = "failed: web; interrupted: blog";
    assert_eq!(checked(&bench).as_deref(), Some(both));
    bench.forget_requests();
    killed(&bench, "migrate web", FaultKind::Hang, || {});
    bench.succeeds("list", "web    0/0         interrupted run");
}

#[test]
fn b15_what_a_failed_run_left_unhealthy_is_not_up_to_date_until_it_is_healthy() {
    let bench = Bench::new();
    let checked = |time| PLAIN.replace("1000", time) + "    healthcheck: {test: [CMD, 'true']}\n";
    bench.started("web", &checked("1"), None);
    bench.run("adopt web").code(0);
    bench.stack("web", &checked("2"), None);
    bench.world(|world| world.health.insert("web/a".to_owned(), None));
    let update = "adopt web --yes --wait 1s --on-failure leave";
    let left = "  - web-a-1 is not healthy\nNothing was restored, because of --on-failure leave: ";
    bench.fails(update, &[left, "to roll back, run: "]);
    for _ in 0..2 {
        let run = bench.run("adopt web --wait 1s").code(1);
        let expected =
            "error: web is up to date in Portainer, but does not run as before the last adoption
  - web-a-1 is not healthy
Nothing was changed.
hint: fix that, then run the command again; to undo the adoption, run: stacklift restore web\n";
        assert_eq!((run.out.as_str(), run.err.as_str()), ("", expected));
        let expected = (json!("failed"), json!({"kind": "run-again"}));
        assert_eq!(listed(&bench), expected);
        let run = plan(&bench).code(0);
        run.prints("web  1 container on this host, in Portainer\nThe last run failed, or did not finish.\n\nNext: fix what failed, then stacklift adopt web\n");
    }
    let says = "checked again: the last run did not finish";
    bench.succeeds("adopt --all --dry-run", says);
    let sent = bench.first_record().text;
    bench.change_record(|record| record.text.push_str("# theirs\n"));
    let overwrite = "  stacklift plan web --overwrite\n";
    plan(&bench).says(overwrite).hides("Next: ");
    let next = "Next: fix what failed, then stacklift adopt web --overwrite\n";
    bench.succeeds("plan web --overwrite", next);
    bench.change_record(|record| record.text = sent);
    // A plan that is blocked fails, and an update does not hide the failure.
    let missing = checked("2") + "    env_file: absent.env\n";
    bench.stack("web", &missing, None);
    plan(&bench).fails("Cannot be updated yet:");
    bench.stack("web", &checked("3"), None);
    bench.fails(update, "web-a-1 is not healthy");
    assert_eq!(listed(&bench).0, json!("failed"));
    bench.change_container("web-a-1", |one| one.healthy_at = Some(0));
    let run = bench.run("adopt web").code(0);
    run.says(&[
        "web is up to date in Portainer; a was recreated\n  a has changed: the command\n  Portainer  https://",
        "\n  to undo: stacklift restore web\n",
    ]);
    assert_eq!(listed(&bench), (json!("in-portainer"), Value::Null));
}
