//! A stack among other ones, and what of it must be the same after a run.

use rehearsal::{Container, Era, Record, Variable, World};
use serde_json::{Value, json};

use crate::bench::{Bench, MARKED, PLAIN};

/// The stack's Compose text: two services, data in a named and in a nameless volume.
const TEXT: &str = "\
services:
  a:
    image: x:1
    environment:
      TOKEN: ${TOKEN}
    volumes:
      - /cache
      - data:/data
  b:
    image: y:1
    depends_on: [a]
volumes:
  data:
";

/// What was there before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// Containers that were started by hand, and no record.
    ByHand,
    /// A Portainer stack that runs them.
    Recorded,
}

/// The stack `web`, and others that no run of it may touch.
pub fn set(era: Era, scene: Scene) -> Bench {
    set_text(era, scene, TEXT)
}

/// The same, with another Compose text.
pub fn set_text(era: Era, scene: Scene, text: &str) -> Bench {
    let bench = Bench::of(era);
    let env = format!("TOKEN={MARKED}\n");
    bench.started("web2", PLAIN, None);
    match scene {
        Scene::ByHand => {
            bench.started("web", text, Some(&env));
        }
        Scene::Recorded => {
            bench.stack("web", text, Some(&env));
        }
    }
    bench.rehearsal.world(|world| {
        world.add_container("lonely", "busybox");
        world.add_record("other", 1, PLAIN);
        if scene == Scene::Recorded {
            let variables = vec![Variable {
                name: "TOKEN".to_owned(),
                value: MARKED.to_owned(),
            }];
            let id = world
                .create(1, "web", text.to_owned(), Some(variables), "admin")
                .expect("a record");
            world.finish_deployment(id);
        }
    });
    bench
}

/// The world as it is at this moment.
pub fn world(bench: &Bench) -> World {
    bench.rehearsal.world(|world| world.clone())
}

/// The records of the stack.
pub fn records(world: &World) -> Vec<&Record> {
    let all = world.records.values();
    all.filter(|record| record.name == "web").collect()
}

/// The stack as it is, but for what each new one has of its own: ids, times, addresses, volumes without
/// a name.
pub fn stack(world: &World) -> Value {
    let records: Vec<Value> = records(world)
        .into_iter()
        .map(|record| {
            let env = record.env.iter().flatten();
            let env: Vec<_> = env.map(|v| (v.name.clone(), v.value.clone())).collect();
            json!({"endpoint": record.endpoint, "text": record.text, "env": env, "status": record.status})
        })
        .collect();
    let containers: Vec<Value> = world.project("web").into_iter().map(container).collect();
    json!({"records": records, "containers": containers})
}

fn container(container: &Container) -> Value {
    let json = serde_json::to_value(container).expect("JSON");
    let mounts: Vec<_> = container
        .mounts
        .iter()
        .map(|mount| {
            let named = (!mount.anonymous).then(|| mount.name.clone());
            json!([mount.target, named])
        })
        .collect();
    json!({
        "name": container.name,
        "image": container.image,
        "state": json["state"],
        "env": json["env"],
        "mounts": mounts,
        "service": container.labels.get("com.docker.compose.service"),
    })
}
