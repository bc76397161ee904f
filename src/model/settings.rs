//! The settings of a container: where its inspect object has each, the key of a Compose file that gives it, and what it is called.
//!
//! One table for a plan and for the comparison after a run: what is verified was planned (B38).
//!
//! Invariant: pure.
#![deny(clippy::disallowed_methods)]
#![expect(
    clippy::unnecessary_wraps,
    reason = "the values of some keys cannot be parsed"
)]

use composefile::{duration, path::clean};
use serde_json::{Value, json};

use super::container::{is_empty, is_unset};

/// A setting of a container.
#[derive(Debug)]
pub struct ContainerSetting {
    /// The object in which it is: `/HostConfig`.
    pub section: &'static str,
    /// Its field there: `Memory`.
    pub field: &'static str,
    /// The key of a service that gives it: `mem_limit`, `blkio_config.weight`. Empty if Compose has none.
    pub key: &'static str,
    /// What it is called. Empty if that is the key.
    name: &'static str,
    /// What the inspect object shows for a value of the key, as Compose prints it. `None` for one that cannot be parsed.
    pub shown: Shown,
}

/// How a value of a key is shown.
type Shown = fn(&Value) -> Option<Value>;

const fn config(
    field: &'static str,
    key: &'static str,
    name: &'static str,
    shown: Shown,
) -> ContainerSetting {
    ContainerSetting {
        section: "/Config",
        field,
        key,
        name,
        shown,
    }
}

const fn host(
    field: &'static str,
    key: &'static str,
    name: &'static str,
    shown: Shown,
) -> ContainerSetting {
    ContainerSetting {
        section: "/HostConfig",
        ..config(field, key, name, shown)
    }
}

/// Every setting that has a key or a name.
pub const SETTINGS: [ContainerSetting; 60] = [
    host("Memory", "mem_limit", "memory limit", number),
    host(
        "MemoryReservation",
        "mem_reservation",
        "memory reservation",
        number,
    ),
    host("MemorySwap", "memswap_limit", "swap limit", number),
    host(
        "MemorySwappiness",
        "mem_swappiness",
        "memory swappiness",
        number,
    ),
    host("NanoCpus", "cpus", "CPU limit", nano),
    host("CpuShares", "cpu_shares", "CPU shares", number),
    host("CpuQuota", "cpu_quota", "CPU quota", number),
    host("CpuPeriod", "cpu_period", "CPU period", number),
    host("CpusetCpus", "cpuset", "CPU set", same),
    host("CpusetMems", "", "memory nodes", same),
    host("KernelMemory", "", "kernel memory limit", same),
    host(
        "CpuRealtimePeriod",
        "cpu_rt_period",
        "CPU real-time period",
        number,
    ),
    host(
        "CpuRealtimeRuntime",
        "cpu_rt_runtime",
        "CPU real-time runtime",
        number,
    ),
    host("PidsLimit", "pids_limit", "process limit", number),
    host(
        "BlkioWeight",
        "blkio_config.weight",
        "block I/O weight",
        number,
    ),
    host("RestartPolicy", "restart", "restart policy", same),
    host("LogConfig", "logging", "logging", logging),
    host("IpcMode", "ipc", "IPC mode", same),
    config("MacAddress", "mac_address", "MAC address", same),
    config("Cmd", "command", "command", same),
    config("Domainname", "domainname", "", same),
    config("Entrypoint", "entrypoint", "entrypoint", same),
    config("ExposedPorts", "expose", "", exposed),
    config("Healthcheck", "healthcheck", "health check", check),
    config("Hostname", "hostname", "", same),
    config("OpenStdin", "stdin_open", "", same),
    config("StopSignal", "stop_signal", "", same),
    config("StopTimeout", "stop_grace_period", "", seconds),
    config("Tty", "tty", "", same),
    config("User", "user", "user", same),
    config("WorkingDir", "working_dir", "working directory", same),
    host("Annotations", "annotations", "", same),
    host("CapAdd", "cap_add", "", same),
    host("CapDrop", "cap_drop", "", same),
    host("CgroupParent", "cgroup_parent", "", same),
    host("CgroupnsMode", "cgroup", "", same),
    host("DeviceCgroupRules", "device_cgroup_rules", "", same),
    host("Devices", "devices", "", devices),
    host("Dns", "dns", "", same),
    host("DnsOptions", "dns_opt", "", same),
    host("DnsSearch", "dns_search", "", same),
    host("ExtraHosts", "extra_hosts", "", hosts),
    host("GroupAdd", "group_add", "", same),
    host("Init", "init", "", same),
    host("OomKillDisable", "oom_kill_disable", "", same),
    host("OomScoreAdj", "oom_score_adj", "", number),
    host("PidMode", "pid", "", same),
    host("Privileged", "privileged", "", same),
    host("ReadonlyRootfs", "read_only", "", same),
    host("Runtime", "runtime", "", same),
    host("SecurityOpt", "security_opt", "", same),
    host("ShmSize", "shm_size", "", number),
    host("StorageOpt", "storage_opt", "", same),
    host("Sysctls", "sysctls", "", same),
    host("Tmpfs", "tmpfs", "", tmpfs),
    host("UTSMode", "uts", "", same),
    host("Ulimits", "ulimits", "", ulimits),
    host("UsernsMode", "userns_mode", "", same),
    host("VolumeDriver", "volume_driver", "", same),
    config("Labels", "labels", "labels", same),
];

