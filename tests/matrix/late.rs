//! Requests that end after the run that sent them (M21): what the next run says of the stack stays true (B11).

use std::{
    thread,
    time::{Duration, Instant},
};

use testbed::{Call, Era, FaultKind, World};

use crate::{
    bench::{Bench, Run},
    ends::kill,
    stage::{Scene, Start, Way, roll_back, try_every, world},
};

/// The time limit of the runs. Without another sign, nothing may change for a quarter of it.
const TIMEOUT: &str = "--timeout=10s";

#[derive(Debug, Clone, Copy)]
struct Late {
    start: Start,
    call: Call,
    succeeds: bool,
    /// Whether the processes of Portainer's container show that the request is in flight. Otherwise nothing does: the
    /// container is not on this engine, or has no Compose process.
    is_seen: bool,
    /// The signal that ends the run that sent the request.
    signal: &'static str,
    /// What comes next, while the request is in flight: a restore, or a second run.
    restores: bool,
}

fn cases() -> Vec<Late> {
    let mut all = Vec::new();
    for start in Start::all() {
        let calls: &[Call] = match (start.way, start.scene) {
            (_, Scene::ByHand) => &[Call::Create],
            (Way::Migrate, Scene::Recorded) => &[Call::Create, Call::Delete],
            (Way::Adopt, Scene::Recorded) => &[Call::Update],
        };
        // The library of newer versions is no process.
        let seen: &[bool] = match start.era {
            Era::Sync => &[true, false],
            Era::Library | Era::Async => &[false],
        };
        for &call in calls {
            for &is_seen in seen {
                for (succeeds, restores) in
                    [(true, true), (true, false), (false, true), (false, false)]
                {
                    // How the run ended makes no difference to the next one.
                    let signal = ["KILL", "INT"][all.len() / 4 % 2];
                    all.push(Late {
                        start,
                        call,
                        succeeds,
                        is_seen,
                        signal,
                        restores,
                    });
                }
            }
        }
    }
    all
}

/// Runs it until Portainer works on the late request, and ends it there.
fn left_in_flight(bench: &Bench, late: Late) -> Run {
    // The request ends when the test says so.
    let never = Duration::from_hours(1);
    let kind = if late.succeeds {
        FaultKind::LateSuccess(never)
    } else {
        FaultKind::LateFailure(never)
    };
    bench.rehearsal.faults().once(late.call, kind);
    let mut child = bench.spawn(&format!("{} {TIMEOUT}", late.start.arguments()));
    let started = Instant::now();
    while !bench.rehearsal.is_busy() {
        let waits = child.try_wait().expect("a child").is_none();
        assert!(
            waits && started.elapsed() < Duration::from_mins(5),
            "{late:?}"
        );
        thread::sleep(Duration::from_millis(2));
    }
    kill(child.id(), late.signal);
    Run::ended(&child.wait_with_output().expect("it ends"))
}

/// What a run says must hold at its end, and after everything late has ended.
fn wrong(late: Late) -> Vec<String> {
    let bench = late.start.bench();
    if late.is_seen {
        bench.rehearsal.world(World::add_portainer);
    }
    let before = world(&bench);
    let left = left_in_flight(&bench, late);
    if !bench.rehearsal.is_busy() {
        return vec!["the request ended too early".to_owned()];
    }
    // Portainer works on it for longer than the quiet time, or for a shorter time where nothing but quiet shows the end.
    let rest = Duration::from_millis(if late.is_seen { 4_000 } else { 1_500 });
    bench.rehearsal.end_work_in(rest);
    // A killed run prints no hint.
    let restore = roll_back(&left).unwrap_or_else(|| format!("restore web {TIMEOUT}"));
    let restore = late.restores.then_some(&*restore);
    late.start.repeat(&bench, &before, restore, TIMEOUT)
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn b11_a_request_that_outlives_its_run_is_awaited_by_the_next() {
    try_every(1, cases(), |_, late| wrong(*late));
}
