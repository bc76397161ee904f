//! Runs that are ended from outside: killed at every request, interrupted between any two steps.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rehearsal::{Era, World};

use crate::{
    bench::{Bench, MARKED, Run},
    judge::{claims, is_destroyed},
    stage::{Scene, set, stack, world},
};

/// The arguments of a run that shows its requests.
const VERBOSE: [&str; 2] = ["web", "-v"];

/// Ends a run with `signal` after the response to its `line`-th request to either peer. `Err` is a run that made fewer
/// requests. The run must show its requests.
pub fn ended_at(bench: &Bench, arguments: &[&str], line: usize, signal: &str) -> Result<Run, Run> {
    let mut child = bench
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut reader = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut err = String::new();
    let mut requests = 0;
    while requests < line {
        let start = err.len();
        if reader.read_line(&mut err).expect("text") == 0 {
            break;
        }
        let said = &err[start..];
        requests += usize::from(said.starts_with("portainer: ") || said.starts_with("engine: "));
    }
    if requests == line {
        let signal = format!("-{signal}");
        let kill = Command::new("kill")
            .args([&signal, &child.id().to_string()])
            .status();
        assert!(kill.expect("kill").success());
    }
    reader.read_to_string(&mut err).expect("text");
    let output = child.wait_with_output().expect("it ends");
    let run = Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err,
    };
    assert!(!run.all().contains(MARKED), "{run:#?}");
    if requests == line { Ok(run) } else { Err(run) }
}

/// Runs the binary. A child process that a killed run was about to start holds the lock for a moment.
pub fn run_after_kill(bench: &Bench, arguments: &[&str]) -> Run {
    for _ in 0..100 {
        let run = bench.run(arguments);
        if !run.err.contains("another run of stacklift") {
            return run;
        }
        thread::sleep(Duration::from_millis(50));
    }
    bench.run(arguments)
}

fn end(era: Era, scene: Scene) -> serde_json::Value {
    let bench = set(era, scene);
    bench.run(&["web"]).code(0);
    stack(&world(&bench))
}

fn each(check: impl Fn(Era, Scene) + Sync) {
    thread::scope(|scope| {
        for era in [Era::Sync, Era::Async] {
            for scene in [Scene::ByHand, Scene::Recorded] {
                let check = &check;
                scope.spawn(move || check(era, scene));
            }
        }
    });
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn killed_at_every_request_a_rerun_ends_as_an_undisturbed_run() {
    each(|era, scene| {
        let end = end(era, scene);
        let mut killed = 0;
        for line in 1.. {
            let bench = set(era, scene);
            if ended_at(&bench, &VERBOSE, line, "KILL").is_err() {
                break;
            }
            killed += 1;
            run_after_kill(&bench, &["web"]).code(0);
            assert_eq!(
                stack(&world(&bench)),
                end,
                "{era:?} {scene:?} killed at {line}"
            );
        }
        assert!(
            killed >= 10,
            "{era:?} {scene:?}: killed at {killed} requests"
        );
    });
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn interrupted_between_any_two_steps_it_says_truly_how_far_it_came() {
    each(|era, scene| {
        let mut interrupted = 0;
        for line in 1.. {
            let signal = if line % 2 == 0 { "INT" } else { "TERM" };
            let bench = set(era, scene);
            let before = world(&bench);
            let Ok(run) = ended_at(&bench, &VERBOSE, line, signal) else {
                break;
            };
            if run.code == 0 {
                // The last answer was in, and it was faster.
                continue;
            }
            interrupted += 1;
            let wrong = said(&before, &world(&bench), &run);
            assert_eq!(wrong, [""; 0], "{era:?} {scene:?} at {line}: {run:#?}");
        }
        assert!(interrupted >= 9, "{era:?} {scene:?}: {interrupted}");
    });
}

fn said(before: &World, after: &World, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    if run.code != 130 {
        wrong.push(format!("exit code {}", run.code));
    }
    if !run.err.contains("warning: interrupted") {
        wrong.push("it does not say that it was interrupted".to_owned());
    }
    let state = run
        .err
        .lines()
        .find_map(|line| line.strip_prefix("state: "));
    match state {
        Some(state) => wrong.extend(claims(state, before, after)),
        None => wrong.push("no state".to_owned()),
    }
    if is_destroyed(before, after) && !run.err.contains("stacklift restore web --to ") {
        wrong.push("something is gone, and no restore is named".to_owned());
    }
    wrong
}
