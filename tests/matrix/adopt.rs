//! Each call of an adoption × each fault × both eras; peers that die at any request; interrupts at any request.

use std::thread;

use rehearsal::{Call, Container, Era, FaultKind, Rule, Status, World};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Run},
    combinations::{Trial, every_kind, refusal_or_break, roll_back, try_all},
    ends::ended_at,
    judge::{others, state},
    stage::{Scene, records, set_text, stack, world},
};

const ERAS: [Era; 2] = [Era::Sync, Era::Async];
const SCENES: [Scene; 2] = [Scene::ByHand, Scene::Recorded];

/// `a` stays, and `b` is recreated once, because its anonymous volume gets a name.
const TEXT: &str = "\
services:
  a:
    image: x:1
    environment:
      TOKEN: ${TOKEN}
    volumes:
      - data:/data
  b:
    image: y:1
    volumes:
      - /cache
volumes:
  data:
";

const ADOPT: [&str; 4] = ["adopt", "web", "--wait", "2s"];

fn bench(era: Era, scene: Scene) -> Bench {
    let bench = set_text(era, scene, TEXT);
    bench.rehearsal.forget_requests();
    bench
}

/// The stack, with the data at each mount.
fn with_data(world: &World) -> Value {
    let data = world.project("web").into_iter().map(|one| data(world, one));
    json!([stack(world), data.collect::<Vec<_>>()])
}

fn data(world: &World, container: &Container) -> Value {
    let mounts = container.mounts.iter().map(|mount| {
        let volume = world.volume(mount.name.as_deref().unwrap_or_default());
        json!([mount.target, volume.map(|volume| volume.content.clone())])
    });
    json!([container.name, mounts.collect::<Vec<_>>()])
}

#[derive(Clone)]
struct Combination {
    era: Era,
    scene: Scene,
    rules: Vec<(Call, FaultKind, usize)>,
}

impl Combination {
    fn disturbed(&self, bench: &Bench) -> Run {
        bench.rehearsal.forget_requests();
        for (call, kind, after) in &self.rules {
            let rule = Rule::new(*call, kind.clone()).after(*after);
            bench.rehearsal.faults().add(rule);
        }
        let hangs = |kind: &FaultKind| matches!(kind, FaultKind::Hang | FaultKind::HangAfter);
        let timeout = if self.rules.iter().any(|(_, kind, _)| hangs(kind)) {
            "1s"
        } else {
            "4s"
        };
        let mut arguments = ADOPT.to_vec();
        arguments.extend(["--timeout", timeout]);
        bench.run(&arguments)
    }
}

/// The call that deploys.
fn deploying(scene: Scene) -> Call {
    match scene {
        Scene::ByHand => Call::Create,
        Scene::Recorded => Call::Update,
    }
}

/// What a run reads. `Get` and `File` are reads of a record.
const READS: [Call; 14] = [
    Call::Get,
    Call::File,
    Call::List,
    Call::Status,
    Call::Info,
    Call::Me,
    Call::EnginePing,
    Call::EngineInfo,
    Call::EngineList,
    Call::EngineInspect,
    Call::EngineNetworks,
    Call::EngineVolumes,
    Call::EngineChanges,
    Call::EngineEvents,
];

/// What the restore of a failed adoption does.
const RESTORING: [Call; 4] = [
    Call::EngineCreate,
    Call::EngineStart,
    Call::EngineRemove,
    Call::EngineNetworkCreate,
];

fn combinations() -> Vec<Combination> {
    let mut all = Vec::new();
    let late = || FaultKind::LateFailure(std::time::Duration::ZERO);
    for era in ERAS {
        for scene in SCENES {
            let mut add = |rules: Vec<(Call, FaultKind, usize)>| {
                all.push(Combination { era, scene, rules });
            };
            let deploys = deploying(scene);
            for kind in every_kind() {
                add(vec![(deploys, kind, 0)]);
            }
            add(vec![(deploys, late(), 0)]);
            let reads = match scene {
                Scene::ByHand => &READS[2..],
                Scene::Recorded => &READS[..3],
            };
            for &call in reads {
                for kind in ["garbage", "hang", "404", "500"] {
                    // A container that the engine does not find has been removed.
                    if (call, kind) != (Call::EngineInspect, "404") {
                        add(vec![(call, refusal_or_break(kind), 0)]);
                    }
                }
            }
            for call in RESTORING {
                for kind in ["close-after", "500"] {
                    add(vec![
                        (deploys, late(), 0),
                        (call, refusal_or_break(kind), 0),
                    ]);
                }
            }
        }
    }
    all
}

