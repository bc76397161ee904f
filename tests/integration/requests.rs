//! What outlives a run: requests without a known end (B11), and snapshots (B14, B15).

use std::{
    ffi::OsStr,
    fs,
    io::Read as _,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testbed::{Call, Era, FaultKind};

use crate::bench::{Bench, PLAIN, Run, done, id_of, instead, read_json, refusal, rerun, set_mode};

const TWO: &str = "services:\n  a:\n    image: x:1\n  b:\n    image: y:1\n";

/// Sends a signal to a run, and returns its standard error.
pub fn ended(child: &mut Child, signal: Signal) -> String {
    kill_process(Pid::from_child(child), signal).expect("sent");
    let mut err = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut err).expect("text");
    child.wait().expect("it ends");
    err
}

/// Kills a run while a request is in flight.
fn killed_in_flight(bench: &Bench, args: &str) {
    let mut child = bench.spawn(args);
    // The request is in the journal before it is sent.
    while bench.saved(".request").is_empty() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended");
        std::thread::yield_now();
    }
    ended(&mut child, Signal::KILL);
}

#[test]
fn b11_a_killed_run_leaves_its_request_and_the_next_one_waits_for_its_end() {
    for (era, waited) in [
        (Era::Sync, "waited until the stack had not changed for 1 s"),
        (Era::Async, "waited until "),
    ] {
        let bench = Bench::web_of(era, PLAIN);
        bench.once(Call::Create, FaultKind::Hang);
        killed_in_flight(&bench, "web");
        let journal = read_json(&bench.saved(".request")[0]);
        for (key, value) in [
            ("kind", json!("create")),
            ("stack", json!("web")),
            ("endpoint", json!(1)),
            ("base-url", json!(bench.base_url())),
            ("snapshot", json!(id_of(&bench.saved(".json")[0]))),
        ] {
            assert_eq!(journal[key], value);
        }
        bench.faults().clear();
        let was = "an interrupted run was creating the Portainer stack web";
        bench.succeeds("web", &[was, waited]);
        assert!(bench.saved(".request").is_empty());
        assert_eq!(bench.world(|world| world.records.len()), 1);
    }
}

/// A create that was in flight when its run was killed, and takes effect.
fn create_late(bench: &Bench) {
    bench.faults().clear();
    bench.create_in_portainer("web", TWO, &[]);
}

#[test]
fn b11_adopt_all_settles_a_request_of_a_stack_with_nothing_to_do() {
    let bench = Bench::web(TWO);
    bench.once(Call::Create, FaultKind::Hang);
    killed_in_flight(&bench, "adopt web");
    create_late(&bench);
    assert_eq!(bench.saved(".request").len(), 1);
    let says = "checked again: the last run did not finish";
    bench.succeeds("adopt --all --yes", says);
    assert!(bench.saved(".request").is_empty());
}

#[test]
fn b11_an_interrupted_run_says_what_is_unanswered() {
    let creation = "the creation of the stack web, sent 2";
    let deletion = "the deletion of Portainer stack 1 (web), sent 2";
    for (call, what, signal, code) in [
        (Call::Create, creation, Signal::INT, 130),
        (Call::Delete, deletion, Signal::TERM, 143),
    ] {
        let bench = Bench::web(PLAIN);
        bench.record("web", 1);
        bench.once(call, FaultKind::Hang);
        let mut child = bench.spawn("web -v");
        bench.wait_for(call, &mut child);
        let err = ended(&mut child, signal);
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        assert!(
            err.contains(&format!("; no response yet to {what}")),
            "{err}"
        );
        let again = "\nhint: to continue, run the same command again\nhint: to roll back, run: ";
        let (_, command) = err.split_once(again).unwrap_or_else(|| panic!("{err}"));
        // Without the settings, which the user's shell still has (B14).
        let restore = format!(
            "stacklift restore web --to {}\n",
            id_of(&bench.saved(".json")[0])
        );
        assert_eq!(command, restore);
        assert_eq!(bench.saved(".request").len(), 1);
    }
}

