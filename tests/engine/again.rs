//! Restores a stack when some of its containers exist already.

use super::{
    bench::Stack,
    sameness::{assert_same, assert_same_networks, ids},
};
use crate::host::{IMAGE, PROJECT, docker};

const THREE: &str = r#"services:
  db:
    $OWN_SLEEP
    volumes: [/anonymous]
    healthcheck: {test: [CMD, /bin/true], interval: 1s}
  web:
    $SLEEP
    depends_on: {db: {condition: service_healthy}}
    environment: {NAME: value}
    tmpfs: [/scratch]
    ports: ["127.0.0.1:$PORT:80"]
  cron:
    $SLEEP
    network_mode: none
"#;

fn three() -> Stack {
    let stack = Stack::new().running(THREE, &[]);
    stack.sh(
        "db",
        "echo imgvol > /imgvol/file; echo anonymous > /anonymous/file",
    );
    stack
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn what_matches_stays_and_what_only_stopped_is_started() {
    let stack = three();
    let before = stack.containers();
    stack.save();
    stack.restore().says("3 containers match the snapshot");
    assert_eq!(ids(&before), ids(&stack.containers()));

    stack.migrate();
    stack.restore();
    let (once, networks) = (stack.containers(), stack.networks());
    stack.restore().says(&[
        "  3 containers match the snapshot\n",
        "is as it was: 3 containers match the snapshot; for an earlier state, run: ",
    ]);
    let twice = stack.containers();
    assert_same(&before, &twice);
    assert_eq!(ids(&once), ids(&twice));
    // The same containers and networks by ID, and none was restarted.
    for (name, one) in &once {
        assert_eq!(
            one["State"]["StartedAt"], twice[name]["State"]["StartedAt"],
            "{name}"
        );
    }
    assert_eq!(networks[0]["Id"], stack.networks()[0]["Id"]);

    let [db, web, cron] = ["db", "web", "cron"].map(|service| stack.name(service));
    docker(&["stop", "-t1", &db]);
    docker(&["rm", "-f", &web]);
    docker(&["kill", &cron]);
    stack
        .restore()
        .says("  web is created; cron and db are started\n")
        .hides(&["\n  2 containers match", "removed"]);
    let after = stack.containers();
    assert_same(&before, &after);
    for name in [&db, &cron] {
        assert_eq!(once[name]["Id"], after[name]["Id"], "{name}");
    }
    let expected = "imgvol\nanonymous";
    assert_eq!(stack.sh("db", "cat /imgvol/file /anonymous/file"), expected);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn containers_that_replaced_others_or_are_new_are_removed() {
    let stack = three();
    let (before, networks) = (stack.containers(), stack.networks());
    stack.migrate();
    stack.remove_networks();
    let project = stack.host.project.clone();
    // Another image, other settings and a new service.
    let label = format!("--label={PROJECT}={project}");
    for (service, option) in [
        ("db", "--network=none"),
        ("cron", "--cpus=0.5"),
        ("new", "-v=/anonymous"),
    ] {
        let name = stack.name(service);
        stack.host.run(&name, &[&label, option], IMAGE);
    }
    let new = stack.containers()[&stack.name("new")]["Mounts"][0]["Name"].clone();

    stack.restore().says(" removed and recreated");

    assert_same(&before, &stack.containers());
    assert_same_networks(&networks, &stack.networks());
    let expected = "imgvol\nanonymous";
    assert_eq!(stack.sh("db", "cat /imgvol/file /anonymous/file"), expected);
    // Volumes are never removed.
    docker(&["volume", "inspect", new.as_str().unwrap()]);
}
