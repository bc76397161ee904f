//! Networks that somebody changed by hand (B38).

use std::collections::{BTreeMap, BTreeSet};

use testbed::Era;

use super::cases;
use crate::{
    bench::{Case, Stack},
    state,
};

cases! { [by_old by_newer] b38_networks_that_were_changed_by_hand }
cases! { [by_old] b38_an_address_that_another_service_has }

/// All but `kept` get a name for the anonymous volume of their image, and are recreated.
const TEXT: &str = "services:
  left:
    $OWN_SLEEP
    labels: {changed: 'no'}
    networks: {default: {}, back: {aliases: [behind]}}
  unnamed:
    $OWN_SLEEP
    labels: {changed: 'no'}
  foreign:
    $OWN_SLEEP
    labels: {changed: 'no'}
  moved:
    $OWN_SLEEP
    labels: {changed: 'no'}
    networks: {default: {ipv4_address: $SUBNET.50}}
  kept:
    $SLEEP
    networks: [default, back]
networks:
  default: {ipam: {config: [{subnet: $SUBNET.0/24}]}}
  back: {}
";

/// The networks of each container, with the aliases and the fixed address.
fn networks(stack: &Stack) -> BTreeMap<String, BTreeSet<String>> {
    let containers = stack.containers().0.into_iter();
    let of = |(name, container)| (name, state::networks(&container));
    containers.map(of).collect()
}

fn b38_networks_that_were_changed_by_hand(case: Case) {
    let stack = Stack::by(case).running(TEXT, &[]);
    stack.docker("network create --label $MARK $PROJECT_foreign");
    let before = networks(&stack);
    let is_newer = case.era == Era::Async;
    let kept = if is_newer {
        "recreated: its container is not connected to network $PROJECT_back"
    } else {
        "keeps running"
    };
    // First the files are those of the containers, then they are not.
    for is_edited in [false, true] {
        for change in [
            "disconnect $PROJECT_back $PROJECT-left-1",
            "disconnect $PROJECT_default $PROJECT-unnamed-1",
            "connect $PROJECT_default $PROJECT-unnamed-1",
            "connect $PROJECT_foreign $PROJECT-foreign-1",
            "disconnect $PROJECT_default $PROJECT-moved-1",
            "connect --ip $SUBNET.60 $PROJECT_default $PROJECT-moved-1",
            "disconnect $PROJECT_back $PROJECT-kept-1",
        ] {
            stack.docker(&format!("network {change}"));
        }
        if is_edited {
            stack.edit("changed: 'no'", "changed: 'yes'");
        }
        let address = format!("{}.50", stack.subnet);
        stack.run("plan $PROJECT").says(&[
            "connected to network $PROJECT_back",
            "gets these aliases in network $PROJECT_default: unnamed",
            "no longer connected to network $PROJECT_foreign",
            &format!("gets this fixed address in network $PROJECT_default: {address}"),
            kept,
        ]);
        stack.run("adopt $PROJECT").code(0);
        if !is_newer {
            assert_eq!(networks(&stack)["$PROJECT-kept-1"].len(), 1);
            stack.docker("network connect --alias kept --alias $PROJECT-kept-1 $PROJECT_back $PROJECT-kept-1");
        }
        assert_eq!(before, networks(&stack));
    }
}

fn b38_an_address_that_another_service_has(case: Case) {
    let text = "services:
  mqtt:
    $SLEEP
    networks: {default: {}}
  other:
    $SLEEP
";
    let stack = Stack::by(case).running(text, &[]);
    let before = stack.containers();
    let endpoint = &before["other"]["NetworkSettings"]["Networks"]["$PROJECT_default"];
    let address = endpoint["IPAddress"].as_str().unwrap();
    stack.edit(
        "default: {}}",
        &format!("default: {{ipv4_address: {address}}}}}"),
    );
    stack.run("adopt $PROJECT").fails(&format!(
        "the address {address} in network $PROJECT_default is used by $PROJECT-other-1"
    ));
    before.assert_untouched(&stack.containers());
}