#[test]
fn b11_a_lost_response_stays_in_the_journal_and_a_request_that_was_not_sent_does_not() {
    for (call, kind, left) in [
        (Call::Create, FaultKind::DieAfter, 1),
        (Call::Create, refusal(), 0),
        // It was waited for.
        (Call::Create, FaultKind::CloseAfter, 0),
        (Call::Create, instead(504, "<html>"), 0),
        // Portainer is gone before the create is sent.
        (Call::Me, FaultKind::DieAfter, 0),
    ] {
        let bench = Bench::web(PLAIN);
        bench.once(call, kind.clone());
        bench.run("web").code(1);
        assert_eq!(bench.saved(".request").len(), left, "{kind:?}");
    }
}

#[test]
fn b27_the_journal_entry_of_the_create_is_on_disk_before_the_removal() {
    let bench = Bench::web(PLAIN);
    let fault = refusal();
    bench.once(Call::EngineRemove, fault);
    let run = bench.run("web").code(1);
    assert!(!run.err.contains("unanswered"), "{run:?}");
    let prepared = read_json(&bench.saved(".prepared")[0]);
    assert_eq!(prepared["kind"], "create");
    assert!(bench.saved(".request").is_empty());
    let run = bench.run("web").code(0);
    assert!(!run.err.contains("outcome"), "{run:?}");
    assert!(bench.saved(".prepared").is_empty());
}

#[test]
fn b11_without_portainer_an_outcome_stays_unknown() {
    let bench = Bench::web(TWO);
    bench.record("web", 1);
    bench.once(Call::Delete, FaultKind::Hang);
    killed_in_flight(&bench, "web");
    // Portainer hangs: the delete may still come.
    bench.always(Call::List, FaultKind::CloseBefore);
    let hint = "without Portainer, add --engine-only";
    bench.fails("restore web", hint).hides("restored web");
    for _ in 0..2 {
        let outcome = "error: 2 containers match the snapshot, but the outcome of the deletion of Portainer stack 1 (web), sent 2";
        let unknown = " is unknown: Portainer may still change the stack\n";
        let run = bench.fails("restore web --engine-only", &[outcome, unknown]);
        let run = run.says("when Portainer responds again, run: stacklift restore web\n");
        run.hides(&["restored web", "Portainer finished", "partly restored"]);
        assert_eq!(bench.saved(".request").len(), 1);
    }
    bench.faults().clear();
    let says = [
        "it is assumed that Portainer has finished",
        "web is as it was: 2 containers",
    ];
    bench.succeeds("restore web -v", &says);
    assert!(bench.saved(".request").is_empty());
}

#[test]
fn b11_what_does_not_end_in_time_stops_the_run() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    bench.once(Call::Create, FaultKind::CloseAfter);
    let deploying = json!({"Id": 1, "Name": "web", "EndpointId": 1, "Status": 3});
    bench.always(Call::Get, instead(200, &deploying.to_string()));
    bench.run("web --timeout 1s").code(1);
    assert_eq!(bench.first_record().id, 1);
    bench.forget_requests();
    for args in ["web --timeout 1s", "restore web --timeout 1s"] {
        let unanswered = "; no response yet to the creation of the stack web";
        let run = bench.stops(args, &["still deploying after", unanswered]);
        run.hides("restored web");
    }
    assert_eq!(bench.saved(".request").len(), 1);
}

/// The command of the hint.
pub fn printed(run: &Run) -> String {
    let hint = run
        .err
        .lines()
        .find_map(|line| line.split_once("to roll back, run: "));
    hint.expect("a hint").1.to_owned()
}

