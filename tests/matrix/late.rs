//! Requests that end after the run that sent them (M21): what the next run says of the stack stays true (B11).

use std::{
    fmt::Write as _,
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rehearsal::{Call, Era, FaultKind, World};
use serde_json::Value;

use crate::{
    bench::{Bench, Run},
    combinations::roll_back,
    ends::run_after_kill,
    stage::{Scene, records, set, stack, world},
};

/// How many cases run at once: most of the time they wait.
const AT_ONCE: usize = 12;

/// The time limit of the runs. Without another sign, nothing may change for a quarter of it.
const TIMEOUT: &str = "--timeout=10s";

#[derive(Debug, Clone, Copy)]
struct Late {
    way: Way,
    era: Era,
    scene: Scene,
    call: Call,
    succeeds: bool,
    sign: Sign,
    end: End,
    then: Then,
}

/// What shows that a request is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// The processes of Portainer's container.
    Top,
    /// None: Portainer's container is not on this engine, or has no Compose process.
    Nothing,
}

/// The command that sent the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Migrate,
    Adopt,
}

impl Way {
    fn arguments(self) -> Vec<String> {
        let arguments = match self {
            Self::Migrate => vec!["web"],
            Self::Adopt => vec!["adopt", "web", "--wait=2s"],
        };
        arguments.into_iter().map(str::to_owned).collect()
    }
}

/// How the run that sent the request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Interrupted,
}

/// What comes next, while the request is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Again,
    Restore,
}

impl Late {
    /// The request ends when the test says so.
    fn kind(self) -> FaultKind {
        let never = Duration::from_hours(1);
        if self.succeeds {
            FaultKind::LateSuccess(never)
        } else {
            FaultKind::LateFailure(never)
        }
    }

    /// How long Portainer still works on the request when the next run begins: longer than the quiet time, or shorter
    /// where nothing but quiet shows the end.
    fn rest(self) -> Duration {
        match self.sign {
            Sign::Top => Duration::from_secs(4),
            Sign::Nothing => Duration::from_millis(1_500),
        }
    }

    fn bench(self) -> Bench {
        let bench = set(self.era, self.scene);
        if self.sign == Sign::Top {
            bench.rehearsal.world(World::add_portainer);
        }
        bench
    }
}

fn cases() -> Vec<Late> {
    let mut all = Vec::new();
    let sent = [
        (Way::Migrate, Call::Create, Scene::ByHand),
        (Way::Migrate, Call::Create, Scene::Recorded),
        (Way::Migrate, Call::Delete, Scene::Recorded),
        (Way::Adopt, Call::Create, Scene::ByHand),
        (Way::Adopt, Call::Update, Scene::Recorded),
    ];
    // The library of newer versions is no process.
    let seen = [
        (Era::Sync, Sign::Top),
        (Era::Sync, Sign::Nothing),
        (Era::Async, Sign::Nothing),
    ];
    for (way, call, scene) in sent {
        for (era, sign) in seen {
            for succeeds in [true, false] {
                for end in [End::Killed, End::Interrupted] {
                    for then in [Then::Again, Then::Restore] {
                        // How an adoption ends makes no difference to the next run.
                        if (way, end) == (Way::Adopt, End::Interrupted) {
                            continue;
                        }
                        all.push(Late {
                            way,
                            era,
                            scene,
                            call,
                            succeeds,
                            sign,
                            end,
                            then,
                        });
                    }
                }
            }
        }
    }
    all
}

/// Runs it until Portainer works on the late request, and ends it there.
fn left_in_flight(bench: &Bench, late: Late) -> Run {
    bench.rehearsal.faults().once(late.call, late.kind());
    let arguments = late.way.arguments();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    arguments.push(TIMEOUT);
    let mut child = bench
        .command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let started = Instant::now();
    while !bench.rehearsal.world(|world| world.is_busy()) {
        let waits = child.try_wait().expect("a child").is_none();
        assert!(
            waits && started.elapsed() < Duration::from_mins(5),
            "{late:?}"
        );
        thread::sleep(Duration::from_millis(2));
    }
    end(&mut child, late.end);
    let output = child.wait_with_output().expect("it ends");
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn end(child: &mut Child, end: End) {
    if end == End::Killed {
        child.kill().expect("killed");
        return;
    }
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill").success());
}

/// What a run says must hold at its end, and after everything late has ended.
fn wrong(late: Late, ends: &[((Way, Era, Scene), Value)]) -> Vec<String> {
    let bench = late.bench();
    let before = stack(&world(&bench));
    let left = left_in_flight(&bench, late);
    if !bench.rehearsal.world(|world| world.is_busy()) {
        return vec!["the request ended too early".to_owned()];
    }
    let (arguments, wanted) = match late.then {
        Then::Again => {
            let key = (late.way, late.era, late.scene);
            let end = ends.iter().find(|(of, _)| *of == key).expect("an end");
            (late.way.arguments(), &end.1)
        }
        // A killed run prints no hint.
        Then::Restore => {
            let restore = vec!["restore".to_owned(), "web".to_owned()];
            (roll_back(&left).unwrap_or(restore), &before)
        }
    };
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // A command that a run names has its settings.
    if !arguments.contains(&"--timeout") {
        arguments.push(TIMEOUT);
    }
    bench
        .rehearsal
        .world(|world| world.end_work_in(late.rest()));
    let run = run_after_kill(&bench, &arguments);
    let mut wrong = Vec::new();
    if run.code != 0 {
        wrong.push("it fails".to_owned());
    }
    let mut check = |when: &str| {
        let world = world(&bench);
        let is = stack(&world);
        if run.code == 0 && is != *wanted {
            wrong.push(format!("{when}: {is:#}"));
        }
        let count = records(&world).len();
        if count > 1 {
            wrong.push(format!("{when}: {count} Portainer stacks"));
        }
    };
    check("at its end");
    bench.rehearsal.skip(Duration::from_mins(1));
    check("when everything late has ended");
    if run.code != 0 {
        let run = bench.run(&arguments);
        let is = stack(&world(&bench));
        if run.code != 0 || is != *wanted {
            wrong.push(format!("a repetition does not help: {run:#?} {is:#}"));
        }
    }
    if !wrong.is_empty() {
        wrong.push(format!("{left:#?}\n{arguments:?}: {run:#?}"));
    }
    wrong
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn b11_a_request_that_outlives_its_run_is_awaited_by_the_next() {
    let ways = [Way::Migrate, Way::Adopt].into_iter();
    let eras = ways.flat_map(|way| [(way, Era::Sync), (way, Era::Async)]);
    let keys = eras.flat_map(|(way, era)| [(way, era, Scene::ByHand), (way, era, Scene::Recorded)]);
    let ends: Vec<((Way, Era, Scene), Value)> = keys
        .map(|(way, era, scene)| {
            let bench = set(era, scene);
            let arguments = way.arguments();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            bench.run(&arguments).code(0);
            ((way, era, scene), stack(&world(&bench)))
        })
        .collect();
    let cases = cases();
    let next = AtomicUsize::new(0);
    let found = Mutex::new((0, String::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(late) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let wrong = wrong(*late, &ends);
                    let mut found = found.lock().expect("the list");
                    found.0 += usize::from(!wrong.is_empty());
                    for what in wrong {
                        writeln!(found.1, "{late:?}: {what}").expect("a String");
                    }
                }
            });
        }
    });
    let (count, wrong) = found.into_inner().expect("the list");
    assert_eq!(count, 0, "of {} cases:\n{wrong}", cases.len());
}
