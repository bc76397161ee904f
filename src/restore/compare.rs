//! How an existing container differs from a saved one.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    difference::{Difference, normal, without_id},
    text,
};
use crate::snapshot::{Inspected, is_empty, is_unset};

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

/// Settings that differ without effect if Compose recreates a container.
const OF_COMPOSE: [&str; 6] = [
    // What the client was attached to, and the size of its terminal.
    "AttachStderr",
    "AttachStdin",
    "AttachStdout",
    "ConsoleSize",
    // Compared as networks. Versions of Compose connect a container to several networks in different orders.
    "NetworkMode",
    // Compared as mounts. The faithful rewrite names anonymous volumes.
    "Volumes",
];

impl<'a> Inspected<'a> {
    /// What differs in `now`. Does not compare [`Self::state`].
    pub(super) fn differences(self, now: Self) -> Vec<Difference<'a>> {
        let mut found = self.effects_that_differ(now);
        if self.present("/Config/Labels") != now.present("/Config/Labels") {
            found.push(Difference::Labels);
        }
        if self.id() != now.id() && self.mac_addresses_differ(now) {
            found.push(Difference::MacAddresses);
        }
        found.extend(self.settings_that_differ(now));
        found
    }

    /// What differs in `now`, which Compose created, apart from the labels of Compose. Does not compare [`Self::state`].
    pub fn differences_of_recreated(self, now: Self) -> Vec<Difference<'a>> {
        let mut found = self.effects_that_differ(now);
        if self.labels() != now.labels() {
            found.push(Difference::Labels);
        }
        let settings = self.settings_that_differ(now).into_iter();
        found
            .extend(settings.filter(
                |one| !matches!(one, Difference::Setting(key) if OF_COMPOSE.contains(key)),
            ));
        found
    }

    /// What differs in `now` of the image, the mounts, the networks, the ports and the variables.
    fn effects_that_differ(self, now: Self) -> Vec<Difference<'a>> {
        let same = [
            (Difference::Image, self.image_id() == now.image_id()),
            (Difference::Mounts, self.mount_set() == now.mount_set()),
            (
                Difference::Networks,
                self.network_set() == now.network_set(),
            ),
            (Difference::Ports, self.port_set() == now.port_set()),
        ];
        let different = same.into_iter().filter(|(_, same)| !same);
        let mut found: Vec<Difference> = different.map(|(what, _)| what).collect();
        found.extend(self.variables_that_differ(now));
        found
    }

    /// The other settings that differ.
    fn settings_that_differ(self, now: Self) -> Vec<Difference<'a>> {
        let mut found = Vec::new();
        for section in ["/Config", "/HostConfig"] {
            let keys: BTreeSet<&'a str> = (self.fields(section).chain(now.fields(section)))
                .map(|(key, _)| key.as_str())
                .filter(|key| !COMPARED_BY_EFFECT.contains(key))
                .collect();
            let setting = |container: Self, key: &str| {
                let value = normal(key, container.at(section)?.get(key)?);
                (!is_unset(&value)).then_some(value)
            };
            let different = keys.into_iter().filter(|key| match *key {
                "Hostname" => self.hostname() != now.hostname(),
                "NetworkMode" => without_id(self.network_mode()) != without_id(now.network_mode()),
                key => setting(self, key) != setting(now, key),
            });
            found.extend(different.map(Difference::Setting));
        }
        found
    }

    /// The labels, without those of Compose and of Docker Desktop.
    fn labels(self) -> BTreeMap<&'a str, &'a Value> {
        let is_given = |name: &str| {
            let mut parts = name.split('.');
            let is_compose = parts.next() == Some("com") && parts.nth(1) == Some("compose");
            !is_compose && !name.starts_with("desktop.docker.io/")
        };
        self.fields("/Config/Labels")
            .map(|(name, value)| (name.as_str(), value))
            .filter(|(name, _)| is_given(name))
            .collect()
    }

    fn variables_that_differ(self, now: Self) -> Option<Difference<'a>> {
        let (saved, there) = (self.variables(), now.variables());
        let names: BTreeSet<&str> = saved
            .symmetric_difference(&there)
            .map(|variable| variable.split('=').next().unwrap_or_default())
            .collect();
        (!names.is_empty()).then_some(Difference::Variables(names))
    }

    fn variables(self) -> BTreeSet<&'a str> {
        let env = self.items("/Config/Env");
        env.filter_map(Value::as_str).collect()
    }

    /// Whether another container has another address than one that may be chosen. A stopped one shows none.
    fn mac_addresses_differ(self, now: Self) -> bool {
        self.further_mac_addresses().iter().any(|(name, mac)| {
            let endpoint = now.networks().find(|(network, _)| network == name);
            let there = endpoint.and_then(|(_, endpoint)| endpoint.get("MacAddress")?.as_str());
            there.is_some_and(|there| !there.is_empty() && !there.eq_ignore_ascii_case(mac))
        })
    }

    fn mount_set(self) -> BTreeSet<(&'a str, &'a str, &'a str, bool)> {
        self.mounts()
            .map(|mount| {
                let kind = text(mount, "Type");
                let target = text(mount, "Destination");
                let source = match kind {
                    "volume" => text(mount, "Name"),
                    // Mounted from a directory of its own for each container.
                    "image" => self.mounted_image(target),
                    _ => text(mount, "Source"),
                };
                (target, kind, source, mount["RW"] != false)
            })
            .collect()
    }

    /// The image that is mounted at `target`, as it was named.
    fn mounted_image(self, target: &str) -> &'a str {
        let mut mounts = self.items("/HostConfig/Mounts");
        let mount = mounts.find(|mount| mount["Target"] == target);
        mount.map_or("", |mount| text(mount, "Source"))
    }

    fn network_set(self) -> BTreeMap<&'a str, (BTreeSet<&'a str>, Map<String, Value>)> {
        self.networks()
            .map(|(name, endpoint)| {
                let settings = Inspected::endpoint_settings(endpoint);
                (name.as_str(), (self.aliases(endpoint), settings))
            })
            .collect()
    }

    fn port_set(self) -> BTreeMap<&'a str, String> {
        self.fields("/HostConfig/PortBindings")
            .map(|(port, bindings)| (port.as_str(), bindings.to_string()))
            .collect()
    }
}

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

    fn differences(one: &Value, other: &Value) -> Vec<String> {
        let differences = Inspected(one).differences(Inspected(other));
        differences.iter().map(Difference::to_string).collect()
    }

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

    #[test]
    fn b18_a_chosen_mac_address_and_an_unknown_setting_of_an_endpoint_are_compared() {
        let container = |id: &str, mac: &str, extra: Value| {
            let mut endpoint =
                json!({"MacAddress": mac, "IPAddress": "172.18.0.2", "GwPriority": 0});
            for (key, value) in extra.as_object().unwrap() {
                endpoint[key] = value.clone();
            }
            json!({
                "Id": id, "HostConfig": {"NetworkMode": "first"},
                "NetworkSettings": {"Networks": {"first": {}, "second": endpoint}},
            })
        };
        let chosen = container("a", "02:00:5e:00:00:22", json!({}));
        let generated = container("b", "02:42:ac:12:00:02", json!({}));
        assert_eq!(differences(&chosen, &generated), ["the MAC addresses"]);
        // The one of the same IPv4 address follows from it.
        assert_eq!(differences(&generated, &chosen), Vec::<String>::new());
        // The same container: a later engine generates another one at each start.
        let restarted = container("a", "02:00:5e:00:00:33", json!({}));
        assert_eq!(differences(&chosen, &restarted), Vec::<String>::new());
        for extra in [json!({"GwPriority": 5}), json!({"NewSetting": "x"})] {
            let other = container("a", "02:00:5e:00:00:22", extra);
            assert_eq!(differences(&chosen, &other), ["the networks"]);
        }
    }

    #[test]
    fn b18_an_image_that_is_mounted_is_compared_by_its_name() {
        let container = |image: &str, directory: &str| {
            json!({
                "HostConfig": {"Mounts": [{"Type": "image", "Source": image, "Target": "/tools"}]},
                "Mounts": [{"Type": "image", "Source": directory, "Destination": "/tools"}],
            })
        };
        let saved = container("tools:1", "/var/lib/docker/overlay2/a/diff");
        let same = container("tools:1", "/var/lib/docker/overlay2/b/diff");
        let other = container("tools:2", "/var/lib/docker/overlay2/b/diff");
        assert_eq!(differences(&saved, &same), Vec::<String>::new());
        assert_eq!(differences(&saved, &other), ["the mounts"]);
    }
}