#[test]
fn b14_the_printed_command_works_when_pasted() {
    let bench = Bench::web(TWO);
    let named = bench.root().join("it's here");
    fs::rename(bench.dir("web"), &named).expect("a directory");
    let state = bench.root().join(OsStr::from_bytes(b"state of \xff mine"));
    let base_url = bench.base_url();
    bench.world(|world| {
        let dir = named.to_str().expect("UTF-8").to_owned();
        world.add_stack(&dir, vec![("docker-compose.yml", TWO)]);
    });
    bench.once(Call::Create, refusal());
    let mut command = bench.command(&["web", "--dir", "it's here"]);
    command
        .env("STACKLIFT_STATE_DIR", &state)
        .current_dir(bench.root());
    let run = Run::of(&mut command).code(1);
    let printed = printed(&run);
    let url = format!(" --base-url {base_url}");
    assert!(printed.contains(&url), "{printed}");
    assert!(!printed.contains("--endpoint"), "{printed}");
    // Another shell, another directory, and nothing of the settings.
    let mut pasted = Command::new("bash");
    rerun(&bench.command(""), &mut pasted)
        .args(["-c", &printed])
        .current_dir("/");
    for (name, _) in bench.command("").get_envs() {
        let settings =
            ["STACKLIFT_", "DOCKER_"].map(|start| name.to_string_lossy().starts_with(start));
        // The machine's own settings file stays out of it.
        if settings.contains(&true) && name != "STACKLIFT_SYSTEM_SETTINGS" {
            pasted.env_remove(name);
        }
    }
    let program = Path::new(env!("CARGO_BIN_EXE_stacklift"));
    pasted.env("PATH", bench.path(&[program.parent().expect("a folder")]));
    // It removes nothing that runs: it asks nothing.
    Run::of(&mut pasted).succeeds("restored web: 2 containers");
    assert_eq!(bench.containers("web").len(), 2);
}

#[test]
fn b14_a_snapshot_belongs_to_the_project_on_the_engine() {
    let bench = Bench::migrated(PLAIN);
    let id = id_of(&bench.saved(".json")[0]);
    let other_url = bench.base_url().replace("127.0.0.1", "localhost");
    for flags in [
        &format!("--base-url {other_url}"),
        "--endpoint 7",
        "--dir /nowhere",
    ] {
        bench.succeeds(&format!("restore web --list {flags}"), &id);
    }
    // Another engine has other snapshots.
    bench.always(Call::EngineInfo, done(200, "{\"ID\":\"another\"}"));
    let says = format!(
        "no snapshot of web in {} was taken on this Docker engine\n  taken on an engine with another ID: {id}\n",
        bench.state().display()
    );
    bench.fails("restore web --list", &says);
    // Where the engine's ID cannot be read, all are listed.
    bench.always(Call::EngineInfo, instead(500, ""));
    bench.succeeds("restore web --list", &id);
}

#[test]
fn b15_a_run_never_removes_its_own_snapshot_or_the_first_whole_one() {
    let bench = Bench::migrated(PLAIN);
    let first = bench.saved(".json").remove(0);
    // A clock that was ahead.
    for minute in 10..22 {
        let later = first.with_file_name(format!("20991231T23{minute}00.000Z.json"));
        fs::copy(&first, later).expect("a copy");
    }
    let run = bench.run("web").code(0);
    let mut words = run
        .out
        .split_whitespace()
        .skip_while(|word| *word != "snapshot");
    let id = words.nth(1).expect("an ID");
    let kept: Vec<String> = bench.saved(".json").iter().map(|f| id_of(f)).collect();
    assert_eq!(kept.len(), 10);
    assert_eq!(kept[0], id_of(&first));
    assert_eq!(kept[9], id, "the newest, whatever the clock says");
    bench.succeeds("restore web -v", &format!("from snapshot {id}"));
}

