//! The volumes of a container that `compose run --rm` created: the engine deletes them when the container stops (B28).

use super::cases;
use crate::{
    bench::{Case, Stack},
    host::wait_until,
};

cases! { [by_old by_newer_too]
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

fn one(case: Case) -> Stack {
    Stack::by(case).running(ONE, &[(".env", "A=1\n")])
}

/// Starts a container with `--rm`. Returns the name of its volume, which has a file.
fn run_with_rm(stack: &Stack) -> String {
    let script = "echo data > /x/file; exec /bin/sleep 600";
    let sh = ["/bin/sh", "-c", script];
    stack.compose(&[&["run", "-d", "--rm", "-v", "/x", "a"][..], &sh].concat());
    let containers = stack.containers();
    let mut mounts = containers.mounts();
    let mount = mounts.find(|mount| mount["Destination"] == "/x");
    let volume = mount.unwrap()["Name"].as_str().unwrap().to_owned();
    wait_until(|| stack.in_volume(&volume, "file") == "data");
    volume
}

/// The containers that stacklift created to hold volumes of the stack.
fn holders(stack: &Stack) -> Vec<String> {
    stack.lines("ps -aq --filter label=stacklift.holds-volumes-of=$PROJECT")
}

#[track_caller]
fn assert_kept(stack: &Stack, volume: &str) {
    // `docker run` can lose the output of a short command.
    let mut reads = (0..5).map(|_| stack.in_volume(volume, "file"));
    assert!(reads.any(|read| read == "data"));
    assert_eq!(holders(stack), Vec::<String>::new());
}

fn assert_mounted(stack: &Stack, volume: &str) {
    assert_kept(stack, volume);
    assert!(stack.state().volumes.contains(volume));
}

fn b28_a_volume_that_is_said_to_be_kept_is_kept(case: Case) {
    let stack = one(case);
    stack.run("adopt $PROJECT").code(0);
    let volume = run_with_rm(&stack);
    let kept = format!("the volume {volume} (/x of ");
    // An image can have the label, too.
    let other = stack.docker("run -d --label stacklift.holds-volumes-of=$PROJECT $IMAGE sleep 600");
    let run = stack.run("restore $PROJECT");
    run.succeeds(&[
        &*kept,
        "is kept, but no restored container uses it",
        "restored ",
    ]);
    let removed = stack.docker(&format!("rm -f {other}"));
    assert_eq!(removed, other, "it was not removed");
    assert_kept(&stack, &volume);
    assert_eq!(stack.ids().len(), 1);
}

fn b28_a_restored_container_has_its_volume(case: Case) {
    let stack = one(case);
    let volume = run_with_rm(&stack);
    stack.run("adopt $PROJECT --leave-orphans").code(0);
    for _ in 0..2 {
        stack.restore().says(": 2 containers match");
        assert_mounted(&stack, &volume);
    }
}

fn b28_a_failed_adoption_keeps_the_volume(case: Case) {
    let stack = one(case);
    let volume = run_with_rm(&stack);
    // The container is recreated, and cannot start.
    stack.edit("command: /bin/sleep 600", "command: /bin/absent");
    let run = stack.run("adopt $PROJECT --leave-orphans");
    run.fails(" had been changed and was restored");
    assert_mounted(&stack, &volume);
}

fn b28_a_killed_restore_keeps_the_volume(case: Case) {
    let stack = one(case);
    stack.run("adopt $PROJECT").code(0);
    let volume = run_with_rm(&stack);
    stack.kill_when("restore $PROJECT", || !holders(&stack).is_empty());
    let run = stack.run("restore $PROJECT --timeout=10m");
    run.succeeds("match");
    assert_kept(&stack, &volume);
}
