//! Adoptions that fail or are killed. Each ends in the old state, or after a second run in the new one, with every byte of data.

use std::{fs, thread, time::Duration};

use testbed::{Call, Era, FaultKind, Status};

use super::cases;
use crate::{
    bench::{Case, Stack},
    host::wait_until,
    state::{Happened, State},
};

cases! { [by_old by_newer]
    an_image_is_gone
    a_port_is_taken
    a_start_fails
    a_container_crashes
    b28_a_container_keeps_restarting
    a_dependency_becomes_unhealthy
    portainer_is_killed
    a_response_of_a_failure_is_lost
    a_proxy_responds
    an_update_fails
    a_second_run_finishes
    a_restore_rolls_back
}

/// `db` is recreated: its labels are changed after it was started. The others are not.
const STACK: &str = "services:
  db:
    image: $PROJECT
    command: [/bin/sleep, '600']
    stop_signal: SIGKILL
    labels: {changed: 'no'}
    volumes: [/anonymous, data:/data]
  web:
    $SLEEP
    ports: ['127.0.0.1:$PORT:80']
    volumes: [web:/data, './conf:/conf']
  alone:
    image: $PROJECT-alone
    command: /bin/sleep 600
    init: true
    volumes: [/anonymous]
volumes: {data: {}, web: {}}
";

const DEPENDS: &str = "services:
  db:
    $OWN_SLEEP
    volumes: [/anonymous, './conf:/conf:ro']
    healthcheck: {test: [CMD, /bin/ls, /conf/a], interval: 1s, retries: 1}
  web:
    $SLEEP
    labels: {changed: 'no'}
    depends_on: {db: {condition: service_healthy}}
";

const FILES: &[(&str, &str)] = &[("conf/a", "a\n"), (".env", "TOKEN=correct-horse\n")];

/// A stack that runs, with a change to its Compose file that recreates `db`, and its state.
fn running(case: Case) -> (Stack, State) {
    edited(started(case, STACK))
}

fn started(case: Case, text: &str) -> Stack {
    let stack = Stack::by(case).stopped(text, FILES);
    stack.docker("tag $PROJECT $PROJECT-alone");
    stack.start();
    stack
}

fn edited(stack: Stack) -> (Stack, State) {
    stack.edit("changed: 'no'", "changed: 'yes'");
    let before = stack.state();
    (stack, before)
}

/// A stack whose adoption was killed while Portainer deployed, and its state before.
fn killed(case: Case) -> (Stack, State) {
    let (stack, before) = running(case);
    stack.before_deployment("sleep 2");
    stack.kill_in_flight("adopt $PROJECT");
    (stack, before)
}

/// Right before the deployment, another image gets the name of `db`'s, in which a script replaces `/bin/sleep`.
fn replace_image(stack: &Stack, script: &str) {
    let script = format!("rm /bin/sleep; {script}");
    stack.commit("$PROJECT", &script, "", "$PROJECT:broken");
    let tag = "docker tag $PROJECT $PROJECT:old; docker tag $PROJECT:broken $PROJECT";
    stack.before_deployment(tag);
}

/// The same state, but the image of a container no longer has its name: a restore uses its ID.
fn without_name(mut before: State, service: &str) -> State {
    let name = format!("$PROJECT-{service}-1");
    let container = before.containers.0.get_mut(&name).unwrap();
    container["Config"]["Image"] = container["Image"].clone();
    before
}

/// Everything is as before. If a container of before was still there, the adoption restored containers only: removing the
/// Portainer stack would remove it (N07). Another restore does that.
#[track_caller]
fn assert_old_in_the_end(stack: &Stack, before: &State) {
    if stack.assert_has_objects(before).records != before.records {
        stack.restore();
    }
    stack.assert_is(before);
}

/// An older version runs `down` (M06), so that everything is restored. A newer one leaves what it had not reached
/// (N06): it recreated `db`, whose image has lost its name, and `alone`, whose anonymous volumes got names.
#[track_caller]
fn assert_old_but_for_db(stack: &Stack, before: State) {
    if stack.case.era == Era::Async {
        let happened = before.containers.happened(&stack.containers());
        assert_eq!(happened["web"], Happened::Untouched);
    }
    assert_old_in_the_end(stack, &without_name(before, "db"));
}

/// The new state, with the containers' essence and every byte of before.
#[track_caller]
fn assert_new(stack: &Stack, before: &State) {
    stack.wait_until_healthy();
    let now = stack.state();
    before.assert_kept(&now);
    assert_eq!(now.containers["db"]["Config"]["Labels"]["changed"], "yes");
    let statuses: Vec<_> = now.records.iter().map(|record| record.1).collect();
    assert_eq!(statuses, [Status::Active]);
}

fn an_image_is_gone(case: Case) {
    let (stack, before) = running(case);
    stack.before_deployment("docker rmi -f $PROJECT-alone");
    let run = stack.run("adopt $PROJECT").code(1);
    if case.era == Era::Sync {
        run.says("restored");
    } else {
        // Nothing changed (N06): the Portainer stack stays in error, because its removal would remove the containers (N07).
        let now = stack.state();
        before.containers.assert_untouched(&now.containers);
        assert_eq!(now.records[0].1, Status::Error);
        run.says("stacklift restore");
        stack.restore();
    }
    stack.assert_is(&without_name(before, "alone"));
}

