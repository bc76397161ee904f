//! Several runs at once. Transcripts show a disk that is full or read-only.

use std::{ffi::OsString, fs, path::Path, thread};

use crate::bench::{Bench, PLAIN, Run};

fn names(dir: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(dir).expect("the directory");
    entries
        .map(|entry| entry.expect("it").file_name())
        .collect()
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
