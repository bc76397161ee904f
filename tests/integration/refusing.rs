//! B06, B09 and B10: what is known before the first destructive act.

use std::{fs, os::unix::fs::PermissionsExt};

use rehearsal::{Call, FaultKind};

use crate::bench::{Bench, KEY, PLAIN, Run};

/// Starts PLAIN by hand and then changes the files on disk, so that the next create would use those.
fn changed(compose: &str, env: Option<&str>) -> Bench {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.stack("web", compose, env);
    bench
}

/// Asserts that the run is refused for `reason`, and that nothing at all was touched.
#[track_caller]
fn refuses(bench: &Bench, args: &[&str], reasons: &[&str]) {
    let world = || {
        bench.rehearsal.world(|world| {
            let records: Vec<_> = world.records.keys().copied().collect();
            (world.containers.clone(), records)
        })
    };
    let before = world();
    let files = || fs::read_dir(bench.dir("web")).expect("read").count();
    let files_before = files();
    bench
        .run(args)
        .code(1)
        .says(&["refusing to migrate", "--force", "this run changed nothing"])
        .says(reasons);
    assert!(bench.nothing_was_changed());
    assert!(world() == before);
    assert_eq!(files(), files_before, "not even a backup");
    assert!(!bench.state().exists(), "no snapshot");
}

#[test]
fn b06_an_environment_that_does_not_exist() {
    let bench = changed(PLAIN, None);
    refuses(&bench, &["web", "--endpoint", "99"], &["environment 99"]);
}

#[test]
fn b06_a_key_that_may_not_use_the_environment() {
    let bench = changed(PLAIN, None);
    let body = r#"{"message":"Permission denied to access environment","details":"Unauthorized"}"#;
    let kind = FaultKind::Status(403, body.to_owned());
    bench.rehearsal.faults().set(Call::Info, kind.clone());
    bench.rehearsal.faults().set(Call::Endpoints, kind);
    refuses(&bench, &["web"], &["environment 1", "403"]);
}

#[test]
fn b06_a_value_that_portainer_cannot_store() {
    let bench = changed(PLAIN, Some("A=\"first\nsecond\"\n"));
    refuses(&bench, &["web"], &["A"]);
}

#[test]
fn b06_a_text_that_is_not_yaml() {
    let bench = changed("services:\n  a: [\n", None);
    refuses(&bench, &["web"], &["unclosed bracket"]);
}

#[test]
fn b06_a_file_that_is_missing() {
    let text =
        "services:\n  a:\n    image: x\n    secrets: [s]\nsecrets:\n  s:\n    file: ./secret.txt\n";
    let bench = changed(text, None);
    refuses(&bench, &["web"], &["secret.txt"]);
}

#[test]
fn b06_a_network_that_is_not_defined() {
    let text = "services:\n  a:\n    image: x\n    networks: [back]\n";
    let bench = changed(text, None);
    refuses(&bench, &["web"], &["back"]);
}

#[test]
fn b06_a_mount_that_every_engine_rejects() {
    let text = format!("{PLAIN}    volumes: ['x:/x']\nvolumes: {{x: {{}}}}\n");
    let bench = changed(&text, None);
    refuses(
        &bench,
        &["web"],
        &[
            "line 5: service a: ",
            "Compose would reject",
            "this host has no Compose program: errors that only Compose finds will appear when",
        ],
    );
}

#[test]
fn b06_a_policy_that_builds_what_portainer_cannot_read() {
    let text = format!("{PLAIN}    build: app\n    pull_policy: build\n");
    let bench = changed(&text, None);
    refuses(
        &bench,
        &["web"],
        &["`pull_policy: build`", "its build context app"],
    );
}

#[test]
fn b06_every_reason_is_listed_at_once_and_force_overrides_all() {
    let text = "services:\n  a:\n    image: x\n    networks: [back]\n";
    let bench = changed(text, None);
    refuses(
        &bench,
        &["web", "--endpoint", "99"],
        &["for 2 reasons", "environment 99", "back"],
    );
    bench
        .run(&["web", "--endpoint", "99", "--force"])
        .code(1)
        .says(&["continuing because of --force"]);
    assert_eq!(bench.calls(Call::Create).len(), 1);
}