impl ContainerSetting {
    /// The setting in this field of `Config` or `HostConfig`.
    pub fn of(field: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.field == field)
    }

    /// What a container or an image has.
    pub fn at<'c>(&self, of: &'c Value) -> Option<&'c Value> {
        of.pointer(self.section)?.get(self.field)
    }

    /// What it is called in a list.
    pub fn name(&self) -> &'static str {
        if self.name.is_empty() {
            self.key
        } else {
            self.name
        }
    }

    /// What it is called in a sentence.
    pub fn told(&self) -> String {
        match self.name {
            "" => format!("`{}`", self.key),
            name => format!("the {name}"),
        }
    }
}

/// A value of a field of an inspect object as it takes effect. `None` if it is not set, or has its default.
pub fn effective(field: &str, value: &Value) -> Option<Value> {
    let value = normal(field, value);
    (!is_unset(&value)).then_some(value)
}

/// A namespace mode, without the ID of the container: [`Container::shares_with`] compares those.
///
/// [`Container::shares_with`]: crate::snapshot::Container::shares_with
pub fn without_id(mode: &str) -> &str {
    mode.split_once("container:").map_or(mode, |_| "container")
}

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

/// Whether a setting is as an engine fills it in. The defaults differ between versions and configurations of engines, and a
/// container keeps those of the engine that created it.
fn is_default(key: &str, value: &Value) -> bool {
    let is_one_of = |defaults: &[&str]| value.as_str().is_some_and(|text| defaults.contains(&text));
    match key {
        "CgroupnsMode" => is_one_of(&["host", "private"]),
        "IpcMode" => is_one_of(&["private", "shareable"]),
        "Isolation" => is_one_of(&["default"]),
        "Runtime" => is_one_of(&["runc", "io.containerd.runc.v2"]),
        "StopSignal" => is_one_of(&["SIGTERM", "15"]),
        "StopTimeout" => *value == 10,
        "LogConfig" => value["Type"] != "none" && is_empty(&value["Config"]),
        // An empty list is a setting: no path is masked.
        "MaskedPaths" | "ReadonlyPaths" => !is_empty(value),
        "MemorySwappiness" | "PidsLimit" => *value == -1,
        // 64 MB.
        "ShmSize" => *value == 64 << 20,
        _ => false,
    }
}

