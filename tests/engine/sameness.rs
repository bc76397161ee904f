//! Whether what came back is what was there: everything the engine says, but for what cannot be the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Asserts that the same containers are there, and that each is the same.
#[track_caller]
pub fn assert_same(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) {
    let names =
        |containers: &BTreeMap<String, Value>| containers.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(before), names(after));
    let (before, after) = (comparable_all(before), comparable_all(after));
    for (name, before) in &before {
        let differences = differences("", before, &after[name]);
        assert!(
            differences.is_empty(),
            "{name}:\n{}",
            differences.join("\n")
        );
    }
}

/// Asserts that the same networks are there, and that each is the same.
#[track_caller]
pub fn assert_same_networks(before: &[Value], after: &[Value]) {
    let comparable = |networks: &[Value]| {
        let mut networks = networks.to_vec();
        for network in &mut networks {
            remove(network, &["Id", "Created", "Containers"]);
        }
        Value::Array(networks)
    };
    let differences = differences("", &comparable(before), &comparable(after));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The ids, by name.
pub fn ids(containers: &BTreeMap<String, Value>) -> BTreeMap<&str, &str> {
    let id = |container: &'_ Value| container["Id"].as_str().unwrap_or_default().len();
    assert!(containers.values().all(|container| id(container) == 64));
    containers
        .iter()
        .map(|(name, container)| (name.as_str(), container["Id"].as_str().unwrap()))
        .collect()
}

fn comparable_all(containers: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let ids = ids(containers);
    containers
        .iter()
        .map(|(name, container)| {
            let mut text = comparable(container.clone()).to_string();
            // A container that another one shares with is named by its id.
            for (name, id) in &ids {
                text = text.replace(id, &format!("<the id of {name}>"));
                text = text.replace(&id[..12], &format!("<the short id of {name}>"));
            }
            let mut container: Value = serde_json::from_str(&text).unwrap();
            // The short id is one from the first start on, and in no order among the others.
            for endpoint in endpoints(&mut container) {
                for names in ["Aliases", "DNSNames"] {
                    if let Some(names) = endpoint[names].as_array_mut() {
                        names.retain(|name| !name.to_string().contains("<the short id of"));
                    }
                    sort(&mut endpoint[names]);
                }
            }
            (name.clone(), container)
        })
        .collect()
}

/// Leaves out times, the places of the engine's own files, addresses and ports that the engine chose, and
/// makes the two ways to mount a volume look the same.
fn comparable(mut container: Value) -> Value {
    remove(
        &mut container,
        &["Created", "GraphDriver", "ExecIDs", "AppArmorProfile"],
    );
    for file in ["ResolvConfPath", "HostnamePath", "HostsPath", "LogPath"] {
        remove(&mut container, &[file]);
    }
    comparable_state(&mut container["State"]);
    let network = &mut container["NetworkSettings"];
    // The bridge's own, all of them the engine's choice.
    remove(
        network,
        &[
            "SandboxID",
            "SandboxKey",
            "EndpointID",
            "IPAddress",
            "MacAddress",
        ],
    );
    for endpoint in endpoints(&mut container) {
        remove(endpoint, &["EndpointID", "NetworkID", "MacAddress"]);
        if endpoint["IPAMConfig"]["IPv4Address"].is_null() {
            remove(endpoint, &["IPAddress"]);
        }
        // An empty configuration is none.
        if endpoint["IPAMConfig"] == json!({}) {
            endpoint["IPAMConfig"] = Value::Null;
        }
    }
    let wanted = container["HostConfig"]["PortBindings"].clone();
    let ports = container["NetworkSettings"]["Ports"].as_object_mut();
    for (port, bindings) in ports.into_iter().flatten() {
        if matches!(wanted[port][0]["HostPort"].as_str(), Some("" | "0")) {
            *bindings = json!("the engine's choice");
        }
    }
    sort(&mut container["Mounts"]);
    // SELinux's, which the engine sets by itself where a volume is named (compose's own carry-over, too).
    for mount in container["Mounts"].as_array_mut().unwrap() {
        if mount["Type"] == "volume" && mount["Mode"] == "z" {
            mount["Mode"] = json!("");
        }
    }
    // Volumes that only the engine named are mounted by that name: what is mounted is in `Mounts`.
    let volumes: Vec<Value> = container["Mounts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|mount| mount["Type"] == "volume")
        .map(|mount| mount["Destination"].clone())
        .collect();
    if let Some(mounts) = container["HostConfig"]["Mounts"].as_array_mut() {
        mounts.retain(|mount| !(mount["Type"] == "volume" && volumes.contains(&mount["Target"])));
        if mounts.is_empty() {
            remove(&mut container["HostConfig"], &["Mounts"]);
        }
    }
    container
}

fn endpoints(container: &mut Value) -> impl Iterator<Item = &mut Value> {
    let networks = container["NetworkSettings"]["Networks"].as_object_mut();
    networks
        .into_iter()
        .flat_map(|networks| networks.values_mut())
}

/// What runs must run as it did; of what does not run only that it does not: a job that had ended is not
/// run again to have it end the same.
fn comparable_state(state: &mut Value) {
    if state["Running"] == false {
        *state = json!("not running");
        return;
    }
    remove(state, &["Pid", "StartedAt", "FinishedAt", "ExitCode"]);
    if let Some(health) = state.get_mut("Health") {
        remove(health, &["Log", "FailingStreak", "Status"]);
    }
}

fn remove(object: &mut Value, keys: &[&str]) {
    if let Some(fields) = object.as_object_mut() {
        for key in keys {
            fields.remove(*key);
        }
    }
}

fn sort(list: &mut Value) {
    if let Some(items) = list.as_array_mut() {
        items.sort_by_key(Value::to_string);
    }
}

/// The places where two values differ.
fn differences(place: &str, before: &Value, after: &Value) -> Vec<String> {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            one.keys()
                .chain(added)
                .flat_map(|key| differences(&format!("{place}/{key}"), &before[key], &after[key]))
                .collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .flat_map(|(at, (one, other))| differences(&format!("{place}/{at}"), one, other))
            .collect(),
        _ if before == after => Vec::new(),
        _ => vec![format!("  {place}: {before} became {after}")],
    }
}
