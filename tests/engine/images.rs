//! `migrate` pulls the images of the new text while the old containers still run (B27).

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use testbed::Call;

use super::{bench::Stack, registry::Registry, run::Run};

const APP: &str = "services:\n  app:\n    $SLEEP\n";

/// A stack that runs, whose Compose file has one more service with this image.
fn with_new(image: &str) -> Stack {
    let stack = Stack::new().running(APP, &[]);
    stack.write(&format!("{APP}  new:\n    image: {image}\n"));
    stack
}

/// Nothing was stopped, and nothing was sent to Portainer.
#[track_caller]
fn assert_untouched(stack: &Stack, ids: &[String]) {
    assert_eq!(stack.ids(), ids);
    let containers = stack.containers();
    assert_eq!(containers[&stack.name("app")]["State"]["Running"], true);
    let requests = stack.rehearsal.requests();
    let is_change = |call: Call| matches!(call, Call::Create | Call::Delete | Call::Update);
    assert!(!requests.iter().any(|one| is_change(one.call)));
}

fn spawn(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn ended(child: Child) -> Run {
    Run::ended(&child.wait_with_output().unwrap())
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b27_an_image_that_cannot_be_pulled_refuses_the_run() {
    let image = Registry::absent();
    let stack = with_new(&image);
    let ids = stack.ids();
    let none = tempfile::tempdir().unwrap();
    // By the command, and by the API without a command.
    for path in [None, Some(none.path())] {
        let mut command = stack.command("$PROJECT");
        command.envs(path.map(|path| ("PATH", path)));
        Run::of(&mut command).fails(&[
            "refusing to migrate: images cannot be pulled or built",
            &format!("image {image}: "),
            "connection refused",
            "--force overrides this check",
            "Nothing was changed",
        ]);
        assert_untouched(&stack, &ids);
    }
    stack.run("$PROJECT --force").succeeds(&[
        "continuing because of --force",
        "connection refused",
        "created",
    ]);
    assert!(stack.ids().is_empty());
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b27_an_image_that_portainer_would_pull_again_must_be_served() {
    let stack = with_new("$IMAGE\n    pull_policy: always");
    let ids = stack.ids();
    stack.run("$PROJECT").fails(&[
        "images cannot be pulled or built",
        "image stacklift-test-busybox: ",
    ]);
    assert_untouched(&stack, &ids);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b20_an_adoption_pulls_first_what_portainer_would_pull_again() {
    let stack = with_new("$IMAGE\n    pull_policy: always");
    let ids = stack.ids();
    stack.run("adopt $PROJECT").fails(&[
        "failed to pull stacklift-test-busybox",
        "Nothing was changed",
    ]);
    assert_untouched(&stack, &ids);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b27_a_missing_image_is_pulled_before_anything_is_stopped() {
    let none = tempfile::tempdir().unwrap();
    for path in [None, Some(none.path())] {
        let registry = Registry::start();
        let stack = with_new(&registry.image);
        let ids = stack.ids();
        let said = format!(
            "image {} will be pulled before anything is stopped",
            registry.image
        );
        for line in ["plan $PROJECT --compare", "$PROJECT --dry-run"] {
            stack.run(line).wraps(&said);
        }
        assert!(registry.held.try_recv().is_err(), "nothing is pulled");

        let mut command = stack.command("$PROJECT");
        command.envs(path.map(|path| ("PATH", path)));
        let child = spawn(&mut command);
        let held = registry.held.recv_timeout(Duration::from_mins(1)).unwrap();
        assert_untouched(&stack, &ids);
        held.send(()).unwrap();
        let pulled = format!("pulled {}", registry.image);
        ended(child).succeeds(&["created", &said, &pulled]);
        assert!(registry.is_pulled());
        assert!(stack.ids().is_empty());
    }
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b27_a_container_that_changes_during_the_pull_stops_the_run() {
    let registry = Registry::start();
    let stack = with_new(&registry.image);
    let child = spawn(&mut stack.command("$PROJECT"));
    let held = registry.held.recv_timeout(Duration::from_mins(1)).unwrap();
    stack.remove_all();
    held.send(()).unwrap();
    ended(child).fails(&[
        "the stack's containers changed while images were pulled",
        "this run pulled images and changed nothing else",
    ]);
    let requests = stack.rehearsal.requests();
    assert!(requests.iter().all(|one| one.call != Call::Create));
}
