//! Creates that Portainer performs on the real engine: what they keep, what a failure removes, and what happens when
//! their client dies meanwhile.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{bench::Stack, client, sameness::assert_same};

const STACK: &str = "services:
  db:
    $SLEEP
    volumes: [/anonymous, data:/data]
  web:
    $SLEEP
    depends_on: [db]
    ports: ['127.0.0.1:$PORT:80']
volumes: {data: {}}
";

/// The same stack, but `db` becomes unhealthy after about 3 seconds, and `web` waits for its health.
const FAILS: &str = "services:
  db:
    $SLEEP
    volumes: [/anonymous, data:/data]
    healthcheck: {test: [CMD, /bin/false], interval: 1s, retries: 3}
  web:
    $SLEEP
    depends_on: {db: {condition: service_healthy}}
volumes: {data: {}}
";

/// Its containers ignore SIGTERM, so that a `down` takes 4 seconds.
const SLOW: &str = "services:
  db:
    image: $IMAGE
    command: [/bin/sh, -c, \"trap '' TERM; while true; do sleep 1; done\"]
    stop_grace_period: 4s
    volumes: [/anonymous, data:/data]
  web:
    image: $IMAGE
    command: [/bin/sh, -c, \"trap '' TERM; while true; do sleep 1; done\"]
    stop_grace_period: 4s
volumes: {data: {}}
";

fn started() -> (Stack, BTreeMap<String, Value>) {
    let stack = Stack::with_portainer().running(STACK, &[]);
    stack.sh("db", "echo kept > /anonymous/file");
    let before = stack.containers();
    assert_eq!(before.len(), 2);
    (stack, before)
}

/// Sends a create without the program. Returns the status of the response.
fn create(stack: &Stack, text: &str) -> u16 {
    let path = "/api/stacks/create/standalone/string?endpointId=1";
    let body = json!({
        "name": stack.host.project,
        "stackFileContent": text,
        "env": [{ "name": "UNUSED", "value": "1" }],
    });
    let headers = [("X-API-Key", stack.rehearsal.key())];
    let body = body.to_string();
    client::send(&stack.rehearsal, "POST", path, &headers, &body).status
}

fn records(stack: &Stack) -> usize {
    stack.rehearsal.world(|world| world.records.len())
}

fn assert_running(before: &BTreeMap<String, Value>, stack: &Stack) {
    let now = stack.containers();
    assert_same(before, &now);
    assert!(now.values().all(|one| one["State"]["Running"] == true));
    assert_eq!(stack.sh("db", "cat /anonymous/file"), "kept");
}

/// Kills a migration while Portainer works, and restores the stack.
fn assert_restored_after_a_kill(before: &BTreeMap<String, Value>, stack: &Stack) {
    stack.kill_in_flight("$PROJECT");
    stack.run("restore $PROJECT --timeout=10m").code(0);
    // Nothing is late: Portainer has finished.
    assert!(!stack.portainer().is_busy());
    assert_running(before, stack);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn m05_a_create_keeps_unchanged_containers() {
    let (stack, before) = started();
    assert_eq!(create(&stack, &stack.text()), 200);
    assert_eq!(records(&stack), 1);
    assert!(!stack.portainer().is_busy());
    let ids = |of: &BTreeMap<String, Value>| -> Vec<Value> {
        of.values().map(|one| one["Id"].clone()).collect()
    };
    assert_eq!(ids(&stack.containers()), ids(&before));
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn m06_a_failed_create_removes_everything_and_a_restore_brings_it_back() {
    let (stack, before) = started();
    stack.write(FAILS);
    let run = stack.run("$PROJECT");
    run.fails(&["is unhealthy", "stacklift restore"]);
    assert_eq!((stack.ids().len(), records(&stack)), (0, 0));
    stack.restore();
    assert_running(&before, &stack);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b11_a_restore_waits_for_the_create_of_a_killed_run() {
    let (stack, before) = started();
    stack.write(FAILS);
    assert_restored_after_a_kill(&before, &stack);
    assert_eq!(records(&stack), 0);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b11_a_restore_waits_for_the_delete_of_a_killed_run() {
    let stack = Stack::with_portainer();
    stack.write(SLOW);
    assert_eq!(create(&stack, &stack.text()), 200);
    stack.sh("db", "echo kept > /anonymous/file");
    let before = stack.containers();
    assert_restored_after_a_kill(&before, &stack);
    assert_eq!(records(&stack), 1);
}
