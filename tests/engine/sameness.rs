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
            for path in paths(NETWORK_MAY_DIFFER) {
                drop_path(network, path);
            }
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

/// What may differ in a recreated container, and why. `*` is any key. Everything else that the engine shows is compared,
/// so a key that a later engine adds makes the tests fail until it is restored or listed here.
const MAY_DIFFER: &str = "\
Created: a time
State/StartedAt: a time
State/FinishedAt: a time
State/Pid: of the new process
State/ExitCode: of an earlier run
State/Health/Log: of the new process
State/Health/FailingStreak: of the new process
State/Health/Status: restored, but healthy only after a while
ExecIDs: of commands that ran in the container
AppArmorProfile: set by the engine when the container starts
GraphDriver: the directories of the container's own layer
Storage: the same, on later engines
ResolvConfPath: a path of the engine's own
HostnamePath: a path of the engine's own
HostsPath: a path of the engine's own
LogPath: a path of the engine's own
NetworkSettings/SandboxID: of the new network namespace
NetworkSettings/SandboxKey: of the new network namespace
NetworkSettings/EndpointID: on the default bridge, chosen by the engine
NetworkSettings/IPAddress: on the default bridge, chosen by the engine
NetworkSettings/MacAddress: on the default bridge, chosen by the engine
NetworkSettings/Networks/*/EndpointID: of the new endpoint
NetworkSettings/Networks/*/NetworkID: of a network that may be recreated
NetworkSettings/Networks/*/IPAddress: chosen by the engine, unless IPAMConfig sets it
NetworkSettings/Networks/*/GlobalIPv6Address: chosen by the engine, unless IPAMConfig sets it
NetworkSettings/Networks/*/MacAddress: generated, unless the test chooses it
NetworkSettings/Networks/*/DNSNames: known from the first start on
NetworkSettings/Ports/*: chosen by the engine, unless PortBindings sets it
Mounts/*/Source: of an image, a directory of each container's own
";

/// What may differ in a recreated network, and why.
const NETWORK_MAY_DIFFER: &str = "\
Id: of the new network
Created: a time
Containers: compared with each container
Status: how many addresses are in use, on later engines
";

/// The paths of a table, without the reasons.
fn paths(table: &'static str) -> impl Iterator<Item = &'static str> {
    table
        .lines()
        .filter_map(|row| Some(row.split_once(": ")?.0))
}

/// Why a listed value is compared all the same.
fn is_certain(path: &str, parent: &Value, container: &Value) -> bool {
    let has = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    match path {
        "NetworkSettings/Networks/*/IPAddress" => has(&parent["IPAMConfig"]["IPv4Address"]),
        "NetworkSettings/Networks/*/GlobalIPv6Address" => has(&parent["IPAMConfig"]["IPv6Address"]),
        // The tests choose addresses with this beginning.
        "NetworkSettings/Networks/*/MacAddress" => parent["MacAddress"]
            .as_str()
            .is_some_and(|mac| mac.starts_with(CHOSEN_MAC)),
        "NetworkSettings/Networks/*/DNSNames" => container["State"]["Running"] == true,
        "Mounts/*/Source" => parent["Type"] != "image",
        _ => false,
    }
}

/// How a MAC address that a test chooses begins.
pub const CHOSEN_MAC: &str = "02:00:5e:";

/// Drops what may differ. Makes the two ways to mount a volume equal.
fn comparable(mut container: Value) -> Value {
    // Of a stopped container only that is compared: the restore does not rerun a finished job to get the same exit code.
    let original = container.clone();
    if container["State"]["Running"] == false {
        container["State"] = json!("not running");
    }
    let wanted = &original["HostConfig"]["PortBindings"];
    for path in paths(MAY_DIFFER) {
        drop_if(&mut container, path, &|key, parent| {
            if path == "NetworkSettings/Ports/*" {
                return matches!(wanted[key][0]["HostPort"].as_str(), Some("" | "0"));
            }
            !is_certain(path, parent, &original)
        });
    }
    for endpoint in endpoints(&mut container) {
        // An empty configuration equals a missing one.
        if endpoint["IPAMConfig"] == json!({}) {
            endpoint["IPAMConfig"] = Value::Null;
        }
    }
    // Compose 2 gives an external network by its ID, which a restore replaces by its name.
    let networks = original["NetworkSettings"]["Networks"].as_object();
    let mode = &original["HostConfig"]["NetworkMode"];
    let named = networks.into_iter().flatten();
    if let Some((name, _)) = named.into_iter().find(|(_, one)| one["NetworkID"] == *mode) {
        container["HostConfig"]["NetworkMode"] = json!(name);
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
            drop_path(&mut container["HostConfig"], "Mounts");
        }
    }
    container
}

/// Drops the value at `path`, if it exists.
fn drop_path(value: &mut Value, path: &str) {
    drop_if(value, path, &|_, _| true);
}

/// Drops the values at `path` of which `drops` is true, given their key and their parent.
fn drop_if(value: &mut Value, path: &str, drops: &dyn Fn(&str, &Value) -> bool) {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    if let (Some(items), "*") = (value.as_array_mut(), first) {
        for item in items {
            drop_if(item, rest, drops);
        }
        return;
    }
    let parent = value.clone();
    let Some(fields) = value.as_object_mut() else {
        return;
    };
    if rest.is_empty() {
        let is_meant = |key: &str| first == "*" || key == first;
        fields.retain(|key, _| !(is_meant(key) && drops(key, &parent)));
    } else if first == "*" {
        fields
            .values_mut()
            .for_each(|one| drop_if(one, rest, drops));
    } else if let Some(one) = fields.get_mut(first) {
        drop_if(one, rest, drops);
    }
}

fn endpoints(container: &mut Value) -> impl Iterator<Item = &mut Value> {
    let networks = container["NetworkSettings"]["Networks"].as_object_mut();
    networks
        .into_iter()
        .flat_map(|networks| networks.values_mut())
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
