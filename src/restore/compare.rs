//! How an existing container differs from a saved one.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::snapshot::{Inspected, is_empty};

/// Settings that [`Inspected::differences`] compares by their effect: mounts, variables, labels, ports, the image, and
/// what is shared with others. A recreated container may write them differently.
const COMPARED_BY_EFFECT: [&str; 8] = [
    "Binds",
    "ContainerIDFile",
    "Env",
    "Image",
    "Labels",
    "Mounts",
    "PortBindings",
    "VolumesFrom",
];

impl<'a> Inspected<'a> {
    /// What differs in `now`, by name; never the value of a variable. Does not compare [`Self::state`].
    pub(super) fn differences(self, now: Inspected<'a>) -> Vec<String> {
        let mut found = self.effects_that_differ(now);
        if self.present("/Config/Labels") != now.present("/Config/Labels") {
            found.push("the labels".to_owned());
        }
        for section in ["Config", "HostConfig"] {
            found.extend(self.settings_that_differ(now, section));
        }
        found
    }

    /// What differs in `now` of the image, the mounts, the networks, the ports and the variables, by name.
    pub fn effects_that_differ(self, now: Inspected<'a>) -> Vec<String> {
        let same = [
            ("the image", self.image_id() == now.image_id()),
            ("the mounts", self.mount_set() == now.mount_set()),
            ("the networks", self.network_set() == now.network_set()),
            ("the ports", self.port_set() == now.port_set()),
        ];
        let different = same.into_iter().filter(|(_, same)| !same);
        let mut found: Vec<String> = different.map(|(what, _)| what.to_owned()).collect();
        found.extend(self.variables_that_differ(now));
        found
    }

    /// The names of the other settings that differ.
    fn settings_that_differ(self, now: Inspected<'a>, section: &str) -> Vec<String> {
        let settings = |container: Self| container.at(&format!("/{section}"))?.as_object();
        let (saved, there) = (settings(self), settings(now));
        let keys: BTreeSet<&String> = [saved, there]
            .into_iter()
            .flatten()
            .flat_map(Map::keys)
            .filter(|key| !COMPARED_BY_EFFECT.contains(&key.as_str()))
            .collect();
        let setting = |settings: Option<&'a Map<String, Value>>, key: &str| {
            settings?.get(key).filter(|value| !is_unset(value))
        };
        keys.into_iter()
            .filter(|key| match key.as_str() {
                "Hostname" => self.hostname() != now.hostname(),
                "NetworkMode" | "PidMode" | "IpcMode" => self.mode(key) != now.mode(key),
                key => setting(saved, key) != setting(there, key),
            })
            .cloned()
            .collect()
    }

    /// A namespace mode, without the ID of the container: [`Self::shares_with`] compares those.
    fn mode(self, key: &str) -> &'a str {
        let mode = self.text(&format!("/HostConfig/{key}"));
        mode.split_once("container:").map_or(mode, |_| "container")
    }

    /// The names of the variables that differ.
    fn variables_that_differ(self, now: Inspected) -> Option<String> {
        let (saved, there) = (self.variables(), now.variables());
        let names: BTreeSet<&str> = saved
            .symmetric_difference(&there)
            .map(|variable| variable.split('=').next().unwrap_or_default())
            .collect();
        let names: Vec<&str> = names.into_iter().collect();
        (!names.is_empty()).then(|| format!("the variables {}", names.join(", ")))
    }

    fn variables(self) -> BTreeSet<&'a str> {
        let env = self.at("/Config/Env").and_then(Value::as_array);
        env.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    fn mount_set(self) -> BTreeSet<(&'a str, &'a str, &'a str, bool)> {
        let text = |mount: &'a Value, key: &str| mount[key].as_str().unwrap_or_default();
        self.mounts()
            .map(|mount| {
                let kind = text(mount, "Type");
                let source = if kind == "volume" { "Name" } else { "Source" };
                (
                    text(mount, "Destination"),
                    kind,
                    text(mount, source),
                    mount["RW"] != false,
                )
            })
            .collect()
    }

    fn network_set(self) -> BTreeMap<&'a str, (BTreeSet<&'a str>, String)> {
        self.networks()
            .map(|(name, endpoint)| {
                let address = endpoint
                    .get("IPAMConfig")
                    .filter(|config| !is_empty(config));
                let address = address.map_or_else(String::new, Value::to_string);
                (name.as_str(), (self.aliases(endpoint), address))
            })
            .collect()
    }

    fn port_set(self) -> BTreeMap<&'a str, String> {
        let bindings = self
            .at("/HostConfig/PortBindings")
            .and_then(Value::as_object);
        bindings
            .into_iter()
            .flatten()
            .map(|(port, bindings)| (port.as_str(), bindings.to_string()))
            .collect()
    }
}

/// How a network differs from a saved one: its driver, options and addresses.
pub(super) fn network_differences(saved: &Value, now: &Value) -> Vec<&'static str> {
    let present = |network: &Value, pointer: &str| {
        let value = network.pointer(pointer).filter(|value| !is_unset(value));
        value.cloned()
    };
    let mut differences: Vec<&str> = [
        ("the driver", "/Driver"),
        ("the options", "/Options"),
        ("internal", "/Internal"),
        ("attachable", "/Attachable"),
        ("IPv6", "/EnableIPv6"),
        ("the address driver", "/IPAM/Driver"),
        ("the address options", "/IPAM/Options"),
    ]
    .into_iter()
    .filter(|(_, pointer)| present(saved, pointer) != present(now, pointer))
    .map(|(what, _)| what)
    .collect();
    let (wanted, found) = (pools(saved), pools(now));
    let same = wanted.len() == found.len()
        && wanted.iter().all(|(subnet, pool)| {
            found.get(subnet).is_some_and(|other| {
                let same = |key: &str| pool.get(key) == other.get(key);
                // Engines show the gateway that they chose at different times.
                let gateways = (pool.get("Gateway"), other.get("Gateway"));
                same("IPRange") && !matches!(gateways, (Some(one), Some(other)) if one != other)
            })
        });
    if !same {
        differences.push("the subnets");
    }
    differences
}

/// The settings of each subnet that are set.
fn pools(network: &Value) -> BTreeMap<&str, BTreeMap<&str, &Value>> {
    let pools = network.pointer("/IPAM/Config").and_then(Value::as_array);
    let pools = pools.into_iter().flatten().filter_map(|pool| {
        let fields = pool.as_object()?.iter();
        let fields = fields.filter(|(_, value)| !is_empty(value));
        let fields = fields.map(|(key, value)| (key.as_str(), value));
        Some((pool.get("Subnet")?.as_str()?, fields.collect()))
    });
    pools.collect()
}

/// How a volume differs from a saved one of the same name, apart from its data.
pub(super) fn volume_differences(saved: &Value, now: &Value) -> Vec<&'static str> {
    let present = |volume: &Value, key: &str| {
        let value = volume.get(key).filter(|value| !is_empty(value));
        value.cloned()
    };
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

/// Whether a setting has its default: engines differ in how they write one that is not set.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => is_empty(value),
    }
}
