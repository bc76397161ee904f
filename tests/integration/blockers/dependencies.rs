//! Dependencies that would make the deployment fail (B20).

use testbed::Call;

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

/// Asserts that `adopt` is refused for this alone.
#[track_caller]
fn refuses_as(bench: &Bench, args: &str, why: &str) {
    let blocker = format!(
        "services wait for a condition that is not met: the deployment would fail\n{why}\nfix these containers, or change `depends_on` in the Compose file; if the file has the fix already, run `docker compose up -d` first"
    );
    refuses(bench, args, &blocker);
}

/// The stack, whose `db` is unhealthy.
fn unhealthy(text: &str) -> Bench {
    let bench = Bench::web(text);
    bench.change_container("web-db-1", |one| one.healthy_at = None);
    bench
}

fn with_job() -> Bench {
    let bench = Bench::new();
    bench.world(|world| world.exits.insert("web/job".to_owned(), 0));
    bench.started("web", JOB, None);
    bench
}

#[test]
fn b20_a_dependency_that_is_not_healthy_or_never_will_be() {
    let bench = unhealthy(HEALTH);
    let waits = "service web waits until db is healthy: web-db-1";
    refuses_as(&bench, "web", &format!("{waits} is unhealthy"));
    let says = "services wait for a condition that is not met";
    bench.succeeds("list", says);
    bench.run("plan web").code(1).hides("keeps running");

    let bench = Bench::web(HEALTH);
    let unchecked = serde_json::Value::Null;
    bench.change_container("web-db-1", |one| one.config["Healthcheck"] = unchecked);
    refuses_as(&bench, "web", &format!("{waits} has no health check"));

    let text = HEALTH.replace("  web:", "    restart: always\n  web:");
    let bench = Bench::web(&text);
    exits(&bench, "web-db-1", 0);
    let waits_for = format!("{waits} is not running");
    refuses_as(&bench, "web --rerun-jobs", &waits_for);

    let bench = Bench::web(HEALTH);
    let more = "depends_on: {more: {condition: service_healthy}, ";
    let text = HEALTH.replace("depends_on: {", more);
    bench.stack("web", &format!("{text}  more:\n    image: x:1\n"), None);
    let why = "service web waits until more is healthy: more has no health check";
    refuses_as(&bench, "web", why);
}

#[test]
fn b20_a_job_that_failed_or_never_ends() {
    let waits = "service web waits until job succeeds: web-job-1";
    let bench = with_job();
    exits(&bench, "web-job-1", 3);
    let again = "to run it again: docker start web-job-1";
    let why = format!("{waits} exited with code 3; {again}");
    refuses_as(&bench, "web --rerun-jobs", &why);
    let text = JOB.replace("  web:", "    restart: unless-stopped\n  web:");
    let ends = "never ends: its restart policy starts it again";
    refuses_as(&Bench::web(&text), "web", &format!("{waits} {ends}"));
}

#[test]
fn b20_a_job_runs_again_before_portainer_runs_it() {
    let bench = with_job();
    // Nothing runs twice without it.
    bench.run("plan web").hides("runs twice");
    bench.run("plan web --rerun-jobs").says("runs twice");
    adopt(&bench, "web --rerun-jobs").succeeds("adopted web: web kept running");
    let journal = bench.requests();
    let at = |call| journal.iter().position(|one| one.call == call);
    assert!(at(Call::EngineStart).expect("a start") < at(Call::Create).expect("a create"));
}

/// A restore recreates a job that had ended, and does not run it.
#[test]
fn b20_a_job_that_has_never_run_is_run_as_one_that_has_finished() {
    let bench = with_job();
    adopt(&bench, "web --rerun-jobs").code(0);
    let says = "restored web: 2 containers match the snapshot (1 running; job was not run again)";
    bench.succeeds("restore web --yes", says);
    bench.forget_requests();
    let why = "1. stopped services would be started: Portainer starts every service\n     - web-job-1 has not run since it was created\n     pass --rerun-jobs to start them\n";
    bench.stops("adopt web", why);
    bench.run("plan web").hides("is not running");
    adopt(&bench, "web --rerun-jobs").code(0);
    assert_eq!(bench.calls(Call::EngineStart).len(), 1);
}

#[test]
fn b20_a_dependency_that_is_not_ready_in_time_stops_the_run_before_the_request() {
    let starting = |text: &str| {
        let bench = Bench::web(text);
        let at = bench.world(|world| world.now + 3_600_000);
        bench.change_container("web-db-1", |one| one.healthy_at = Some(at));
        bench
    };
    let optional = HEALTH.replace("healthy}", "healthy, required: false}");
    let failing = with_job();
    failing.world(|world| world.exits.insert("web/job".to_owned(), 3));
    let running = with_job();
    running.world(|world| world.exits.clear());
    let longer = "use --wait for a longer limit";
    let waits = ["waits for web-db-1", longer];
    // Compose waits for it as well.
    let unhealthy = ["did not become healthy in time", longer];
    let still = ["the deployment would fail", "which is still running"];
    let failed = [
        "web-job-1 exited with code 3",
        "this run ran jobs of the stack",
    ];
    let late = ["web-job-1 did not exit in time", "Nothing was changed"];
    for (bench, args, says) in [
        (starting(HEALTH), "web --wait 1s", waits),
        (starting(&optional), "web --wait 1s", unhealthy),
        (running, "web --rerun-jobs --wait 1s", still),
        (failing, "web --rerun-jobs", failed),
        (Bench::web(JOB), "web --rerun-jobs --wait 1s", late),
    ] {
        let run = adopt(&bench, args).fails(&says);
        assert!(bench.calls(Call::Create).is_empty(), "{run:#?}");
    }
}

#[test]
fn b20_a_dependency_that_is_replaced() {
    let bench = Bench::web(HEALTH);
    let mut hashes = labeled(&bench);
    hashes.insert("db".to_owned(), "0".repeat(64));
    let plan = || with_hashes(&bench, "plan web", &hashes);
    plan().says("if the new container of db does not become healthy, web is not started");
    bench.change_container("web-db-1", |one| one.healthy_at = None);
    plan().says("service web waits until db is healthy: web-db-1 is unhealthy");
}

/// `scale: 0` does not keep a service from waiting, but no replicas do, and a dependency that is not required.
#[test]
fn b20_dependencies_that_do_not_count() {
    let bench = unhealthy(HEALTH);
    for (of, more, is_blocked) in [
        ("  other:", "    scale: 0\n  other:", true),
        ("  other:", "    deploy: {replicas: 0}\n  other:", false),
        ("  web:", "    scale: 0\n  web:", false),
        ("healthy}", "healthy, required: false}", false),
    ] {
        bench.stack("web", &HEALTH.replace(of, more), None);
        let all = bench.run("plan web").all();
        let is_said = all.contains("web-db-1 is unhealthy");
        assert_eq!(is_said, is_blocked, "{more}: {all}");
    }
}
