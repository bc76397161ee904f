//! Dependencies that would make the deployment fail (B20).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rehearsal::{Call, Container, World};

use super::{adopt, exits, refuses};
use crate::{
    bench::Bench,
    plan::{labeled, with_hashes},
};

const HEALTH: &str = "\
services:
  db:
    image: x:1
    healthcheck: {test: [CMD, 'true'], interval: 1s}
  web:
    image: y:1
    depends_on: {db: {condition: service_healthy}}
  other:
    image: y:1
";

const JOB: &str = "\
services:
  job:
    image: x:1
  web:
    image: y:1
    depends_on: {job: {condition: service_completed_successfully}}
";

fn container<'w>(world: &'w mut World, name: &str) -> &'w mut Container {
    let mut all = world.containers.values_mut();
    all.find(|one| one.name == name).expect("a container")
}

fn blocker(why: &str) -> String {
    format!(
        "services wait for a condition that is not met: the deployment would fail, and Portainer up to 2.40 would then remove every container of the stack\n{why}\nhint: fix the containers until they meet the conditions, or change `depends_on` in the Compose file"
    )
}

fn with_job() -> Bench {
    let bench = Bench::new();
    bench
        .rehearsal
        .world(|world| world.exits.insert("web/job".to_owned(), 0));
    bench.started("web", JOB, None);
    bench
}

#[test]
fn b20_an_unhealthy_dependency() {
    let bench = Bench::new();
    bench.started("web", HEALTH, None);
    bench
        .rehearsal
        .world(|world| container(world, "web-db-1").healthy_at = None);
    refuses(
        &bench,
        &["web"],
        &[blocker(
            "service web waits until db is healthy: web-db-1 is unhealthy",
        )],
    );
    bench
        .run(&["list"])
        .says(&["services wait for a condition that is not met"]);
    bench
        .run(&["plan", "web"])
        .hides("unchanged")
        .says(&["  interruption: none, or up to 10 s to stop"]);
}

#[test]
fn b20_a_dependency_without_a_health_check() {
    let bench = Bench::new();
    bench.started("web", HEALTH, None);
    bench.rehearsal.world(|world| {
        container(world, "web-db-1").config["Healthcheck"] = serde_json::Value::Null;
    });
    refuses(
        &bench,
        &["web"],
        &[blocker(
            "service web waits until db is healthy: web-db-1 has no health check",
        )],
    );
}

#[test]
fn b20_a_dependency_that_compose_does_not_require() {
    let bench = Bench::new();
    let text = HEALTH.replace("service_healthy}", "service_healthy, required: false}");
    bench.started("web", &text, None);
    bench
        .rehearsal
        .world(|world| container(world, "web-db-1").healthy_at = None);
    let run = bench.run(&["plan", "web"]);
    assert!(!run.all().contains("waits until"), "{run:#?}");
}

#[test]
fn b20_a_new_dependency_without_a_health_check() {
    let bench = Bench::new();
    bench.started("web", HEALTH, None);
    let text = HEALTH.replace(
        "depends_on: {",
        "depends_on: {more: {condition: service_healthy}, ",
    );
    let text = format!("{text}  more:\n    image: x:1\n");
    bench.stack("web", &text, None);
    refuses(
        &bench,
        &["web"],
        &[blocker(
            "service web waits until more is healthy: more has no health check",
        )],
    );
}

#[test]
fn b20_a_dependency_that_starts_is_waited_for() {
    let bench = Bench::new();
    bench.started("web", HEALTH, None);
    let until = bench.rehearsal.world(|world| {
        let at = world.now + 3000;
        container(world, "web-db-1").healthy_at = Some(at);
        at
    });
    let was_healthy = Arc::new(AtomicBool::new(false));
    let seen = was_healthy.clone();
    bench.rehearsal.world_with(Call::Create, move |world| {
        seen.store(world.now >= until, Ordering::Relaxed);
    });
    adopt(&bench, &["web", "--wait", "2m"]).code(0);
    assert!(was_healthy.load(Ordering::Relaxed), "before the request");
}

