//! What can differ in a container, and how a setting is compared.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use crate::{
    plan::{compose_key, limit_name},
    snapshot::{is_empty, is_unset},
    text::{listed, plural},
};

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

/// Lists whose order has an effect.
const ORDERED: [&str; 7] = [
    "Cmd",
    "Dns",
    "DnsOptions",
    "DnsSearch",
    "Entrypoint",
    "OnBuild",
    "Test",
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
            Self::Setting("Cmd") => "the command",
            Self::Setting("Entrypoint") => "the entrypoint",
            Self::Setting("Healthcheck") => "the health check",
            Self::Setting("User") => "the user",
            Self::Setting("WorkingDir") => "the working directory",
            Self::Variables(names) => {
                let noun = plural(names.len(), "variable");
                return write!(f, "the {noun} {}", listed(&Vec::from_iter(names)));
            }
            // As the plan names it.
            Self::Setting(key) => {
                return match limit_name(key) {
                    Some(name) => write!(f, "the {name}"),
                    None => write!(f, "`{}`", compose_key(key).as_deref().unwrap_or(key)),
                };
            }
        })
    }
}

/// Whether a setting is as an engine fills it in. The defaults differ between versions and configurations of engines, and a
/// container keeps those of the engine that created it.
fn is_default(key: &str, value: &Value) -> bool {
    let is_one_of = |defaults: &[&str]| value.as_str().is_some_and(|text| defaults.contains(&text));
    match key {
        "CgroupnsMode" => is_one_of(&["host", "private"]),
        "IpcMode" => is_one_of(&["private", "shareable"]),
        "Isolation" => is_one_of(&["default"]),
        "Runtime" => is_one_of(&["runc", "io.containerd.runc.v2"]),
        "LogConfig" => value["Type"] != "none" && is_empty(&value["Config"]),
        // An empty list is a setting: no path is masked.
        "MaskedPaths" | "ReadonlyPaths" => !is_empty(value),
        "MemorySwappiness" => *value == -1,
        // 64 MB.
        "ShmSize" => *value == 64 << 20,
        _ => false,
    }
}

/// A namespace mode, without the ID of the container: [`Inspected::shares_with`] compares those.
///
/// [`Inspected::shares_with`]: crate::snapshot::Inspected::shares_with
pub(super) fn without_id(mode: &str) -> &str {
    mode.split_once("container:").map_or(mode, |_| "container")
}

/// A setting as it takes effect: versions of Compose and of engines write the same one differently.
pub(super) fn normal(key: &str, value: &Value) -> Value {
    match value {
        _ if is_default(key, value) => Value::Null,
        Value::Array(_) if matches!(key, "MaskedPaths" | "ReadonlyPaths") => "none".into(),
        Value::Object(fields)
            if key == "RestartPolicy" && fields.get("Name").is_some_and(|name| name == "no") =>
        {
            Value::Null
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| match key {
                "ExposedPorts" if !name.contains('/') => (format!("{name}/tcp"), value.clone()),
                _ => (name.clone(), normal(name, value)),
            });
            // A field of the engine's own is capitalized. Other keys have a meaning without a value too.
            let is_own = |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase());
            let set = fields.filter(|(name, value)| !(is_own(name) && is_unset(value)));
            set.collect()
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| normal(key, item)).collect();
            if !ORDERED.contains(&key) {
                items.sort_by_cached_key(Value::to_string);
            }
            items.into()
        }
        Value::String(text) if matches!(key, "CapAdd" | "CapDrop") => {
            text.strip_prefix("CAP_").unwrap_or(text).into()
        }
        Value::String(text) if matches!(key, "IpcMode" | "PidMode") => without_id(text).into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::Inspected;

    fn container(id: &str, config: &Value, host: &Value) -> Value {
        let mut container = json!({"Id": id, "Config": config, "HostConfig": host});
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
            *now.pointer_mut(pointer).unwrap() = value;
            let found = Inspected(&before).differences_of_recreated(Inspected(&now));
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
                let found = Inspected(&before).differences_of_recreated(Inspected(&now));
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
        let found = Inspected(&before).differences_of_recreated(Inspected(&now));
        assert_eq!(found, []);
    }
}
