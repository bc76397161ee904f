//! Each call of a migration × each fault × both eras.

use std::{
    fmt::Write as _,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rehearsal::{Call, Era, FaultKind, Rule};
use serde_json::Value;

use crate::{
    bench::{Bench, Run},
    judge::judge,
    stage::{Scene, set, stack, world},
};

/// How many combinations are tried at once: most of them wait.
const AT_ONCE: usize = 12;

/// Responses of a proxy in front of Portainer.
const PAGE: &str = "<!DOCTYPE html><html><body>Bad \u{1b}[31mgateway</body></html>";

/// A run that goes wrong, and the run after it.
pub trait Trial: Sync {
    /// The world that it starts in.
    fn start(&self) -> (Era, Scene);

    fn name(&self) -> String;

    /// The stack after a run in which nothing goes wrong.
    fn undisturbed(era: Era, scene: Scene) -> Value;

    /// Everything that is wrong. `end` is the stack after a run in which nothing goes wrong.
    fn attempt(&self, number: usize, end: &Value) -> Vec<String>;
}

struct Combination {
    era: Era,
    scene: Scene,
    call: Call,
    kind: FaultKind,
    /// How many requests of the call go wrong.
    times: usize,
}

impl Combination {
    /// The run that goes wrong; then everybody is there again and nothing goes wrong any more.
    fn disturbed(&self, bench: &Bench) -> Run {
        bench.rehearsal.forget_requests();
        let rule = Rule::new(self.call, self.kind.clone()).times(self.times);
        bench.rehearsal.faults().add(rule);
        let timeout = match self.kind {
            FaultKind::Hang | FaultKind::HangAfter => "1s",
            _ => "60s",
        };
        Run::of(&mut bench.command(&["web", "--timeout", timeout]))
    }

    /// Nothing goes wrong any more.
    fn repair(bench: &Bench) {
        bench.rehearsal.faults().clear();
        bench.rehearsal.revive().expect("alive again");
    }
}

fn combinations() -> Vec<Combination> {
    let mut all = Vec::new();
    let mut add = |calls: &[(Call, &[Scene])], kinds: &[FaultKind], times: usize| {
        for era in [Era::Sync, Era::Async] {
            for (call, scenes) in calls {
                for &scene in *scenes {
                    all.extend(kinds.iter().map(|kind| Combination {
                        era,
                        scene,
                        call: *call,
                        kind: kind.clone(),
                        times,
                    }));
                }
            }
        }
    };
    add(DECIDING, &every_kind(), usize::MAX);
    add(ASKED_AGAIN, &ONCE.map(refusal_or_break), 1);
    add(TOLERATED, &TELLING.map(refusal_or_break), usize::MAX);
    all
}

const BOTH: &[Scene] = &[Scene::ByHand, Scene::Recorded];

/// The calls whose responses decide whether a run continues.
const DECIDING: &[(Call, &[Scene])] = &[
    (Call::List, BOTH),
    (Call::Delete, &[Scene::Recorded]),
    (Call::EngineList, BOTH),
    (Call::EngineRemove, &[Scene::ByHand]),
    (Call::Create, BOTH),
    // For the snapshot, and while it settles.
    (Call::Get, &[Scene::Recorded]),
];

/// Those of them that one run makes more than once: only the first goes wrong.
const ASKED_AGAIN: &[(Call, &[Scene])] = &[
    (Call::List, BOTH),
    (Call::Delete, &[Scene::Recorded]),
    (Call::EngineList, BOTH),
    (Call::Get, &[Scene::Recorded]),
    (Call::EngineRemove, &[Scene::ByHand]),
];
const ONCE: [&str; 6] = [
    "close-before",
    "close-after",
    "cut-off",
    "404",
    "409",
    "500",
];

/// Reads for the refusals and the snapshot, and what must answer before any other.
const TOLERATED: &[(Call, &[Scene])] = &[
    (Call::Info, &[Scene::ByHand]),
    (Call::Me, &[Scene::ByHand]),
    (Call::File, &[Scene::Recorded]),
    (Call::EnginePing, &[Scene::ByHand]),
    (Call::EngineInfo, &[Scene::ByHand]),
    (Call::EngineInspect, &[Scene::ByHand]),
    (Call::EngineNetworks, &[Scene::ByHand]),
    (Call::EngineVolumes, &[Scene::ByHand]),
    (Call::EngineChanges, &[Scene::ByHand]),
];
const TELLING: [&str; 8] = [
    "garbage",
    "close-before",
    "hang",
    "slow-drip",
    "die",
    "403",
    "404",
    "500",
];

pub fn every_kind() -> Vec<FaultKind> {
    let page = |status| FaultKind::Status(status, PAGE.to_owned());
    // `late.rs` tests the late ones.
    let is_late =
        |kind: &FaultKind| matches!(kind, FaultKind::LateSuccess(_) | FaultKind::LateFailure(_));
    let named = FaultKind::NAMES.iter().map(|(kind, _)| kind.clone());
    let mut kinds: Vec<FaultKind> = named.filter(|kind| !is_late(kind)).collect();
    let statuses = ["401", "403", "404", "409", "413", "429", "500", "502"];
    kinds.extend(statuses.map(refusal_or_break));
    kinds.extend([200, 302, 502, 503].map(page));
    // A gateway that timed out while Portainer continued.
    kinds.push(FaultKind::Body(504, PAGE.as_bytes().to_vec()));
    kinds
}

/// A kind by its name; a status has an error body of Portainer.
pub fn refusal_or_break(name: &str) -> FaultKind {
    match name.parse().expect("a kind") {
        FaultKind::Status(status, _) => {
            let body = "{\"message\":\"no\",\"details\":\"the rehearsal refuses\"}";
            FaultKind::Status(status, body.to_owned())
        }
        kind => kind,
    }
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn after_any_fault_the_reported_state_is_true_and_a_rerun_or_a_restore_fixes_it() {
    let combinations = combinations();
    assert!(combinations.len() >= 150);
    try_all(&combinations);
}

/// Tries all of them, and lists what is wrong.
pub fn try_all<T: Trial>(trials: &[T]) {
    let ends: Vec<((Era, Scene), Value)> = [Era::Sync, Era::Async]
        .into_iter()
        .flat_map(|era| [(era, Scene::ByHand), (era, Scene::Recorded)])
        .map(|(era, scene)| ((era, scene), T::undisturbed(era, scene)))
        .collect();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(String::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let Some(one) = trials.get(number) else {
                        break;
                    };
                    let key = one.start();
                    let end = &ends.iter().find(|(of, _)| *of == key).expect("an end").1;
                    for what in one.attempt(number, end) {
                        let mut wrong = wrong.lock().expect("the list");
                        writeln!(wrong, "{}: {what}", one.name()).expect("a String");
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("the list");
    assert!(
        wrong.is_empty(),
        "of {} combinations:\n{wrong}",
        trials.len()
    );
}

impl Trial for Combination {
    fn start(&self) -> (Era, Scene) {
        (self.era, self.scene)
    }

    fn name(&self) -> String {
        let Self {
            era,
            scene,
            call,
            kind,
            times,
        } = self;
        let kind = match kind {
            FaultKind::Status(status, _) => format!("{status}"),
            FaultKind::Body(status, _) => format!("{status} after the work"),
            kind => format!("{kind:?}"),
        };
        let times = if *times == 1 { " once" } else { "" };
        format!("{era:?} {scene:?}: {call} {kind}{times}")
    }

    fn undisturbed(era: Era, scene: Scene) -> Value {
        let bench = set(era, scene);
        bench.run(&["web"]).code(0);
        stack(&world(&bench))
    }

    /// After an odd one, runs the restore that its run names; after an even one, runs it again.
    fn attempt(&self, number: usize, end: &Value) -> Vec<String> {
        let bench = set(self.era, self.scene);
        let before = world(&bench);
        let run = self.disturbed(&bench);
        let mut wrong = judge(&bench, &before, &run);
        Combination::repair(&bench);
        match roll_back(&run) {
            Some(arguments) if number % 2 == 1 => {
                wrong.extend(restored(&bench, &arguments, &stack(&before)));
            }
            _ => {
                let again = bench.run(&["web"]);
                let after = stack(&world(&bench));
                if again.code != 0 || after != *end {
                    wrong.push(format!("a re-run does not converge: {after:#}\n{again:#?}"));
                }
            }
        }
        if !wrong.is_empty() {
            wrong.push(format!("{}{}", run.out, run.err));
        }
        wrong
    }
}

fn restored(bench: &Bench, arguments: &[String], before: &Value) -> Vec<String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let restore = bench.run(&arguments);
    let after = stack(&world(bench));
    if restore.code == 0 && after == *before {
        return Vec::new();
    }
    vec![format!(
        "the restore does not roll it back: {after:#}\n{restore:#?}"
    )]
}

/// The arguments of the restore that a run names. A run that a hanging request ended had a short timeout: on a busy
/// machine, it is too short for a restore.
pub fn roll_back(run: &Run) -> Option<Vec<String>> {
    let (_, rest) = run.err.split_once("to roll back, run: ")?;
    // Settings of the environment come first.
    let (_, arguments) = rest.lines().next()?.split_once("stacklift ")?;
    let arguments = arguments.replace("--timeout 1s", "--timeout 8s");
    Some(arguments.split_whitespace().map(str::to_owned).collect())
}
