//! `stacklift adopt`, killed at any request and run again, or restored: the stack ends whole, old or new.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

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

/// The same, with another command for one service, which is therefore recreated.
const EDITED: &str = "\
services:
  a:
    image: x:1
    volumes:
      - data:/data
  b:
    image: y:1
    command: sleep 5
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

fn bench(era: Era) -> Bench {
    let bench = Bench::of(era);
    let env = format!("TOKEN={MARKED}\n");
    bench.started("web", TEXT, Some(&env));
    bench.stack("web", EDITED, Some(&env));
    bench
}

fn command(bench: &Bench) -> Command {
    let mut command = bench.command(&["adopt", "web", "--wait", "2s"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Kills a run at a point. Returns whether it came there.
fn kill_at(bench: &Bench, point: &Point) -> bool {
    let rule = Rule::new(point.call, point.kind.clone())
        .after(point.after)
        .times(1);
    bench.rehearsal.faults().add(rule);
    bench.rehearsal.forget_requests();
    let mut child = command(bench).spawn().expect("the binary runs");
    let deadline = Instant::now() + Duration::from_mins(5);
    loop {
        let came = bench.calls(point.call).len() > point.after;
        let ended = child.try_wait().expect("a child").is_some();
        if came || ended || Instant::now() > deadline {
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

/// What is wrong with the stack, which must be whole and old, or whole and new.
fn judge(bench: &Bench, run: &Run, then: Then, volume: &str) -> Vec<String> {
    let (containers, records) = bench.rehearsal.world(|world| {
        let containers: Vec<_> = world.project("web").into_iter().cloned().collect();
        let records: Vec<_> = world.records.values().cloned().collect();
        (containers, records)
    });
    let mut wrong = Vec::new();
    let names: Vec<&str> = containers.iter().map(|one| one.name.as_str()).collect();
    if names != ["web-a-1", "web-b-1"] {
        wrong.push(format!("the containers are {names:?}"));
    }
    if !containers.iter().all(rehearsal::Container::is_running) {
        wrong.push("a container does not run".to_owned());
    }
    let b = containers.iter().find(|one| one.name == "web-b-1");
    if let Some(b) = b {
        let json = serde_json::to_value(b).expect("JSON").to_string();
        let is_new = json.contains("sleep");
        let record = records.first().map(|record| record.status);
        if run.code == 0 && matches!(then, Then::Adopt) {
            if !is_new || record != Some(Status::Active) {
                wrong.push(format!("adopted, and new: {is_new}, {record:?}"));
            }
        } else if is_new {
            wrong.push("not adopted, and the container is new".to_owned());
        }
        if !is_new
            && !b
                .mounts
                .iter()
                .any(|mount| mount.name.as_deref() == Some(volume))
        {
            wrong.push("the anonymous volume of before is detached".to_owned());
        }
    }
    if records.len() > 1 {
        wrong.push("two records".to_owned());
    }
    wrong
}

fn anonymous(bench: &Bench) -> String {
    bench.rehearsal.world(|world| {
        let containers = world.project("web");
        let mut mounts = containers.iter().flat_map(|one| &one.mounts);
        let cache = mounts.find(|mount| mount.target == "/cache");
        cache
            .and_then(|mount| mount.name.clone())
            .expect("a volume")
    })
}

fn check(era: Era, point: &Point, failing: bool, then: Then) -> Option<String> {
    let bench = bench(era);
    let volume = anonymous(&bench);
    if failing {
        let late = FaultKind::LateFailure(Duration::ZERO);
        bench.rehearsal.faults().once(Call::Create, late);
    }
    if !kill_at(&bench, point) {
        return None;
    }
    bench.rehearsal.faults().clear();
    let args = match then {
        Then::Adopt => &["adopt", "web", "--wait", "2s"][..],
        // Nothing was touched where there is no snapshot.
        Then::Restore => &["restore", "web"],
    };
    let mut run = bench.run(args);
    // A child process that the killed run was about to start holds the lock for a moment.
    while run.err.contains("another run of stacklift") {
        thread::sleep(Duration::from_millis(50));
        run = bench.run(args);
    }
    let mut wrong = judge(&bench, &run, then, &volume);
    let was_late = run.err.contains("no snapshot");
    if run.code != 0 && !was_late {
        wrong.push(format!("exit code {}", run.code));
    }
    (!wrong.is_empty()).then(|| {
        format!("{era:?} {point:?} failing: {failing}, then {then:?}: {wrong:?}\n{run:#?}")
    })
}

/// Every point of every call that comes in such a run.
fn points(era: Era, failing: bool) -> Vec<Point> {
    let bench = bench(era);
    if failing {
        let late = FaultKind::LateFailure(Duration::ZERO);
        bench.rehearsal.faults().once(Call::Create, late);
    }
    bench.run(&["adopt", "web", "--wait", "2s"]);
    let mut points: Vec<Point> = Vec::new();
    for request in bench.rehearsal.requests() {
        let after = points
            .iter()
            .filter(|point| point.call == request.call && point.kind == FaultKind::Hang)
            .count();
        // The waits look again and again.
        if after >= 4 {
            continue;
        }
        points.push(Point {
            call: request.call,
            kind: FaultKind::Hang,
            after,
        });
        if request.method != "GET" && !(failing && request.call == Call::Create) {
            points.push(Point {
                call: request.call,
                kind: FaultKind::HangAfter,
                after,
            });
        }
    }
    points
}

fn all(failing: bool, then: Then) {
    for era in [Era::Sync, Era::Async] {
        let points = points(era, failing);
        assert!(points.len() > 10, "{points:?}");
        let wrong: Vec<String> = thread::scope(|scope| {
            let chunks = points.chunks(points.len().div_ceil(6));
            let threads: Vec<_> = chunks
                .map(|chunk| {
                    scope.spawn(move || {
                        let found = chunk
                            .iter()
                            .filter_map(|point| check(era, point, failing, then));
                        found.collect::<Vec<String>>()
                    })
                })
                .collect();
            threads
                .into_iter()
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
