//! Reports objects that cannot be restored, and restores all others.

use super::{bench::Stack, sameness::assert_same};
use crate::host::{IMAGE, docker};

const TWO: &str = "services:
  db:
    $OWN_SLEEP
    volumes: [/anonymous, data:/data]
  web:
    $SLEEP
    network_mode: service:db
  other:
    $SLEEP
    depends_on: [db]
volumes: {data: {}}
";

fn two() -> Stack {
    Stack::new().running(TWO, &[])
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_missing_image_affects_only_its_container() {
    let stack = two();
    let mut before = stack.containers();
    stack.migrate();
    docker(&["rmi", "-f", &stack.host.project]);
    let restore = "restore $PROJECT --force";
    let (db, web) = (stack.name("db"), stack.name("web"));
    stack.run("restore $PROJECT").fails(&[
        &*format!("the image of {db} no longer exists: {}", stack.host.project),
        "Nothing was changed",
    ]);
    stack.run(restore).fails(&[
        &*format!(
            "cannot recreate container {db}: its image {}",
            stack.host.project
        ),
        &format!("{db} does not exist"),
        &format!("{web} does not exist"),
        "fix the problem above",
    ]);
    // `web` shares the network of `db`, so it cannot be restored either.
    before.remove(&db);
    before.remove(&web);
    assert_same(&before, &stack.containers());
    stack.run(restore).code(1);
    assert_same(&before, &stack.containers());
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn an_image_with_a_moved_tag_is_found_by_its_id() {
    let stack = two();
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
#[ignore = "needs a container engine: run scripts/test"]
fn b18_a_recreated_volume_is_missed_by_every_restore_unless_a_restore_created_it() {
    let stack = two();
    let before = stack.containers();
    stack.migrate();
    let data = format!("{}_data", stack.host.project);
    docker(&["volume", "rm", &data]);
    let (refused, restore) = ("restore $PROJECT", "restore $PROJECT --force");
    let said = format!("volume {data} no longer exists");
    stack.run(refused).fails(&["Nothing was changed", &said]);
    let named = format!("but a restore created the volume {data} empty");
    stack.run(restore).succeeds(&[&said, &named]);
    assert_same(&before, &stack.containers());
    // Compose accepts the empty volume as its own.
    assert!(!stack.up().contains(&format!("Volume \"{data}\"")));
    stack.run(refused).succeeds(&named);

    stack.migrate();
    docker(&["volume", "rm", &data]);
    docker(&["volume", "create", &data]);
    let why = "it was deleted and recreated";
    let another = format!("volume {data} is not the one in the snapshot: {why}");
    stack.run(refused).fails(&["Nothing was changed", &another]);
    let differs = format!("volume {data} differs: {why}");
    let run = stack.run(restore).fails(&differs);
    run.hides(&format!("restored {}", stack.host.project));
}

/// One was disconnected from its network by hand. The network was created again without the labels of Compose, and a stopped
/// container of nobody names it by its ID.
#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b18_networks_that_were_changed_by_hand_are_restored() {
    let text = "services:
  on:
    $SLEEP
  off:
    $SLEEP
";
    let stack = Stack::new().running(text, &[]);
    let network = stack.host.project.clone() + "_default";
    let other = stack.host.project.clone() + "-other";
    docker(&["network", "disconnect", &network, &stack.name("off")]);
    docker(&[
        "create",
        "--name",
        &other,
        "--network",
        &network,
        IMAGE,
        "/bin/true",
    ]);
    let before = stack.containers();
    stack.migrate();
    stack.remove_networks();
    docker(&["network", "create", &network]);
    stack.restore().says("2 containers match the snapshot");
    assert_same(&before, &stack.containers());
    docker(&["start", &other]);
    docker(&["rm", "--force", &other]);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_network_gets_other_addresses_if_its_own_are_in_use() {
    // The engine chooses the addresses.
    let text = "services:\n  a:\n    $SLEEP\nnetworks: {default: {}}\n";
    let stack = Stack::new().running(text, &[]);
    let before = stack.containers();
    let subnet = stack.networks()[0]["IPAM"]["Config"][0]["Subnet"].clone();
    stack.migrate();
    stack.remove_networks();
    let (mark, blocker) = (stack.host.mark(), stack.host.name("blocker"));
    let subnet = subnet.as_str().unwrap();
    docker(&[
        "network", "create", "--label", &mark, "--subnet", subnet, &blocker,
    ]);
    stack.run("restore $PROJECT").fails("addresses");
    let after = stack.containers();
    assert_eq!(after.len(), before.len());
    assert_eq!(after[&stack.name("a")]["State"]["Running"], true);
    // As long as the addresses are taken, the network stays as it is, and the difference is named.
    let ids = stack.ids();
    let differs = format!(
        "network {}_default differs: the subnets",
        stack.host.project
    );
    let run = stack.run("restore $PROJECT").fails(&differs);
    run.hides(&format!("restored {}", stack.host.project));
    assert_eq!(stack.ids(), ids);
    docker(&["network", "rm", &blocker]);
    stack.restore();
    assert_eq!(stack.networks()[0]["IPAM"]["Config"][0]["Subnet"], subnet);
    assert_same(&before, &stack.containers());
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_port_in_use_affects_only_its_container() {
    let text = "services:
  a: &a
    $SLEEP
    ports: ['127.0.0.1:$PORT:80']
  b: {<<: *a, ports: [], depends_on: [a]}
";
    let stack = Stack::new().running(text, &[]);
    let before = stack.containers();
    stack.migrate();
    let blocker = stack.host.name("blocker");
    let a = stack.name("a");
    let port = &before[&a]["HostConfig"]["PortBindings"]["80/tcp"][0]["HostPort"];
    let publish = format!("127.0.0.1:{}:80", port.as_str().unwrap());
    stack.host.run(&blocker, &["-p", &publish], IMAGE);
    let needs = format!("{a} needs port");
    let refused = stack.run("restore $PROJECT").code(1);
    refused.says(&["Nothing was changed", &needs, &blocker]);
    // On Engine 29, it lacks its networks, too.
    stack.run("restore $PROJECT --force").fails(&[
        "expected running, got stopped",
        &format!("{a} differs: "),
        publish.rsplit(':').nth(1).unwrap(),
    ]);
    let after = stack.containers();
    assert_eq!(after[&stack.name("b")]["State"]["Running"], true);

    docker(&["rm", "-f", &blocker]);
    stack.restore();
    assert_same(&before, &stack.containers());
}
