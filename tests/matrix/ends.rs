//! Runs that are ended from outside after any request: killed or interrupted.

use std::{
    io::{BufRead, BufReader, Read},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use testbed::{Call, FaultKind, World};

use crate::{
    bench::{Bench, MARKED, Run},
    judge::judge,
    stage::{AT_ONCE, Start, Way, sampled, world},
};

/// Ends a run with `signal` after the response to its `line`-th request to either peer. Nothing if the run made fewer
/// requests.
fn ended_at(bench: &Bench, arguments: &str, line: usize, signal: &str) -> Option<Run> {
    let mut child = bench.spawn(&format!("{arguments} -v"));
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
        kill(child.id(), signal);
    }
    reader.read_to_string(&mut err).expect("text");
    let output = child.wait_with_output().expect("it ends");
    let ended = Run::ended(&output);
    let run = Run { err, ..ended };
    assert!(!run.all().contains(MARKED), "{run:#?}");
    (requests == line).then_some(run)
}

/// Sends a signal to a process.
pub fn kill(id: u32, signal: &str) {
    let arguments = [format!("-{signal}"), id.to_string()];
    let sent = Command::new("kill").args(arguments).status();
    assert!(sent.expect("kill").success());
}

/// Ends a run of each start after every `step`-th of its requests, with a signal that follows from the number of the request.
fn each(
    step: usize,
    starts: impl Fn(&Start) -> bool,
    prepare: impl Fn(&Bench) + Sync,
    signal: impl Fn(usize) -> &'static str + Sync,
    wrong: impl Fn(Start, &Bench, &World, &Run, usize) -> Vec<String> + Sync,
) {
    let starts: Vec<_> = Start::all().into_iter().filter(starts).collect();
    // Where it begins differs, so that a sample of several starts has each of their common requests.
    let first = |start| start % step + 1;
    let lines: Vec<_> = (0..starts.len()).map(first).map(AtomicUsize::new).collect();
    let at_once = AT_ONCE / starts.len();
    thread::scope(|scope| {
        for (start, next) in starts.into_iter().zip(&lines) {
            for _ in 0..at_once {
                let (prepare, signal, wrong) = (&prepare, &signal, &wrong);
                scope.spawn(move || {
                    loop {
                        let line = next.fetch_add(step, Ordering::SeqCst);
                        let bench = start.bench();
                        let before = world(&bench);
                        prepare(&bench);
                        let arguments = start.arguments();
                        let Some(run) = ended_at(&bench, arguments, line, signal(line)) else {
                            assert!(line > 10, "{start:?} makes fewer than {line} requests");
                            break;
                        };
                        let wrong = wrong(start, &bench, &before, &run, line);
                        assert_eq!(wrong, [""; 0], "{start:?} ended at {line}: {run:#?}");
                    }
                });
            }
        }
    });
}

/// What a second run, or a restore, makes of a run that was killed.
fn ends_it(start: Start, bench: &Bench, before: &World, _: &Run, line: usize) -> Vec<String> {
    bench.faults().clear();
    let restore = (line % 2 == 1).then_some("restore web");
    start.repeat(bench, before, restore, "--timeout=4s")
}

fn fails(bench: &Bench) {
    for call in [Call::Create, Call::Update] {
        bench.once(call, FaultKind::LateFailure(Duration::ZERO));
    }
}

sampled!(
    killed_at_any_request_a_second_run_or_a_restore_ends_it,
    |step| each(step, |_| true, |_| (), |_| "KILL", ends_it)
);

sampled!(
    a_failed_adoption_that_is_killed_at_any_request_of_its_restore_is_ended_too,
    |step| each(
        step,
        |start| start.way == Way::Adopt,
        fails,
        |_| "KILL",
        ends_it
    )
);

sampled!(
    interrupted_between_any_two_steps_it_says_truly_how_far_it_came,
    |step| each(
        step,
        |_| true,
        |_| (),
        |line| if line % 2 == 0 { "INT" } else { "TERM" },
        |start, bench, before, run, _| match run.code {
            // Its last response was in, and it was faster.
            0 | 130 | 143 => judge(start, bench, before, run),
            code => vec![format!("exit code {code}")],
        },
    )
);
