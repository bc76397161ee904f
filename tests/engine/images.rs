//! `migrate` pulls the images of the new text while the old containers still run (B27).

use std::{
    process::{Command, Stdio},
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
    assert_eq!(stack.containers()["app"]["State"]["Running"], true);
    let requests = stack.rehearsal.requests();
    let is_change = |call: Call| matches!(call, Call::Create | Call::Delete | Call::Update);
    assert!(!requests.iter().any(|one| is_change(one.call)));
}

/// Runs a command, and does something while the engine pulls an image for it.
fn during_the_pull(mut command: Command, registry: &Registry, act: impl FnOnce()) -> Run {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let held = registry.held.recv_timeout(Duration::from_mins(1));
    act();
    held.unwrap().send(()).unwrap();
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
fn b20_b27_an_image_that_portainer_would_pull_again_must_be_served() {
    let stack = with_new("$IMAGE\n    pull_policy: always");
    let ids = stack.ids();
    let migration = stack.run("$PROJECT");
    migration.fails(&[
        "images cannot be pulled or built",
        "image stacklift-test-busybox: ",
    ]);
    let adoption = stack.run("adopt $PROJECT");
    adoption.fails(&[
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
        let untouched = || assert_untouched(&stack, &ids);
        let run = during_the_pull(command, &registry, untouched);
        run.succeeds(&["created", &said, &format!("pulled {}", registry.image)]);
        stack.docker(&format!("rmi {}", registry.image));
        assert!(stack.ids().is_empty());
    }
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b27_a_container_that_changes_during_the_pull_stops_the_run() {
    let registry = Registry::start();
    let stack = with_new(&registry.image);
    let run = during_the_pull(stack.command("$PROJECT"), &registry, || stack.remove_all());
    run.fails(&[
        "the stack's containers changed while images were pulled",
        "this run pulled images and changed nothing else",
    ]);
    stack.docker(&format!("rmi {}", registry.image));
    let requests = stack.rehearsal.requests();
    assert!(requests.iter().all(|one| one.call != Call::Create));
}