#[test]
fn b15_what_a_failed_run_left_is_marked_and_never_the_default() {
    let bench = Bench::web(TWO);
    bench.once(Call::Create, refusal());
    bench.run("web").code(1);
    let first = id_of(&bench.saved(".json")[0]);
    // Half of the stack was created.
    let text = "services:\n  a:\n    image: x:1\n";
    bench.start_as("web", bench.stack("half", text, None));
    bench.once(Call::Create, refusal());
    let run = bench.fails("web", "it shows what a failed run left");
    let command = printed(&run);
    assert!(command.contains(&format!("--to {first} ")), "{command}");
    assert_eq!(bench.saved(".json").len(), 2);
    let list = bench.run("restore web --list").code(0);
    let lines: Vec<&str> = list.out.lines().collect();
    assert!(lines[1].contains(" incomplete"), "{list:#?}");
    let is_default = lines[2].starts_with(&first) && lines[2].ends_with(" default");
    assert!(is_default, "{list:#?}");
    bench.succeeds("restore web", "restored web: 2 containers");
    // The restore ended as intended: what the next run saves is whole again.
    saves_the_default(&bench);
}

/// The next run saves what is whole.
#[track_caller]
fn saves_the_default(bench: &Bench) {
    bench.run("web").code(0).hides("failed run");
    let files = bench.saved(".json");
    let newest = id_of(files.last().expect("a snapshot"));
    let list = bench.run("restore web --list").code(0).out;
    let row = list.lines().find(|row| row.starts_with(&newest));
    assert!(row.is_some_and(|row| row.ends_with(" default")), "{list}");
}

#[test]
fn b15_a_stack_that_was_started_again_after_a_failed_run_is_whole() {
    let bench = Bench::web(TWO);
    bench.once(Call::Create, refusal());
    bench.run("web").code(1);
    bench.start_as("web", bench.dir("web"));
    saves_the_default(&bench);
}

#[test]
fn a_state_directory_that_others_can_read_is_refused() {
    let bench = Bench::web(PLAIN);
    fs::create_dir(bench.state()).expect("the state folder");
    let state = bench.state().display().to_string();
    for mode in [0o755, 0o710, 0o701] {
        set_mode(bench.state(), mode);
        for args in ["web", "restore web", "restore web --list"] {
            let why = format!(
                "refusing to use the state directory {state}: its mode is {mode:03o}, but snapshots contain secrets\n"
            );
            bench.fails(args, &[&why, "run: chmod 700 "]);
        }
    }
    assert!(bench.requests().is_empty());
}

#[test]
fn b11_a_restore_without_a_snapshot_names_the_unanswered_request() {
    let bench = Bench::on_disk(PLAIN);
    bench.once(Call::Create, FaultKind::Hang);
    killed_in_flight(&bench, "web");
    let none = "error: no snapshot of web in ";
    let state = "Nothing was changed; no response yet to the creation of the stack web, sent 2";
    bench.fails("restore web", &[none, state]);
    let warning = "warning: an interrupted run was creating the Portainer stack web: ";
    bench.fails("restore web --list", &[none, warning]);
}

#[test]
fn an_unreadable_snapshot_does_not_widen_the_list() {
    let bench = Bench::migrated(PLAIN);
    let file = bench.saved(".json").remove(0);
    let other = file.with_file_name("20200101T000000.000Z.json");
    fs::write(&other, "{").expect("a file");
    let run = bench.run("restore web --list").code(0);
    let mut lines = run.out.lines();
    let is_row = |line: &str| line.contains("20200101T") && line.ends_with("unreadable");
    assert!(lines.any(is_row), "{run:?}");
    assert!(run.out.lines().all(|line| line.len() < 130), "{run:?}");
    let warning = format!("warning: failed to read snapshot {}", other.display());
    assert!(run.err.starts_with(&warning), "{run:?}");
}

#[test]
fn b15_containers_that_could_not_be_listed_are_unknown_to_the_snapshot() {
    let bench = Bench::migrated(PLAIN);
    bench.always(Call::EngineList, refusal());
    bench.once(Call::Create, refusal());
    let unknown = "the snapshot is incomplete: the containers could not be saved";
    bench.fails("web", unknown).hides("to roll back");
    bench.faults().clear();
    let newest = id_of(bench.saved(".json").last().expect("a snapshot"));
    let says = format!("snapshot {newest} has no container data");
    bench.fails(&format!("restore web --to {newest}"), &says);
}
