//! What the program writes, trusts and runs where other users have directories (B30–B33).

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, chown, lchown, symlink},
    path::{Path, PathBuf},
};

use crate::bench::{Bench, PLAIN, Run, key_file, mode, set_mode, write_script};

/// A user who is not root, and has no name here.
pub const USER: u32 = 54_321;

/// A directory of [`USER`].
pub fn given_away(dir: &Path) {
    fs::create_dir_all(dir).expect("a folder");
    set_mode(dir, 0o755);
    chown(dir, Some(USER), Some(USER)).expect("root");
}

/// Today's backup in a stack's directory.
fn backup(dir: &Path) -> PathBuf {
    let day = chrono::Utc::now().format("%Y-%m-%d");
    dir.join(format!(
        "docker-compose.yml.bak-pre-stackmgr-migration-{day}"
    ))
}

#[test]
fn b30_a_backup_has_no_set_id_sticky_or_execute_bits() {
    let bench = Bench::web(PLAIN);
    set_mode(bench.dir("web").join("docker-compose.yml"), 0o7755);
    bench.run("web").code(0);
    assert_eq!(mode(&bench.backups("web")[0]), 0o644);
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b30_a_backup_gives_no_group_more_rights_than_its_source() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    given_away(&dir);
    let file = dir.join("docker-compose.yml");
    chown(&file, Some(USER), Some(USER + 1)).expect("root");
    set_mode(&file, 0o640);
    bench.run("web").code(0);
    let backup = backup(&dir);
    assert_eq!(mode(&backup), 0o640);
    let metadata = fs::metadata(&backup).expect("a backup");
    assert_eq!((metadata.uid(), metadata.gid()), (0, USER + 1));
}