#[test]
fn b06_nothing_to_destroy_is_sent() {
    let bench = Bench::new();
    bench.stack(
        "web",
        "services:\n  a:\n    image: x\n    networks: [back]\n",
        None,
    );
    bench.run(&["web"]).code(1).hides("refusing to migrate");
    assert_eq!(bench.calls(Call::Create).len(), 1);
}

#[test]
fn b09_a_wrong_key_leaves_nothing_behind() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let mut command = bench.command(&["web"]);
    command.env("STACKMGR_API_KEY", KEY.replace("bench", "other"));
    Run::of(&mut command)
        .code(1)
        .says(&["401", "this run changed nothing"]);
    assert!(bench.nothing_was_changed());
    assert!(bench.backups("web").is_empty());
    assert!(!bench.state().exists());
}

#[test]
fn b09_a_snapshot_that_cannot_be_written_leaves_the_backup_and_says_so() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    fs::create_dir(bench.state()).expect("the state directory");
    fs::set_permissions(bench.state(), fs::Permissions::from_mode(0o700)).expect("a mode");
    fs::write(bench.state().join("snapshots"), "a file").expect("a file");
    bench.run(&["web"]).code(1).says(&[
        "failed to write a snapshot",
        "this run changed nothing; only the backup ",
    ]);
    assert!(bench.nothing_was_changed());
    assert_eq!(bench.backups("web").len(), 1);
}

/// A directory whose project Compose calls by another name than the directory, with an anonymous volume.
fn big(bench: &Bench) {
    let text = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n";
    let dir = bench.stack("AdvBig", text, None);
    let folder = dir.to_str().expect("UTF-8").to_owned();
    bench
        .rehearsal
        .world(|world| world.start_by_hand("advbig", &folder))
        .expect("a stack that starts");
}

#[test]
fn b10_the_containers_of_the_normalized_project_are_listed_and_saved() {
    let bench = Bench::new();
    big(&bench);
    let before = bench.containers("advbig");
    let run = bench.run(&["AdvBig", "--grace", "9"]).code(0).says(&[
        "the stack may lose:",
        "project advbig has 1 container, which Portainer adopts: it recreates each one whose configuration differs",
        "advbig-a-1: if it is recreated",
        "/cache",
        "snapshot",
        "--grace has no effect on the containers of project advbig",
        "created stack AdvBig with Id 1, named advbig in Portainer",
    ]);
    for untrue in ["SIGKILL", "removed", "will be replaced"] {
        assert!(!run.all().contains(untrue), "{run:?}");
    }
    assert_eq!(bench.containers("advbig"), before, "M05");
    assert!(bench.calls(rehearsal::Call::EngineStop).is_empty());
    bench
        .run(&["restore", "AdvBig", "--list"])
        .code(0)
        .says(&["migrate  1"]);
}

#[test]
fn b10_a_failed_create_that_removes_them_can_be_rolled_back() {
    let bench = Bench::new();
    big(&bench);
    let before = bench.containers("advbig");
    let broken = "services:\n  a:\n    image: nowhere/absent:1\n";
    bench.stack("AdvBig", broken, None);
    bench.rehearsal.world(|world| {
        world.unpullable.insert("nowhere/absent:1".to_owned());
    });
    bench.run(&["AdvBig", "--force"]).code(1).says(&[
        "advbig-a-1",
        "/cache",
        "the stack is down",
        "to roll back, run: ",
        "stacklift restore AdvBig",
    ]);
    assert!(bench.containers("advbig").is_empty(), "M06");
    bench.run(&["restore", "AdvBig"]).code(0);
    assert_eq!(bench.containers("advbig").len(), before.len());
}

#[test]
fn b10_normalized_containers_that_run_portainer_are_refused() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: portainer/portainer-ce:2.23.0\n";
    let dir = bench.stack("Tools", text, None);
    let folder = dir.to_str().expect("UTF-8").to_owned();
    bench
        .rehearsal
        .world(|world| world.start_by_hand("tools", &folder))
        .expect("a stack that starts");
    bench
        .run(&["Tools"])
        .code(1)
        .says(&["runs Portainer itself", "tools-a-1"]);
    assert!(bench.nothing_was_changed());
}
