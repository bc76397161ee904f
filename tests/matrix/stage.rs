//! A stack among other ones, the run that is disturbed, and what must be the same afterwards.

use std::{
    fmt::{Debug, Write as _},
    fs,
    sync::{
        LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use testbed::{Container, Era, Record, Variable, World};

use crate::bench::{Bench, MARKED, PLAIN, Run};

/// The stack's Compose text. An adoption keeps `a`, and recreates `b` once, because its anonymous volume gets a name.
const TEXT: &str = "\
services:
  a:
    image: x:1
    environment:
      TOKEN: ${TOKEN}
    volumes:
      - data:/data
    networks: [default, inner]
  b:
    image: y:1
    volumes:
      - /cache
networks:
  inner: {internal: true, ipam: {config: [{subnet: 10.9.8.0/24}]}}
volumes:
  data:
";

/// How many runs are tried at once: most of them wait.
pub const AT_ONCE: usize = 16;

/// Two tests of one list of trials: the second tier tries every third, the third tier each.
macro_rules! sampled {
    ($name:ident, $run:expr) => {
        mod $name {
            use super::*;

            #[test]
            #[ignore = "takes minutes: run scripts/test"]
            fn every_third_trial() {
                $run(3);
            }

            #[test]
            #[ignore = "takes minutes: run scripts/test --all"]
            fn each_trial() {
                $run(1);
            }
        }
    };
}
pub(crate) use sampled;

/// What was there before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// Containers that were started by hand, and no Portainer stack.
    ByHand,
    /// A Portainer stack that runs them.
    Recorded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Migrate,
    Adopt,
}

/// A run, and where it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    pub way: Way,
    pub era: Era,
    pub scene: Scene,
}

impl Start {
    pub fn all() -> Vec<Self> {
        let ways = [Way::Migrate, Way::Adopt].into_iter();
        let eras = ways.flat_map(|way| [Era::Sync, Era::Async].map(|era| (way, era)));
        eras.flat_map(|(way, era)| {
            [Scene::ByHand, Scene::Recorded].map(|scene| Self { way, era, scene })
        })
        .collect()
    }

    /// The arguments of the run.
    pub fn arguments(self) -> &'static str {
        match (self.way, self.scene) {
            (Way::Migrate, _) => "web",
            (Way::Adopt, Scene::ByHand) => "adopt web --wait 2s",
            // What Portainer has does not come from an adoption (B22).
            (Way::Adopt, Scene::Recorded) => "adopt web --overwrite --wait 2s",
        }
    }

    /// The stack `web`, and others that no run of it may touch.
    pub fn bench(self) -> Bench {
        let bench = Bench::of(self.era);
        let env = format!("TOKEN={MARKED}\n");
        bench.started("web2", PLAIN, None);
        match self.scene {
            Scene::ByHand => bench.started("web", TEXT, Some(&env)),
            Scene::Recorded => bench.stack("web", TEXT, Some(&env)),
        };
        bench.rehearsal.world(|world| {
            world.add_container("lonely", "busybox");
            world.add_record("other", 1, PLAIN);
        });
        if self.scene == Scene::Recorded {
            let token = Variable {
                name: "TOKEN".to_owned(),
                value: MARKED.to_owned(),
            };
            let id = bench.create_in_portainer("web", TEXT, &[token]);
            bench.rehearsal.world(|world| world.finish_deployment(id));
        }
        verify_certificates(&bench);
        bench.rehearsal.forget_requests();
        bench
    }

    /// The stack after a run in which nothing goes wrong.
    fn end(self) -> &'static Value {
        static ENDS: LazyLock<Vec<(Start, Value)>> = LazyLock::new(|| {
            let end = |start: Start| {
                let bench = start.bench();
                bench.run(start.arguments()).code(0);
                (start, start.stack(&world(&bench)))
            };
            Start::all().into_iter().map(end).collect()
        });
        let mut ends = ENDS.iter();
        &ends.find(|(start, _)| *start == self).expect("an end").1
    }

    /// What must be the same after each successful run. A migration creates anonymous volumes anew.
    fn stack(self, world: &World) -> Value {
        match self.way {
            Way::Migrate => stack(world),
            Way::Adopt => with_data(world),
        }
    }

    /// Runs it again, or rolls it back with these arguments. What is wrong then.
    pub fn repeat(
        self,
        bench: &Bench,
        before: &World,
        restore: Option<&str>,
        timeout: &str,
    ) -> Vec<String> {
        let again = format!("{} {timeout}", self.arguments());
        let arguments = restore.unwrap_or(&again);
        let run = run_after_kill(bench, arguments);
        let mut wrong = Vec::new();
        if restore.is_some() && run.err.contains("no snapshot") {
            if with_data(&world(bench)) != with_data(before) {
                wrong.push(format!("changed without a snapshot: {run:#?}"));
            }
            return wrong;
        }
        // Everything late has ended, too.
        for _ in 0..2 {
            let world = world(bench);
            let (is, wanted) = match restore {
                Some(_) => (with_data(&world), &with_data(before)),
                None => (self.stack(&world), self.end()),
            };
            if run.code != 0 || is != *wanted {
                wrong.push(format!(
                    "{arguments:?} does not end it: {is:#}\nwanted: {wanted:#}\n{run:#?}"
                ));
            }
            bench.rehearsal.skip(Duration::from_mins(1));
        }
        wrong
    }
}

