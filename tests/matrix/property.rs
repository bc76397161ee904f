//! A property: after a run that ended anywhere, a restore that exits 0 has restored the world of the snapshot, which
//! stays so when everything late has ended. What was lost was named before.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use proptest::prelude::*;
use rehearsal::{Call, Era, FaultKind, Rule, Variable, World};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Run},
    ends::ended_at,
    stage::{records, stack, world},
};

/// Cases without `PROPTEST_CASES`.
const CASES: u32 = 12;

const TIMEOUT: &str = "--timeout=8s";

/// A file that was written in the layer of a container.
const WRITTEN: &str = "/etc/written";

#[derive(Debug, Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an independent choice"
)]
struct Service {
    named_volume: bool,
    anonymous_volume: bool,
    /// An internal network with a subnet of its own.
    inner_network: bool,
    variable: bool,
    depends_on_previous: bool,
    replicas: u8,
    stopped: bool,
    written: bool,
}

#[derive(Debug, Clone)]
struct Case {
    era: Era,
    services: Vec<Service>,
    /// Whether Portainer runs the stack, or a person started it.
    recorded: bool,
    /// Whether Portainer's own container is on this engine.
    portainer_here: bool,
    /// The number of responses after which the run is ended.
    ended_after: usize,
    signal: &'static str,
    /// Requests that end late: which, whether they succeed, after how many milliseconds.
    late: Vec<(Call, bool, u64)>,
}

fn service() -> impl Strategy<Value = Service> {
    let flags = prop::array::uniform5(any::<bool>());
    (
        flags,
        1..=2_u8,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    )
        .prop_map(
            |([named, anonymous, inner, variable, depends], replicas, stopped, written)| Service {
                named_volume: named,
                anonymous_volume: anonymous,
                inner_network: inner,
                variable,
                depends_on_previous: depends,
                replicas,
                stopped,
                written,
            },
        )
}

fn case() -> impl Strategy<Value = Case> {
    let era = prop_oneof![Just(Era::Sync), Just(Era::Async)];
    let call = prop_oneof![Just(Call::Create), Just(Call::Delete)];
    let late = (call, any::<bool>(), 100..1_000_u64);
    (
        era,
        prop::collection::vec(service(), 1..=3),
        any::<bool>(),
        any::<bool>(),
        1..45_usize,
        prop_oneof![Just("KILL"), Just("INT")],
        prop::collection::vec(late, 0..=2),
    )
        .prop_map(
            |(era, services, recorded, portainer_here, ended_after, signal, late)| Case {
                era,
                services,
                recorded,
                portainer_here,
                ended_after,
                signal,
                late,
            },
        )
}

impl Case {
    fn text(&self) -> String {
        let mut text = "services:\n".to_owned();
        for (at, service) in self.services.iter().enumerate() {
            write!(
                text,
                "  s{at}:\n    image: image{at}:1\n    deploy: {{replicas: {}}}\n    networks: [default{}]\n    volumes: [{}]\n",
                service.replicas,
                if service.inner_network { ", inner" } else { "" },
                match (service.named_volume, service.anonymous_volume) {
                    (true, true) => "'data:/data', /anonymous",
                    (true, false) => "'data:/data'",
                    (false, true) => "/anonymous",
                    (false, false) => "",
                }
            )
            .expect("a String");
            if service.variable {
                text.push_str("    environment: {NUMBER: '${NUMBER}'}\n");
            }
            if service.depends_on_previous && at > 0 {
                writeln!(text, "    depends_on: [s{}]", at - 1).expect("a String");
            }
        }
        text.push_str(
            "networks:\n  inner: {internal: true, ipam: {config: [{subnet: 10.9.8.0/24}]}}\nvolumes:\n  data:\n",
        );
        text
    }

    /// The stack `web`, running as the case says.
    fn bench(&self) -> Bench {
        let bench = Bench::of(self.era);
        let text = self.text();
        let env = "NUMBER=17\n";
        if self.recorded {
            bench.stack("web", &text, Some(env));
        } else {
            bench.started("web", &text, Some(env));
        }
        bench.rehearsal.world(|world| {
            if self.portainer_here {
                world.add_portainer();
            }
            if self.recorded {
                let number = Variable {
                    name: "NUMBER".to_owned(),
                    value: "17".to_owned(),
                };
                let id = world
                    .create(1, "web", text, Some(vec![number]), "admin")
                    .expect("a stack");
                world.finish_deployment(id);
            }
            for (at, service) in self.services.iter().enumerate() {
                let name = format!("web-s{at}-1");
                if service.written {
                    world.write_in(&name, WRITTEN);
                }
                if service.stopped {
                    world.stop_by_hand(&name);
                }
            }
        });
        bench
    }
}