#[test]
fn b20_a_dependency_that_does_not_become_healthy_in_time() {
    let bench = Bench::new();
    bench.started("web", HEALTH, None);
    bench.rehearsal.world(|world| {
        let hour = i64::try_from(Duration::from_hours(1).as_millis()).expect("an hour");
        let at = world.now + hour;
        container(world, "web-db-1").healthy_at = Some(at);
    });
    adopt(&bench, &["web", "--wait", "1s"]).code(1).says(&[
        "nothing was sent to Portainer: service web waits for web-db-1",
        "use --wait for a longer limit",
        "state: this run changed nothing",
    ]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn b20_a_job_that_failed() {
    let bench = with_job();
    exits(&bench, "web-job-1", 3);
    refuses(
        &bench,
        &["web", "--rerun-jobs"],
        &[blocker(
            "service web waits until job succeeds: web-job-1 exited with code 3",
        )],
    );
}

#[test]
fn b20_a_job_runs_again_before_portainer_runs_it() {
    let bench = with_job();
    adopt(&bench, &["web", "--rerun-jobs"])
        .code(0)
        .says(&["web-job-1: it succeeded"]);
    let journal = bench.rehearsal.requests();
    let at = |call| journal.iter().position(|one| one.call == call);
    assert!(at(Call::EngineStart).expect("a start") < at(Call::Create).expect("a create"));
}

#[test]
fn b20_a_job_that_fails_the_second_time() {
    let bench = with_job();
    bench
        .rehearsal
        .world(|world| world.exits.insert("web/job".to_owned(), 3));
    let before = bench.containers("web");
    adopt(&bench, &["web", "--rerun-jobs"]).code(1).says(&[
        "nothing was sent to Portainer: service web waits for web-job-1",
        "web-job-1 exited with code 3",
        "state: this run ran jobs of the stack, and sent nothing to Portainer",
    ]);
    assert_eq!(bench.containers("web"), before);
    assert!(bench.calls(Call::Create).is_empty());
}

#[test]
fn b20_a_dependency_that_does_not_run() {
    let bench = Bench::new();
    let text = HEALTH.replace("  web:", "    restart: always\n  web:");
    bench.started("web", &text, None);
    exits(&bench, "web-db-1", 0);
    refuses(
        &bench,
        &["web"],
        &[blocker(
            "service web waits until db is healthy: web-db-1 is not running",
        )],
    );
}

#[test]
fn b20_a_dependency_that_is_replaced() {
    let bench = Bench::new();
    bench.started("web", HEALTH, None);
    let mut hashes = labeled(&bench);
    hashes.insert("db".to_owned(), "0".repeat(64));
    let plan = || with_hashes(&bench, &["plan", "web"], &hashes);
    plan().says(&["service web waits until the new container of db is healthy"]);
    bench
        .rehearsal
        .world(|world| container(world, "web-db-1").healthy_at = None);
    plan().says(&["service web waits until db is healthy: web-db-1 is unhealthy"]);
}

#[test]
fn b20_a_job_that_does_not_end() {
    let bench = Bench::new();
    bench.started("web", JOB, None);
    adopt(&bench, &["web", "--rerun-jobs", "--wait", "1s"])
        .code(1)
        .says(&["web-job-1 did not exit in time"]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn b20_a_job_that_is_restarted_whenever_it_exits() {
    let bench = Bench::new();
    let text = JOB.replace("  web:", "    restart: unless-stopped\n  web:");
    bench.started("web", &text, None);
    refuses(
        &bench,
        &["web"],
        &[blocker(
            "service web waits until job succeeds: web-job-1 never ends: its restart policy starts it again",
        )],
    );
}

/// `scale: 0` does not keep a service from waiting, but no replicas do.
#[test]
fn b20_services_without_containers() {
    for (of, more, is_blocked) in [
        ("  other:", "    scale: 0\n  other:", true),
        ("  other:", "    deploy: {replicas: 0}\n  other:", false),
        ("  web:", "    scale: 0\n  web:", false),
    ] {
        let bench = Bench::new();
        bench.started("web", HEALTH, None);
        bench
            .rehearsal
            .world(|world| container(world, "web-db-1").healthy_at = None);
        bench.stack("web", &HEALTH.replace(of, more), None);
        let run = bench.run(&["plan", "web"]);
        assert_eq!(
            run.all().contains("web-db-1 is unhealthy"),
            is_blocked,
            "{more}: {run:#?}"
        );
    }
}
