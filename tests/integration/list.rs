//! `stacklift list`.

use serde_json::Value;

use crate::bench::{Bench, PLAIN};

/// A service with an anonymous volume, whose container an adoption recreates, and one without.
const CACHED: &str = "\
services:
  db:
    image: busybox:1.36
    command: sleep 1000
    volumes: [/cache]
  app:
    image: busybox:1.36
    command: sleep 1000
";

/// Two reasons that prevent an adoption.
const BLOCKED: &str = "\
services:
  a:
    image: busybox:1.36
    command: sleep 1000
    volumes:
      - {type: bind, source: ./missing, target: /data}
networks:
  default:
    external: true
    name: missing
";

/// Starts a stack by hand in Portainer's way: from a folder of Portainer's container.
fn started_by_portainer(bench: &Bench, name: &str, text: &str) {
    let id = bench.create_in_portainer(name, text, &[]);
    bench.world(|world| world.finish_deployment(id));
}

/// What `list` prints with these flags as JSON.
fn list_of(bench: &Bench, flags: &str) -> Value {
    let run = bench.run(&format!("list --output json {flags}"));
    run.code(0).report("list")
}

/// The entry of a stack.
fn entry<'j>(list: &'j Value, name: &str) -> &'j Value {
    let stacks = list["stacks"].as_array().expect("stacks");
    let found = stacks.iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

#[test]
fn list_and_plan_agree() {
    let bench = Bench::web(PLAIN);
    bench.started("cached", CACHED, None);
    bench.stack("blocked", BLOCKED, None);
    bench.stack("Idle", PLAIN, None);
    bench.stack("same", PLAIN, None);
    started_by_portainer(&bench, "same", PLAIN);
    bench.started("both", PLAIN, None);
    bench.record("both", 1);
    bench.started("far", PLAIN, None);
    bench.record("far", 2);
    bench.stack("broken", "services: [", None);
    let port = format!("{PLAIN}    ports: ['127.0.0.1:1:80']\n");
    bench.stack("port", &port, None);
    let list = list_of(&bench, "");
    let stacks = list["stacks"].as_array().expect("stacks");
    assert_eq!(stacks.len(), 9);
    for stack in stacks {
        let name = stack["name"].as_str().expect("a name");
        let run = bench.run(&["plan", name, "--output", "json"]);
        let plan = run.json();
        let mut adopt = plan["adopt"].clone();
        adopt["diff_command"] = Value::Null;
        assert_eq!(stack["adopt"], adopt, "{name}");
        for key in ["name", "dir", "file", "containers", "portainer_stack"] {
            assert_eq!(stack[key], plan["stack"][key], "{name}");
        }
    }
    let blocked = entry(&list, "blocked");
    assert_eq!(blocked["adopt"]["readiness"], "blocked");
    assert!(blocked["adopt"]["blockers"][1].is_object(), "{blocked}");
}
