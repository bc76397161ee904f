//! Compares restored containers and networks with the original ones: their whole inspect JSON, without the values
//! that cannot be equal.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::state::Containers;

/// Asserts that the same containers exist and that each is unchanged.
#[track_caller]
pub fn assert_same(before: &Containers, after: &Containers) {
    assert_eq!(before.names(), after.names());
    for name in before.names() {
        let [before, after] = [before, after].map(|containers| comparable(containers, name));
        assert_equal(name, &before, &after);
    }
}

/// Asserts that the same networks exist and that each is unchanged.
#[track_caller]
pub fn assert_same_networks(before: &[Value], after: &[Value]) {
    let comparable = |networks: &[Value]| {
        let keeps = |path: &[&str], _: &Value| !is_listed(NETWORK_MAY_DIFFER, &path[1..]);
        flat(&json!(networks), &keeps)
    };
    assert_equal("networks", &comparable(before), &comparable(after));
}

#[track_caller]
fn assert_equal(name: &str, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut differences = Vec::new();
    for path in paths {
        let (before, after) = (before.get(path), after.get(path));
        if before != after {
            differences.push(format!("{path}: {before:?} became {after:?}"));
        }
    }
    assert!(differences.is_empty(), "{name}: {differences:#?}");
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

/// Whether a table lists a path.
fn is_listed(table: &str, path: &[&str]) -> bool {
    table.lines().any(|row| {
        let (listed, _) = row.split_once(": ").unwrap();
        let keys: Vec<&str> = listed.split('/').collect();
        let mut pairs = keys.iter().zip(path);
        keys.len() == path.len() && pairs.all(|(listed, key)| *listed == "*" || listed == key)
    })
}

/// How a MAC address that a test chooses begins.
pub const CHOSEN_MAC: &str = "02:00:5e:";

/// Why a listed value is compared all the same.
fn is_certain(path: &[&str], parent: &Value, container: &Value) -> bool {
    let has = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    match path {
        ["NetworkSettings", "Networks", _, key] => match *key {
            "IPAddress" => has(&parent["IPAMConfig"]["IPv4Address"]),
            "GlobalIPv6Address" => has(&parent["IPAMConfig"]["IPv6Address"]),
            // The tests choose addresses with this beginning.
            "MacAddress" => parent["MacAddress"]
                .as_str()
                .is_some_and(|mac| mac.starts_with(CHOSEN_MAC)),
            "DNSNames" => container["State"]["Running"] == true,
            _ => false,
        },
        ["NetworkSettings", "Ports", port] => {
            let wanted = &container["HostConfig"]["PortBindings"][port][0]["HostPort"];
            !matches!(wanted.as_str(), Some("" | "0"))
        }
        ["Mounts", _, "Source"] => parent["Type"] != "image",
        _ => false,
    }
}

/// The values of a container by path, without those that may differ. The two ways to mount a volume are equal.
fn comparable(containers: &Containers, name: &str) -> BTreeMap<String, String> {
    let original = &containers.0[name];
    let mut text = original.to_string();
    // A container that shares with another one names it by its ID.
    for (name, container) in &containers.0 {
        let id = container["Id"].as_str().unwrap();
        text = text.replace(id, &format!("<the id of {name}>"));
        text = text.replace(&id[..12], &format!("<the short id of {name}>"));
    }
    let mut container: Value = serde_json::from_str(&text).unwrap();
    // Of a stopped container only that is compared: the restore does not rerun a finished job to get the same exit code.
    if container["State"]["Running"] == false {
        container["State"] = json!("not running");
    }
    let mut networks = container["NetworkSettings"]["Networks"].take();
    for (name, endpoint) in networks.as_object_mut().unwrap() {
        // From the first start on, the names include the short ID. They are not sorted.
        for names in ["Aliases", "DNSNames"] {
            if let Some(names) = endpoint[names].as_array_mut() {
                names.retain(|name| !name.to_string().contains("<the short id of"));
            }
            sort(&mut endpoint[names]);
        }
        // An empty configuration equals a missing one.
        if endpoint["IPAMConfig"] == json!({}) {
            endpoint["IPAMConfig"] = Value::Null;
        }
        // Compose 2 gives an external network by its ID, which a restore replaces by its name.
        if endpoint["NetworkID"] == container["HostConfig"]["NetworkMode"] {
            container["HostConfig"]["NetworkMode"] = json!(name);
        }
    }
    container["NetworkSettings"]["Networks"] = networks;
    sort(&mut container["Mounts"]);
    let mut volumes = Vec::new();
    for mount in container["Mounts"].as_array_mut().unwrap() {
        if mount["Type"] == "volume" {
            volumes.push(mount["Destination"].clone());
            // The mode for SELinux, which the engine sets for a mount with a named volume.
            if mount["Mode"] == "z" {
                mount["Mode"] = json!("");
            }
        }
    }
    // A restored container mounts anonymous volumes by name. `Mounts` shows which volumes are mounted.
    if let Some(mounts) = container["HostConfig"]["Mounts"].as_array_mut() {
        mounts.retain(|mount| !(mount["Type"] == "volume" && volumes.contains(&mount["Target"])));
        if mounts.is_empty() {
            container["HostConfig"]["Mounts"] = Value::Null;
        }
    }
    flat(&container, &|path, parent| {
        !is_listed(MAY_DIFFER, path) || is_certain(path, parent, original)
    })
}

fn sort(list: &mut Value) {
    if let Some(items) = list.as_array_mut() {
        items.sort_by_key(Value::to_string);
    }
}

/// Whether a value is kept, given its path and its parent.
type Keeps<'k> = &'k dyn Fn(&[&str], &Value) -> bool;

/// The strings, numbers, booleans and empty lists and objects in a value, by path.
fn flat(value: &Value, keeps: Keeps) -> BTreeMap<String, String> {
    fn add(path: &[&str], value: &Value, keeps: Keeps, to: &mut BTreeMap<String, String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Null => return,
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), value))
                .collect(),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(index, value)| (index.to_string(), value))
                    .collect()
            }
            _ => Vec::new(),
        };
        if children.is_empty() {
            to.insert(path.join("/"), value.to_string());
        }
        for (key, child) in children {
            let path = [path, &[key.as_str()]].concat();
            if keeps(&path, value) {
                add(&path, child, keeps, to);
            }
        }
    }
    let mut values = BTreeMap::new();
    add(&[], value, keeps, &mut values);
    values
}
