//! B01: what a migration loses of containers that were changed after they were started.

use super::bench::Stack;
use crate::host::{attempt, docker};

const STACK: &str = "services:
  db:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    volumes: [/anonymous]
  web:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
  old:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
  job:
    image: $IMAGE
    command: /bin/true
networks:
  default: {ipam: {config: [{subnet: $SUBNET.0/24}]}}
";

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b01_everything_that_was_changed_by_hand_is_named() {
    let stack = Stack::new();
    stack.write(STACK);
    stack.compose(&["up", "-d", "--scale", "web=2"]);
    let (db, web) = (stack.name("db"), stack.name("web"));
    stack.sh("db", "echo 1 > /database");
    docker(&["update", "--memory=64m", "--memory-swap=64m", &db]);
    let network = format!("{}_extra", stack.host.project);
    docker(&["network", "create", "--label", &stack.host.mark(), &network]);
    docker(&["network", "connect", "--alias", "elsewhere", &network, &web]);
    docker(&["pause", &web]);
    let text = STACK.replace(
        "  old:\n    image: $IMAGE\n    command: /bin/sleep 600\n    init: true\n",
        "",
    );
    stack.write(&text);

    let run = stack.run(&["migrate", &stack.host.project]);
    attempt(&["network", "rm", &network]).ok();
    run.says(&[
        "the stack will lose:",
        "/database",
        "/anonymous",
        "memory",
        &format!("network {network}"),
        "SIGKILL",
        "paused",
        &stack.name("old"),
    ]);
}
