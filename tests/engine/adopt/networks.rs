//! Networks that somebody changed by hand (B38).

use std::collections::BTreeSet;

use serde_json::Value;
use testbed::Era;

use super::{
    Case, by_each_portainer, by_old_portainer,
    scenario::{Scenario, assert_untouched},
};
use crate::host::docker;

by_each_portainer! { b38_networks_that_were_changed_by_hand }
by_old_portainer! { b38_an_address_that_another_service_has }

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
fn networks(scenario: &Scenario) -> BTreeSet<String> {
    let containers = scenario.containers();
    let all = containers.values().flat_map(|container| {
        let id = &container["Id"].as_str().unwrap()[..12];
        let endpoints = container["NetworkSettings"]["Networks"].as_object();
        endpoints.unwrap().iter().map(move |(network, endpoint)| {
            let aliases = endpoint["Aliases"].as_array().into_iter().flatten();
            let aliases = aliases.filter_map(Value::as_str).filter(|one| *one != id);
            let aliases: BTreeSet<&str> = aliases.collect();
            let address = &endpoint["IPAMConfig"]["IPv4Address"];
            format!("{} {network} {aliases:?} {address}", container["Name"])
        })
    });
    all.collect()
}

fn change(scenario: &Scenario, subnet: &str) {
    let name = |service| scenario.name(service);
    let project = &scenario.host.project;
    let [default, back, foreign] =
        ["default", "back", "foreign"].map(|network| format!("{project}_{network}"));
    docker(&["network", "disconnect", &back, &name("left")]);
    docker(&["network", "disconnect", &default, &name("unnamed")]);
    docker(&["network", "connect", &default, &name("unnamed")]);
    docker(&["network", "connect", &foreign, &name("foreign")]);
    docker(&["network", "disconnect", &default, &name("moved")]);
    let (address, moved) = (format!("{subnet}.60"), name("moved"));
    docker(&["network", "connect", "--ip", &address, &default, &moved]);
    docker(&["network", "disconnect", &back, &name("kept")]);
}

fn b38_networks_that_were_changed_by_hand(case: Case) {
    let scenario = Scenario::new(case, TEXT, &[]);
    let project = scenario.host.project.clone();
    let (foreign, mark) = (format!("{project}_foreign"), scenario.host.mark());
    docker(&["network", "create", "--label", &mark, &foreign]);
    let before = networks(&scenario);
    let all = scenario.networks();
    let mut subnets = all.iter().map(|one| &one["IPAM"]["Config"][0]["Subnet"]);
    let subnet = subnets.next_back().unwrap().as_str().unwrap();
    let subnet = subnet.strip_suffix(".0/24").unwrap().to_owned();
    let is_newer = case.era == Era::Async;
    let kept = if is_newer {
        format!("recreated: its container is not connected to network {project}_back")
    } else {
        "keeps running".to_owned()
    };
    // First the files are those of the containers, then they are not.
    for is_edited in [false, true] {
        change(&scenario, &subnet);
        if is_edited {
            scenario.edit("changed: 'no'", "changed: 'yes'");
        }
        let run = scenario.run("plan $PROJECT");
        run.says(&[
            &format!("connected to network {project}_back"),
            &format!("gets these aliases in network {project}_default: unnamed"),
            &format!("no longer connected to network {project}_foreign"),
            &format!("gets this fixed address in network {project}_default: {subnet}.50"),
            &kept,
        ]);
        scenario.run("adopt $PROJECT").code(0);
        let mut after = networks(&scenario);
        if !is_newer {
            let kept = scenario.name("kept");
            let is_back = |one: &&String| one.contains(&format!("/{kept}\" {project}_back"));
            let back = before.iter().find(is_back).unwrap();
            assert!(!after.contains(back), "{after:#?}");
            after.insert(back.clone());
        }
        assert_eq!(before, after);
        if !is_newer {
            let (back, kept) = (format!("{project}_back"), scenario.name("kept"));
            docker(&["network", "connect", &back, &kept]);
        }
    }
}

fn b38_an_address_that_another_service_has(case: Case) {
    const TEXT: &str = "services:
  mqtt:
    $SLEEP
    networks: {default: {}}
  other:
    $SLEEP
";
    let scenario = Scenario::new(case, TEXT, &[]);
    let before = scenario.containers();
    let other = scenario.name("other");
    let network = format!("{}_default", scenario.host.project);
    let endpoint = &before[&other]["NetworkSettings"]["Networks"][&network];
    let address = endpoint["IPAddress"].as_str().unwrap();
    scenario.edit(
        "default: {}}",
        &format!("default: {{ipv4_address: {address}}}}}"),
    );
    scenario.run("adopt $PROJECT").fails(&format!(
        "the address {address} in network {network} is used by {other}"
    ));
    assert_untouched(&before, &scenario.containers());
}