/// Each request of a run, where its peer dies before or after it.
fn deaths() -> Vec<Combination> {
    let mut all = Vec::new();
    for era in ERAS {
        for scene in SCENES {
            let bench = bench(era, scene);
            bench.run(&ADOPT).code(0);
            let mut seen: Vec<Call> = Vec::new();
            for request in bench.rehearsal.requests() {
                let after = seen.iter().filter(|call| **call == request.call).count();
                seen.push(request.call);
                // The waits look again and again.
                if after < 4 {
                    let rules = vec![(request.call, FaultKind::DieAfter, after)];
                    all.push(Combination { era, scene, rules });
                }
            }
        }
    }
    all
}

impl Trial for Combination {
    fn start(&self) -> (Era, Scene) {
        (self.era, self.scene)
    }

    fn name(&self) -> String {
        let rules = self.rules.iter().map(|(call, kind, after)| match kind {
            FaultKind::Status(status, _) => format!("{call} {status} after {after}"),
            FaultKind::Body(status, _) => format!("{call} {status} after the work, after {after}"),
            kind => format!("{call} {kind:?} after {after}"),
        });
        let rules = rules.collect::<Vec<_>>().join(", ");
        format!("{:?} {:?}: {rules}", self.era, self.scene)
    }

    fn undisturbed(era: Era, scene: Scene) -> Value {
        let bench = bench(era, scene);
        bench.run(&ADOPT).code(0);
        with_data(&world(&bench))
    }

