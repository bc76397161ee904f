//! Creates that Portainer performs on the real engine: what they keep, what a failure removes, and what happens when
//! their client dies meanwhile.

use serde_json::json;

use super::{
    bench::{OLD, Stack},
    state::State,
};

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
  db: &slow
    image: $IMAGE
    command: [/bin/sh, -c, \"trap '' TERM; while true; do sleep 1; done\"]
    stop_grace_period: 4s
    volumes: [/anonymous, data:/data]
  web: {<<: *slow, volumes: []}
volumes: {data: {}}
";

/// Sends a create without the program. Returns the status of the response.
fn create(stack: &Stack) -> u16 {
    let path = "/api/stacks/create/standalone/string?endpointId=1";
    let body = json!({
        "name": stack.host.project,
        "stackFileContent": stack.text(),
        "env": [{ "name": "UNUSED", "value": "1" }],
    });
    stack.send("POST", path, &body)
}

/// Kills a migration while Portainer works, and restores the stack.
fn assert_restored_after_a_kill(before: &State, stack: &Stack) {
    stack.kill_in_flight("$PROJECT");
    stack.run("restore $PROJECT --timeout=10m").code(0);
    // Nothing is late: Portainer has finished.
    assert!(!stack.is_in_flight());
    stack.assert_is(before);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn m06_a_failed_create_removes_everything_and_a_restore_brings_it_back() {
    let stack = Stack::by(OLD).running(STACK, &[]);
    let before = stack.state();
    stack.write(FAILS);
    let run = stack.run("$PROJECT");
    run.fails(&["is unhealthy", "stacklift restore"]);
    let failed = stack.state();
    assert_eq!((failed.containers.0.len(), failed.records.len()), (0, 0));
    stack.restore();
    stack.assert_is(&before);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b11_a_restore_waits_for_the_create_of_a_killed_run() {
    let stack = Stack::by(OLD).running(STACK, &[]);
    let before = stack.state();
    stack.write(FAILS);
    assert_restored_after_a_kill(&before, &stack);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b11_a_restore_waits_for_the_delete_of_a_killed_run() {
    let stack = Stack::by(OLD).stopped(SLOW, &[]);
    assert_eq!(create(&stack), 200);
    stack.write_data();
    assert_restored_after_a_kill(&stack.state(), &stack);
}
