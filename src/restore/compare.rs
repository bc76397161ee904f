//! How a network or a volume differs from a saved one.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::model::{is_empty, is_unset};

/// What the engine assigns to a network or shows of its use. All other keys are settings, so one that a later engine adds
/// is restored and compared.
const NETWORK_STATE: [&str; 6] = ["Containers", "Created", "Id", "Peers", "Services", "Status"];

/// The settings of a network, as creating it takes them.
pub(super) fn network_settings(network: &Value) -> Map<String, Value> {
    let mut settings = network.as_object().cloned().unwrap_or_default();
    settings.retain(|key, _| !NETWORK_STATE.contains(&key.as_str()));
    settings
}

/// How a network differs from a saved one in any setting.
pub(super) fn network_differences(saved: &Value, now: &Value) -> Vec<String> {
    let comparable = |network: &Value| {
        let mut settings = network_settings(network);
        if let Some(Value::Object(ipam)) = settings.remove("IPAM") {
            let rest = ipam.into_iter().filter(|(key, _)| key != "Config");
            settings.extend(rest.map(|(key, value)| (format!("IPAM.{key}"), value)));
        }
        // Before engine 28, every network had IPv4.
        if settings.get("EnableIPv4") == Some(&Value::Bool(true)) {
            settings.remove("EnableIPv4");
        } else if let Some(value) = settings.get_mut("EnableIPv4") {
            *value = "off".into();
        }
        settings.retain(|_, value| !is_unset(value));
        settings
    };
    let (one, other) = (comparable(saved), comparable(now));
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differing = keys
        .into_iter()
        .filter(|key| one.get(*key) != other.get(*key));
    let mut differences: Vec<String> = differing.map(|key| format!("`{key}`")).collect();
    let (wanted, found) = (pools(saved), pools(now));
    let same = wanted.len() == found.len()
        && wanted.iter().all(|(subnet, pool)| {
            found.get(subnet).is_some_and(|other| {
                let mut keys = pool.keys().chain(other.keys());
                keys.all(|key| match (pool.get(key), other.get(key)) {
                    // Engines show the gateway that they chose at different times.
                    (Some(one), Some(other)) => one == other,
                    _ => *key == "Gateway",
                })
            })
        });
    if !same {
        differences.push("the subnets".to_owned());
    }
    differences
}

/// The settings of each subnet that are set.
fn pools(network: &Value) -> BTreeMap<&str, BTreeMap<&str, &Value>> {
    let pools = network["IPAM"]["Config"].as_array().into_iter().flatten();
    let pools = pools.filter_map(|pool| {
        let fields = pool.as_object()?.iter();
        let fields = fields.filter(|(_, value)| !is_empty(value));
        let fields = fields.map(|(key, value)| (key.as_str(), value));
        Some((pool.get("Subnet")?.as_str()?, fields.collect()))
    });
    pools.collect()
}

/// How a volume differs from a saved one of the same name, apart from its data.
pub(super) fn volume_differences(saved: &Value, now: &Value) -> Vec<&'static str> {
    let present =
        |volume: &Value, key: &str| volume.get(key).filter(|value| !is_empty(value)).cloned();
    [
        ("the driver", "Driver"),
        ("the options", "Options"),
        ("the labels", "Labels"),
        ("the mount point", "Mountpoint"),
    ]
    .into_iter()
    .filter(|(_, key)| present(saved, key) != present(now, key))
    .map(|(what, _)| what)
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b18_networks_are_compared_as_a_whole() {
        let saved = json!({
            "Id": "a", "Name": "web_default", "Driver": "bridge", "EnableIPv6": false,
            "IPAM": {"Driver": "default", "Options": null, "Config": [{"Subnet": "10.1.0.0/24"}]},
        });
        let with = |key: &str, value: Value| {
            let mut now = saved.clone();
            now[key] = value;
            now
        };
        for now in [
            with("Id", json!("b")),
            with("EnableIPv4", json!(true)),
            with("Labels", json!({})),
            with("Status", json!({"IPAM": {}})),
            with(
                "IPAM",
                json!({"Driver": "default", "Config": [{"Subnet": "10.1.0.0/24", "Gateway": "10.1.0.1"}]}),
            ),
        ] {
            assert_eq!(network_differences(&saved, &now), Vec::<String>::new());
        }
        for (now, what) in [
            (with("EnableIPv4", json!(false)), "`EnableIPv4`"),
            (with("EnableIPv6", json!(true)), "`EnableIPv6`"),
            (with("Labels", json!({"a": "b"})), "`Labels`"),
            (with("NewSetting", json!(1)), "`NewSetting`"),
            (
                with(
                    "IPAM",
                    json!({"Driver": "default", "Config": [{"Subnet": "10.1.0.0/24", "AuxiliaryAddresses": {"a": "10.1.0.9"}}]}),
                ),
                "the subnets",
            ),
        ] {
            assert_eq!(network_differences(&saved, &now), [what]);
        }
    }
}