/// The runs verify Portainer's certificate. Otherwise each of them looks for the owner of Portainer's socket among all sockets
/// of this host (B31), which is a third of its processor time.
fn verify_certificates(bench: &Bench) {
    let pem = bench.state().with_file_name("portainer.pem");
    fs::write(&pem, bench.rehearsal.certificate_pem()).expect("a certificate");
    let settings = bench.state().with_file_name("system.toml");
    let pem = pem.display().to_string();
    fs::write(settings, format!("tls = {pem:?}\n")).expect("settings");
}

/// Runs the binary. A child process that a killed run was about to start holds the lock for a moment.
fn run_after_kill(bench: &Bench, arguments: &str) -> Run {
    for _ in 0..100 {
        let run = bench.run(arguments);
        if !run.err.contains("another run of stacklift") {
            return run;
        }
        thread::sleep(Duration::from_millis(50));
    }
    bench.run(arguments)
}

/// The arguments of the restore that a run names. A run that a hanging request ended had a short timeout: on a busy
/// machine, it is too short for a restore.
pub fn roll_back(run: &Run) -> Option<String> {
    let (_, rest) = run.err.split_once("to roll back, run `")?;
    // Settings of the environment come first.
    let (_, arguments) = rest.split('`').next()?.split_once("stacklift ")?;
    Some(arguments.replace("--timeout 1s", "--timeout 8s"))
}

/// Tries every `step`-th one, and says what is wrong with each.
pub fn try_every<T: Debug + Sync>(
    step: usize,
    trials: Vec<T>,
    attempt: impl Fn(usize, &T) -> Vec<String> + Sync,
) {
    let trials: Vec<T> = trials.into_iter().step_by(step).collect();
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
                    for what in attempt(number, one) {
                        let mut wrong = wrong.lock().expect("the list");
                        writeln!(wrong, "{one:?}: {what}").expect("a String");
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("the list");
    assert!(wrong.is_empty(), "of {} trials:\n{wrong}", trials.len());
}

/// The world as it is at this moment.
pub fn world(bench: &Bench) -> World {
    bench.rehearsal.world(|world| world.clone())
}

/// The Portainer stacks called `web`.
pub fn records(world: &World) -> Vec<&Record> {
    let all = world.records.values();
    all.filter(|record| record.name == "web").collect()
}

/// The data at each mount of each container.
pub fn data(world: &World) -> Vec<Value> {
    let mounts = |container: &Container| {
        let mounts = container.mounts.iter().map(|mount| {
            let volume = world.volume(mount["Name"].as_str().unwrap_or_default());
            json!([
                mount["Destination"],
                volume.map(|volume| &volume["Content"])
            ])
        });
        json!([container.name, mounts.collect::<Vec<_>>()])
    };
    world.project("web").into_iter().map(mounts).collect()
}

pub fn with_data(world: &World) -> Value {
    json!([stack(world), data(world)])
}

/// Whether a network is one of the stack.
pub fn is_of_stack(network: &Value) -> bool {
    let name = network["Name"].as_str();
    name.is_some_and(|name| name.starts_with("web_"))
}

/// The stack as it is, but for what each new one has of its own: ids, times, addresses, volumes without a name.
fn stack(world: &World) -> Value {
    let record = |record: &Record| {
        let env = record.env.iter().flatten();
        let env: Vec<_> = env.map(|v| (v.name.clone(), v.value.clone())).collect();
        json!({"endpoint": record.endpoint, "text": record.text, "env": env, "status": format!("{:?}", record.status)})
    };
    let records: Vec<Value> = records(world).into_iter().map(record).collect();
    let networks = world.networks.iter();
    let networks = networks.filter(|network| is_of_stack(network));
    let networks = networks.map(|network| {
        // The subnet that an engine chooses may differ.
        let subnet = (network["Name"] == "web_inner").then_some(&network["IPAM"]["Config"]);
        json!([
            network["Name"],
            network["Internal"],
            network["Driver"],
            subnet
        ])
    });
    let mut networks: Vec<Value> = networks.collect();
    networks.sort_by_key(Value::to_string);
    json!({"records": records, "containers": containers(world), "networks": networks})
}

/// The containers of the stack as they are.
pub fn containers(world: &World) -> Vec<Value> {
    world.project("web").into_iter().map(container).collect()
}

fn container(container: &Container) -> Value {
    let json = serde_json::to_value(container).expect("JSON");
    let mounts = container.mounts.iter().map(|mount| {
        // The name of an anonymous volume is 64 hexadecimal digits.
        let name = mount["Name"].as_str().filter(|name| name.len() != 64);
        json!([mount["Destination"], name])
    });
    let mut networks: Vec<_> = container.networks.keys().collect();
    networks.sort();
    json!({
        "name": container.name,
        "image": container.image,
        "state": json["state"],
        "env": json["env"],
        "mounts": mounts.collect::<Vec<_>>(),
        "networks": networks,
        "service": container.labels.get("com.docker.compose.service"),
    })
}
