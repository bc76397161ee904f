//! Dependencies that would make the deployment fail, which removes every container (M06). `other` has nothing to do with
//! them, and has data in its own layer.

use std::{env, fs, process::Command, thread, time::Duration};

use super::{Case, by_old_portainer, by_old_portainer_first, scenario::Scenario};
use crate::host::{docker, wait_until};

// Refusals: nothing is sent.
by_old_portainer! {
    b20_an_unhealthy_dependency
    b20_an_optional_dependency_that_never_ends
}
by_old_portainer_first! {
    b20_a_dependency_that_is_starting
    b20_an_optional_dependency
    b20_a_job_that_fails_only_in_portainer
    b20_a_job_that_nobody_waits_for_and_that_fails
    b18_a_restore_without_the_dependency
}

const HEALTH: &str = "services:
  db:
    $SLEEP
    volumes: ['./health:/health:ro']
    healthcheck: {test: [CMD, /bin/ls, /health/ok], interval: 1s, retries: 1}
  web:
    $SLEEP
    depends_on: {db: {condition: service_healthy}}
  other:
    $SLEEP
";

const JOB: &str = "services:
  db:
    image: $IMAGE
    command: [/bin/sh, -c, 'test ! -e /ran && echo > /ran']
  web:
    $SLEEP
    depends_on: {db: {condition: service_completed_successfully}}
  other:
    $SLEEP
";

fn started(case: Case, text: &str) -> Scenario {
    written(Scenario::new(case, text, &[("health/ok", "")]))
}

/// Writes 3 MB to the layer of `other`.
fn written(scenario: Scenario) -> Scenario {
    scenario.sh("other", "dd if=/dev/zero of=/big bs=1M count=3");
    scenario
}

/// `plan` and `adopt` refuse the stack for this reason, and every container stays as it is.
#[track_caller]
fn refuses(scenario: &Scenario, why: &str) {
    let before = scenario.ids();
    for line in ["plan $PROJECT", "adopt $PROJECT"] {
        let run = scenario.run(line).code(1);
        run.hides("unchanged").wraps(why);
    }
    stays(scenario, &before);
    assert!(scenario.rehearsal.world(|world| world.records.is_empty()));
}

#[track_caller]
fn stays(scenario: &Scenario, before: &[String]) {
    assert_eq!(scenario.ids(), before);
    assert_eq!(scenario.sh("other", "wc -c < /big"), "3145728");
}

/// The stack can be adopted, and the unrelated container stays.
#[track_caller]
fn adopts(scenario: &Scenario, options: &str) {
    let other = scenario.containers()[&scenario.name("other")]["Id"].clone();
    scenario.run(&format!("adopt $PROJECT {options}")).code(0);
    let containers = scenario.containers();
    assert_eq!(containers[&scenario.name("other")]["Id"], other);
    assert_eq!(scenario.sh("other", "wc -c < /big"), "3145728");
}

/// Waits until the health of `db` has this status.
fn wait_for(scenario: &Scenario, status: &str) {
    let (state, db) = ("{{.State.Health.Status}}", scenario.name("db"));
    wait_until(|| docker(&["inspect", "-f", state, &db]) == status);
}

fn b20_an_unhealthy_dependency(case: Case) {
    let scenario = started(case, HEALTH);
    let ok = scenario.dir().join("health/ok");
    fs::remove_file(&ok).unwrap();
    wait_for(&scenario, "unhealthy");
    let db = scenario.name("db");
    let why = format!("service web waits until db is healthy: {db} is unhealthy");
    refuses(&scenario, &why);
    fs::write(&ok, "").unwrap();
    wait_for(&scenario, "healthy");
    adopts(&scenario, "");
}

fn b20_a_dependency_that_is_starting(case: Case) {
    let text = HEALTH.replace("retries: 1}", "retries: 1, start_period: 300s}");
    let scenario = started(case, &text);
    let ok = scenario.dir().join("health/ok");
    let db = scenario.name("db");
    fs::remove_file(&ok).unwrap();
    docker(&["restart", "-t", "1", &db]);
    wait_for(&scenario, "starting");
    let before = scenario.ids();
    let plan = scenario.run("plan $PROJECT");
    plan.says("waits for that before it sends");
    scenario.run("adopt $PROJECT --wait=2s").fails(&[
        "the deployment would fail",
        "--wait",
        "Nothing was changed",
    ]);
    stays(&scenario, &before);
    // It becomes healthy after the adoption has begun to wait, and before Portainer is asked.
    scenario.portainer().before_deployment(&format!(
        "docker inspect -f '{{{{.State.Health.Status}}}}' {db} > {}/at",
        scenario.dir().display()
    ));
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(4));
            fs::write(&ok, "").unwrap();
        });
        adopts(&scenario, "--wait=100s");
    });
    let at = fs::read_to_string(scenario.dir().join("at")).unwrap();
    assert_eq!(at.trim(), "healthy");
}

