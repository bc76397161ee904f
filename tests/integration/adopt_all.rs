//! `stacklift adopt --all`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testbed::{Call, FaultKind, Rule, Status};

use crate::{
    bench::{Bench, CHANGED, MARKED, PLAIN, Run, refusal},
    confirming::{on_terminal, on_terminal_after},
    schema::conforms,
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

#[test]
fn b08_all_starts_no_stack_that_was_stopped() {
    let bench = Bench::new();
    for name in ["web", "zoo"] {
        bench.started(name, PLAIN, None);
    }
    let now = bench.world(|world| world.now / 1000);
    bench.change_container("zoo-a-1", |one| one.exit(137, now));
    bench.stack("idle", PLAIN, None);
    let run = all(&bench, "").code(0);
    run.says("2 others: 2 not running (name it to start it); see stacklift list\n")
        .says("adopted web: 1 container kept running\n");
    assert!(bench.world(|world| world.records.values().all(|one| one.name != "zoo")));
    // A one-off container that runs is not the stack.
    let mut labels = bench.container("zoo-a-1").labels;
    labels.insert("com.docker.compose.oneoff".to_owned(), "True".to_owned());
    bench.world(|world| world.add_container("zoo-a-run-1", "busybox:1.36"));
    bench.change_container("zoo-a-run-1", |one| one.labels = labels);
    all(&bench, "--leave-orphans").succeeds(
        "3 stacks: 2 not running (name it to start it), 1 up to date; see stacklift list\n",
    );
    bench.world(|world| world.containers.retain(|_, one| one.name != "zoo-a-run-1"));
    let run = bench.succeeds("adopt web zoo -q", "");
    assert_eq!(run.out, "", "{run:#?}");
}

#[test]
fn b08_a_stack_that_is_stopped_in_portainer_is_not_started_unsaid() {
    let bench = Bench::adopted(PLAIN);
    // Without a status, the stack was deleted in Portainer.
    for status in [Some(Status::Inactive), Some(Status::Active), None] {
        bench.world(|world| {
            world.containers.clear();
            world.records.retain(|_, _| status.is_some());
            for record in world.records.values_mut() {
                record.status = status.expect("a status");
            }
        });
        bench.forget_requests();
        all(&bench, "")
            .succeeds("1 stack: 1 not running (name it to start it); see stacklift list\n");
        Run::of(&mut bench.asking("adopt web")).fails("without confirmation: Portainer starts a\n");
        assert!(bench.nothing_was_changed());
    }
    bench.run("adopt web").code(0);
    // One that never ran here is started without a question.
    let bench = Bench::web(PLAIN);
    bench.world(|world| world.containers.clear());
    Run::of(&mut bench.asking("adopt web")).code(0);
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

/// The names of Portainer's stacks, in the order in which they were created.
fn adopted(bench: &Bench) -> Vec<String> {
    bench.world(|world| world.records.values().map(|one| one.name.clone()).collect())
}

#[test]
fn every_stack_is_adopted_in_the_order_of_the_list() {
    let bench = host();
    let before = bench.containers("web");
    let run = all(&bench, "--output json").code(1);
    let expected =
        "broken blocked, gone no-file, mongo adopted, traefik refused, web adopted, zoo adopted";
    assert_eq!(results(&run).join(", "), expected);
    let of_web = &run.json()["stacks"][4]["report"];
    conforms("adopt", of_web);
    assert_eq!(of_web["outcome"], "adopted");
    assert_eq!(adopted(&bench), ["mongo", "web", "zoo"]);
    assert_eq!(bench.containers("web"), before);
    // Done is done: nothing is sent again. What is blocked still counts, what is refused does not.
    bench.forget_requests();
    let again = results(&all(&bench, "--output json").code(1));
    let expected = ["broken blocked", "mongo nothing-to-do"];
    assert_eq!([&again[0], &again[2]], expected);
    fs::remove_dir_all(bench.dir("broken")).expect("a directory");
    all(&bench, "").code(0);
    assert!(bench.nothing_was_changed());
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
fn the_table_and_the_report_as_text() {
    let bench = host();
    bench.once(Call::Create, refusal());
    let run = all(&bench, "--keep-going").code(1);
    let table = "STACK  CONTAINERS  STATE    ADOPT
mongo  1/1         by hand  keeps running
web    1/1         by hand  keeps running
zoo    1/1         by hand  keeps running

mongo (1 of 3)
";
    assert!(run.out.starts_with(table), "{run:#?}");
    let rest = "3 others: 2 blocked, 1 without a Compose file; see stacklift list\n";
    let report = "
Report
STACK  RESULT
mongo  failed: Portainer could not deploy mongo: no
web    adopted
zoo    adopted
";
    let error = "error: Portainer could not deploy mongo: no\nNo container was changed; ";
    run.says(&["\nzoo (3 of 3)\n", rest, report, error]);
    assert_eq!(adopted(&bench), ["web", "zoo"]);
}

#[test]
fn the_first_failure_ends_the_run_and_the_next_run_continues() {
    let bench = host();
    bench.once(Call::Create, refusal());
    let run = all(&bench, "--output json").fails("error: web and zoo were not tried: mongo failed\nhint: fix mongo, adopt it by name, then run the command again; or pass --keep-going");
    results_include(&run, &["mongo failed", "web planned", "zoo planned"]);
    assert_eq!(run.json()["stacks"][2]["report"]["outcome"], "unchanged");
    assert!(adopted(&bench).is_empty());
    all(&bench, "").fails("\nadopted web, zoo\n");
    bench.succeeds("adopt mongo", "adopted mongo");
    assert_eq!(adopted(&bench), ["web", "zoo", "mongo"]);
}

#[test]
fn a_dry_run_changes_nothing_and_its_exit_code_can_tell() {
    let bench = host();
    let run = all(&bench, "--dry-run --output json").code(0);
    assert_eq!(run.json()["dry_run"], true);
    assert_eq!(results(&run)[2], "mongo planned");
    all(&bench, "--dry-run --exit-code").code(1);
    fs::remove_dir_all(bench.dir("broken")).expect("a directory");
    let run = all(&bench, "--dry-run --exit-code").code(0);
    assert!(run.out.starts_with("STACK "), "{run:?}");
    assert!(bench.nothing_was_changed());
    assert!(!bench.state().exists());
}

#[test]
fn b08_all_stacks_are_asked_about_once() {
    let bench = host();
    for name in ["mongo", "web", "zoo"] {
        bench.write(name, "docker-compose.yml", CHANGED);
    }
    let down = "a is down for up to 10 s, plus its start";
    let question =
        format!("Adopt mongo, web, zoo? mongo: {down}; web: {down}; zoo: {down}. [y/N] ");
    on_terminal(&bench, ALL, "n\n")
        .fails(&format!("{question}n\r\nCanceled. Nothing was changed."));
    assert!(bench.nothing_was_changed());
    let run = on_terminal(&bench, ALL, "y\n").code(1);
    assert_eq!(run.err.matches("[y/N]").count(), 1, "{run:#?}");
    assert_eq!(adopted(&bench), ["mongo", "web", "zoo"]);
}

#[test]
fn b08_a_plan_that_became_worse_is_asked_about_again() {
    let volume = format!("{PLAIN}    volumes: [/cache]\n");
    let bench = Bench::web(PLAIN);
    bench.stack("web", CHANGED, None);
    let edit = || {
        bench.started("other", PLAIN, None);
        let text = format!("{volume}  b:\n    image: busybox:1.36\n");
        bench.stack("web", &text, None);
    };
    // The new service was not in the table.
    let run = on_terminal_after(&bench, ALL, edit, "y\nn\n");
    let worse = "the plan for web became worse after it was shown: - b: has no container yet";
    run.fails(&[worse, "Adopt web? ", "Canceled. Nothing was changed."]);
    assert!(bench.nothing_was_changed());
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

#[test]
fn b08_uninterrupted_adopts_what_needs_no_question() {
    let bench = host();
    bench.started("cache", &format!("{PLAIN}    volumes: [/cache]\n"), None);
    // Nothing is asked, without --yes.
    let run = Run::of(&mut bench.asking("adopt --all --uninterrupted --exclude broken"));
    run.code(0).says("1 would be interrupted");
    assert_eq!(adopted(&bench), ["mongo", "web", "zoo"]);
    bench.rejects("adopt web --uninterrupted", "cannot be used with");
}

#[test]
fn several_stacks_are_adopted_by_name() {
    let bench = host();
    let run = bench.run("adopt zoo web broken --wait 2s").code(1);
    let table = "STACK   CONTAINERS  STATE        ADOPT
zoo     1/1         by hand      keeps running
web     1/1         by hand      keeps running
broken  0/0         not started  blocked: network missing does not exist

";
    assert!(run.out.starts_with(table), "{run:?}");
    let end = "\nadopted zoo, web\n  edit them in Portainer from now on; to undo one: stacklift restore STACK\n";
    assert!(run.out.ends_with(end), "{run:?}");
    assert_eq!(run.out.matches("from now on").count(), 1);
    let left = "error: broken was not adopted: network missing does not exist\nhint: stacklift plan broken\n";
    assert!(run.err.ends_with(left), "{run:?}");
    let one = "hint: stacklift plan gone\n";
    let run = bench.run("adopt gone mongo --wait 2s").code(1);
    assert!(run.err.ends_with(one), "{run:?}");
    run.says("  edit it there from now on; to undo: stacklift restore mongo\n");
    bench.forget_requests();
    for (names, says) in [
        ("mongo nope", "there is no stack named nope: "),
        ("mongo traefik", "refusing to move traefik: "),
    ] {
        bench.fails(&format!("adopt {names}"), says);
    }
    bench.run("adopt mongo web --dir /x").code(2);
    assert!(bench.nothing_was_changed());
}

#[test]
fn all_takes_what_is_in_the_stacks_root_and_not_excluded() {
    let bench = host();
    let other = tempfile::tempdir().expect("a directory");
    let folder = other.path().to_str().expect("UTF-8");
    fs::write(other.path().join("docker-compose.yml"), PLAIN).expect("a file");
    bench.world(|world| world.add_stack(folder, [("docker-compose.yml", PLAIN)]));
    bench.start_as("far", folder);
    let planned = |more: &str| {
        let run = all(&bench, &format!("--dry-run --output json {more}"));
        let all = results(&run).into_iter();
        let planned = all.filter_map(|one| Some(one.strip_suffix(" planned")?.to_owned()));
        planned.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(planned(""), "mongo web zoo");
    assert_eq!(planned("--everywhere"), "far mongo web zoo");
    assert_eq!(planned("--exclude web --exclude zoo"), "mongo");
    all(&bench, "--exclude wbe")
        .fails("there is no stack named wbe in `stacklift list`\nNothing was changed.\nhint: correct its name in --exclude\n");
    // One stack is found by its name, wherever it is.
    let found = format!("far is in {folder}, where it was started\n");
    let hint = format!("hint: the project's containers were started in {folder}: pass --dir ");
    bench.fails("migrate far", &hint);
    bench.succeeds("adopt far --wait 2s", "").says(&found);
    assert_eq!(adopted(&bench), ["far"]);
    let plan = bench.succeeds("restore far --dry-run", &found);
    plan.hides("the new snapshot has no Compose file");
    // When Portainer has recreated its container, the directory is known from the earlier run.
    let edited = PLAIN.replace("1000", "2000");
    fs::write(other.path().join("docker-compose.yml"), edited).expect("a file");
    bench.succeeds("adopt far --yes --wait 2s", "updated far: ");
    bench.succeeds("plan far", &[&*found, "far is up to date in Portainer\n"]);
    let list = bench.succeeds("list", "far *    1/1         in Portainer  up to date\n");
    let legend = format!("* not in {}\n", bench.root().display());
    assert!(list.err.ends_with(&legend), "{list:?}");
}

#[test]
fn all_is_not_used_with_one_stack() {
    let bench = host();
    for more in ["web", "--dir /x", "--file x.yml"] {
        all(&bench, more).code(2).says("cannot be used with");
    }
    bench.rejects("adopt", "name a stack, or pass --all");
    bench.rejects("plan", "tip: `stacklift list` shows the stacks");
    for more in ["--exclude web", "--everywhere"] {
        bench.run(&format!("adopt web {more}")).code(2);
        bench.rejects(&format!("adopt {more}"), "require --all");
    }
    assert!(bench.journal().is_empty());
}