    /// After an odd one, runs the restore that its run names; after an even one, adopts again.
    fn attempt(&self, number: usize, end: &Value) -> Vec<String> {
        let bench = bench(self.era, self.scene);
        let before = world(&bench);
        let run = self.disturbed(&bench);
        let mut wrong = judge(&bench, &before, &run);
        bench.rehearsal.faults().clear();
        bench.rehearsal.revive().expect("alive again");
        let (arguments, wanted) = match roll_back(&run) {
            Some(restore) if number % 2 == 1 => (restore, &with_data(&before)),
            _ => (ADOPT.map(str::to_owned).to_vec(), end),
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let again = bench.run(&arguments);
        let after = with_data(&world(&bench));
        if again.code != 0 || after != *wanted {
            wrong.push(format!(
                "{arguments:?} does not end it: {after:#}\nwanted: {wanted:#}\n{again:#?}"
            ));
        }
        if !wrong.is_empty() {
            wrong.push(format!("{}{}", run.out, run.err));
        }
        wrong
    }
}

/// Everything that a run did or said against the rules; empty is well.
///
/// - At most one create or update was sent (B05), nothing was deleted, and everything of others is as it was.
/// - Exit 0: one Portainer stack, deployed; both containers run with their data; the one that stays is the same.
/// - Exit 1: an error, a state and a hint; every claim of the state line holds; where a container is gone and not restored,
///   a rollback is named.
fn judge(bench: &Bench, before: &World, run: &Run) -> Vec<String> {
    let after = world(bench);
    let mut wrong = others(before, &after);
    let sent = bench.calls(Call::Create).len() + bench.calls(Call::Update).len();
    if sent > 1 {
        wrong.push(format!("{sent} creates and updates were sent"));
    }
    match run.code {
        0 => wrong.extend(success(before, &after, run)),
        1 => wrong.extend(failure(before, &after, run)),
        code => wrong.push(format!("exit code {code}")),
    }
    wrong
}

fn all_data(world: &World) -> Vec<Value> {
    let all = world.project("web").into_iter();
    all.map(|one| data(world, one)).collect()
}

fn success(before: &World, after: &World, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    match records(after).as_slice() {
        [record] if record.status == Status::Active => {}
        records => wrong.push(format!("exit 0 with {records:?}")),
    }
    if all_data(before) != all_data(after) {
        wrong.push("exit 0, and not both containers with their data".to_owned());
    }
    let all = after.project("web");
    if !all.iter().all(|one| one.is_running()) {
        wrong.push("exit 0, and a container does not run".to_owned());
    }
    // N07: an update of a stack in error would recreate it, but no run ends in one and succeeds.
    let (old, now) = (before.container("web-a-1"), after.container("web-a-1"));
    if old != now {
        wrong.push("exit 0, and `a` was touched".to_owned());
    }
    if !run.out.contains("verified 2 containers, 1 not touched") {
        wrong.push("exit 0 without a verification".to_owned());
    }
    wrong
}

fn failure(before: &World, after: &World, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(state) = state(run, &mut wrong) else {
        return wrong;
    };
    wrong.extend(claims(state, before, after));
    let is_restored = state.contains("match the snapshot of this run");
    let named = roll_back(run).is_some();
    if is_changed(before, after) && !is_restored && !named {
        wrong.push("a container was changed, and no rollback is named".to_owned());
    }
    wrong
}

/// Whether a container of before is another one, does not run, or is gone.
fn is_changed(before: &World, after: &World) -> bool {
    let of =
        |world: &World| -> Vec<Container> { world.project("web").into_iter().cloned().collect() };
    of(before) != of(after)
}

/// Each definite claim of the state line, held against the world.
fn claims(state: &str, before: &World, after: &World) -> Vec<String> {
    let mut known = false;
    let mut wrong = Vec::new();
    let mut claim = |words: &str, holds: bool| {
        if state.contains(words) {
            known = true;
            if !holds {
                wrong.push(format!("{state:?} is not true: {words:?}"));
            }
        }
    };
    let same_records = records(before) == records(after);
    let unchanged = !is_changed(before, after);
    let containers = |world: &World| with_data(world)[0]["containers"].clone();
    let restored = containers(before) == containers(after) && all_data(before) == all_data(after);
    claim("this run changed nothing", unchanged && same_records);
    claim("no container was changed", unchanged);
    claim("the containers match the snapshot of this run", restored);
    claim(
        "Portainer does not list the stack",
        records(after).is_empty(),
    );
    claim("outcome is unknown", true);
    claim("may still be deploying", true);
    claim("could not be listed", true);
    claim("being restored", true);
    claim("could not check whether Portainer has the stack", true);
    let status = match records(after).as_slice() {
        [record] => Some((record.id, record.status)),
        _ => None,
    };
    let is = |wanted| status.is_some_and(|(_, status)| status == wanted);
    claim("and is deployed", is(Status::Active));
    claim("exists (active)", is(Status::Active));
    claim("but its deployment failed", is(Status::Error));
    if let Some((_, rest)) = state.split_once("Portainer stack ") {
        let id = rest.split([' ', ';']).next().unwrap_or_default();
        let exists = status.is_some_and(|(known, _)| known.to_string() == id);
        claim("Portainer stack ", exists);
    }
    for name in ["web-a-1", "web-b-1"] {
        let (old, now) = (before.container(name), after.container(name));
        let is_other = old.map(|one| &one.id) != now.map(|one| &one.id);
        claim(&format!("{name} no longer exists"), now.is_none());
        claim(&format!("{name} was recreated"), now.is_some() && is_other);
        claim(&format!("{name} was restarted"), !is_other && old != now);
        let runs = now.is_some_and(Container::is_running);
        claim(&format!("{name} no longer runs"), !is_other && !runs);
        for end in ["created", "exited, code"] {
            claim(&format!("{name} was recreated ({end}"), !runs);
        }
    }
    claim("the original containers exist and run", unchanged);
    if !known {
        wrong.push(format!("{state:?} claims nothing that is known here"));
    }
    wrong
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn after_any_fault_an_adoption_is_whole_or_says_what_is_unknown_and_a_second_run_ends_it() {
    let combinations = combinations();
    assert!(combinations.len() >= 150);
    try_all(&combinations);
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn a_peer_that_dies_at_any_request_of_an_adoption_leaves_what_a_second_run_ends() {
    let deaths = deaths();
    assert!(deaths.len() >= 60);
    try_all(&deaths);
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn an_adoption_interrupted_at_any_request_says_truly_how_far_it_came() {
    let cases = [(Era::Sync, Scene::ByHand), (Era::Async, Scene::Recorded)];
    thread::scope(|scope| {
        for (era, scene) in cases {
            scope.spawn(move || interrupted(era, scene));
        }
    });
}

fn interrupted(era: Era, scene: Scene) {
    let mut count = 0;
    let mut arguments = ADOPT.to_vec();
    arguments.push("-v");
    for line in 1.. {
        let signal = if line % 2 == 0 { "INT" } else { "TERM" };
        let bench = bench(era, scene);
        let before = world(&bench);
        let Ok(run) = ended_at(&bench, &arguments, line, signal) else {
            break;
        };
        if run.code == 0 {
            // The last answer was in, and it was faster.
            continue;
        }
        count += 1;
        let after = world(&bench);
        let state = run
            .err
            .lines()
            .find_map(|line| line.strip_prefix("state: "));
        let mut wrong = claims(state.unwrap_or_default(), &before, &after);
        if run.code != 130 {
            wrong.push(format!("exit code {}", run.code));
        }
        if is_changed(&before, &after) && roll_back(&run).is_none() {
            wrong.push("a container was changed, and no rollback is named".to_owned());
        }
        assert_eq!(wrong, [""; 0], "{era:?} {scene:?} at {line}: {run:#?}");
    }
    assert!(count >= 20, "{era:?} {scene:?}: {count}");
}
