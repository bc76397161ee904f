//! Restores a stack when some of its containers exist already.

use std::collections::BTreeMap;

use rehearsal::{Call, FaultKind};

use super::{
    bench::{RECORD, Stack},
    sameness::{assert_same, assert_same_networks, ids},
};
use crate::host::{IMAGE, PROJECT, docker};

const THREE: &str = r#"services:
  db:
    image: $PROJECT
    command: /bin/sleep 600
    init: true
    volumes: [/anonymous]
    healthcheck: {test: [CMD, /bin/true], interval: 1s}
  web:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    depends_on: {db: {condition: service_healthy}}
    environment: {NAME: value}
    tmpfs: [/scratch]
    ports: ["127.0.0.1:$PORT:80"]
  cron:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    network_mode: none
networks:
  default:
    ipam: {config: [{subnet: $SUBNET.0/24}]}
"#;

fn three() -> Stack {
    let stack = Stack::new();
    stack.image();
    stack.write(THREE);
    stack.up();
    stack.sh(
        "db",
        "echo imgvol > /imgvol/file; echo anonymous > /anonymous/file",
    );
    stack
}

/// Runs a sleeping container with the name of one of the stack.
fn run_container(
    stack: &Stack,
    name: &str,
    project: Option<&str>,
    options: &[&str],
    image: &str,
) -> String {
    let (mark, label) = (
        stack.host.mark(),
        project.map(|project| format!("{PROJECT}={project}")),
    );
    let mut arguments = vec![
        "run",
        "-d",
        "--name",
        name,
        "--network=none",
        "--label",
        &mark,
    ];
    if let Some(label) = &label {
        arguments.extend(["--label", label]);
    }
    arguments.extend(options);
    arguments.extend([image, "/bin/sleep", "600"]);
    docker(&arguments)
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn the_second_restore_changes_nothing() {
    let stack = three();
    let before = stack.containers();
    stack.migrate();
    stack.restore();
    let (once, networks) = (stack.containers(), stack.networks());

    stack.restore().says(&[
        "no changes in Portainer",
        "plan 3 containers match the snapshot",
        "verified 3 containers match the snapshot (3 running)",
    ]);

    let twice = stack.containers();
    assert_same(&before, &twice);
    assert_eq!(ids(&once), ids(&twice));
    // The same containers and networks by ID, and none was restarted.
    let started = |containers: &BTreeMap<_, serde_json::Value>| {
        let started = containers
            .values()
            .map(|one| one["State"]["StartedAt"].to_string());
        started.collect::<Vec<_>>()
    };
    assert_eq!(started(&once), started(&twice));
    let ids = |networks: &[serde_json::Value]| networks[0]["Id"].clone();
    assert_eq!(ids(&networks), ids(&stack.networks()));
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn an_unchanged_container_is_only_started() {
    let stack = three();
    let before = stack.containers();
    stack.migrate();
    stack.restore();
    let restored = stack.containers();
    docker(&["stop", "-t1", &stack.name("db")]);
    docker(&["rm", "-f", &stack.name("web")]);
    docker(&["kill", &stack.name("cron")]);

    let (cron, db) = (stack.name("cron"), stack.name("db"));
    stack
        .restore()
        .says(&[&format!("plan start {cron}, {db}")])
        .hides("plan 2 containers match")
        .hides("remove ");

    let after = stack.containers();
    assert_same(&before, &after);
    let (restored, after) = (ids(&restored), ids(&after));
    for service in ["db", "cron"] {
        let name = stack.name(service);
        assert_eq!(restored[name.as_str()], after[name.as_str()]);
    }
    assert_eq!(
        stack.sh("db", "cat /imgvol/file /anonymous/file"),
        "imgvol\nanonymous"
    );
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
    run_container(&stack, &stack.name("db"), Some(&project), &[], IMAGE);
    run_container(
        &stack,
        &stack.name("cron"),
        Some(&project),
        &["--cpus=0.5"],
        IMAGE,
    );
    run_container(
        &stack,
        &stack.name("new"),
        Some(&project),
        &["-v", "/anonymous"],
        IMAGE,
    );
    let new = stack.containers()[&stack.name("new")]["Mounts"][0]["Name"].clone();

    stack.restore().says(&["remove "]);

    assert_same(&before, &stack.containers());
    assert_same_networks(&networks, &stack.networks());
    assert_eq!(
        stack.sh("db", "cat /imgvol/file /anonymous/file"),
        "imgvol\nanonymous"
    );
    // Volumes are never removed.
    docker(&["volume", "inspect", new.as_str().unwrap()]);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn the_container_of_another_stack_is_not_changed() {
    for project in [None, Some("stacklift-test-other")] {
        let stack = three();
        let before = stack.containers();
        stack.migrate();
        let other = run_container(&stack, &stack.name("web"), project, &[], IMAGE);

        let run = stack.run(&["restore", &stack.host.project]).code(1);
        let whose = project.map_or("outside any stack".to_owned(), |other| {
            format!("of the stack {other}")
        });
        run.says(&[
            &format!("the name {}", stack.name("web")),
            &format!("is used by a container {whose}"),
            "this run changed nothing",
        ]);
        assert!(stack.ids().is_empty());
        assert_eq!(stack.rehearsal.world(|world| world.records.len()), 1);

        docker(&["rm", "-f", &other]);
        stack.restore();
        assert_same(&before, &stack.containers());
    }
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn an_unchanged_stack_stays_unchanged() {
    let stack = three();
    let before = stack.containers();
    // The run stops right after the snapshot.
    let name = stack.host.project.as_str();
    stack
        .rehearsal
        .world(|world| world.add_record(name, 1, RECORD));
    stack
        .rehearsal
        .faults()
        .once(Call::Delete, FaultKind::CloseBefore);
    stack.run(&[name]).code(1).says(&["stacklift restore"]);
    stack.restore().says(&["3 containers match the snapshot"]);
    assert_eq!(ids(&before), ids(&stack.containers()));
}
