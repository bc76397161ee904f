//! Dependencies that would make the deployment fail, which removes every container (M06). `other` has nothing to do with
//! them, and has data in its own layer.

use std::{env, fs, process::Command, thread, time::Duration};

use testbed::Era;

use super::cases;
use crate::{
    bench::{Case, Stack},
    host::wait_until,
};

// Refusals: nothing is sent.
cases! { [by_old]
    b20_an_unhealthy_dependency
    b20_an_optional_dependency_that_never_ends
}
cases! { [by_old by_newer_too]
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

fn started(case: Case, text: &str) -> Stack {
    written(Stack::by(case).running(text, &[("health/ok", "")]))
}

/// Writes 3 MB to the layer of `other`.
fn written(stack: Stack) -> Stack {
    stack.sh("other", "dd if=/dev/zero of=/big bs=1M count=3");
    stack
}

/// `plan` and `adopt` refuse the stack for this reason, and every container stays as it is.
#[track_caller]
fn refuses(stack: &Stack, why: &str) {
    let before = stack.ids();
    for line in ["plan $PROJECT", "adopt $PROJECT"] {
        stack.run(line).code(1).hides("unchanged").wraps(why);
    }
    assert_eq!(stack.ids(), before);
    assert_stays(stack);
    assert!(stack.rehearsal.world(|world| world.records.is_empty()));
}

/// The container that nothing depends on is still the same one.
#[track_caller]
fn assert_stays(stack: &Stack) {
    assert_eq!(stack.sh("other", "wc -c < /big"), "3145728");
}

/// Waits until the health of `db` has this status.
fn wait_for(stack: &Stack, status: &str) {
    wait_until(|| stack.containers()["db"]["State"]["Health"]["Status"] == status);
}

fn b20_an_unhealthy_dependency(case: Case) {
    let stack = started(case, HEALTH);
    let ok = stack.dir().join("health/ok");
    fs::remove_file(&ok).unwrap();
    wait_for(&stack, "unhealthy");
    let why = "service web waits until db is healthy: $PROJECT-db-1 is unhealthy";
    refuses(&stack, why);
    fs::write(&ok, "").unwrap();
    wait_for(&stack, "healthy");
    stack.run("adopt $PROJECT").code(0);
    assert_stays(&stack);
}

fn b20_a_dependency_that_is_starting(case: Case) {
    let text = HEALTH.replace("retries: 1}", "retries: 1, start_period: 300s}");
    let stack = started(case, &text);
    let ok = stack.dir().join("health/ok");
    fs::remove_file(&ok).unwrap();
    stack.docker("restart -t 1 $PROJECT-db-1");
    wait_for(&stack, "starting");
    let before = stack.ids();
    let plan = stack.run("plan $PROJECT");
    plan.says("waits for that before it sends");
    stack.run("adopt $PROJECT --wait=2s").fails(&[
        "the deployment would fail",
        "--wait",
        "Nothing was changed",
    ]);
    assert_eq!(stack.ids(), before);
    // It becomes healthy after the adoption has begun to wait, and before Portainer is asked.
    let at = stack.dir().join("at");
    stack.before_deployment(&format!(
        "docker inspect -f '{{{{.State.Health.Status}}}}' $PROJECT-db-1 > {}",
        at.display()
    ));
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(4));
            fs::write(&ok, "").unwrap();
        });
        stack.run("adopt $PROJECT --wait=100s").code(0);
    });
    assert_stays(&stack);
    assert_eq!(fs::read_to_string(at).unwrap(), "healthy\n");
}

/// Compose skips it.
fn b20_an_optional_dependency(case: Case) {
    let text = HEALTH.replace("service_healthy}", "service_healthy, required: false}");
    let stack = started(case, &text);
    fs::remove_file(stack.dir().join("health/ok")).unwrap();
    wait_for(&stack, "unhealthy");
    stack.run("adopt $PROJECT").code(0).hides("waits until");
    assert_stays(&stack);
}

/// Compose skips it once it has ended or is unhealthy, and waits for that without a limit.
fn b20_an_optional_dependency_that_never_ends(case: Case) {
    let text = JOB.replace("successfully}", "successfully, required: false}");
    let never = "image: $IMAGE\n    restart: always\n    command: [/bin/sleep, '1']";
    let first = "image: $IMAGE\n    command: [/bin/sh, -c, 'test ! -e /ran && echo > /ran']";
    let stack = Stack::by(case).stopped(&text.replace(first, never), &[]);
    for service in ["db", "other", "web"] {
        stack.compose(&["up", "-d", "--no-deps", service]);
    }
    let stack = written(stack);
    refuses(
        &stack,
        "service web waits until db succeeds: $PROJECT-db-1 never ends",
    );
    // Each Compose waits for it as well.
    for which in ["COMPOSE", "COMPOSE_2_40", "COMPOSE_5"] {
        let compose = env::var(format!("STACKLIFT_TEST_{which}")).unwrap();
        let mut command = Command::new("timeout");
        command.args(["5", &compose, "-p", &stack.host.project, "up", "-d"]);
        let ended = command.current_dir(stack.dir()).output().unwrap();
        assert_eq!(ended.status.code(), Some(124), "{which}: {ended:?}");
    }
}

/// It succeeds when Compose starts it and when `adopt` tries it.
fn b20_a_job_that_fails_only_in_portainer(case: Case) {
    let third = "'test ! -e /2 && { test ! -e /1 || echo > /2; echo > /1; }'";
    let text = JOB.replace("'test ! -e /ran && echo > /ran'", third);
    let stack = Stack::by(case).running(&text, &[]);
    let run = stack.run("adopt $PROJECT --rerun-jobs");
    run.fails(if case.era == Era::Sync {
        "the job db ($PROJECT-db-1) was recreated, but has not run since"
    } else {
        "the job db ($PROJECT-db-1) exited with code 1 when it ran again"
    });
}

/// It fails two seconds after the deployment.
fn b20_a_job_that_nobody_waits_for_and_that_fails(case: Case) {
    let depends = "\n    depends_on: {db: {condition: service_completed_successfully}}";
    let fails = "sleep 2; test ! -e /ran || exit 7; echo > /ran";
    let text = JOB.replace(depends, "");
    let text = text.replace("test ! -e /ran && echo > /ran", fails);
    let stack = Stack::by(case).running(&text, &[]);
    stack.docker("wait $PROJECT-db-1");
    let before = stack.ids();
    let run = stack.run("adopt $PROJECT --rerun-jobs").fails(&[
        "the job db ($PROJECT-db-1) exited with code 7 when it ran again",
        "docker logs $PROJECT-db-1",
    ]);
    run.hides(&["adopted ", "restored"]);
    assert_eq!(stack.ids(), before);
}

/// Compose 2.26 cannot take down a stack with a dependency that has no container, so that Portainer cannot delete it. The
/// first restore brings the containers back, and the second one deletes the Portainer stack.
fn b18_a_restore_without_the_dependency(case: Case) {
    let stack = Stack::by(case).running(HEALTH, &[("health/ok", "")]);
    stack.run("adopt $PROJECT").code(0);
    stack.docker("rm --force $PROJECT-db-1");
    let mut run = stack.run("restore $PROJECT");
    assert_eq!(stack.ids().len(), 3);
    if run.code == 1 {
        run.says(&["failed to delete Portainer stack", "still exists"]);
        run = stack.run("restore $PROJECT");
    }
    run.succeeds(": 3 containers match");
    assert!(stack.rehearsal.world(|world| world.records.is_empty()));
}
