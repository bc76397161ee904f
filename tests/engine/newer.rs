//! Settings that newer engines have: chosen MAC addresses of each network, and what needs an engine of its own
//! (`_on_26`, `_on_28`).

use serde_json::{Value, json};

use super::{
    bench::Stack,
    sameness::{CHOSEN_MAC, assert_same, assert_same_networks},
};
use crate::host::Compose;

/// Starts a stack, removes and restores it, and compares every key. A second restore and a second `up` change nothing.
/// Returns the containers and the networks.
fn survives(compose: Compose, text: &str) -> (Value, Vec<Value>) {
    let stack = Stack::started_by(compose).running(&text.replace("$MAC", CHOSEN_MAC), &[]);
    let (before, networks) = (stack.containers(), stack.networks());
    // The embedded Portainer does not know every setting.
    stack.save();
    stack.remove_all();
    stack.remove_networks();
    stack.restore();
    assert_same(&before, &stack.containers());
    assert_same_networks(&networks, &stack.networks());
    let ids = stack.ids();
    stack.restore().hides("recreated");
    let output = stack.up();
    assert!(!output.contains("Recreate"), "{output}");
    assert_eq!(stack.ids(), ids);
    let one = stack.containers()[&stack.name("a")].clone();
    (one, networks)
}

#[test]
#[ignore = "needs Docker Engine 26: run scripts/test --engine 26"]
fn b18_a_chosen_mac_address_of_a_further_network_is_kept_on_26() {
    survives(
        Compose::new(),
        "services:
  a:
    $SLEEP
    networks:
      first: {ipv4_address: $SUBNET.10, mac_address: '$MAC00:00:11'}
      second: {ipv4_address: 10.213.7.10, mac_address: '$MAC00:00:22'}
networks:
  first: {ipam: {config: [{subnet: $SUBNET.0/24}]}}
  second: {ipam: {config: [{subnet: 10.213.7.0/24}]}}
",
    );
}

#[test]
#[ignore = "needs Docker Engine 28: run scripts/test --engine 28"]
fn b18_the_priority_of_a_gateway_is_kept_on_28() {
    let (container, _) = survives(
        Compose::five(),
        "services:
  a:
    $SLEEP
    networks:
      first: {}
      second: {gw_priority: 5, mac_address: '$MAC00:00:22'}
networks:
  first: {}
  second: {}
",
    );
    let networks = container["NetworkSettings"]["Networks"].as_object();
    let priorities = networks.unwrap().values().map(|one| &one["GwPriority"]);
    assert!(priorities.into_iter().any(|one| *one == json!(5)));
}

#[test]
#[ignore = "needs Docker Engine 28: run scripts/test --engine 28"]
fn b18_a_network_without_ipv4_is_kept_on_28() {
    let (_, networks) = survives(
        Compose::five(),
        "services:
  a:
    $SLEEP
networks:
  default:
    enable_ipv4: false
    enable_ipv6: true
    ipam: {config: [{subnet: 'fd00:213:7::/64'}]}
",
    );
    assert_eq!(networks[0]["EnableIPv4"], false);
}

#[test]
#[ignore = "needs Docker Engine 28: run scripts/test --engine 28"]
fn b18_a_mounted_image_is_kept_on_28() {
    let (container, _) = survives(
        Compose::five(),
        "services:
  a:
    $SLEEP
    volumes:
      - {type: image, source: $IMAGE, target: /tools}
",
    );
    assert_eq!(container["Mounts"][0]["Type"], "image");
}
