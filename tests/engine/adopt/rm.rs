//! The volumes of a container that `compose run --rm` created: the engine deletes them when the container stops (B28).

use super::{Case, by_old_portainer_first, scenario::Scenario};
use crate::host::{IMAGE, lines, wait_until};

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
    wait_until(|| scenario.in_volume(&volume, "file").as_deref() == Ok("data"));
    volume
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
    scenario.run("adopt $PROJECT").code(0);
    let volume = run_with_rm(&scenario);
    let kept = format!("the volume {volume} (/x of ");
    // An image can have the label, too.
    let label = format!("stacklift.holds-volumes-of={}", scenario.host.project);
    let other = lines(&["run", "-d", "--label", &label, IMAGE, "sleep", "600"]);
    scenario.run("restore $PROJECT").succeeds(&[
        &*kept,
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
    scenario.run("adopt $PROJECT --leave-orphans").code(0);
    let restore = || scenario.run("restore $PROJECT");
    restore().succeeds(": 2 containers match");
    assert_kept(&scenario, &volume);
    assert_mounted(&scenario, &volume);
    restore().succeeds(": 2 containers match");
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
    scenario.edit("command: /bin/sleep 600", "command: /bin/absent");
    let run = scenario.run("adopt $PROJECT --leave-orphans");
    run.fails(" had been changed and was restored");
    assert_kept(&scenario, &volume);
    assert_mounted(&scenario, &volume);
}

fn b28_a_killed_restore_keeps_the_volume(case: Case) {
    let scenario = one(case);
    scenario.run("adopt $PROJECT").code(0);
    let volume = run_with_rm(&scenario);
    scenario.kill_when("restore $PROJECT", || !holders(&scenario).is_empty());
    let run = scenario.run("restore $PROJECT --timeout=10m");
    run.succeeds("match");
    assert_kept(&scenario, &volume);
}