/// The stack with the data of its volumes and its networks, but without ids, times and addresses.
fn whole(world: &World) -> Value {
    let mut whole = stack(world);
    for container in whole["containers"].as_array_mut().into_iter().flatten() {
        // A stopped container is restored as one that was not started.
        if container["state"] == "exited" {
            container["state"] = json!("created");
        }
    }
    let mut volumes = BTreeMap::new();
    for container in world.project("web") {
        for mount in &container.mounts {
            let name = mount.name.as_deref().unwrap_or_default();
            let volume = world.volume(name);
            let data = volume.map(|volume| (volume.content.clone(), volume.labels.clone()));
            volumes.insert(
                format!("{} {}", container.name, mount.target),
                (name.to_owned(), data),
            );
        }
        let mut networks: Vec<_> = container.networks.keys().collect();
        networks.sort();
        volumes.insert(
            format!("{} networks", container.name),
            (format!("{networks:?}"), None),
        );
    }
    let networks = world
        .networks
        .iter()
        .filter(|one| one.name.starts_with("web_"));
    let networks = networks.map(|one| {
        // The subnet that an engine chooses may differ.
        let subnet = (one.name == "web_inner").then_some(&one.ipam["Config"]);
        (
            one.name.clone(),
            json!([one.internal, one.driver, one.labels, subnet]),
        )
    });
    whole["volumes"] = json!(volumes);
    whole["networks"] = json!(networks.collect::<BTreeMap<_, _>>());
    whole
}

/// What was lost, and is not named in `said`.
fn unsaid(before: &World, after: &World, said: &str) -> Vec<String> {
    let mut unsaid = Vec::new();
    for container in before.project("web") {
        let is_lost = !after.containers.contains_key(&container.id);
        for change in container.changes.iter().filter(|_| is_lost) {
            if !said.contains(&change.path) {
                unsaid.push(format!("{} of {}", change.path, container.name));
            }
        }
    }
    for volume in &before.volumes {
        if !after.volumes.contains(volume) {
            unsaid.push(format!("the volume {}", volume.name));
        }
    }
    unsaid
}

fn restore(bench: &Bench) -> Run {
    bench.run(&["restore", "web", TIMEOUT])
}

fn holds(case: &Case) -> Result<(), TestCaseError> {
    let bench = case.bench();
    for (call, succeeds, millis) in &case.late {
        let delay = Duration::from_millis(*millis);
        let kind = if *succeeds {
            FaultKind::LateSuccess(delay)
        } else {
            FaultKind::LateFailure(delay)
        };
        bench
            .rehearsal
            .faults()
            .add(Rule::new(*call, kind).times(1));
    }
    let before = world(&bench);
    let arguments = ["web", TIMEOUT, "-v"];
    let run = ended_at(&bench, &arguments, case.ended_after, case.signal);
    let run = match run {
        Ok(ended) => ended,
        Err(finished) => finished,
    };
    let left = world(&bench);
    let unnamed = unsaid(&before, &left, &run.all());
    prop_assert!(
        unnamed.is_empty(),
        "lost without a word: {unnamed:?}\n{run:#?}"
    );

    let mut restored = restore(&bench);
    // The interrupted run costs one attempt, and so does each request that ends late.
    for _ in 0..case.late.len().max(1) {
        if restored.code == 0 {
            break;
        }
        prop_assert!(!restored.out.contains("verified"), "{restored:#?}");
        bench.rehearsal.skip(Duration::from_mins(1));
        let is_whole = whole(&world(&bench)) == whole(&before);
        if restored.err.contains("no snapshot") {
            prop_assert!(
                is_whole,
                "changed without a snapshot: {run:#?}\n{restored:#?}"
            );
            return Ok(());
        }
        restored = restore(&bench);
    }
    prop_assert_eq!(restored.code, 0, "{:#?}\n{:#?}", &run, &restored);
    for when in ["at its end", "when everything late has ended"] {
        let after = world(&bench);
        prop_assert_eq!(
            whole(&after),
            whole(&before),
            "{}: {:#?}\n{:#?}",
            when,
            &run,
            &restored
        );
        prop_assert!(records(&after).len() <= 1);
        let said = format!("{}{}", run.all(), restored.all());
        let unnamed = unsaid(&before, &after, &said);
        prop_assert!(
            unnamed.is_empty(),
            "lost without a word: {unnamed:?}\n{run:#?}\n{restored:#?}"
        );
        bench.rehearsal.skip(Duration::from_mins(1));
    }
    Ok(())
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn a_restore_that_succeeds_has_restored_the_world_of_the_snapshot_for_good() {
    let given = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    let config = ProptestConfig {
        cases: if given { default.cases } else { CASES },
        max_shrink_iters: 30,
        failure_persistence: None,
        ..default
    };
    proptest!(config, |(case in case())| holds(&case)?);
}
