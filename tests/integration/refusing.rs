//! B06, B09 and B10: what is known before the first destructive act.

use std::fs;

use testbed::Call;

use crate::bench::{Bench, KEY, PLAIN, set_mode};

/// Mounts a volume at a path that is not absolute.
const INVALID: &str =
    "services:\n  a:\n    image: x\n    volumes: ['back:x']\nvolumes: {back: {}}\n";

/// The tests of the plan have every reason. Here is one from each source: Portainer, the files, the engine.
#[test]
fn b06_every_reason_is_listed_at_once_and_force_overrides_all() {
    let mount = format!("{PLAIN}    volumes: ['x:/x']\nvolumes: {{x: {{}}}}\n");
    for (text, env, args, reasons) in [
        (PLAIN, Some("A=\"first\nsecond\"\n"), "web", &["A"][..]),
        ("services:\n  a: [\n", None, "web", &["unclosed bracket"]),
        (
            &mount,
            None,
            "web",
            &[
                "a: Docker rejects the mount at x:/x",
                "Docker would reject mounts",
            ],
        ),
        (
            INVALID,
            None,
            "web --endpoint 99",
            &["for 2 reasons", "environment 99", "the mount at x"],
        ),
    ] {
        let bench = Bench::web(PLAIN);
        bench.stack("web", text, env);
        let files = || fs::read_dir(bench.dir("web")).expect("read").count();
        let before = files();
        let run = bench.stops(args, reasons);
        run.says(&["refusing to migrate", "--force"]);
        assert_eq!(files(), before, "not even a backup");
        assert!(!bench.state().exists(), "no snapshot");
        let forced = bench.run(&format!("{args} --force"));
        forced.says("continuing because of --force");
        assert_eq!(bench.calls(Call::Create).len(), 1);
    }
}

#[test]
fn b06_nothing_to_destroy_is_sent() {
    let text = format!("{PLAIN}    volumes: [':/back']\n");
    let bench = Bench::on_disk(&text);
    bench.run("web").code(1).hides("refusing to migrate");
    assert_eq!(bench.calls(Call::Create).len(), 1);
}

#[test]
fn b09_a_wrong_key_leaves_nothing_behind() {
    let bench = Bench::web(PLAIN);
    let run = bench.run_with("web", "STACKMGR_API_KEY", KEY.replace("bench", "other"));
    run.fails(&["401", "Nothing was changed"]);
    assert!(bench.nothing_was_changed());
    assert!(bench.backups("web").is_empty());
    assert!(!bench.state().exists());
}

#[test]
fn b09_a_snapshot_that_cannot_be_written_leaves_the_backup_and_says_so() {
    let bench = Bench::web(PLAIN);
    fs::create_dir(bench.state()).expect("the state directory");
    set_mode(bench.state(), 0o700);
    fs::write(bench.state().join("snapshots"), "a file").expect("a file");
    let state = "\nNothing was changed; only the backup ";
    bench.stops("web", &["failed to write a snapshot", state]);
    assert_eq!(bench.backups("web").len(), 1);
}

#[test]
fn b10_the_containers_of_the_normalized_project_are_listed_and_saved() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n";
    bench.start_as("advbig", bench.stack("AdvBig", text, None));
    let before = bench.containers("advbig");
    let losses = "the stack may lose:\n  - project advbig has 1 container, which Portainer adopts: it recreates each one whose configuration differs, and may remove all of them if the deployment fails\n  - advbig-a-1: if it is recreated, ";
    let created = "created stack AdvBig with Id 1, named advbig in Portainer\n";
    let run = bench.succeeds("AdvBig", &[losses, "/cache", "snapshot", created]);
    run.hides(&["SIGKILL", "removed", "will be replaced"]);
    assert_eq!(bench.containers("advbig"), before, "M05");
    assert!(bench.calls(testbed::Call::EngineStop).is_empty());
    bench.succeeds("restore AdvBig --list", "migrate  1");
}
