//! What differs in a container.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Value};

use crate::{
    model::{Container, ContainerSetting, effective, is_short_id, without_id},
    text::{listed, plural},
};

/// What may have created a container again since it was inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creator {
    /// A restore, which gives it everything that it had.
    Restore,
    /// Compose, which writes its own labels and some settings in another way.
    Compose,
}

/// What differs in a container. Prints as a name, never as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference<'a> {
    Image,
    Mounts,
    Networks,
    Ports,
    Labels,
    MacAddresses,
    /// The variables of these names.
    Variables(BTreeSet<&'a str>),
    /// A key of `Config` or `HostConfig`.
    Setting(&'a str),
}

/// Settings that a container has from its image, unless they are set.
const OF_IMAGE: [&str; 9] = [
    "ArgsEscaped",
    "Cmd",
    "Entrypoint",
    "ExposedPorts",
    "Healthcheck",
    "OnBuild",
    "StopSignal",
    "User",
    "WorkingDir",
];

impl Difference<'_> {
    /// Whether it may follow from another image of the same name.
    pub fn may_come_with_image(&self) -> bool {
        match self {
            Self::Image | Self::Labels => true,
            Self::Setting(key) => OF_IMAGE.contains(key),
            _ => false,
        }
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Image => "the image",
            Self::Mounts => "the mounts",
            Self::Networks => "the networks",
            Self::Ports => "the ports",
            Self::Labels => "the labels",
            Self::MacAddresses => "the MAC addresses",
            Self::Variables(names) => {
                let noun = plural(names.len(), "variable");
                return write!(f, "the {noun} {}", listed(&Vec::from_iter(names)));
            }
            // As the plan names it.
            Self::Setting(field) => {
                let setting = ContainerSetting::of(field);
                let told = setting.map_or_else(|| format!("`{field}`"), ContainerSetting::told);
                return f.write_str(&told);
            }
        })
    }
}

/// Settings that [`Container::differences`] compares by their effect: mounts, variables, labels, ports, the image, and
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

impl Container {
    /// What differs in `now`, which may have been created again since. Does not compare [`Self::state`].
    pub fn differences<'a>(&'a self, now: &'a Self, creator: Creator) -> Vec<Difference<'a>> {
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
        let (is_restored, labels) = (creator == Creator::Restore, "/Config/Labels");
        let labels_differ = match creator {
            Creator::Restore => self.present(labels) != now.present(labels),
            Creator::Compose => self.labels() != now.labels(),
        };
        if labels_differ {
            found.push(Difference::Labels);
        }
        if is_restored && self.id() != now.id() && self.mac_addresses_differ(now) {
            found.push(Difference::MacAddresses);
        }
        let settings = self.settings_that_differ(now).into_iter();
        let has_ports = found.contains(&Difference::Ports);
        let settings = settings.filter(|key| {
            // A published port is exposed.
            let is_said = *key == "ExposedPorts" && has_ports;
            is_restored || !(is_said || OF_COMPOSE.contains(key))
        });
        found.extend(settings.map(Difference::Setting));
        found
    }

    /// The other keys of `Config` and `HostConfig` that differ.
    fn settings_that_differ<'a>(&'a self, now: &'a Self) -> Vec<&'a str> {
        let mut found = Vec::new();
        for section in ["/Config", "/HostConfig"] {
            let keys: BTreeSet<&str> = (self.fields(section).chain(now.fields(section)))
                .map(|(key, _)| key.as_str())
                .filter(|key| !COMPARED_BY_EFFECT.contains(key))
                .collect();
            let setting =
                |container: &Self, key: &str| effective(key, container.at(section)?.get(key)?);
            let different = keys.into_iter().filter(|key| match *key {
                "Hostname" => self.chosen_hostname() != now.chosen_hostname(),
                "NetworkMode" => without_id(self.network_mode()) != without_id(now.network_mode()),
                key => setting(self, key) != setting(now, key),
            });
            found.extend(different);
        }
        found
    }

    /// The hostname, unless it is the short ID of an earlier container, which image updaters and *Recreate* in Portainer keep.
    fn chosen_hostname(&self) -> Option<&str> {
        self.hostname().filter(|name| !is_short_id(name))
    }