fn a_port_is_taken(case: Case) {
    let stack = started(case, STACK);
    let web = &stack.containers()["web"]["HostConfig"]["PortBindings"]["80/tcp"];
    let port = web[0]["HostPort"].as_str().unwrap().to_owned();
    stack.docker("stop -t 1 $PROJECT-web-1");
    let (stack, before) = edited(stack);
    stack.before_deployment(&format!(
        "docker run -d --label $MARK -p 127.0.0.1:{port}:80 $IMAGE /bin/sleep 600"
    ));
    let run = stack.run("adopt $PROJECT --rerun-jobs");
    run.fails(&["restored", &port, "port is already allocated"]);
    let happened = before.containers.happened(&stack.containers())["web"];
    let expected: &[Happened] = match case.era {
        Era::Sync | Era::Library => &[Happened::Recreated],
        // Engine 29 takes the networks from a container that fails to start: the restore recreates it.
        Era::Async => &[Happened::Untouched, Happened::Recreated],
    };
    assert!(expected.contains(&happened), "{happened:?}");
    assert_old_in_the_end(&stack, &before);
}

fn a_start_fails(case: Case) {
    let (stack, before) = running(case);
    replace_image(&stack, "true");
    let run = stack.run("adopt $PROJECT");
    run.fails(&["restored", "/bin/sleep"]);
    assert_old_but_for_db(&stack, before);
}

fn a_container_crashes(case: Case) {
    crashes(case, STACK, "it exited with code 3");
}

fn b28_a_container_keeps_restarting(case: Case) {
    let signal = "    stop_signal: SIGKILL\n";
    let stack = STACK.replace(signal, &format!("{signal}    restart: always\n"));
    crashes(case, &stack, "it keeps restarting (exit code 3)");
}

fn crashes(case: Case, text: &str, end: &str) {
    let (stack, before) = edited(started(case, text));
    replace_image(
        &stack,
        "echo '#!/bin/sh' > /bin/sleep; echo 'echo no correct-horse >&2; exit 3' >> /bin/sleep; chmod 755 /bin/sleep",
    );
    // Portainer reports success (N01).
    let log = format!("{end}\n  the log of db ends with:\n    no ***\n");
    stack.run("adopt $PROJECT").fails(&["restored", &log]);
    assert_old_but_for_db(&stack, before);
}

/// The dependency stays unhealthy for a while, so that the restore of the failed adoption cannot finish either. A later one
/// does.
fn a_dependency_becomes_unhealthy(case: Case) {
    let (stack, before) = edited(started(case, DEPENDS));
    let file = stack.dir().join("conf/a");
    stack.before_deployment(&format!("rm {}; sleep 4", file.display()));
    let run = stack.run("adopt $PROJECT --wait=5s");
    run.fails(&["could not be restored", "is unhealthy", "stacklift restore"]);
    fs::write(&file, "a\n").unwrap();
    stack.wait_until_healthy();
    stack.restore();
    stack.assert_is(&before);
}

fn portainer_is_killed(case: Case) {
    let (stack, before) = running(case);
    // When the old container of `db` has ended, and the new one is not started.
    let db = &before.containers["db"]["Id"];
    stack.before_deployment(&format!(
        "(for i in $(seq 400); do docker inspect -f '{{{{.State.Running}}}}' {db} | grep -q true || break; done
         docker kill $PROJECT-portainer) &"
    ));
    let faults = stack.rehearsal.faults();
    faults.set(Call::Create, FaultKind::DieAfter);
    let run = stack.run("adopt $PROJECT --timeout=8s");
    run.fails("no response yet to");
    faults.clear();
    wait_until(|| stack.docker("inspect -f {{.State.Running}} $PROJECT-portainer") != "true");
    stack.docker("start $PROJECT-portainer");
    stack.rehearsal.revive().unwrap();
    stack.restore();
    stack.assert_is(&before);
}

fn a_response_of_a_failure_is_lost(case: Case) {
    let (stack, before) = running(case);
    replace_image(&stack, "true");
    let faults = stack.rehearsal.faults();
    faults.set(Call::Create, FaultKind::CloseAfter);
    stack.run("adopt $PROJECT").fails("this run was creating");
    let happened = before.containers.happened(&stack.containers());
    if happened["db"] != Happened::Untouched {
        stack.restore();
    }
    stack.assert_is(&without_name(before, "db"));
}

fn a_proxy_responds(case: Case) {
    let (stack, before) = running(case);
    // The proxy gives up, and Portainer continues.
    stack.before_deployment("sleep 3");
    let page = b"<html>504 Gateway Time-out</html>".to_vec();
    let faults = stack.rehearsal.faults();
    faults.once(Call::Create, FaultKind::Body(504, page));
    let run = stack.run("adopt $PROJECT");
    if run.code == 1 {
        run.says(&["no response yet to", "504"]).hides("restored");
        thread::sleep(Duration::from_secs(1));
        stack.run("adopt $PROJECT").code(0);
    }
    assert_new(&stack, &before);
}

fn an_update_fails(case: Case) {
    let stack = started(case, STACK);
    stack.record();
    let (stack, before) = edited(stack);
    replace_image(&stack, "true");
    let run = stack.run("adopt $PROJECT --leave-orphans --overwrite");
    run.fails("restored");
    let now = stack.assert_has_objects(&without_name(before.clone(), "db"));
    assert_eq!(now.records.len(), 1);
    // Otherwise, the Portainer stack stays in error: another update would remove every container first (N07).
    if case.era == Era::Sync {
        assert_eq!(now.records, before.records);
    }
}

fn a_second_run_finishes(case: Case) {
    let (stack, before) = killed(case);
    stack.run("adopt $PROJECT --timeout=5m").code(0);
    assert_new(&stack, &before);
}

fn a_restore_rolls_back(case: Case) {
    let (stack, before) = killed(case);
    stack.run("restore $PROJECT --timeout=5m").code(0);
    stack.assert_is(&before);
}
