//! What outlives a run: requests without a known end (B11), and snapshots (B14, B15).

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rehearsal::{Call, Era, FaultKind};
use serde_json::Value;

use crate::bench::{Bench, PLAIN, Run};

const TWO: &str = "services:\n  a:\n    image: x:1\n  b:\n    image: y:1\n";

/// The files below the snapshots whose name ends so.
fn files(bench: &Bench, end: &str) -> Vec<PathBuf> {
    let folders = fs::read_dir(bench.state().join("snapshots"));
    let mut found: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .flat_map(|folder| fs::read_dir(folder.expect("a folder").path()).expect("read"))
        .map(|file| file.expect("a file").path())
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    found.sort();
    found
}

fn id_of(snapshot: &Path) -> String {
    let stem = snapshot.file_stem().expect("a name");
    stem.to_str().expect("UTF-8").to_owned()
}

fn spawn(bench: &Bench, args: &[&str]) -> Child {
    bench
        .command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
}

fn signal(child: &Child, signal: &str) {
    let kill = Command::new("kill")
        .args([&format!("-{signal}"), &child.id().to_string()])
        .status();
    assert!(kill.expect("kill").success());
}

/// Ends a run by a signal while a request is in flight.
fn ended_in_flight(bench: &Bench, args: &[&str], by: &str) -> String {
    let mut child = spawn(bench, args);
    while files(bench, ".request").is_empty() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended");
        std::thread::yield_now();
    }
    // The request is in the journal before it is sent.
    signal(&child, by);
    let mut err = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut err).expect("text");
    child.wait().expect("it ends");
    err
}

#[test]
fn b11_a_killed_run_leaves_its_request_and_the_next_one_waits_for_its_end() {
    for era in [Era::Sync, Era::Async] {
        let bench = Bench::of(era);
        bench.started("web", PLAIN, None);
        bench.rehearsal.faults().once(Call::Create, FaultKind::Hang);
        ended_in_flight(&bench, &["web"], "KILL");
        let journal = fs::read(&files(&bench, ".request")[0]).expect("it");
        let journal: Value = serde_json::from_slice(&journal).expect("JSON");
        assert_eq!(journal["kind"], "create");
        assert_eq!(journal["stack"], "web");
        assert_eq!(journal["endpoint"], 1);
        assert_eq!(journal["base-url"], bench.rehearsal.base_url());
        bench.rehearsal.faults().clear();
        let snapshot = id_of(&files(&bench, ".json")[0]);
        assert_eq!(journal["snapshot"], snapshot.as_str());
        bench.run(&["web"]).code(0).says(&[
            "the outcome of the create of the stack web",
            match era {
                Era::Sync => "waited until the stack had not changed for 1 s",
                Era::Async => "waited until ",
            },
        ]);
        assert_eq!(files(&bench, ".request"), [] as [PathBuf; 0]);
        let records = bench.rehearsal.world(|world| world.records.len());
        assert_eq!(records, 1);
    }
}

#[test]
fn b11_adopt_all_settles_a_request_of_a_stack_with_nothing_to_do() {
    let bench = Bench::new();
    bench.started("web", TWO, None);
    bench.rehearsal.faults().once(Call::Create, FaultKind::Hang);
    ended_in_flight(&bench, &["adopt", "web"], "KILL");
    bench.rehearsal.world(|world| {
        world
            .create(1, "web", TWO.to_owned(), None, "admin")
            .expect("a late create");
    });
    assert_eq!(files(&bench, ".request").len(), 1);
    let run = bench.run(&["adopt", "--all", "--yes"]).code(0);
    assert!(run.out.contains("waits for an earlier request"), "{run:#?}");
    assert_eq!(files(&bench, ".request"), [] as [PathBuf; 0]);
}

#[test]
fn b11_a_create_that_ends_later_is_waited_for_before_anything_is_verified() {
    let bench = Bench::new();
    bench.started("web", TWO, None);
    bench.rehearsal.faults().once(Call::Create, FaultKind::Hang);
    ended_in_flight(&bench, &["web"], "KILL");
    // The create ends while the restore waits.
    let mut child = spawn(&bench, &["restore", "web"]);
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("the outcome of the create") {
        line.clear();
        assert!(stderr.read_line(&mut line).expect("text") > 0, "no warning");
    }
    bench.rehearsal.world(|world| {
        world
            .create(1, "web", TWO.to_owned(), None, "admin")
            .expect("a late create");
    });
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("verified 2 containers"), "{out}");
    assert!(out.contains("delete Portainer stack 1"), "{out}");
    assert!(bench.rehearsal.world(|world| world.records.is_empty()));
    assert_eq!(bench.containers("web").len(), 2);
    assert_eq!(files(&bench, ".request"), [] as [PathBuf; 0]);
}

