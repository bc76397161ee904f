//! The volumes of a container that `compose run --rm` created: the engine deletes them when the container stops (B28).

use std::{
    fs,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use super::{Case, by_old_portainer_first, scenario::Scenario};
use crate::{
    bench::Run,
    host::{IMAGE, lines},
};

by_old_portainer_first! {
    b28_a_volume_that_is_said_to_be_kept_is_kept
    b28_a_restored_container_has_its_volume
    b28_a_failed_adoption_keeps_the_volume
    b28_a_killed_restore_keeps_the_volume
}

const ONE: &str = "services:
  a:
    $SLEEP
    environment: {A: '${A}'}
networks: {default: {ipam: {config: [{subnet: $SUBNET.0/24}]}}}
";

fn one(case: Case) -> Scenario {
    Scenario::new(case, ONE, &[(".env", "A=1\n")])
}

/// Starts a container with `--rm`. Returns the name of its volume, which has a file.
fn run_with_rm(scenario: &Scenario) -> String {
    let script = "echo data > /x/file; exec /bin/sleep 600";
    let sh = ["/bin/sh", "-c", script];
    scenario.compose(&[&["run", "-d", "--rm", "-v", "/x", "a"][..], &sh].concat());
    let containers = scenario.containers();
    let mut mounts = containers.values().flat_map(|one| {
        let mounts = one["Mounts"].as_array().unwrap();
        mounts.iter().filter(|mount| mount["Destination"] == "/x")
    });
    let volume = mounts.next().unwrap()["Name"].as_str().unwrap().to_owned();
    let started = Instant::now();
    while scenario.in_volume(&volume, "file").as_deref() != Ok("data") {
        assert!(started.elapsed() < Duration::from_mins(5));
    }
    volume
}

fn run(scenario: &Scenario, arguments: &[&str]) -> Run {
    let name = scenario.host.project.as_str();
    scenario.run(&[&[arguments[0], name], &arguments[1..]].concat())
}

/// The containers that stacklift created to hold volumes of the stack.
fn holders(scenario: &Scenario) -> Vec<String> {
    let label = format!("label=stacklift.holds-volumes-of={}", scenario.host.project);
    lines(&["ps", "-aq", "--filter", &label])
}

#[track_caller]
fn assert_kept(scenario: &Scenario, volume: &str) {
    // `docker run` can lose the output of a short command.
    let mut reads = (0..5).map(|_| scenario.in_volume(volume, "file"));
    assert!(reads.any(|read| read.as_deref() == Ok("data")));
    assert_eq!(holders(scenario), Vec::<String>::new());
}

fn b28_a_volume_that_is_said_to_be_kept_is_kept(case: Case) {
    let scenario = one(case);
    run(&scenario, &["adopt", "--yes"]).code(0);
    let volume = run_with_rm(&scenario);
    let kept = format!("the volume {volume} (/x of ");
    // An image can have the label, too.
    let label = format!("stacklift.holds-volumes-of={}", scenario.host.project);
    let other = lines(&["run", "-d", "--label", &label, IMAGE, "sleep", "600"]);
    run(&scenario, &["restore", "--yes"]).succeeds(&[
        &kept,
        "is kept, but no restored container uses it",
        "restored ",
    ]);
    assert_eq!(lines(&["rm", "-f", &other[0]]), other, "it was not removed");
    assert_kept(&scenario, &volume);
    assert_eq!(scenario.ids().len(), 1);
}

fn b28_a_restored_container_has_its_volume(case: Case) {
    let scenario = one(case);
    let volume = run_with_rm(&scenario);
    run(&scenario, &["adopt", "--leave-orphans"]).code(0);
    run(&scenario, &["restore", "--yes"]).succeeds(&[": 2 containers match"]);
    assert_kept(&scenario, &volume);
    assert_mounted(&scenario, &volume);
    run(&scenario, &["restore", "--yes"]).succeeds(&[": 2 containers match"]);
    assert_kept(&scenario, &volume);
}

fn assert_mounted(scenario: &Scenario, volume: &str) {
    let containers = scenario.containers();
    let mut mounts = containers
        .values()
        .flat_map(|one| one["Mounts"].as_array().unwrap());
    assert!(mounts.any(|mount| mount["Name"] == volume));
}

fn b28_a_failed_adoption_keeps_the_volume(case: Case) {
    let scenario = one(case);
    let volume = run_with_rm(&scenario);
    // The container is recreated, and cannot start.
    let text = fs::read_to_string(scenario.dir().join("docker-compose.yml")).unwrap();
    let text = text.replace("command: /bin/sleep 600", "command: /bin/absent");
    fs::write(scenario.dir().join("docker-compose.yml"), text).unwrap();
    run(&scenario, &["adopt", "--leave-orphans", "--yes"])
        .fails(&[" had been changed and was restored"]);
    assert_kept(&scenario, &volume);
    assert_mounted(&scenario, &volume);
}

fn b28_a_killed_restore_keeps_the_volume(case: Case) {
    let scenario = one(case);
    run(&scenario, &["adopt", "--yes"]).code(0);
    let volume = run_with_rm(&scenario);
    let name = scenario.host.project.as_str();
    let mut child = scenario
        .command(&["restore", name, "--yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while holders(&scenario).is_empty() {
        assert!(started.elapsed() < Duration::from_mins(5));
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    run(&scenario, &["restore", "--yes", "--timeout=10m"]).succeeds(&["match"]);
    assert_kept(&scenario, &volume);
}
