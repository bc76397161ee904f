//! What cannot come back is said, and keeps nothing else from coming back.

use std::fs;

use serde_json::Value;

use super::{bench::Stack, sameness::assert_same};
use crate::host::{IMAGE, docker};

const TWO: &str = "services:
  db:
    image: $PROJECT
    command: /bin/sleep 600
    init: true
    working_dir: /made/to/work
    volumes: [/anonymous, data:/data]
    tmpfs: [/scratch]
  web:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    network_mode: service:db
  other:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    depends_on: [db]
networks:
  default:
    ipam: {config: [{subnet: $SUBNET.0/24}]}
volumes:
  data: {}
";

fn two() -> Option<Stack> {
    let stack = Stack::find()?;
    stack.image();
    stack.write(TWO);
    stack.up();
    Some(stack)
}

#[test]
fn files_in_the_own_layer_are_named() {
    let Some(stack) = two() else { return };
    stack.sh(
        "db",
        "echo 1 > /made/to/work/file; rm /bin/nc; echo 1 > /anonymous/kept; echo 1 > /scratch/x",
    );
    let before = stack.containers();
    stack.migrate();
    let run = stack.restore();
    let line = run
        .said
        .lines()
        .find(|line| line.contains("written inside the container"))
        .unwrap();
    let (_, files) = line.rsplit_once(": ").unwrap();
    let mut files: Vec<_> = files.split(", ").collect();
    files.sort_unstable();
    assert_eq!(files, ["/bin/nc", "/made/to/work/file"], "{}", run.said);
    assert_eq!(
        run.said.matches("written inside the container").count(),
        1,
        "{}",
        run.said
    );
    assert_same(&before, &stack.containers());
    assert_eq!(stack.sh("db", "cat /anonymous/kept"), "1");

    let saved: Value = serde_json::from_slice(&fs::read(&stack.snapshots()[0]).unwrap()).unwrap();
    assert!(saved["changes"].to_string().contains("/made/to/work/file"));
}

#[test]
fn an_image_that_is_gone_keeps_only_its_container_from_coming_back() {
    let Some(stack) = two() else { return };
    let mut before = stack.containers();
    stack.migrate();
    docker(&["rmi", "-f", &stack.host.project]);
    let restore = ["restore", stack.host.project.as_str()];
    let (db, web) = (stack.name("db"), stack.name("web"));
    stack.run(&restore).code(1).says(&[
        &format!(
            "cannot recreate the container {db}: its image {}",
            stack.host.project
        ),
        &format!("{db} does not exist"),
        &format!("{web} does not exist"),
        "fix the problem above",
    ]);
    // What shares its network cannot come back without it.
    before.remove(&db);
    before.remove(&web);
    assert_same(&before, &stack.containers());
    stack.run(&restore).code(1);
    assert_same(&before, &stack.containers());
}

#[test]
fn an_image_whose_name_went_on_is_taken_by_its_id() {
    let Some(stack) = two() else { return };
    let image = stack.host.project.clone();
    let before = stack.containers();
    let old = before[&stack.name("db")]["Image"].clone();
    docker(&["tag", &image, &format!("{image}:old")]);
    stack.migrate();
    docker(&["tag", IMAGE, &image]);
    stack.restore();
    assert_eq!(stack.containers()[&stack.name("db")]["Image"], old);
}

#[test]
fn a_volume_that_was_removed_is_said_to_be_empty() {
    let Some(stack) = two() else { return };
    let before = stack.containers();
    stack.migrate();
    let data = format!("{}_data", stack.host.project);
    docker(&["volume", "rm", &data]);
    let restore = ["restore", stack.host.project.as_str()];
    let said = format!("the volume {data} was removed with its data");
    stack
        .run(&restore)
        .code(1)
        .says(&[&said, "the stack differs from the snapshot"]);
    assert_same(&before, &stack.containers());
    // Compose knows the empty one for its own.
    assert!(!stack.up().contains(&format!("Volume \"{data}\"")));
    stack.restore();
}

#[test]
fn a_network_whose_addresses_were_taken_gets_others() {
    let Some(stack) = Stack::find() else { return };
    stack
        .write("services:\n  a:\n    image: $IMAGE\n    command: /bin/sleep 600\n    init: true\n");
    stack.up();
    let before = stack.containers();
    let subnet = stack.networks()[0]["IPAM"]["Config"][0]["Subnet"].clone();
    stack.migrate();
    stack.remove_networks();
    let (mark, thief) = (stack.host.mark(), stack.host.name("thief"));
    let subnet = subnet.as_str().unwrap();
    docker(&[
        "network", "create", "--label", &mark, "--subnet", subnet, &thief,
    ]);
    stack
        .run(&["restore", &stack.host.project])
        .code(1)
        .says(&["addresses"]);
    let after = stack.containers();
    assert_eq!(after.len(), before.len());
    assert_eq!(after[&stack.name("a")]["State"]["Running"], true);
    stack.restore();
}

#[test]
fn a_port_that_was_taken_keeps_only_its_container_from_starting() {
    let Some(stack) = Stack::find() else { return };
    stack.write(
        "services:
  a: &a
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    ports: ['127.0.0.1:$PORT:80']
  b: {<<: *a, ports: [], depends_on: [a]}
networks: {default: {ipam: {config: [{subnet: $SUBNET.0/24}]}}}
",
    );
    stack.up();
    let before = stack.containers();
    stack.migrate();
    let (mark, thief) = (stack.host.mark(), stack.host.name("thief"));
    let a = stack.name("a");
    let port = &before[&a]["HostConfig"]["PortBindings"]["80/tcp"][0]["HostPort"];
    let publish = format!("127.0.0.1:{}:80", port.as_str().unwrap());
    docker(&[
        "run",
        "-d",
        "--name",
        &thief,
        "--label",
        &mark,
        "-p",
        &publish,
        IMAGE,
        "/bin/sleep",
        "600",
    ]);
    let run = stack.run(&["restore", &stack.host.project]).code(1);
    run.says(&[
        &format!("{a} differs: it is stopped, not running"),
        publish.rsplit(':').nth(1).unwrap(),
    ]);
    let after = stack.containers();
    assert_eq!(after[&stack.name("b")]["State"]["Running"], true);

    docker(&["rm", "-f", &thief]);
    stack.restore();
    assert_same(&before, &stack.containers());
}
