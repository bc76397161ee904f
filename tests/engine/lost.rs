//! Reports objects that cannot be restored, and restores all others.

use super::{bench::Stack, sameness::assert_same};

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

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_missing_image_affects_only_its_container() {
    let stack = Stack::new().running(TWO, &[]);
    let mut others = stack.containers();
    stack.migrate();
    stack.docker("rmi -f $PROJECT");
    stack.run("restore $PROJECT").fails(&[
        "the image of $PROJECT-db-1 no longer exists: $PROJECT",
        "Nothing was changed",
    ]);
    stack.run("restore $PROJECT --force").fails(&[
        "cannot recreate container $PROJECT-db-1: its image $PROJECT",
        "$PROJECT-db-1 does not exist",
        "$PROJECT-web-1 does not exist",
        "fix the problem above",
    ]);
    // `web` shares the network of `db`, so it cannot be restored either.
    others.0.retain(|name, _| name == "$PROJECT-other-1");
    assert_same(&others, &stack.containers());
    stack.run("restore $PROJECT --force").code(1);
    assert_same(&others, &stack.containers());
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn an_image_with_a_moved_tag_is_found_by_its_id() {
    let stack = Stack::new().running(TWO, &[]);
    let before = stack.containers();
    stack.docker("tag $PROJECT $PROJECT:old");
    stack.migrate();
    stack.docker("tag $IMAGE $PROJECT");
    stack.restore();
    assert_eq!(stack.containers()["db"]["Image"], before["db"]["Image"]);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b18_a_recreated_volume_is_missed_by_every_restore_unless_a_restore_created_it() {
    let stack = Stack::new().running(TWO, &[]);
    let before = stack.containers();
    stack.migrate();
    stack.docker("volume rm $PROJECT_data");
    let (refused, restore) = ("restore $PROJECT", "restore $PROJECT --force");
    let said = "volume $PROJECT_data no longer exists";
    stack.run(refused).fails(&["Nothing was changed", said]);
    let named = "but a restore created the volume $PROJECT_data empty";
    stack.run(restore).succeeds(&[said, named]);
    assert_same(&before, &stack.containers());
    // Compose accepts the empty volume as its own.
    assert!(!stack.up().contains("Volume \"$PROJECT_data\""));
    stack.run(refused).succeeds(named);

    stack.migrate();
    stack.docker("volume rm $PROJECT_data");
    stack.docker("volume create $PROJECT_data");
    let another =
        "volume $PROJECT_data is not the one in the snapshot: it was deleted and recreated";
    stack.run(refused).fails(&["Nothing was changed", another]);
    let run = stack.run(restore);
    run.fails("volume $PROJECT_data differs: it was deleted and recreated")
        .hides("restored $PROJECT");
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
    stack.docker("network disconnect $PROJECT_default $PROJECT-off-1");
    stack.docker("create --name $PROJECT-other --network $PROJECT_default $IMAGE /bin/true");
    let before = stack.containers();
    stack.migrate();
    stack.remove_networks();
    stack.docker("network create $PROJECT_default");
    stack.restore().says("2 containers match the snapshot");
    assert_same(&before, &stack.containers());
    stack.docker("start $PROJECT-other");
    stack.docker("rm --force $PROJECT-other");
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_network_gets_other_addresses_if_its_own_are_in_use() {
    // The engine chooses the addresses.
    let text = "services:\n  a:\n    $SLEEP\nnetworks: {default: {}}\n";
    // Newer engines choose the lowest free addresses: those below are left to the networks of the other tests.
    let lower = "$PROJECT-0 $PROJECT-1 $PROJECT-2 $PROJECT-3 $PROJECT-4 $PROJECT-5";
    let stack = Stack::new();
    for name in lower.split(' ') {
        stack.docker(&format!("network create --label $MARK {name}"));
    }
    let stack = stack.running(text, &[]);
    let before = stack.state();
    let subnet = &before.networks[0]["IPAM"]["Config"][0]["Subnet"];
    stack.docker(&format!("network rm {lower}"));
    stack.migrate();
    stack.remove_networks();
    let create = "network create --label $MARK --subnet";
    stack.docker(&format!("{create} {subnet} $PROJECT-blocker"));
    stack.run("restore $PROJECT").fails("addresses");
    let after = stack.containers();
    assert_eq!(after.names(), before.containers.names());
    assert_eq!(after["a"]["State"]["Running"], true);
    // As long as the addresses are taken, the network stays as it is, and the difference is named.
    let ids = stack.ids();
    let run = stack.run("restore $PROJECT");
    run.fails("network $PROJECT_default differs: the subnets")
        .hides("restored $PROJECT");
    assert_eq!(stack.ids(), ids);
    stack.docker("network rm $PROJECT-blocker");
    stack.restore();
    stack.assert_is(&before);
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
    let before = stack.state();
    stack.migrate();
    let port = &before.containers["a"]["HostConfig"]["PortBindings"]["80/tcp"][0]["HostPort"];
    let port = port.as_str().unwrap();
    stack.sleep(&format!("--name $PROJECT-blocker -p 127.0.0.1:{port}:80"));
    let refused = stack.run("restore $PROJECT");
    let needs = "$PROJECT-a-1 needs port";
    refused.fails(&["Nothing was changed", needs, "$PROJECT-blocker"]);
    // On Engine 29, it lacks its networks, too.
    stack.run("restore $PROJECT --force").fails(&[
        "expected running, got stopped",
        "$PROJECT-a-1 differs: ",
        port,
    ]);
    assert_eq!(stack.containers()["b"]["State"]["Running"], true);

    stack.docker("rm -f $PROJECT-blocker");
    stack.restore();
    stack.assert_is(&before);
}
