//! Restores stacks that use most settings of a Compose file, also those that need a newer engine (`_on_26`, `_on_28`).

use crate::{
    bench::{Case, OLD, Stack},
    host::Compose,
    sameness::CHOSEN_MAC,
    state::State,
};

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_big_stack_is_restored_unchanged() {
    let files = [
        (".env", "FROM_FILE=of-the-file # no comment\n"),
        ("bound/file", "bound\n"),
    ];
    let text = include_str!("../fixtures/stacks/big.yml");
    let stack = Stack::new().running(text, &files);
    let before = stack.state();
    stack.migrate();
    stack.remove_networks();
    let run = stack.comes_back(&before);
    run.says("5 containers match the snapshot");
    let up = stack.up();
    assert!(!up.contains("Started"), "{up}");
}

/// Starts a stack, removes and restores it, and compares every key. Returns its state.
fn survives(compose: Compose, text: &str) -> State {
    let (origin, host) = (compose, compose);
    let stack = Stack::with(Case {
        origin,
        host,
        ..OLD
    });
    let stack = stack.running(&text.replace("$MAC", CHOSEN_MAC), &[]);
    // The embedded Portainer does not know every setting.
    stack.save();
    let before = stack.state();
    stack.remove_all();
    stack.remove_networks();
    stack.comes_back(&before);
    before
}

#[test]
#[ignore = "needs Docker Engine 26: run scripts/test --engine 26"]
fn b18_a_chosen_mac_address_of_a_further_network_is_kept_on_26() {
    let text = "services:
  a:
    $SLEEP
    networks:
      first: {ipv4_address: $SUBNET.10, mac_address: '$MAC00:00:11'}
      second: {ipv4_address: 10.213.7.10, mac_address: '$MAC00:00:22'}
networks:
  first: {ipam: {config: [{subnet: $SUBNET.0/24}]}}
  second: {ipam: {config: [{subnet: 10.213.7.0/24}]}}
";
    survives(Compose::Two, text);
}

/// The priority of a gateway, a network without IPv4, and a mounted image.
#[test]
#[ignore = "needs Docker Engine 28: run scripts/test --engine 28"]
fn b18_what_a_newer_engine_has_is_kept_on_28() {
    let text = "services:
  a:
    $SLEEP
    networks:
      first: {}
      second: {gw_priority: 5, mac_address: '$MAC00:00:22'}
    volumes: [{type: image, source: $IMAGE, target: /tools}]
  b:
    $SLEEP
    networks: [without]
networks:
  first: {}
  second: {}
  without:
    enable_ipv4: false
    enable_ipv6: true
    ipam: {config: [{subnet: 'fd00:213:7::/64'}]}
";
    let before = survives(Compose::Five, text);
    let a = &before.containers["a"];
    let networks = &a["NetworkSettings"]["Networks"];
    assert_eq!(networks["$PROJECT_second"]["GwPriority"], 5);
    assert_eq!(a["Mounts"][0]["Type"], "image");
    let without = before.networks.last().unwrap();
    assert_eq!(without["EnableIPv4"], false);
}
