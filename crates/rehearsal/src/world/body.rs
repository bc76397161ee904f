//! The request body that Compose sends to create the container of a service.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    service::Service,
    typed,
    values::{fraction, many, texts},
};

/// Keys of a service whose lists `HostConfig` takes unchanged.
const LISTS: [(&str, &str); 9] = [
    ("cap_add", "CapAdd"),
    ("cap_drop", "CapDrop"),
    ("device_cgroup_rules", "DeviceCgroupRules"),
    ("dns", "Dns"),
    ("dns_opt", "DnsOptions"),
    ("dns_search", "DnsSearch"),
    ("group_add", "GroupAdd"),
    ("security_opt", "SecurityOpt"),
    ("external_links", "Links"),
];

/// Keys of a service whose values `HostConfig` takes unchanged.
const VALUES: [(&str, &str); 12] = [
    ("cgroup_parent", "CgroupParent"),
    ("cpu_shares", "CpuShares"),
    ("cpuset", "CpusetCpus"),
    ("init", "Init"),
    ("oom_score_adj", "OomScoreAdj"),
    ("pids_limit", "PidsLimit"),
    ("privileged", "Privileged"),
    ("read_only", "ReadonlyRootfs"),
    ("runtime", "Runtime"),
    ("userns_mode", "UsernsMode"),
    ("uts", "UTSMode"),
    ("ipc", "IpcMode"),
];

/// Keys of a service whose values `Config` takes as text.
const TEXTS: [(&str, &str); 6] = [
    ("hostname", "Hostname"),
    ("domainname", "Domainname"),
    ("user", "User"),
    ("working_dir", "WorkingDir"),
    ("mac_address", "MacAddress"),
    ("stop_signal", "StopSignal"),
];

impl Service {
    /// `Config` without labels.
    pub fn engine_config(&self) -> Value {
        let raw = &self.config;
        let env = self.env.iter();
        let exposed = self.ports.iter().map(|port| {
            // Compose adds no protocol to an `expose` entry that has none.
            let key = match (port.published, port.protocol.as_str()) {
                (None, "tcp") => port.target.to_string(),
                (_, protocol) => format!("{}/{protocol}", port.target),
            };
            (key, json!({}))
        });
        let mut config = json!({
            "AttachStdout": true,
            "AttachStderr": true,
            "Image": self.image,
            "Env": env.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
            "ExposedPorts": exposed.collect::<Map<_, _>>(),
            "Cmd": texts(raw.get("command")),
            "Healthcheck": raw.get("healthcheck").map(health),
        });
        for (key, name) in TEXTS {
            config[name] = json!(self.text(key));
        }
        for (key, name) in [("tty", "Tty"), ("stdin_open", "OpenStdin")] {
            config[name] = json!(raw.get(key) == Some(&json!(true)));
        }
        if let Some(entrypoint) = raw.get("entrypoint").filter(|given| !given.is_null()) {
            config["Entrypoint"] = json!(texts(Some(entrypoint)));
        }
        if let Some(grace) = self.text("stop_grace_period") {
            config["StopTimeout"] = fraction(typed::seconds(&grace).ceil());
        }
        config
    }

    /// `HostConfig` without mounts and without references to other containers.
    pub fn engine_host_config(&self) -> Value {
        let raw = &self.config;
        let mut host = json!({
            "PortBindings": self.port_bindings(),
            "RestartPolicy": self.restart_policy(),
            "Devices": many(raw.get("devices")).into_iter().map(device).collect::<Vec<_>>(),
        });
        for (key, name) in LISTS {
            host[name] = json!(texts(raw.get(key)));
        }
        for (key, name) in VALUES {
            host[name] = json!(raw.get(key));
        }
        for (key, name) in [
            ("mem_limit", "Memory"),
            ("mem_reservation", "MemoryReservation"),
            ("memswap_limit", "MemorySwap"),
        ] {
            host[name] = json!(self.text(key).and_then(|size| size.parse::<i64>().ok()));
        }
        host
    }

    fn port_bindings(&self) -> Value {
        let mut bindings = BTreeMap::<String, Vec<Value>>::new();
        for port in &self.ports {
            let Some(published) = port.published else {
                continue;
            };
            let key = format!("{}/{}", port.target, port.protocol);
            let number = match published {
                0 => String::new(),
                number => number.to_string(),
            };
            let binding = json!({ "HostIp": port.address, "HostPort": number });
            bindings.entry(key).or_default().push(binding);
        }
        json!(bindings)
    }

    fn restart_policy(&self) -> Value {
        let restart = self.text("restart").unwrap_or_default();
        let (name, count) = restart.split_once(':').unwrap_or((&restart, "0"));
        json!({ "Name": name, "MaximumRetryCount": count.parse::<u32>().unwrap_or(0) })
    }
}

fn health(check: &Value) -> Value {
    let test = match check.get("test") {
        _ if check.get("disable") == Some(&json!(true)) => json!(["NONE"]),
        Some(list) => list.clone(),
        None => return json!({}),
    };
    json!({ "Test": test })
}

fn device(device: &Value) -> Value {
    json!({
        "PathOnHost": device["source"],
        "PathInContainer": device["target"],
        "CgroupPermissions": device["permissions"],
    })
}