#[test]
fn b11_an_interrupted_run_says_what_is_unanswered() {
    for (call, what) in [
        (Call::Create, "the create of the stack web, sent 2"),
        (
            Call::Delete,
            "the delete of Portainer stack 1 (web), sent 2",
        ),
    ] {
        let bench = Bench::new();
        bench.record("web", 1);
        bench.started("web", PLAIN, None);
        bench.rehearsal.faults().once(call, FaultKind::Hang);
        let mut child = spawn(&bench, &["web", "-v"]);
        while bench.calls(call).is_empty() {
            assert!(child.try_wait().expect("a child").is_none(), "it ended");
            std::thread::yield_now();
        }
        signal(&child, "INT");
        let mut err = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut err).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        assert!(err.contains(&format!("; unanswered: {what}")), "{err}");
        assert_eq!(files(&bench, ".request").len(), 1);
    }
}

#[test]
fn b11_a_lost_response_stays_in_the_journal_and_a_request_that_was_not_sent_does_not() {
    for (call, kind, left) in [
        (Call::Create, FaultKind::CloseAfter, 1),
        (Call::Create, FaultKind::Status(504, "<html>".to_owned()), 1),
        (
            Call::Create,
            FaultKind::Status(500, "{\"message\":\"no\"}".to_owned()),
            0,
        ),
        // Portainer is gone before the create is sent.
        (Call::Me, FaultKind::DieAfter, 0),
    ] {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        bench.rehearsal.faults().once(call, kind.clone());
        bench.run(&["web"]).code(1);
        assert_eq!(files(&bench, ".request").len(), left, "{kind:?}");
    }
}

#[test]
fn b27_the_journal_entry_of_the_create_is_on_disk_before_the_removal() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let fault = FaultKind::Status(500, "{}".to_owned());
    bench.rehearsal.faults().once(Call::EngineRemove, fault);
    let run = bench.run(&["web"]).code(1);
    assert!(!run.err.contains("unanswered"), "{run:?}");
    let prepared = files(&bench, ".prepared");
    let prepared: Value =
        serde_json::from_slice(&fs::read(&prepared[0]).expect("it")).expect("JSON");
    assert_eq!(prepared["kind"], "create");
    assert_eq!(files(&bench, ".request"), [] as [PathBuf; 0]);
    let run = bench.run(&["web"]).code(0);
    assert!(!run.err.contains("outcome"), "{run:?}");
    assert_eq!(files(&bench, ".prepared"), [] as [PathBuf; 0]);
}

#[test]
fn b11_without_portainer_an_outcome_stays_unknown() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", TWO, None);
    bench.rehearsal.faults().once(Call::Delete, FaultKind::Hang);
    ended_in_flight(&bench, &["web"], "KILL");
    // Portainer hangs: the delete may still come.
    bench
        .rehearsal
        .faults()
        .set(Call::List, FaultKind::CloseBefore);
    let hint = "without Portainer, add --engine-only";
    let waits = ["restore", "web", "--timeout", "4s"];
    bench.run(&waits).code(1).says(&[hint]).hides("verified");
    for _ in 0..2 {
        bench
            .run(&["restore", "web", "--engine-only", "--timeout", "4s"])
            .code(1)
            .says(&[
                "2 containers match the snapshot, but the outcome of the delete of Portainer stack 1 (web), sent 2",
                "Portainer may still change the stack",
                "When Portainer responds again, run: ",
            ])
            .hides("verified")
            .hides("Portainer finished");
        assert_eq!(files(&bench, ".request").len(), 1);
    }
    bench.rehearsal.faults().clear();
    bench
        .run(&waits)
        .code(0)
        .says(&["Portainer counts as finished", "verified 2 containers"]);
    assert_eq!(files(&bench, ".request"), [] as [PathBuf; 0]);
}