    fn variables_that_differ<'a>(&'a self, now: &'a Self) -> Option<Difference<'a>> {
        let (saved, there) = (self.variables(), now.variables());
        let names: BTreeSet<&str> = saved
            .symmetric_difference(&there)
            .map(|variable| variable.split('=').next().unwrap_or_default())
            .collect();
        (!names.is_empty()).then_some(Difference::Variables(names))
    }

    fn variables(&self) -> BTreeSet<&str> {
        let env = self.items("/Config/Env");
        env.filter_map(Value::as_str).collect()
    }

    /// Whether another container has another address than one that may be chosen. A stopped one shows none.
    fn mac_addresses_differ(&self, now: &Self) -> bool {
        self.further_mac_addresses().iter().any(|(name, mac)| {
            let endpoint = now.networks().find(|(network, _)| network == name);
            let there = endpoint.and_then(|(_, endpoint)| endpoint.get("MacAddress")?.as_str());
            there.is_some_and(|there| !there.is_empty() && !there.eq_ignore_ascii_case(mac))
        })
    }

    fn mount_set(&self) -> BTreeSet<(&str, &str, &str, bool)> {
        self.mounts()
            .map(|mount| {
                let kind = field(mount, "Type");
                let target = field(mount, "Destination");
                let source = match kind {
                    "volume" => field(mount, "Name"),
                    // Mounted from a directory of its own for each container.
                    "image" => self.mounted_image(target),
                    _ => field(mount, "Source"),
                };
                (target, kind, source, mount["RW"] != false)
            })
            .collect()
    }

    /// The image that is mounted at `target`, as it was named.
    fn mounted_image(&self, target: &str) -> &str {
        let mut mounts = self.items("/HostConfig/Mounts");
        let mount = mounts.find(|mount| mount["Target"] == target);
        mount.map_or("", |mount| field(mount, "Source"))
    }

    fn network_set(&self) -> BTreeMap<&str, (BTreeSet<&str>, Map<String, Value>)> {
        // Engines before 25 add the host name to the aliases.
        let hostname = self.text("/Config/Hostname");
        self.networks()
            .map(|(name, endpoint)| {
                let settings = Container::endpoint_settings(endpoint);
                let mut aliases = self.aliases(endpoint);
                aliases.remove(hostname);
                (name.as_str(), (aliases, settings))
            })
            .collect()
    }

    fn port_set(&self) -> BTreeMap<&str, String> {
        self.fields("/HostConfig/PortBindings")
            .map(|(port, bindings)| (port.as_str(), bindings.to_string()))
            .collect()
    }
}