#[test]
fn b30_something_else_in_the_place_of_a_backup_is_an_error() {
    for is_dangling in [true, false] {
        let bench = Bench::new();
        let dir = bench.started("web", PLAIN, None);
        let target = bench.root().join("target");
        if !is_dangling {
            fs::write(&target, "x").expect("a file");
        }
        symlink(&target, backup(&dir)).expect("a link");
        let why = ": it is not a regular file\nNothing was changed.\nhint: move it away";
        bench.stops("web", &["failed to write the backup", why]);
        assert_eq!(target.exists(), !is_dangling);
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b30_no_link_of_a_user_leads_an_export_or_a_backup_into_a_directory_of_root() {
    let bench = Bench::new();
    bench.record("web", 1);
    let private = bench.root().join("private");
    fs::create_dir(&private).expect("a folder");
    let old = private.join("compose.yaml");
    fs::write(&old, "old").expect("a file");
    let theirs = bench.root().join("theirs");
    given_away(&theirs);
    let link = theirs.join("web");
    symlink(&private, &link).expect("a link");
    lchown(&link, Some(USER), None).expect("root");
    let to = link.to_str().expect("UTF-8");
    let leads = format!("a link of the user {USER} leads there");
    for to in [to, &format!("{to}/new")] {
        bench.fails(&format!("export web --force --to {to}"), &leads);
    }
    assert_eq!(fs::read_to_string(&old).expect("it"), "old");
    assert!(!private.join("new").exists(), "no directory is created");
    // A link of the caller, and one that leads to a directory of the same user.
    lchown(&link, Some(0), None).expect("root");
    let exports = |to: &str| bench.run(&["export", "web", "--force", "--to", to]).code(0);
    exports(to);
    lchown(&link, Some(USER), None).expect("root");
    chown(&private, Some(USER), None).expect("root");
    exports(to);
    exports(&format!("{to}/new/er"));
    assert_ne!(fs::read_to_string(&old).expect("it"), "old");
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b30_no_link_of_a_user_leads_a_man_page_to_a_file_of_root() {
    let bench = Bench::new();
    let target = bench.root().join("target");
    fs::write(&target, "old").expect("a file");
    let theirs = bench.root().join("man1");
    given_away(&theirs);
    symlink(&target, theirs.join("stacklift-adopt.1")).expect("a link");
    let to = theirs.to_str().expect("UTF-8");
    bench.fails(&["man", to], "stacklift-adopt.1: it is not a regular file");
    assert_eq!(fs::read_to_string(&target).expect("it"), "old");
    fs::remove_file(theirs.join("stacklift-adopt.1")).expect("removed");
    for _ in 0..2 {
        bench.run(&["man", to]).code(0);
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b30_only_a_regular_file_of_the_caller_or_the_directorys_owner_is_replaced() {
    let bench = Bench::new();
    bench.record("web", 1);
    let to = bench.root().join("out");
    fs::create_dir(&to).expect("a folder");
    let file = to.join("compose.yaml");
    let run = || {
        let to = to.to_str().expect("UTF-8");
        bench.run(&["export", "web", "--force", "--to", to])
    };
    fs::write(&file, "old").expect("a file");
    chown(&file, Some(USER), None).expect("root");
    run().fails(&format!("it belongs to the user {USER}"));
    chown(&to, Some(USER), None).expect("root");
    run().code(0);
    let target = bench.root().join("target");
    fs::write(&target, "old").expect("a file");
    fs::remove_file(&file).expect("removed");
    symlink(&target, &file).expect("a link");
    run().fails("it is not a regular file");
    assert!(fs::symlink_metadata(&file).expect("it").is_symlink());
}

#[test]
fn b30_the_umask_takes_rights_from_an_export() {
    let bench = Bench::new();
    bench.record("web", 1);
    let to = bench.root().join("web");
    let args = format!("export web --to {}", to.display());
    Run::of(&mut bench.after_shell(&args, "umask 077")).code(0);
    assert_eq!(mode(&to), 0o700);
    assert_eq!(mode(to.join("compose.yaml")), 0o600);
}

#[test]
fn b30_an_export_over_a_file_keeps_its_mode() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    bench.record("web", 1);
    let file = dir.join("docker-compose.yml");
    let args = format!("export web --to {} --force", dir.display());
    for (before, after) in [(0o600, 0o600), (0o664, 0o664)] {
        set_mode(&file, before);
        bench.succeeds(&args, "docker-compose.yml");
        assert_eq!(mode(&file), after);
    }
}

#[test]
fn b32_a_state_directory_below_one_that_everybody_may_write_to_is_not_used() {
    let bench = Bench::web(PLAIN);
    let above = bench.root().join("above");
    fs::create_dir(&above).expect("a folder");
    for (mode, code) in [(0o757, 1), (0o1757, 0)] {
        set_mode(&above, mode);
        let run = bench.run_with("web", "STACKLIFT_STATE_DIR", above.join("a/state"));
        run.code(code);
    }
}

/// In the image, which does not outlive the run.
#[test]
fn snapshots_that_a_container_would_take_with_it_are_refused() {
    let bench = Bench::web(PLAIN);
    let run = |args: &str| {
        let mut command = bench.command(args);
        command.env("STACKLIFT_STATE_MOUNT", "required");
        Run::of(command.env("STACKLIFT_STATE_DIR", "/nowhere/state"))
    };
    let error = "the directory for snapshots, /nowhere/state, would be lost with this container";
    let hint = "hint: mount a directory of the host there: -v /nowhere/state:/nowhere/state";
    for args in ["web", "adopt web --yes", "restore web --yes"] {
        run(args).fails(&[error, hint]);
    }
    assert!(bench.nothing_was_changed());
    run("plan web").code(0);
    run("list").code(0);
}

fn refuses_key_file(bench: &Bench, file: &Path) {
    let run = bench.with_key_file("plan web", file);
    let why = "owned by you or root and not accessible to others\nhint: check its owner, then run: chmod 600 ";
    run.fails(&["failed to read the API key file", why]);
}

#[test]
fn b31_a_key_file_that_others_may_access_is_refused() {
    let bench = Bench::web(PLAIN);
    let (_folder, file) = key_file();
    for mode in [0o604, 0o644, 0o602] {
        set_mode(&file, mode);
        refuses_key_file(&bench, &file);
    }
    assert!(bench.requests().is_empty());
    for mode in [0o400, 0o600] {
        set_mode(&file, mode);
        bench.with_key_file("plan web", &file).code(0);
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b31_a_key_file_of_another_user_or_group_is_refused() {
    let bench = Bench::web(PLAIN);
    let (_folder, file) = key_file();
    for (owner, mode) in [(USER, 0o600), (USER, 0o666), (0, 0o660)] {
        chown(&file, Some(owner), Some(owner)).expect("root");
        set_mode(&file, mode);
        refuses_key_file(&bench, &file);
    }
    set_mode(&file, 0o440);
    bench.with_key_file("plan web", &file).code(0);
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b32_a_state_directory_that_another_user_can_replace_is_not_used() {
    let bench = Bench::web(PLAIN);
    let above = bench.root().join("above");
    let state = above.join("state");
    fs::create_dir_all(&state).expect("a folder");
    set_mode(&state, 0o700);
    let run = |args: &str| bench.run_with(args, "STACKLIFT_STATE_DIR", &state);
    let refusing = format!("refusing to use the state directory {}: ", state.display());
    let refused = |why: &str| {
        for args in ["web", "restore web", "restore web --list"] {
            run(args).fails(&format!("{refusing}{} {why}", above.display()));
        }
    };
    chown(&state, Some(USER), None).expect("root");
    run("web").fails(&format!("{refusing}it belongs to another user"));
    chown(&state, Some(0), None).expect("root");
    set_mode(&above, 0o777);
    refused("is writable by other users");
    set_mode(&above, 0o755);
    chown(&above, Some(USER), None).expect("root");
    refused("belongs to another user");
    // The same behind a link.
    let behind = bench.root().join("behind");
    fs::rename(&above, &behind).expect("renamed");
    symlink(&behind, &above).expect("a link");
    run("web").fails(&format!("{} belongs to another user", behind.display()));
    assert!(bench.nothing_was_changed());
    chown(&behind, Some(0), None).expect("root");
    for (mode, group) in [(0o1777, USER), (0o775, 0)] {
        set_mode(&behind, mode);
        chown(&behind, None, Some(group)).expect("root");
        run("plan web").code(0);
        run("restore web --list").hides("refusing");
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b32_a_planted_snapshot_is_not_used() {
    let bench = Bench::migrated(PLAIN);
    for file in bench.saved("json") {
        chown(file, Some(USER), None).expect("root");
    }
    let whose = format!("it belongs to the user {USER}");
    bench.fails("restore web --yes", &whose);
}

#[test]
fn b33_no_program_is_taken_from_the_working_directory() {
    let bench = Bench::web(PLAIN);
    let dir = bench.dir("web");
    let seen = bench.root().join("seen");
    for name in ["docker", "docker-compose"] {
        let script = format!("echo planted >> {}\n", seen.display());
        write_script(&dir.join(name), &script);
    }
    for path in [".:", ":", "./:"] {
        for args in [
            "plan web --engine command",
            "web --engine command",
            "render web",
            "adopt web --pull --yes",
        ] {
            let mut command = bench.command(args);
            Run::of(command.env("PATH", path).current_dir(&dir));
        }
    }
    assert!(!seen.exists(), "a program of the stack's directory ran");
}

#[test]
fn b33_programs_get_only_absolute_directories_on_path() {
    let bench = Bench::web(PLAIN);
    let seen = bench.root().join("seen");
    let script = format!("echo \"$0 $PATH\" >> {}\n", seen.display());
    let bin = bench.script("docker", &script);
    let bin = bin.display();
    let path = format!(".:{bin}::bin:/usr/bin:/bin");
    bench.run_with("plan web --engine command", "PATH", path);
    let seen = fs::read_to_string(seen).expect("it ran");
    for line in seen.lines() {
        assert_eq!(line, format!("{bin}/docker {bin}:/usr/bin:/bin"));
    }
}
