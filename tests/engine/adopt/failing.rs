//! Adoptions that fail or are killed. Each ends in the old state, or after a second run in the new one, with every byte of data.

use std::{collections::BTreeMap, thread, time::Duration};

use serde_json::Value;
use testbed::{Call, Era, FaultKind, Status};

use super::{
    Case, by_each_portainer,
    scenario::{Happened, Scenario, State, assert_untouched, happened},
};
use crate::{
    host::{IMAGE, docker},
    run::Run,
    sameness::{assert_same, assert_same_networks},
};

by_each_portainer! {
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
    volumes: [/anonymous, './health:/health:ro']
    healthcheck: {test: [CMD, /bin/ls, /health/ok], interval: 1s, retries: 1}
  web:
    $SLEEP
    labels: {changed: 'no'}
    depends_on: {db: {condition: service_healthy}}
";

/// A stack before an adoption.
struct Before {
    scenario: Scenario,
    state: State,
    networks: Vec<Value>,
    volumes: Vec<String>,
    records: Vec<(String, Status)>,
}

impl Before {
    /// The stack that runs, with a change to its Compose file that recreates `db`.
    fn new(case: Case) -> Self {
        Self::of(case, STACK, &[("conf/a", "a\n")])
    }

    fn of(case: Case, text: &str, files: &[(&str, &str)]) -> Self {
        Self::look(Self::started(case, text, files))
    }

    fn started(case: Case, text: &str, files: &[(&str, &str)]) -> Scenario {
        let scenario = Scenario::stopped(case, text, files);
        let alone = format!("{}-alone", scenario.host.project);
        docker(&["tag", &scenario.host.project, &alone]);
        scenario.start();
        scenario
    }

    /// The state now is the old state.
    fn look(scenario: Scenario) -> Self {
        scenario.edit("changed: 'no'", "changed: 'yes'");
        Self {
            state: scenario.state(),
            networks: scenario.networks(),
            volumes: scenario.created_volumes(),
            records: records(&scenario),
            scenario,
        }
    }

    fn adopt(&self, options: &str) -> Run {
        self.scenario.run(&format!("adopt $PROJECT {options}"))
    }

    /// Runs a shell script right before the deployment.
    fn at_the_last_moment(&self, script: &str) {
        self.scenario.portainer().before_deployment(script);
    }

    fn image(&self) -> &str {
        &self.scenario.host.project
    }

    fn container(&self, service: &str) -> String {
        self.scenario.name(service)
    }

    /// Every container, network, volume, byte and Portainer stack is as before.
    #[track_caller]
    fn assert_old(&self) {
        self.assert_old_containers();
        assert_eq!(self.records, records(&self.scenario));
    }

    /// The same. If a container of before was still there, the adoption restored containers only: removing the Portainer
    /// stack would remove it (N07). Another restore does that.
    #[track_caller]
    fn assert_old_in_the_end(&self) {
        self.assert_old_containers();
        if self.records != records(&self.scenario) {
            self.scenario.restore();
        }
        self.assert_old();
    }

    /// Every container, network, volume and byte is as before.
    #[track_caller]
    fn assert_old_containers(&self) {
        self.scenario.wait_until_healthy();
        let now = self.scenario.state();
        assert_same(&self.state.containers, &now.containers);
        assert_eq!(self.state.data, now.data);
        assert_same_networks(&self.networks, &self.scenario.networks());
        assert_eq!(self.volumes, self.scenario.created_volumes());
    }

    /// The image of a container no longer has its name: a restore uses its ID.
    fn has_no_name(&mut self, container: &str) {
        let container = self.state.containers.get_mut(container).unwrap();
        container["Config"]["Image"] = container["Image"].clone();
    }

    /// What happened to each service.
    fn happened(&self) -> BTreeMap<String, Happened> {
        happened(&self.state.containers, &self.scenario.containers())
    }

    /// An older version runs `down` (M06), so that everything is restored. A newer one leaves what it had not reached
    /// (N06): it recreated `db`, whose image has lost its name, and `alone`, whose anonymous volumes got names.
    #[track_caller]
    fn assert_old_but_for_db(mut self) {
        self.has_no_name(&self.container("db"));
        if self.scenario.case.era == Era::Async {
            let mut happened = self.happened();
            happened.retain(|service, _| !["db", "alone"].contains(&service.as_str()));
            let is_untouched = |one: &Happened| *one == Happened::Untouched;
            assert!(happened.values().all(is_untouched), "{happened:?}");
        }
        self.assert_old_in_the_end();
    }

    /// The new state, with the containers' essence and every byte of before.
    #[track_caller]
    fn assert_new(&self) {
        self.scenario.wait_until_healthy();
        super::scenario::assert_kept(&self.state, &self.scenario.state());
        let labels = &self.scenario.containers()[&self.container("db")]["Config"]["Labels"];
        assert_eq!(labels["changed"], "yes");
        let statuses: Vec<_> = records(&self.scenario).iter().map(|one| one.1).collect();
        assert_eq!(statuses, [Status::Active]);
    }
}

/// The text and the state of each Portainer stack.
fn records(scenario: &Scenario) -> Vec<(String, Status)> {
    scenario.rehearsal.world(|world| {
        let records = world.records.values();
        records.map(|one| (one.text.clone(), one.status)).collect()
    })
}

/// Another image under the name of `db`'s, in which a script replaces `/bin/sleep`.
fn replace_image(before: &Before, script: &str) {
    let (image, script) = (before.image(), format!("rm /bin/sleep; {script}"));
    let host = &before.scenario.host;
    host.commit(image, &script, &[], &format!("{image}:broken"));
    before.at_the_last_moment(&format!(
        "docker tag {image} {image}:old; docker tag {image}:broken {image}"
    ));
}

fn an_image_is_gone(case: Case) {
    let mut before = Before::new(case);
    before.at_the_last_moment(&format!("docker rmi -f {}-alone", before.image()));
    let run = before.adopt("").code(1);
    let alone = before.container("alone");
    if case.era == Era::Sync {
        run.says("restored");
    } else {
        // Nothing changed (N06): the Portainer stack stays in error, because its removal would remove the containers (N07).
        assert_untouched(&before.state.containers, &before.scenario.containers());
        assert_eq!(records(&before.scenario)[0].1, Status::Error);
        run.says("stacklift restore");
        before.scenario.restore();
    }
    before.has_no_name(&alone);
    before.assert_old();
}

fn a_port_is_taken(case: Case) {
    let scenario = Before::started(case, STACK, &[("conf/a", "a\n")]);
    let web = scenario.name("web");
    let ports = &scenario.containers()[&web]["HostConfig"]["PortBindings"]["80/tcp"];
    let port = ports[0]["HostPort"].as_str().unwrap().to_owned();
    docker(&["stop", "-t", "1", &web]);
    let before = Before::look(scenario);
    let host = &before.scenario.host;
    let (mark, other) = (host.mark(), host.name("other"));
    before.at_the_last_moment(&format!(
        "docker run -d --name {other} --label {mark} -p 127.0.0.1:{port}:80 {IMAGE} /bin/sleep 600"
    ));
    let run = before.adopt("--rerun-jobs");
    run.fails(&["restored", &port, "port is already allocated"]);
    let happened = before.happened()["web"];
    let expected: &[Happened] = match case.era {
        Era::Sync | Era::Library => &[Happened::Recreated],
        // Engine 29 takes the networks from a container that fails to start: the restore recreates it.
        Era::Async => &[Happened::Untouched, Happened::Recreated],
    };
    assert!(expected.contains(&happened), "{happened:?}");
    before.assert_old_in_the_end();
}

fn a_start_fails(case: Case) {
    let before = Before::new(case);
    replace_image(&before, "true");
    before.adopt("").fails(&["restored", "/bin/sleep"]);
    before.assert_old_but_for_db();
}

fn a_container_crashes(case: Case) {
    crashes(case, STACK, "it exited with code 3");
}

fn b28_a_container_keeps_restarting(case: Case) {
    let signal = "    stop_signal: SIGKILL\n";
    let stack = STACK.replace(signal, &format!("{signal}    restart: always\n"));
    crashes(case, &stack, "it keeps restarting (exit code 3)");
}

fn crashes(case: Case, stack: &str, end: &str) {
    let files = [("conf/a", "a\n"), (".env", "TOKEN=correct-horse\n")];
    let before = Before::of(case, stack, &files);
    replace_image(
        &before,
        "echo '#!/bin/sh' > /bin/sleep; echo 'echo no correct-horse >&2; exit 3' >> /bin/sleep; chmod 755 /bin/sleep",
    );
    // Portainer reports success (N01).
    let log = format!("{end}\n  the log of db ends with:\n    no ***\n");
    before.adopt("").fails(&["restored", &log]);
    before.assert_old_but_for_db();
}

/// The dependency stays unhealthy for a while, so that the restore of the failed adoption cannot finish either. A later one
/// does.
fn a_dependency_becomes_unhealthy(case: Case) {
    let before = Before::of(case, DEPENDS, &[("health/ok", "")]);
    let file = before.scenario.dir().join("health/ok");
    before.at_the_last_moment(&format!("rm {}; sleep 4", file.display()));
    before.adopt("--wait=5s").fails(&[
        "could not be restored",
        "is unhealthy",
        "stacklift restore",
    ]);
    std::fs::write(&file, "").unwrap();
    before.scenario.wait_until_healthy();
    before.scenario.restore();
    before.assert_old();
}

fn portainer_is_killed(case: Case) {
    let before = Before::new(case);
    let portainer = before.scenario.portainer();
    // When the old container of `db` has ended, and the new one is not started.
    let db = before.state.containers[&before.container("db")]["Id"].clone();
    before.at_the_last_moment(&format!(
        "(for i in $(seq 400); do docker inspect -f '{{{{.State.Running}}}}' {db} | grep -q true || break; done
         docker kill {}) &",
        portainer.container
    ));
    let rehearsal = &before.scenario.rehearsal;
    rehearsal.faults().set(Call::Create, FaultKind::DieAfter);
    before.adopt("--timeout=8s").fails("no response yet to");
    rehearsal.faults().clear();
    portainer.wait_until_killed();
    portainer.start_again();
    rehearsal.revive().unwrap();
    before.scenario.restore();
    before.assert_old();
}

