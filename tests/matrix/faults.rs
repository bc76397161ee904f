//! Each call of a run × each fault; peers that die at any request.

use std::time::Duration;

use testbed::{Call, Era, FaultKind, Rule};

use crate::{
    judge::{after_all, judge},
    stage::{Scene, Start, Way, roll_back, sampled, try_every, world},
};

/// Responses of a proxy in front of Portainer.
const PAGE: &str = "<!DOCTYPE html><html><body>Bad \u{1b}[31mgateway</body></html>";
const MESSAGE: &str = r#"{"message":"The upstream server is timing out"}"#;

/// A run, and what goes wrong in it.
#[derive(Debug)]
struct Disturbed {
    start: Start,
    rules: Vec<Rule>,
    timeout: &'static str,
}

/// Calls, and the scenes in which a run makes them.
type Calls = &'static [(Call, &'static [Scene])];

const BY_HAND: &[Scene] = &[Scene::ByHand];
const RECORDED: &[Scene] = &[Scene::Recorded];
const BOTH: &[Scene] = &[Scene::ByHand, Scene::Recorded];

/// The calls whose responses decide whether a migration continues, and an adoption's requests that deploy.
const DECIDING: [(Way, Calls); 2] = [
    (
        Way::Migrate,
        &[
            (Call::List, BOTH),
            (Call::Delete, RECORDED),
            (Call::EngineList, BOTH),
            (Call::EngineRemove, BY_HAND),
            (Call::Create, BOTH),
            // For the snapshot, and while it settles.
            (Call::Get, RECORDED),
        ],
    ),
    (
        Way::Adopt,
        &[(Call::Create, BY_HAND), (Call::Update, RECORDED)],
    ),
];

/// What a migration asks more than once: only the first goes wrong.
const ASKED_AGAIN: Calls = &[
    (Call::List, BOTH),
    (Call::Delete, RECORDED),
    (Call::EngineList, BOTH),
    (Call::Get, RECORDED),
    (Call::EngineRemove, BY_HAND),
];
const ONCE: [&str; 6] = [
    "close-before",
    "close-after",
    "cut-off",
    "404",
    "409",
    "500",
];

/// What is read for the refusals and the snapshot, and what must answer before any other.
const READ: Calls = &[
    (Call::Info, BY_HAND),
    (Call::Me, BY_HAND),
    (Call::File, RECORDED),
    (Call::EnginePing, BY_HAND),
    (Call::EngineInfo, BY_HAND),
    (Call::EngineInspect, BY_HAND),
    (Call::EngineNetworks, BY_HAND),
    (Call::EngineVolumes, BY_HAND),
    (Call::EngineChanges, BY_HAND),
];
const TELLING: [&str; 9] = [
    "garbage",
    "empty",
    "close-before",
    "hang",
    "slow-drip",
    "die",
    "403",
    "404",
    "500",
];

/// What an adoption reads besides that.
const READ_BY_ADOPTIONS: Calls = &[
    (Call::Get, RECORDED),
    (Call::List, BOTH),
    (Call::Status, BY_HAND),
    (Call::EngineList, BY_HAND),
    (Call::EngineEvents, BY_HAND),
];
const TELLING_ADOPTIONS: [&str; 4] = ["garbage", "hang", "404", "500"];

/// What the restore of a failed adoption does.
const RESTORING: [Call; 4] = [
    Call::EngineCreate,
    Call::EngineStart,
    Call::EngineRemove,
    Call::EngineNetworkCreate,
];

/// Every kind without a status or a time. `late.rs` tests the late ones.
const NAMED: [(&str, FaultKind); 10] = [
    ("garbage", FaultKind::Garbage),
    ("empty", FaultKind::Empty),
    ("cut-off", FaultKind::CutOff),
    ("close-before", FaultKind::CloseBefore),
    ("close-after", FaultKind::CloseAfter),
    ("hang", FaultKind::Hang),
    ("hang-after", FaultKind::HangAfter),
    ("slow-drip", FaultKind::SlowDrip),
    ("die", FaultKind::Die),
    ("die-after", FaultKind::DieAfter),
];

fn every_kind() -> Vec<FaultKind> {
    let page = |status| FaultKind::Status(status, PAGE.to_owned());
    let mut kinds: Vec<FaultKind> = NAMED.map(|(_, kind)| kind).into();
    let statuses = ["401", "403", "404", "409", "413", "429", "500", "502"];
    kinds.extend(statuses.map(refusal_or_break));
    kinds.extend([200, 302, 502, 503].map(page));
    kinds.extend([403, 504].map(|status| FaultKind::Status(status, MESSAGE.to_owned())));
    kinds
}

/// What another program than Portainer responds to a request that Portainer carries out, or that it is working on (B35).
pub fn others() -> Vec<FaultKind> {
    let page = |status| FaultKind::Body(status, PAGE.as_bytes().to_vec());
    let mut kinds: Vec<FaultKind> = [200, 302, 401, 404, 409, 504].map(page).into();
    kinds.push(FaultKind::Body(504, MESSAGE.as_bytes().to_vec()));
    kinds.push(FaultKind::Repeated);
    kinds.extend([false, true].map(|fails| FaultKind::Impatient {
        status: 504,
        body: MESSAGE.as_bytes().to_vec(),
        after: Duration::from_millis(500),
        fails,
    }));
    kinds
}

/// A kind by its name; a status has an error body of Portainer.
fn refusal_or_break(name: &str) -> FaultKind {
    if let Some((_, kind)) = NAMED.into_iter().find(|(named, _)| *named == name) {
        return kind;
    }
    let body = "{\"message\":\"no\",\"details\":\"the rehearsal refuses\"}";
    FaultKind::Status(name.parse().expect("a status"), body.to_owned())
}