#[test]
fn b11_what_does_not_end_in_time_stops_the_run() {
    let bench = Bench::of(Era::Async);
    bench.started("web", PLAIN, None);
    bench
        .rehearsal
        .faults()
        .once(Call::Create, FaultKind::CloseAfter);
    bench.run(&["web"]).code(1);
    let before = bench.containers("web");
    let deploying = bench.rehearsal.world(|world| {
        let record = world.records.values().next().expect("a record");
        serde_json::json!({"Id": record.id, "Name": "web", "EndpointId": 1, "Status": 3})
    });
    let body = FaultKind::Status(200, deploying.to_string());
    bench.rehearsal.faults().set(Call::Get, body);
    for args in [
        &["web", "--timeout", "1s"][..],
        &["restore", "web", "--timeout", "1s"],
    ] {
        bench.rehearsal.forget_requests();
        bench
            .run(args)
            .code(1)
            .says(&[
                "still deploying after",
                "state: this run changed nothing; unanswered: the create of the stack web",
            ])
            .hides("verified");
        assert!(bench.nothing_was_changed());
    }
    assert_eq!(bench.containers("web"), before);
    assert_eq!(files(&bench, ".request").len(), 1);
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
    let bench = Bench::new();
    bench.started("web", TWO, None);
    let named = bench.root().join("it's here");
    fs::rename(bench.dir("web"), &named).expect("a directory");
    let state = bench.root().join(OsStr::from_bytes(b"state of \xff mine"));
    let base_url = bench.rehearsal.base_url();
    bench.rehearsal.world(|world| {
        let dir = named.to_str().expect("UTF-8").to_owned();
        world.add_stack(&dir, vec![("docker-compose.yml", TWO)]);
    });
    bench.rehearsal.faults().once(
        Call::Create,
        FaultKind::Status(500, "{\"message\":\"no\"}".to_owned()),
    );
    let mut command = bench.command(&["web", "--dir", "it's here"]);
    command
        .env("STACKLIFT_STATE_DIR", &state)
        .current_dir(bench.root());
    let run = Run::of(&mut command).code(1);
    let printed = printed(&run);
    assert!(
        printed.contains(&format!(" --base-url {base_url}")),
        "{printed}"
    );
    assert!(!printed.contains("--endpoint"), "{printed}");
    // Another shell, another directory, and nothing of the settings.
    let binary = Path::new(env!("CARGO_BIN_EXE_stacklift"));
    let inner = bench.command(&[]);
    let mut pasted = Command::new("bash");
    pasted.args(["-c", &printed]).env_clear().current_dir("/");
    for (name, value) in inner.get_envs() {
        let name = name.to_str().expect("UTF-8");
        if !name.starts_with("STACKLIFT_") && !name.starts_with("DOCKER_") {
            pasted.env(name, value.expect("a value"));
        }
    }
    let folder = binary.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    pasted.env("PATH", format!("{folder}:{path}"));
    // It removes nothing that runs: it asks nothing.
    Run::of(&mut pasted)
        .code(0)
        .says(&["verified 2 containers"]);
    assert_eq!(bench.containers("web").len(), 2);
}

#[test]
fn b14_a_snapshot_belongs_to_the_project_on_the_engine() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let id = id_of(&files(&bench, ".json")[0]);
    let other_url = bench.rehearsal.base_url().replace("127.0.0.1", "localhost");
    for flags in [
        &["--base-url", &other_url][..],
        &["--endpoint", "7"],
        &["--dir", "/nowhere"],
    ] {
        let args = [&["restore", "web", "--list"][..], flags].concat();
        bench.run(&args).code(0).says(&[&id]);
    }
    // Another engine has other snapshots.
    bench.rehearsal.faults().set(
        Call::EngineInfo,
        FaultKind::Body(200, b"{\"ID\":\"another\"}".to_vec()),
    );
    bench
        .run(&["restore", "web", "--list"])
        .code(1)
        .says(&["no snapshot of the stack web"]);
    // Where the engine's ID cannot be read, all are listed.
    bench.rehearsal.faults().clear();
    bench
        .rehearsal
        .faults()
        .set(Call::EngineInfo, FaultKind::Status(500, String::new()));
    bench
        .run(&["restore", "web", "--list"])
        .code(0)
        .says(&[&id]);
}

#[test]
fn b15_a_run_never_removes_its_own_snapshot_or_the_first_whole_one() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let first = files(&bench, ".json").remove(0);
    // A clock that was ahead.
    for minute in 10..22 {
        let later = first.with_file_name(format!("20991231T23{minute}00.000Z.json"));
        fs::copy(&first, later).expect("a copy");
    }
    let run = bench.run(&["web"]).code(0);
    let line = run.out.lines().find(|line| line.contains("snapshot"));
    let line = line.expect("a line").trim();
    let id = line.split_whitespace().nth(1).expect("an ID").to_owned();
    let kept: Vec<String> = files(&bench, ".json").iter().map(|f| id_of(f)).collect();
    assert_eq!(kept.len(), 10);
    assert_eq!(kept[0], id_of(&first));
    assert_eq!(kept[9], id, "the newest, whatever the clock says");
    bench
        .run(&["restore", "web"])
        .code(0)
        .says(&[&format!("from snapshot {id}")]);
}