fn a_response_of_a_failure_is_lost(case: Case) {
    let mut before = Before::new(case);
    replace_image(&before, "true");
    let faults = before.scenario.rehearsal.faults();
    faults.set(Call::Create, FaultKind::CloseAfter);
    before.adopt("").fails("this run was creating");
    if before.happened()["db"] != Happened::Untouched {
        before.scenario.restore();
    }
    before.has_no_name(&before.container("db"));
    before.assert_old();
}

fn a_proxy_responds(case: Case) {
    let before = Before::new(case);
    // The proxy gives up, and Portainer continues.
    before.at_the_last_moment("sleep 3");
    let faults = before.scenario.rehearsal.faults();
    let page = b"<html>504 Gateway Time-out</html>".to_vec();
    faults.once(Call::Create, FaultKind::Body(504, page));
    let run = before.adopt("");
    if run.code == 1 {
        run.says(&["no response yet to", "504"]).hides("restored");
        thread::sleep(Duration::from_secs(1));
        before.adopt("").code(0);
    }
    before.assert_new();
}

fn an_update_fails(case: Case) {
    let mut before = Before::new(case);
    let id = before.scenario.record();
    before.records = records(&before.scenario);
    replace_image(&before, "true");
    let run = before.adopt("--leave-orphans --overwrite");
    run.fails("restored");
    before.has_no_name(&before.container("db"));
    match case.era {
        Era::Sync | Era::Library => before.assert_old(),
        // The Portainer stack stays in error: another update would remove every container first (N07).
        Era::Async => before.assert_old_containers(),
    }
    let ids = before
        .scenario
        .rehearsal
        .world(|world| world.records.keys().copied().collect::<Vec<_>>());
    assert_eq!(ids.len(), 1, "{id} became {ids:?}");
}

/// A stack whose adoption was killed while Portainer deployed.
fn killed(case: Case) -> Before {
    let before = Before::new(case);
    before.at_the_last_moment("sleep 2");
    before.scenario.kill_in_flight("adopt $PROJECT");
    before
}

fn a_second_run_finishes(case: Case) {
    let before = killed(case);
    before.adopt("--timeout=5m").code(0);
    before.assert_new();
}

fn a_restore_rolls_back(case: Case) {
    let before = killed(case);
    before.scenario.run("restore $PROJECT --timeout=5m").code(0);
    before.assert_old();
}