/// A setting as it takes effect: versions of Compose and of engines write the same one differently.
fn normal(key: &str, value: &Value) -> Value {
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
            // The engine adds the first to a container that shares much of the host. Compose writes the second as other settings.
            let other = ["label=disable", "systempaths=unconfined"];
            let items = items
                .iter()
                .filter(|item| other.iter().all(|other| item != other));
            let mut items: Vec<Value> = items.map(|item| normal(key, item)).collect();
            if !ORDERED.contains(&key) {
                items.sort_by_cached_key(Value::to_string);
            }
            items.into()
        }
        Value::String(text) if matches!(key, "CapAdd" | "CapDrop") => {
            let name = text.to_ascii_uppercase();
            name.trim_start_matches("CAP_").into()
        }
        Value::String(text) if key == "WorkingDir" && !text.is_empty() => clean(text).into(),
        Value::String(text) if matches!(key, "IpcMode" | "PidMode") => without_id(text).into(),
        other => other.clone(),
    }
}

fn same(value: &Value) -> Option<Value> {
    Some(value.clone())
}

/// Compose prints some numbers as text.
fn number(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(text.parse::<i64>().ok()?.into()),
        other => Some(other.clone()),
    }
}

/// Billionths of a CPU.
fn nano(value: &Value) -> Option<Value> {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    whole(text.parse::<f64>().ok()? * 1e9)
}

fn seconds(value: &Value) -> Option<Value> {
    whole(duration::seconds(value.as_str()?).ceil())
}

fn whole(number: f64) -> Option<Value> {
    let text = format!("{number:.0}");
    Some(text.parse::<i64>().ok()?.into())
}

fn check(value: &Value) -> Option<Value> {
    if value["disable"] == true {
        return Some(json!({ "Test": ["NONE"] }));
    }
    let nanoseconds = |key: &str| {
        let given = value[key].as_str().map(duration::seconds);
        given.and_then(|seconds| whole(seconds * 1e9))
    };
    Some(json!({
        "Test": value["test"],
        "Interval": nanoseconds("interval"),
        "Timeout": nanoseconds("timeout"),
        "StartPeriod": nanoseconds("start_period"),
        "StartInterval": nanoseconds("start_interval"),
        "Retries": value["retries"],
    }))
}

/// `None` for a range: it is not expanded (B43).
fn exposed(value: &Value) -> Option<Value> {
    let ports = items(value).map(|port| {
        let port = port
            .as_str()
            .map_or_else(|| port.to_string(), str::to_owned);
        (!port.contains('-')).then(|| (port, json!({})))
    });
    Some(Value::Object(ports.collect::<Option<_>>()?))
}

/// Those of this host. Others are named for a driver to find.
fn devices(value: &Value) -> Option<Value> {
    let of_host = items(value).filter(|device| {
        let source = device["source"].as_str();
        source.is_none_or(|source| source.starts_with('/'))
    });
    let shown = of_host.map(|device| {
        let permissions = device["permissions"].as_str().unwrap_or("rwm");
        let source = device["source"].as_str()?;
        let target = device["target"].as_str().unwrap_or(source);
        Some(json!({
            "PathOnHost": source,
            "PathInContainer": target,
            "CgroupPermissions": permissions,
        }))
    });
    shown.collect()
}

/// `name=address` is `name:address`.
fn hosts(value: &Value) -> Option<Value> {
    let hosts = items(value).map(|host| Some(host.as_str()?.replacen('=', ":", 1)));
    hosts.collect::<Option<Vec<_>>>().map(Value::from)
}

fn logging(value: &Value) -> Option<Value> {
    Some(json!({ "Type": value["driver"], "Config": value["options"] }))
}

fn tmpfs(value: &Value) -> Option<Value> {
    let mounts = items(value).map(|mount| {
        let mount = mount.as_str()?;
        let (target, options) = mount.split_once(':').unwrap_or((mount, ""));
        Some((target.to_owned(), options.into()))
    });
    Some(Value::Object(mounts.collect::<Option<_>>()?))
}

/// Compose omits a limit of 0.
fn ulimits(value: &Value) -> Option<Value> {
    let limits = value.as_object()?.iter().map(|(name, limit)| {
        let side = |side: &str| {
            if limit.is_object() {
                limit[side].clone()
            } else {
                limit.clone()
            }
        };
        json!({ "Name": name, "Soft": side("soft"), "Hard": side("hard") })
    });
    Some(limits.collect())
}

/// The items of a list, or the one that stands in its place.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    }
    .iter()
}