/// Compose skips it.
fn b20_an_optional_dependency(case: Case) {
    let text = HEALTH.replace("service_healthy}", "service_healthy, required: false}");
    let scenario = started(case, &text);
    fs::remove_file(scenario.dir().join("health/ok")).unwrap();
    wait_for(&scenario, "unhealthy");
    let run = scenario.run("adopt $PROJECT").code(0);
    run.hides("waits until");
    assert_eq!(scenario.sh("other", "wc -c < /big"), "3145728");
}

/// Compose skips it once it has ended or is unhealthy, and waits for that without a limit.
fn b20_an_optional_dependency_that_never_ends(case: Case) {
    let text = JOB.replace("successfully}", "successfully, required: false}");
    let never = "image: $IMAGE\n    restart: always\n    command: [/bin/sleep, '1']";
    let first = "image: $IMAGE\n    command: [/bin/sh, -c, 'test ! -e /ran && echo > /ran']";
    let scenario = Scenario::stopped(case, &text.replace(first, never), &[]);
    for service in ["db", "other", "web"] {
        scenario.compose(&["up", "-d", "--no-deps", service]);
    }
    let scenario = written(scenario);
    let db = scenario.name("db");
    let why = format!("service web waits until db succeeds: {db} never ends");
    refuses(&scenario, &why);
    // Each Compose waits for it as well.
    for which in ["COMPOSE", "COMPOSE_2_40", "COMPOSE_5"] {
        let compose = env::var(format!("STACKLIFT_TEST_{which}")).unwrap();
        let mut command = Command::new("timeout");
        command.args(["5", &compose, "-p", &scenario.host.project, "up", "-d"]);
        let ended = command.current_dir(scenario.dir()).output().unwrap();
        assert_eq!(ended.status.code(), Some(124), "{which}: {ended:?}");
    }
}

/// It succeeds when Compose starts it and when `adopt` tries it.
fn b20_a_job_that_fails_only_in_portainer(case: Case) {
    let third = "'test ! -e /2 && { test ! -e /1 || echo > /2; echo > /1; }'";
    let text = JOB.replace("'test ! -e /ran && echo > /ran'", third);
    let scenario = Scenario::new(case, &text, &[]);
    let db = scenario.name("db");
    let said = if case == super::OLD {
        format!("the job db ({db}) was recreated, but has not run since")
    } else {
        format!("the job db ({db}) exited with code 1 when it ran again")
    };
    scenario.run("adopt $PROJECT --rerun-jobs").fails(&said);
}

/// It fails two seconds after the deployment.
fn b20_a_job_that_nobody_waits_for_and_that_fails(case: Case) {
    let depends = "\n    depends_on: {db: {condition: service_completed_successfully}}";
    let fails = "sleep 2; test ! -e /ran || exit 7; echo > /ran";
    let text = JOB.replace(depends, "");
    let text = text.replace("test ! -e /ran && echo > /ran", fails);
    let scenario = Scenario::stopped(case, &text, &[]);
    scenario.compose(&["up", "-d"]);
    let db = scenario.name("db");
    docker(&["wait", &db]);
    let before = scenario.ids();
    let run = scenario.run("adopt $PROJECT --rerun-jobs").fails(&[
        format!("the job db ({db}) exited with code 7 when it ran again"),
        format!("docker logs {db}"),
    ]);
    run.hides(&["adopted ", "restored"]);
    assert_eq!(scenario.ids(), before);
}

/// Compose 2.26 cannot take down a stack with a dependency that has no container, so that Portainer cannot delete it. The
/// first restore brings the containers back, and the second one deletes the Portainer stack.
fn b18_a_restore_without_the_dependency(case: Case) {
    let scenario = Scenario::new(case, HEALTH, &[("health/ok", "")]);
    scenario.run("adopt $PROJECT").code(0);
    docker(&["rm", "--force", &scenario.name("db")]);
    let mut run = scenario.run("restore $PROJECT");
    assert_eq!(scenario.ids().len(), 3);
    if run.code == 1 {
        run.says(&["failed to delete Portainer stack", "still exists"]);
        run = scenario.run("restore $PROJECT");
    }
    run.succeeds(": 3 containers match");
    assert!(scenario.rehearsal.world(|world| world.records.is_empty()));
}