fn disturbed(start: Start, rules: &[(Call, FaultKind)]) -> Disturbed {
    let hangs = |kind: &FaultKind| matches!(kind, FaultKind::Hang | FaultKind::HangAfter);
    let rule = |(call, kind): &(Call, FaultKind)| Rule::new(*call, kind.clone());
    Disturbed {
        start,
        timeout: match start.way {
            _ if rules.iter().any(|(_, kind)| hangs(kind)) => "1s",
            _ if rules.iter().any(|(_, kind)| *kind == FaultKind::SlowDrip) => "60s",
            // A quarter of it must be quiet after a lost response.
            Way::Migrate | Way::Adopt => "4s",
        },
        rules: rules.iter().map(rule).collect(),
    }
}

fn is_change(call: Call) -> bool {
    matches!(call, Call::Create | Call::Update | Call::Delete)
}

/// Each of the calls with each of the kinds. A read is the same in both eras, so it takes them in turn.
fn crossed(way: Way, calls: &[(Call, &[Scene])], kinds: &[FaultKind]) -> Vec<Disturbed> {
    let mut all = Vec::new();
    for (call, scenes) in calls {
        for &scene in *scenes {
            for (at, kind) in kinds.iter().enumerate() {
                let is_gone = matches!(kind, FaultKind::Status(404, _));
                if (way, *call) == (Way::Adopt, Call::EngineInspect) && is_gone {
                    // A container that the engine does not find has been removed.
                    continue;
                }
                for (index, era) in [Era::Sync, Era::Async].into_iter().enumerate() {
                    if is_change(*call) || at % 2 == index {
                        let start = Start { way, era, scene };
                        all.push(disturbed(start, &[(*call, kind.clone())]));
                    }
                }
            }
        }
    }
    all
}

fn combinations() -> Vec<Disturbed> {
    let mut all = Vec::new();
    for (way, calls) in DECIDING {
        all.extend(crossed(way, calls, &every_kind()));
        let changes = calls.iter().filter(|(call, _)| is_change(*call));
        let changes: Vec<_> = changes.copied().collect();
        all.extend(crossed(way, &changes, &others()));
    }
    let mut once = crossed(Way::Migrate, ASKED_AGAIN, &ONCE.map(refusal_or_break));
    for one in &mut once {
        one.rules = one.rules.drain(..).map(|rule| rule.times(1)).collect();
    }
    all.extend(once);
    let kinds = TELLING.map(refusal_or_break);
    all.extend(crossed(Way::Migrate, READ, &kinds));
    let kinds = TELLING_ADOPTIONS.map(refusal_or_break);
    all.extend(crossed(Way::Adopt, READ, &kinds));
    all.extend(crossed(Way::Adopt, READ_BY_ADOPTIONS, &kinds));
    let late = || FaultKind::LateFailure(Duration::ZERO);
    for start in Start::all() {
        if start.way == Way::Adopt {
            let deploying = match start.scene {
                Scene::ByHand => Call::Create,
                Scene::Recorded => Call::Update,
            };
            all.push(disturbed(start, &[(deploying, late())]));
            for call in RESTORING {
                for kind in ["close-after", "500"].map(refusal_or_break) {
                    all.push(disturbed(start, &[(deploying, late()), (call, kind)]));
                }
            }
        } else {
            let refused = refusal_or_break("500");
            let rules = [(Call::EngineList, refused.clone()), (Call::Create, refused)];
            all.push(disturbed(start, &rules));
        }
    }
    all
}

/// Each request of a run, where its peer dies after it.
fn deaths() -> Vec<Disturbed> {
    let mut all = Vec::new();
    for start in Start::all() {
        let bench = start.bench();
        bench.run(start.arguments()).code(0);
        let mut seen: Vec<Call> = Vec::new();
        for request in bench.rehearsal.requests() {
            let after = seen.iter().filter(|call| **call == request.call).count();
            seen.push(request.call);
            // The waits look again and again.
            if after < 4 {
                let mut death = disturbed(start, &[]);
                let rule = Rule::new(request.call, FaultKind::DieAfter);
                death.rules.push(rule.after(after));
                all.push(death);
            }
        }
    }
    all
}

impl Disturbed {
    /// After an odd one, runs the restore that its run names; after an even one, runs it again.
    fn attempt(&self, number: usize) -> Vec<String> {
        let bench = self.start.bench();
        let before = world(&bench);
        for rule in &self.rules {
            bench.rehearsal.faults().add(rule.clone());
        }
        let arguments = self.start.arguments();
        let run = bench.run(&format!("{arguments} --timeout {}", self.timeout));
        let mut wrong = judge(self.start, &bench, &before, &run);
        wrong.extend(after_all(&bench, &before, &run));
        bench.rehearsal.faults().clear();
        bench.rehearsal.revive().expect("alive again");
        let restore = roll_back(&run).filter(|_| number % 2 == 1);
        let repeated = self
            .start
            .repeat(&bench, &before, restore.as_deref(), "--timeout=4s");
        wrong.extend(repeated);
        wrong
    }
}

sampled!(
    after_any_fault_the_reported_state_is_true_and_a_second_run_or_a_restore_ends_it,
    |step| {
        let combinations = combinations();
        assert!(combinations.len() >= 500, "{}", combinations.len());
        try_every(step, combinations, |number, one| one.attempt(number));
    }
);

sampled!(
    a_peer_that_dies_at_any_request_leaves_what_a_second_run_or_a_restore_ends,
    |step| {
        let deaths = deaths();
        assert!(deaths.len() >= 150, "{}", deaths.len());
        try_every(step, deaths, |number, one| one.attempt(number));
    }
);
