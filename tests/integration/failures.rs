//! B16: after a failure, what can come back comes back. B40: a failure is remembered, a restore never deploys a text that could not be deployed, and no snapshot is passed over
//! without a word.

use std::{fs, os::unix::fs::chown, time::Duration};

use testbed::{Call, Era, FaultKind, Status};

use crate::bench::{Bench, PLAIN, Run, refusal, set_mode};

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
            .retain(|_, image| image["RepoTags"][0] != "other:1");
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

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_snapshots_in_another_state_directory_are_named() {
    const USER: u32 = 65_534;
    let bench = Bench::adopted(PLAIN);
    let home = bench.home().join("own");
    let folder = home.join(".local/state/stacklift");
    let project = folder.join("snapshots/web-0123456789abcdef");
    fs::create_dir_all(&project).expect("directories");
    fs::write(project.join("20261127T120000.000Z.json"), "{}").expect("a snapshot");
    for folder in [bench.root(), bench.home()] {
        set_mode(folder, 0o1777);
    }
    chown(&folder, Some(USER), None).expect("root");
    let says = format!(
        "warning: there are snapshots of web in {}: to use them, unset STACKLIFT_STATE_DIR\n",
        folder.display()
    );
    let mut command = bench.as_user("restore web --list", USER);
    command
        .env("HOME", &home)
        .env("STACKLIFT_STATE_DIR", home.join("absent"));
    let none = "no snapshot of web in ";
    Run::of(&mut command).fails(&[&says[..], none]);
}

/// A deployment that fails, and removes every container (M06).
fn removes_all() -> FaultKind {
    FaultKind::LateFailure(Duration::ZERO)
}

const SHARES: &str = "services:
  db:
    image: x:1
    volumes: [data:/data]
  vpn:
    image: x:1
    container_name: gateway
  web:
    image: x:1
    network_mode: service:vpn
volumes:
  data:
";

/// Tools that update images replace a container under a new ID.
#[test]
fn b16_the_namespace_of_a_replaced_container_is_taken_from_its_service() {
    let bench = Bench::web(SHARES);
    bench.world(|world| {
        let old = world.container("gateway").expect("a container").id.clone();
        let mut gateway = world.containers.remove(&old).expect("a container");
        gateway.id = "f00d".repeat(16);
        world.containers.insert(gateway.id.clone(), gateway);
    });
    // The saved container itself is kept.
    bench.once(Call::Create, refusal());
    bench.fails("adopt web", "No container was changed");
    bench.forget_requests();
    bench.succeeds("restore web", "web is as it was: 3 containers match");
    assert!(bench.nothing_was_changed());
    bench.once(Call::Create, removes_all());
    bench.fails(
        "adopt web",
        "All 3 containers had been removed and were restored",
    );
    let vpn = bench.container("gateway").id;
    let web = bench.container("web-web-1");
    assert_eq!(web.host_config["NetworkMode"], format!("container:{vpn}"));
    assert_eq!(web.state, "running");
}

#[test]
fn b16_a_plan_names_the_container_that_is_gone_and_whose_namespace_another_shares() {
    let bench = Bench::web("services:\n  db:\n    image: x:1\n");
    let gone = "0123456789abcdef".repeat(4);
    bench.change_container("web-db-1", |db| {
        db.host_config["PidMode"] = format!("container:{gone}").into();
    });
    let shares =
        "web-db-1 shares a namespace or volumes with container 0123456789ab, which does not exist";
    bench.succeeds("plan web", shares);
}
