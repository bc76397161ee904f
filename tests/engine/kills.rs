//! Kills a run at each request. The next restore must finish its work.

use crate::{
    bench::{Stack, kill_after},
    state::State,
};

/// Two networks, a volume of the image, an anonymous volume, a shared network and a job.
const STACK: &str = "services:
  db:
    $OWN_SLEEP
    networks: {one: {aliases: [sql]}, two: {ipv4_address: $SUBNET.9}}
    volumes: [/anonymous]
  side:
    $OWN_SLEEP
    network_mode: service:db
  job:
    image: $IMAGE
    command: /bin/true
    network_mode: none
networks:
  one: {}
  two: {ipam: {config: [{subnet: $SUBNET.0/24}]}}
";

#[track_caller]
fn assert_restored(stack: &Stack, before: &State) {
    stack.assert_is(before);
    // No other container exists, whatever its name.
    let all = stack.lines("ps -aq --filter ancestor=$PROJECT");
    assert_eq!(all.len(), 2);
}

/// The numbers of requests to kill a run after: before and after each request that changes something.
fn kill_points(requests: &[String]) -> Vec<usize> {
    let methods = ["POST ", "PUT ", "DELETE "];
    let writes = |request: &String| methods.iter().any(|method| request.contains(method));
    let around = |after: &usize| requests[after - 1..=*after].iter().any(writes);
    let points: Vec<_> = (1..requests.len()).filter(around).collect();
    assert!(points.len() > 4, "{requests:#?}");
    points
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_restore_that_is_killed_repeatedly_finishes() {
    let stack = Stack::new().running(STACK, &[]);
    let before = stack.state();
    stack.migrate();
    stack.remove_networks();
    // The first requests only read.
    for after in 8.. {
        let seen = kill_after(stack.command("restore $PROJECT"), after);
        if seen.len() < after {
            break;
        }
        assert!(after < 500, "the restore does not finish: {seen:#?}");
    }
    assert_restored(&stack, &before);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_killed_migration_is_rolled_back_by_a_restore() {
    let stack = Stack::new().running(STACK, &[]);
    // The restore must recreate the deleted Portainer stack, too.
    stack.record();
    let before = stack.state();
    let all = kill_after(stack.command("migrate $PROJECT"), usize::MAX);
    assert!(stack.ids().is_empty(), "{all:#?}");
    stack.restore();
    assert_restored(&stack, &before);
    for after in kill_points(&all) {
        let snapshots = stack.snapshots();
        let ids = stack.ids();
        kill_after(stack.command("migrate $PROJECT"), after);
        if stack.snapshots() == snapshots {
            assert_eq!(stack.ids(), ids, "killed after {after}: {all:#?}");
        } else {
            stack.restore();
        }
        assert_restored(&stack, &before);
    }
}
