//! `stacklift adopt`, killed at any request and run again, or restored: the stack ends whole, old or new.

use std::{process::Stdio, thread, time::Duration};

use rehearsal::{Call, Era, FaultKind, Rule, Status};

use crate::bench::{Bench, MARKED, Run};

const TEXT: &str = "\
services:
  a:
    image: x:1
    volumes:
      - data:/data
  b:
    image: y:1
    environment:
      TOKEN: ${TOKEN}
    volumes:
      - /cache
volumes:
  data:
";

/// What follows the killed run.
#[derive(Debug, Clone, Copy)]
enum Then {
    Adopt,
    Restore,
}

/// Where the run is killed: while the request waits for its response.
#[derive(Debug, Clone)]
struct Point {
    call: Call,
    kind: FaultKind,
    /// How many requests of the call come first.
    after: usize,
}

/// The stack, of which one service gets another command and is therefore recreated.
fn bench(era: Era, failing: bool) -> Bench {
    let bench = Bench::of(era);
    let env = format!("TOKEN={MARKED}\n");
    bench.started("web", TEXT, Some(&env));
    let edited = TEXT.replace("    image: y:1\n", "    image: y:1\n    command: sleep 5\n");
    bench.stack("web", &edited, Some(&env));
    if failing {
        let late = FaultKind::LateFailure(Duration::ZERO);
        bench.once(Call::Create, late);
    }
    bench
}

/// Kills a run at a point. Returns whether it came there.
fn kill_at(bench: &Bench, point: &Point) -> bool {
    let rule = Rule::new(point.call, point.kind.clone());
    bench.faults().add(rule.after(point.after).times(1));
    bench.forget_requests();
    let mut command = bench.command(ADOPT);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    loop {
        let came = bench.calls(point.call).len() > point.after;
        let ended = child.try_wait().expect("a child").is_some();
        if came || ended {
            if !ended {
                // The request takes effect before the response hangs.
                thread::sleep(Duration::from_millis(50));
                child.kill().expect("killed");
                child.wait().expect("ended");
            }
            return came && !ended;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

const ADOPT: &str = "adopt web --wait 2s";

/// What is wrong with the stack, which must be whole and old, or whole and new.
fn judge(bench: &Bench, run: &Run, then: Then, volume: &str) -> Vec<&'static str> {
    let (containers, records) = bench.world(|world| {
        let containers: Vec<_> = world.project("web").into_iter().cloned().collect();
        let records: Vec<_> = world.records.values().cloned().collect();
        (containers, records)
    });
    let [a, b] = &containers[..] else {
        return vec!["there are not two containers"];
    };
    let is_new = serde_json::to_string(b).expect("JSON").contains("sleep");
    let is_adopted = run.code == 0 && matches!(then, Then::Adopt);
    let is_active = records.iter().any(|one| one.status == Status::Active);
    let mut mounts = b.mounts.iter();
    let keeps = mounts.any(|mount| mount.name.as_deref() == Some(volume));
    let wrong = [
        (
            (&*a.name, &*b.name) != ("web-a-1", "web-b-1"),
            "other names",
        ),
        (
            !a.is_running() || !b.is_running(),
            "a container does not run",
        ),
        (
            is_adopted && !(is_new && is_active),
            "adopted, but not new or not active",
        ),
        (
            !is_adopted && is_new,
            "not adopted, and the container is new",
        ),
        (
            !is_new && !keeps,
            "the anonymous volume of before is detached",
        ),
        (records.len() > 1, "two records"),
        // Nothing was touched where there is no snapshot.
        (
            run.code != 0 && !run.err.contains("no snapshot"),
            "it failed",
        ),
    ];
    let all = wrong.into_iter().filter(|(is_wrong, _)| *is_wrong);
    all.map(|(_, what)| what).collect()
}

fn anonymous(bench: &Bench) -> String {
    bench.world(|world| {
        let containers = world.project("web");
        let mut mounts = containers.iter().flat_map(|one| &one.mounts);
        let cache = mounts.find(|mount| mount.target == "/cache").expect("it");
        cache.name.clone().expect("a volume")
    })
}

fn check(era: Era, point: &Point, failing: bool, then: Then) -> Option<String> {
    let bench = bench(era, failing);
    let volume = anonymous(&bench);
    if !kill_at(&bench, point) {
        return None;
    }
    bench.faults().clear();
    let args = match then {
        Then::Adopt => ADOPT,
        Then::Restore => "restore web",
    };
    let mut run = bench.run(args);
    // A child process that the killed run was about to start holds the lock for a moment.
    while run.err.contains("another run of stacklift") {
        thread::sleep(Duration::from_millis(50));
        run = bench.run(args);
    }
    let wrong = judge(&bench, &run, then, &volume);
    (!wrong.is_empty()).then(|| {
        format!("{era:?} {point:?} failing: {failing}, then {then:?}: {wrong:?}\n{run:#?}")
    })
}

/// Every point of every call that comes in such a run.
fn points(era: Era, failing: bool) -> Vec<Point> {
    let bench = bench(era, failing);
    bench.run(ADOPT);
    let mut points: Vec<Point> = Vec::new();
    for request in bench.requests() {
        let call = request.call;
        let is_same = |point: &&Point| point.call == call && point.kind == FaultKind::Hang;
        let after = points.iter().filter(is_same).count();
        // The waits look again and again.
        if after >= 4 {
            continue;
        }
        let changes = request.method != "GET" && !(failing && call == Call::Create);
        let kinds = [
            Some(FaultKind::Hang),
            changes.then_some(FaultKind::HangAfter),
        ];
        let of = |kind| Point { call, kind, after };
        points.extend(kinds.into_iter().flatten().map(of));
    }
    points
}

fn all(failing: bool, then: Then) {
    for era in [Era::Sync, Era::Async] {
        let points = points(era, failing);
        assert!(points.len() > 10, "{points:?}");
        let chunks = points.chunks(points.len().div_ceil(6));
        let wrong: Vec<String> = thread::scope(|scope| {
            let check = |chunk: &[Point]| -> Vec<String> {
                let found = chunk
                    .iter()
                    .filter_map(|point| check(era, point, failing, then));
                found.collect()
            };
            let threads: Vec<_> = chunks
                .map(|chunk| scope.spawn(move || check(chunk)))
                .collect();
            let threads = threads.into_iter();
            threads
                .flat_map(|thread| thread.join().expect("a thread"))
                .collect()
        });
        assert!(
            wrong.is_empty(),
            "{} of {}:\n{}",
            wrong.len(),
            points.len(),
            wrong.join("\n")
        );
    }
}

#[test]
fn killed_at_any_request_and_run_again() {
    all(false, Then::Adopt);
}

#[test]
fn killed_at_any_request_and_restored() {
    all(false, Then::Restore);
}

#[test]
fn killed_at_any_request_of_a_run_that_restores_and_run_again() {
    all(true, Then::Adopt);
}

#[test]
fn killed_at_any_request_of_a_run_that_restores_and_restored() {
    all(true, Then::Restore);
}
