//! A disk that is full or read-only, and two runs at once.

use std::{ffi::OsString, fs, path::Path, process::Command, thread, time::Duration};

use testbed::{Call, FaultKind};

use crate::bench::{Bench, PLAIN, Run, rerun};

/// The binary in a mount namespace of its own, where `mounts` have been made; the runner of these tests
/// sees nothing of them.
fn in_its_own_mounts(bench: &Bench, args: &str, mounts: &str) -> Run {
    let inner = bench.after_shell(args, &format!("set -e\n{mounts}"));
    let mut command = Command::new("unshare");
    command.arg("--mount").arg(inner.get_program());
    Run::of(rerun(&inner, &mut command))
}

fn names(dir: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(dir).expect("the directory");
    entries
        .map(|entry| entry.expect("it").file_name())
        .collect()
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_a_restore_that_cannot_record_its_request_changed_nothing() {
    let mut named = 0;
    for inodes in 6..24 {
        let bench = Bench::migrated(PLAIN);
        bench.forget_requests();
        let state = bench.state().display().to_string();
        let mounts = format!(
            "cp -a {state} /tmp/state-$$\nmount -t tmpfs -o size=1m,nr_inodes={inodes},mode=700 none {state}\n\
             cp -a /tmp/state-$$/. {state} 2>/dev/null || true\nrm -r /tmp/state-$$"
        );
        let run = in_its_own_mounts(&bench, "restore web --yes", &mounts);
        if run.err.contains("failed to save the request") {
            named += 1;
            run.says("Nothing was changed").hides("partly restored");
            assert!(bench.nothing_was_changed());
        }
    }
    assert!(named > 0, "no limit stopped a restore at its request");
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_a_full_state_disk_stops_a_run_only_before_its_first_change() {
    let sizes = (2..14).map(|pages| format!("size={}k", pages * 4));
    let inodes = (2..10).map(|inodes| format!("size=1m,nr_inodes={inodes}"));
    let (mut ends, mut named) = ([0, 0], 0);
    for limit in sizes.chain(inodes) {
        let bench = Bench::web(PLAIN);
        fs::create_dir(bench.state()).expect("the state folder");
        let state = bench.state().display().to_string();
        let mount = format!("mount -t tmpfs -o {limit},mode=700 none {state}");
        let run = in_its_own_mounts(&bench, "web", &mount);
        if run.code == 0 {
            ends[0] += 1;
            continue;
        }
        ends[1] += 1;
        let run = run.fails(&["No space left on device", "Nothing was changed"]);
        let taken = run.out.lines().find_map(|line| line.strip_suffix(" taken"));
        if let Some(taken) = taken {
            named += 1;
            let state = format!("the {} was taken", taken.trim());
            run.says(&state).hides("failed to write a snapshot");
        }
        assert!(bench.nothing_was_changed());
    }
    assert!(ends.iter().all(|&count| count > 0), "{ends:?}");
    assert!(named > 0, "no disk was full just after the snapshot");
}

#[test]
fn one_of_several_runs_that_start_at_once_wins() {
    let elsewhere = "restore web --dir /nowhere";
    for args in ["web", "adopt web", "restore web", elsewhere] {
        for round in 0..3 {
            let bench = Bench::web(PLAIN);
            if args.starts_with("restore") {
                bench.run("web").code(0);
            }
            let runs: Vec<Run> = thread::scope(|scope| {
                let runs: Vec<_> = (0..6).map(|_| scope.spawn(|| bench.run(args))).collect();
                let runs = runs.into_iter().map(|run| run.join().expect("a run"));
                runs.collect()
            });
            let won = runs.iter().any(|run| run.code == 0);
            assert!(won, "round {round} of {args:?}: {runs:#?}");
            // Never overwritten, and nothing else is left (C22).
            let backups = bench.backups("web");
            assert_eq!(backups.len(), usize::from(args != "adopt web"));
            for backup in &backups {
                assert_eq!(fs::read_to_string(backup).expect("it"), PLAIN);
            }
            assert_eq!(names(&bench.dir("web")).len(), 1 + backups.len());
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
    bench.once(Call::Create, late);
    bench.world_with(Call::Create, |world| world.containers.clear());
    // Full as soon as the request is in the journal.
    fs::create_dir(bench.state()).expect("the state folder");
    let state = bench.state().display().to_string();
    let mounts = "mount -t tmpfs -o size=1m,mode=700 none STATE\n\
         (for _ in $(seq 600); do find STATE -name '*.request' | grep -q . && break; sleep 0.05; done; sleep 0.2\n\
         head -c 2000000 /dev/zero > STATE/full; head -c 9000 /dev/zero >> STATE/full) > /dev/null 2>&1 &";
    let run = in_its_own_mounts(&bench, "adopt web --yes", &mounts.replace("STATE", &state));
    let restored = "Container web-a-1 had been removed and was restored";
    run.fails(&[
        "No space left on device; restoring the containers alone\n",
        restored,
    ]);
    assert_eq!(bench.containers("web").len(), 1);
}
