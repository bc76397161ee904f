//! B40: a failure is remembered, and a restore never deploys a text that could not be deployed.

use rehearsal::{Call, Era, Status};

use crate::bench::{Bench, PLAIN};

/// [`PLAIN`] with another service, whose image disappears during the deployment.
fn with_other() -> String {
    format!("{PLAIN}  b:\n    image: other:1\n")
}

/// Adopts the stack, whose deployment fails before it changes anything (N06).
fn fails_to_deploy(bench: &Bench, call: Call) {
    bench.world(|world| {
        world.unpullable.clear();
        world.add_image("other:1");
    });
    bench.world_with(call, |world| {
        world
            .images
            .retain(|_, image| !image.tags.contains("other:1"));
        world.unpullable.insert("other:1".to_owned());
    });
    bench.fails("adopt web", "pull access denied for other:1");
    bench.world(|world| {
        world.unpullable.clear();
        world.add_image("other:1");
    });
}

#[test]
fn b40_a_failure_that_changed_nothing_is_remembered() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    let before = bench.containers("web");
    bench.stack("web", &with_other(), None);
    fails_to_deploy(&bench, Call::Create);
    assert_eq!(bench.containers("web"), before, "nothing changed");
    assert_eq!(bench.first_record().status, Status::Error);
    bench.run("plan web").succeeds(&[
        "warning: the last adoption of this version failed on ",
        "The last adoption failed: the earlier containers run, but Portainer has what was sent. To undo that: stacklift restore web\n",
    ]);
    bench.succeeds("list", "failed run");
    // Now the update of the stack in error removes every container first (N07).
    fails_to_deploy(&bench, Call::Update);
    assert_eq!(bench.containers("web").len(), 1);
    bench.forget_requests();
    bench.succeeds("restore web", "1 container");
    assert!(bench.calls(Call::Create).is_empty());
    assert!(bench.calls(Call::Update).is_empty());
    assert!(bench.world(|world| world.records.is_empty()));
}

/// Also one that somebody edited in Portainer.
#[test]
fn b40_a_restore_does_not_deploy_what_could_not_be_deployed() {
    let bench = Bench::of(Era::Async);
    bench.started("web", PLAIN, None);
    bench.run("adopt web").code(0);
    let bad = format!("{PLAIN}    network_mode: service:absent\n");
    bench.change_record(|record| {
        record.text.clone_from(&bad);
        record.status = Status::Error;
    });
    bench.run("adopt web --overwrite").code(0);
    bench.forget_requests();
    let left = "Portainer is left as it is: it could not deploy the Compose file that it had then";
    bench.succeeds("restore web", &[left, "restored web"]);
    assert!(bench.calls(Call::Update).is_empty());
    bench.world(|world| world.records.clear());
    bench.succeeds("restore web", &[left, "web is as it was"]);
    assert!(bench.calls(Call::Create).is_empty());
}