/// The text of a field of a mount, or an empty one.
fn field<'v>(mount: &'v Value, key: &str) -> &'v str {
    mount[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(id: &str, config: &Value, host: &Value) -> Container {
        let mut container = Container(json!({"Id": id, "Config": config, "HostConfig": host}));
        container["Config"]["Hostname"] = json!(id);
        container
    }

    #[test]
    fn b28_every_setting_is_compared_by_name() {
        let before = container(
            "a",
            &json!({"Cmd": ["a", "b"], "Labels": {"note": "x"}}),
            &json!({"Memory": 64, "Dns": ["1.1.1.1", "8.8.8.8"], "Sysctls": {"net.a": ""}, "PidMode": "", "CapAdd": null, "NewSetting": null}),
        );
        for (pointer, value, what) in [
            ("/Config/Cmd", json!(["b", "a"]), "the command"),
            ("/Config/Labels/note", json!("secret"), "the labels"),
            ("/HostConfig/Memory", json!(0), "the memory limit"),
            ("/HostConfig/Dns", json!(["8.8.8.8", "1.1.1.1"]), "`dns`"),
            ("/HostConfig/Sysctls", json!({}), "`sysctls`"),
            ("/HostConfig/PidMode", json!("host"), "`pid`"),
            ("/HostConfig/CapAdd", json!(["SYS_TIME"]), "`cap_add`"),
            ("/HostConfig/NewSetting", json!(1), "`NewSetting`"),
        ] {
            let mut now = before.clone();
            *now.0.pointer_mut(pointer).unwrap() = value;
            let found = before.differences(&now, Creator::Compose);
            assert_eq!(found.len(), 1, "{pointer}");
            assert_eq!(found[0].to_string(), what);
        }
        let added = json!({
            "Config": {"Entrypoint": ["x"], "User": "1", "WorkingDir": "/x", "StopTimeout": 5, "Healthcheck": {"Test": ["NONE"]}},
            "HostConfig": {
                "ReadonlyRootfs": true, "RestartPolicy": {"Name": "always"}, "ShmSize": 1, "Ulimits": [{"Name": "nofile"}],
                "NewSetting": "secret",
            },
        });
        for (section, fields) in added.as_object().unwrap() {
            for (key, value) in fields.as_object().unwrap() {
                let mut now = before.clone();
                now[section][key] = value.clone();
                let found = before.differences(&now, Creator::Compose);
                assert_eq!(found, [Difference::Setting(key)]);
                assert!(!found[0].to_string().contains("secret"));
            }
        }
    }

    /// Observed with the engine 20.10 and Compose 2.26.1, 2.40.3 and 5.6.1, or in the API of later engines.
    #[test]
    fn b28_what_compose_writes_differently_is_no_difference() {
        let before = container(
            "f049c9bd6678",
            &json!({
                "ExposedPorts": {"81/udp": {}, "9000": {}}, "AttachStdout": true, "Volumes": {"/data": {}}, "Tty": false,
                "Healthcheck": {"Test": ["CMD", "true"]}, "Labels": {"com.docker.compose.config-hash": "a", "note": "x"},
            }),
            &json!({
                "CapAdd": ["NET_ADMIN", "SYS_TIME"], "CapDrop": ["MKNOD", "CHOWN"], "Binds": ["/a:/b"], "Links": null,
                "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}, "ExtraHosts": ["b:1.2.3.4", "a:1.2.3.5"],
                "NetworkMode": "container:f049c9bd6678", "ConsoleSize": [0, 0], "DnsSearch": [], "IpcMode": "shareable",
                "CgroupnsMode": "host", "LogConfig": {"Type": "json-file", "Config": {}}, "MaskedPaths": ["/proc/asound"],
            }),
        );
        let now = container(
            "e1f346557a87",
            &json!({
                "ExposedPorts": {"9000/tcp": {}, "81/udp": {}}, "Healthcheck": {"Test": ["CMD", "true"], "StartInterval": 0},
                "Labels": {"note": "x", "com.docker.compose.config-hash": "b", "desktop.docker.io/binds/0/Target": "/b"},
            }),
            &json!({
                "CapAdd": ["CAP_NET_ADMIN", "CAP_SYS_TIME"], "CapDrop": ["CAP_CHOWN", "CAP_MKNOD"], "Mounts": [],
                "RestartPolicy": {"Name": "", "MaximumRetryCount": 0}, "ExtraHosts": ["a:1.2.3.5", "b:1.2.3.4"],
                "NetworkMode": "container:e1f346557a87", "ConsoleSize": [24, 80], "Init": false, "IpcMode": "private",
                "CgroupnsMode": "private", "LogConfig": {"Type": "local", "Config": {}}, "ShmSize": 67_108_864, "Runtime": "runc",
                "MaskedPaths": ["/proc/acpi", "/proc/asound"], "MemorySwappiness": -1,
            }),
        );
        let found = before.differences(&now, Creator::Compose);
        assert_eq!(found, []);
    }

    fn differences(one: &Container, other: &Container) -> Vec<String> {
        let differences = one.differences(other, Creator::Restore);
        differences.iter().map(Difference::to_string).collect()
    }

    #[test]
    fn b18_a_chosen_mac_address_and_an_unknown_setting_of_an_endpoint_are_compared() {
        let container = |id: &str, mac: &str, extra: Value| {
            let mut endpoint =
                json!({"MacAddress": mac, "IPAddress": "172.18.0.2", "GwPriority": 0});
            for (key, value) in extra.as_object().unwrap() {
                endpoint[key] = value.clone();
            }
            Container(json!({
                "Id": id, "HostConfig": {"NetworkMode": "first"},
                "NetworkSettings": {"Networks": {"first": {}, "second": endpoint}},
            }))
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
            Container(json!({
                "HostConfig": {"Mounts": [{"Type": "image", "Source": image, "Target": "/tools"}]},
                "Mounts": [{"Type": "image", "Source": directory, "Destination": "/tools"}],
            }))
        };
        let saved = container("tools:1", "/var/lib/docker/overlay2/a/diff");
        let same = container("tools:1", "/var/lib/docker/overlay2/b/diff");
        let other = container("tools:2", "/var/lib/docker/overlay2/b/diff");
        assert_eq!(differences(&saved, &same), Vec::<String>::new());
        assert_eq!(differences(&saved, &other), ["the mounts"]);
    }
}