#[test]
fn b15_what_a_failed_run_left_is_marked_and_never_the_default() {
    let bench = Bench::new();
    bench.started("web", TWO, None);
    let refusal = || FaultKind::Status(500, "{\"message\":\"no\"}".to_owned());
    bench.rehearsal.faults().once(Call::Create, refusal());
    bench.run(&["web"]).code(1);
    let first = id_of(&files(&bench, ".json")[0]);
    // Half of the stack was created.
    let half = "services:\n  a:\n    image: x:1\n";
    let half_of = |bench: &Bench| {
        bench.rehearsal.world(|world| {
            let dir = bench.root().join("half").display().to_string();
            world.add_stack(&dir, vec![("docker-compose.yml", half)]);
            world.start_by_hand("web", &dir).expect("it starts");
        });
    };
    half_of(&bench);
    bench.rehearsal.faults().once(Call::Create, refusal());
    let run = bench
        .run(&["web"])
        .code(1)
        .says(&["it shows what a failed run left"]);
    assert!(
        printed(&run).contains(&format!("--to {first} ")),
        "{run:#?}"
    );
    assert_eq!(files(&bench, ".json").len(), 2);
    let list = bench.run(&["restore", "web", "--list"]).code(0);
    let lines: Vec<&str> = list.out.lines().collect();
    assert!(
        lines[1].contains(&format!("{first} (default)")),
        "{list:#?}"
    );
    assert!(lines[1].contains("whole"), "{list:#?}");
    assert!(lines[2].contains("left by a failed run"), "{list:#?}");
    bench
        .run(&["restore", "web"])
        .code(0)
        .says(&[&format!("from snapshot {first}"), "verified 2 containers"]);
    // The restore ended as intended: what the next run saves is whole again.
    bench.run(&["web"]).code(0).hides("failed run");
    let newest = id_of(files(&bench, ".json").last().expect("a snapshot"));
    bench
        .run(&["restore", "web", "--list"])
        .code(0)
        .says(&[&format!("{newest} (default)")]);
}

#[test]
fn b15_a_stack_that_was_started_again_after_a_failed_run_is_whole() {
    let bench = Bench::new();
    let dir = bench.started("web", TWO, None);
    let refusal = FaultKind::Status(500, "{\"message\":\"no\"}".to_owned());
    bench.rehearsal.faults().once(Call::Create, refusal);
    bench.run(&["web"]).code(1);
    bench.rehearsal.world(|world| {
        let dir = dir.to_str().expect("UTF-8").to_owned();
        world.start_by_hand("web", &dir).expect("it starts");
    });
    bench.run(&["web"]).code(0).hides("failed run");
    let newest = id_of(files(&bench, ".json").last().expect("a snapshot"));
    bench
        .run(&["restore", "web", "--list"])
        .code(0)
        .says(&[&format!("{newest} (default)")]);
}

#[test]
fn a_state_directory_that_others_can_read_is_refused() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    fs::create_dir(bench.state()).expect("the state folder");
    for mode in [0o755, 0o710, 0o701] {
        fs::set_permissions(bench.state(), fs::Permissions::from_mode(mode)).expect("a mode");
        for args in [
            &["web"][..],
            &["restore", "web"],
            &["restore", "web", "--list"],
        ] {
            bench.run(args).code(1).says(&[
                "refusing to use the state directory",
                &format!("its mode is {mode:03o}"),
                "run: chmod 700 ",
            ]);
        }
    }
    assert!(bench.rehearsal.requests().is_empty());
    fs::set_permissions(bench.state(), fs::Permissions::from_mode(0o700)).expect("a mode");
    bench.run(&["web"]).code(0);
}

#[test]
fn b11_a_restore_without_a_snapshot_names_the_unanswered_request() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    bench.rehearsal.faults().once(Call::Create, FaultKind::Hang);
    ended_in_flight(&bench, &["web"], "KILL");
    let run = bench.run(&["restore", "web"]).code(1);
    drop(run.says(&[
        "no snapshot of the stack web",
        "state: this run changed nothing; unanswered: the create of the stack web, sent 2",
    ]));
    let run = bench.run(&["restore", "web", "--list"]).code(1);
    drop(run.says(&[
        "no snapshot of the stack web",
        "warning: the outcome of the create of the stack web, sent 2",
    ]));
}

#[test]
fn an_unreadable_snapshot_does_not_widen_the_list() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let file = files(&bench, ".json").remove(0);
    let other = file.with_file_name("20200101T000000.000Z.json");
    fs::write(&other, "{").expect("a file");
    let run = bench.run(&["restore", "web", "--list"]).code(0);
    let row = run.out.lines().find(|line| line.contains("20200101T"));
    assert!(
        row.is_some_and(|row| row.ends_with("unreadable")),
        "{run:?}"
    );
    assert!(run.out.lines().all(|line| line.len() < 130), "{run:?}");
    let warning = format!("warning: failed to read snapshot {}", other.display());
    assert!(run.err.starts_with(&warning), "{run:?}");
}
