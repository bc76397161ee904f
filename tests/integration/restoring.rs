//! B16–B19: what a restore checks, saves and compares, and the restore without Portainer.

use std::time::Duration;

use testbed::Call;

use crate::bench::{Bench, PLAIN, id_of, instead, refusal};

/// Two services, of which the second waits for the health of the first.
const HEALTH: &str = "services:
  db:
    image: x:1
    healthcheck: {test: [CMD, 'true']}
  app:
    image: x:1
    depends_on: {db: {condition: service_healthy}}
";

/// Writes a file into the layers of a project's containers.
pub fn write_file(bench: &Bench, project: &str, path: &str) {
    for id in bench.containers(project) {
        bench.world(|world| {
            let container = world.containers.get_mut(&id).expect("a container");
            container
                .files
                .insert(path.to_owned(), b"report\n".to_vec());
        });
    }
}

#[test]
fn b18_health_is_awaited_in_the_order_of_dependencies() {
    let bench = Bench::migrated(HEALTH);
    let set = |health| {
        bench.world(|world| world.health.insert("web/db".to_owned(), health));
    };
    set(Some(1500));
    bench.forget_requests();
    let started = std::time::Instant::now();
    bench.succeeds("restore web", "match");
    assert!(started.elapsed() > Duration::from_millis(1500));
    let calls: Vec<Call> = bench.requests().iter().map(|one| one.call).collect();
    let mut parts = calls.split(|call| *call == Call::EngineStart).skip(1);
    let between = parts.next().expect("a start");
    assert_eq!(parts.count(), 1, "two starts: {calls:?}");
    let looks = between.iter().filter(|call| **call == Call::EngineInspect);
    assert!(looks.count() > 1, "the health was read until it was good");

    bench.run("web").code(0);
    set(None);
    let args = format!("restore web --to {}", id_of(&bench.saved(".json")[0]));
    for _ in 0..2 {
        let why = "\nweb-app-1 was not started: it depends on web-db-1: web-db-1 is unhealthy\nweb-app-1 differs: expected running, got stopped\nweb-db-1 differs: expected healthy, got unhealthy\n";
        bench.fails(&args, why).hides("restored web");
    }
}

#[test]
fn b17_a_restore_lets_containers_shut_down_before_it_removes_them() {
    let bench = Bench::migrated(PLAIN);
    let ids = bench.containers("web");
    bench.forget_requests();
    let says = ["stop web-a-1", "remove web-a-1", "restored web"];
    bench.succeeds("restore web --engine-only -v", &says);
    let requests = bench.requests();
    let at = |call: Call| {
        let mut requests = requests.iter();
        requests.position(|one| one.call == call && one.path.contains(&ids[0]))
    };
    assert!(at(Call::EngineStop).expect("a stop") < at(Call::EngineRemove).expect("a removal"));

    // One that cannot be stopped is removed all the same. With `--rm`, a stop would delete its volumes.
    for rm in [false, true] {
        bench.run("web").code(0);
        bench.change_container("web-a-1", |one| one.host_config["AutoRemove"] = rm.into());
        bench.forget_requests();
        let refusal = instead(500, "{\"message\":\"cannot stop\"}");
        bench.always(Call::EngineStop, refusal);
        let run = bench.run("restore web --engine-only");
        let is_killed = run.err.contains("it is removed with SIGKILL");
        assert_eq!(is_killed, !rm, "{run:#?}");
        assert_eq!(bench.calls(Call::EngineStop).is_empty(), rm);
        assert!(!bench.calls(Call::EngineRemove).is_empty());
        run.succeeds("restored web");
        bench.faults().clear();
    }
}

/// Compose's `down` fails under load: a network still has active endpoints.
#[test]
fn b05_a_restore_sends_a_delete_that_failed_once_more() {
    let bench = Bench::migrated(PLAIN);
    bench.forget_requests();
    bench.once(Call::Delete, refusal());
    let says = [
        "Portainer stack 1 again: the first attempt failed",
        "1 container matches the snapshot",
    ];
    bench
        .succeeds("restore web -v", &says)
        .hides("failed to delete");
    let calls: Vec<Call> = bench.requests().iter().map(|one| one.call).collect();
    let mut attempts = calls.split(|call| *call == Call::Delete).skip(1);
    let between = attempts.next().expect("two deletes");
    assert!(between.contains(&Call::List), "it looks first: {between:?}");
    let after = attempts.next().expect("what follows the second delete");
    assert!(attempts.next().is_none(), "sent twice");
    assert!(after.contains(&Call::EngineCreate), "{after:?}");
    assert!(bench.world(|world| world.records.is_empty()));
}
