//! A disk that is full or read-only, and two runs at once.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rehearsal::{Call, FaultKind};

use crate::bench::{Bench, PLAIN, Run};

/// The binary in a mount namespace of its own, where `mounts` have been made; the runner of these tests
/// sees nothing of them.
fn in_its_own_mounts(bench: &Bench, args: &[&str], mounts: &str) -> Run {
    let inner = bench.command(args);
    let script = format!("set -e\n{mounts}\nexec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &script])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Run::of(&mut command)
}

fn untouched(bench: &Bench, before: &[String]) {
    assert_eq!(bench.containers("web"), before);
    assert!(bench.nothing_was_changed());
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the directory");
    entries
        .map(|entry| {
            entry
                .expect("it")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_a_full_disk_at_the_backup() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    let before = bench.containers("web");
    let dir_text = dir.display();
    // A file system with room for the Compose file and for nothing else.
    let mounts = format!(
        "cp {dir_text}/docker-compose.yml /tmp/kept-$$\nmount -t tmpfs -o size=8k none {dir_text}\n\
         cp /tmp/kept-$$ {dir_text}/docker-compose.yml\nrm /tmp/kept-$$\n\
         head -c 100000 /dev/zero > {dir_text}/full 2>/dev/null || true"
    );
    let run = in_its_own_mounts(&bench, &["web"], &mounts);
    drop(run.code(1).says(&[
        "failed to write the backup",
        "No space left on device",
        "this run changed nothing",
        "free some space",
    ]));
    untouched(&bench, &before);
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_a_read_only_disk_at_the_backup() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    let before = bench.containers("web");
    let dir_text = dir.display();
    let mounts = format!("mount --bind {dir_text} {dir_text}\nmount -o remount,ro,bind {dir_text}");
    let run = in_its_own_mounts(&bench, &["web"], &mounts);
    drop(run.code(1).says(&[
        "failed to write the backup",
        "Read-only file system",
        "this run changed nothing",
    ]));
    untouched(&bench, &before);
    assert_eq!(names(&dir), ["docker-compose.yml"]);
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_a_full_or_read_only_disk_at_the_snapshot() {
    for (mount, what, cause) in [
        (
            "mount -t tmpfs -o size=4k,mode=700 none STATE\nhead -c 100000 /dev/zero > STATE/full 2>/dev/null || true",
            "failed to write a snapshot",
            "No space left on device",
        ),
        (
            "mount -t tmpfs -o ro,mode=700 none STATE",
            "failed to lock",
            "Read-only file system",
        ),
    ] {
        let bench = Bench::new();
        bench.record("web", 1);
        bench.started("web", PLAIN, None);
        let before = bench.containers("web");
        fs::create_dir(bench.state()).expect("the state folder");
        let state = bench.state().display().to_string();
        let run = in_its_own_mounts(&bench, &["web"], &mount.replace("STATE", &state));
        drop(run.code(1).says(&[
            what,
            cause,
            "this run changed nothing",
            "STACKLIFT_STATE_DIR",
        ]));
        untouched(&bench, &before);
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_a_full_state_disk_stops_a_run_only_before_its_first_change() {
    let sizes = (2..14).map(|pages| format!("size={}k", pages * 4));
    let inodes = (2..10).map(|inodes| format!("size=1m,nr_inodes={inodes}"));
    let (mut ends, mut named) = ([0, 0], 0);
    for limit in sizes.chain(inodes) {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        let before = bench.containers("web");
        fs::create_dir(bench.state()).expect("the state folder");
        let state = bench.state().display().to_string();
        let mount = format!("mount -t tmpfs -o {limit},mode=700 none {state}");
        let run = in_its_own_mounts(&bench, &["web"], &mount);
        if run.code == 0 {
            ends[0] += 1;
            continue;
        }
        ends[1] += 1;
        let run = run
            .code(1)
            .says(&["failed to write", "this run changed nothing"]);
        let taken = run.out.lines().find_map(|line| line.strip_suffix(" taken"));
        if let Some(taken) = taken {
            named += 1;
            let state = format!("the {} was taken", taken.trim());
            drop(run.says(&[&state]).hides("failed to write a snapshot"));
        }
        untouched(&bench, &before);
    }
    assert!(ends.iter().all(|&count| count > 0), "{ends:?}");
    assert!(named > 0, "no disk was full just after the snapshot");
}

#[test]
fn a_file_that_may_not_grow_leaves_no_half_backup() {
    // The same without mounting: no file may be longer than 512 bytes.
    let bench = Bench::new();
    let text = format!("{PLAIN}# {}\n", "x".repeat(2000));
    let dir = bench.started("web", &text, None);
    let before = bench.containers("web");
    let inner = bench.command(&["web"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" web"])
        .arg(inner.get_program())
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    drop(
        Run::of(&mut command)
            .code(1)
            .says(&["failed to write the backup", "this run changed nothing"]),
    );
    untouched(&bench, &before);
    assert_eq!(names(&dir), ["docker-compose.yml"]);
}

#[test]
fn two_runs_on_one_project_do_not_overlap_whatever_directories_they_are_given() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    // The lock of the directory is not taken by runs that name other directories, or one that is gone.
    bench.rehearsal.faults().once(Call::List, FaultKind::Hang);
    let mut first = bench
        .command(&["restore", "web", "--dir", "/nowhere", "--timeout", "10m"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let lists = bench.calls(Call::List).len();
    while bench.calls(Call::List).len() == lists {
        thread::sleep(Duration::from_millis(5));
    }
    let requests = bench.rehearsal.requests().len();
    let dir = dir.to_str().expect("UTF-8");
    for args in [
        &["restore", "web", "--dir", "/nowhere"][..],
        &["restore", "web", "--dir", "/nowhere/else"],
        &["web"],
        &["Web", "--dir", dir],
    ] {
        let run = bench.run(args).code(1);
        drop(run.says(&[
            "another run of stacklift is working on the stack ",
            "state: this run changed nothing",
            "hint: wait",
        ]));
    }
    assert_eq!(
        bench.rehearsal.requests().len(),
        requests,
        "it asked nobody"
    );
    // A run on another project is not refused, and a killed run leaves no lock.
    bench.stack("db", PLAIN, None);
    bench.run(&["db"]).code(0);
    first.kill().expect("killed");
    first.wait().expect("it ends");
    bench.run(&["restore", "web"]).code(0);
    let lock = bench.state().join("web.lock");
    assert!(!lock.exists(), "{}", lock.display());
}

#[test]
fn the_second_of_two_runs_says_so() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    // The first waits for an answer.
    bench
        .rehearsal
        .faults()
        .once(Call::Create, FaultKind::HangAfter);
    let mut first = bench
        .command(&["web", "--timeout", "10m"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    while bench.calls(Call::Create).is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    let requests = bench.rehearsal.requests().len();
    for args in [&["web"][..], &["restore", "web"], &["web", "--force"]] {
        let run = bench.run(args).code(1);
        drop(run.says(&[
            "another run of stacklift is working on the stack web",
            "hint: wait",
        ]));
    }
    assert_eq!(
        bench.rehearsal.requests().len(),
        requests,
        "it asked nobody"
    );
    first.kill().expect("killed");
    first.wait().expect("it ends");
    // The lock went with it.
    bench.run(&["web"]).code(0);
}

#[test]
fn one_of_several_runs_that_start_at_once_wins() {
    for args in [
        &["web"][..],
        &["adopt", "web"],
        &["restore", "web"],
        &["restore", "web", "--dir", "/nowhere"],
    ] {
        for round in 0..3 {
            let bench = Bench::new();
            bench.started("web", PLAIN, None);
            if args[0] == "restore" {
                bench.run(&["web"]).code(0);
            }
            let runs: Vec<Run> = thread::scope(|scope| {
                let runs: Vec<_> = (0..6).map(|_| scope.spawn(|| bench.run(args))).collect();
                let runs = runs.into_iter().map(|run| run.join().expect("a run"));
                runs.collect()
            });
            let won = runs.iter().filter(|run| run.code == 0).count();
            assert!(won > 0, "round {round} of {args:?}: {runs:#?}");
        }
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_a_disk_that_fills_up_does_not_keep_a_failed_adoption_from_restoring() {
    let bench = Bench::new();
    // A snapshot that is larger than what is freed when the request leaves the journal.
    bench.started("web", PLAIN, Some(&"# comment\n".repeat(10_000)));
    let late = FaultKind::LateSuccess(Duration::from_secs(2));
    bench.rehearsal.faults().once(Call::Create, late);
    bench
        .rehearsal
        .world_with(Call::Create, |world| world.containers.clear());
    // Full as soon as the request is in the journal.
    fs::create_dir(bench.state()).expect("the state folder");
    let state = bench.state().display().to_string();
    let mounts = "mount -t tmpfs -o size=1m,mode=700 none STATE\n\
         (for _ in $(seq 600); do find STATE -name '*.request' | grep -q . && break; sleep 0.05; done; sleep 0.2\n\
         head -c 2000000 /dev/zero > STATE/full; head -c 9000 /dev/zero >> STATE/full) > /dev/null 2>&1 &";
    let args = ["adopt", "web", "--yes"];
    in_its_own_mounts(&bench, &args, &mounts.replace("STATE", &state))
        .code(1)
        .says(&[
            "No space left on device",
            "restoring the containers alone",
            "the containers that ran before were restored",
        ]);
    assert_eq!(bench.containers("web").len(), 1);
}
