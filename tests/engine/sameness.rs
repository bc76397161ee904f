//! Compares restored containers and networks with the original ones: their whole inspect JSON, without the values
//! that cannot be equal.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Asserts that the same containers exist and that each is unchanged.
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

/// Asserts that the same networks exist and that each is unchanged.
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

/// The IDs, by name.
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
            // A container that shares with another one names it by its ID.
            for (name, id) in &ids {
                text = text.replace(id, &format!("<the id of {name}>"));
                text = text.replace(&id[..12], &format!("<the short id of {name}>"));
            }
            let mut container: Value = serde_json::from_str(&text).unwrap();
            // From the first start on, the names include the short ID. They are not sorted.
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

/// Removes times, paths of the engine's own files, and addresses and ports that the engine chose. Makes the two ways to
/// mount a volume equal.
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
    // The values of the default bridge, which the engine chooses.
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
        // An empty configuration equals a missing one.
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
    // The mode for SELinux, which the engine sets for a mount with a named volume.
    for mount in container["Mounts"].as_array_mut().unwrap() {
        if mount["Type"] == "volume" && mount["Mode"] == "z" {
            mount["Mode"] = json!("");
        }
    }
    // A restored container mounts anonymous volumes by name. `Mounts` shows which volumes are mounted.
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

/// A running container must be running in the same way. Of a stopped one only that is compared: the restore does not
/// rerun a finished job to get the same exit code.
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

/// The paths at which two values differ.
fn differences(path: &str, before: &Value, after: &Value) -> Vec<String> {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            one.keys()
                .chain(added)
                .flat_map(|key| differences(&format!("{path}/{key}"), &before[key], &after[key]))
                .collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .flat_map(|(at, (one, other))| differences(&format!("{path}/{at}"), one, other))
            .collect(),
        _ if before == after => Vec::new(),
        _ => vec![format!("  {path}: {before} became {after}")],
    }
}
