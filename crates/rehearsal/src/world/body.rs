//! The request body that Compose sends to create the container of a service.

use serde_json::{Map, Value, json};

use super::{
    service::Service,
    values::{many, pairs, text},
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

impl Service {
    /// `Config` without labels.
    pub fn engine_config(&self) -> Value {
        let raw = &self.config;
        let mut config = json!({
            "AttachStdout": true,
            "AttachStderr": true,
            "Image": self.image,
            "Env": self.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
        });
        for (key, name) in [
            ("hostname", "Hostname"),
            ("domainname", "Domainname"),
            ("user", "User"),
            ("working_dir", "WorkingDir"),
            ("mac_address", "MacAddress"),
            ("stop_signal", "StopSignal"),
        ] {
            if let Some(value) = raw.get(key).and_then(text) {
                config[name] = json!(value);
            }
        }
        for (key, name) in [("tty", "Tty"), ("stdin_open", "OpenStdin")] {
            config[name] = json!(raw.get(key) == Some(&json!(true)));
        }
        if !self.command.is_empty() {
            config["Cmd"] = json!(self.command);
        }
        if let Some(entrypoint) = raw.get("entrypoint").filter(|given| !given.is_null()) {
            config["Entrypoint"] = json!(super::service::words(Some(entrypoint)));
        }
        if let Some(grace) = raw.get("stop_grace_period").and_then(text) {
            config["StopTimeout"] = json!(nanoseconds(&grace) / 1_000_000_000);
        }
        if let Some(check) = raw.get("healthcheck") {
            config["Healthcheck"] = health(check);
        }
        let exposed = self.ports.iter().map(|port| {
            // Compose adds no protocol to an `expose` entry that has none.
            let key = match (port.published, port.protocol.as_str()) {
                (None, "tcp") => port.target.to_string(),
                (_, protocol) => format!("{}/{protocol}", port.target),
            };
            (key, json!({}))
        });
        let exposed = exposed.collect::<Map<_, _>>();
        if !exposed.is_empty() {
            config["ExposedPorts"] = Value::Object(exposed);
        }
        config
    }

    /// `HostConfig` without mounts and without references to other containers.
    pub fn engine_host_config(&self) -> Value {
        let raw = &self.config;
        let mut host = json!({
            "PortBindings": self.port_bindings(),
            "RestartPolicy": self.restart_policy(),
        });
        for (key, name) in LISTS {
            let items = many(raw.get(key));
            let items = items.into_iter().filter_map(text).collect::<Vec<_>>();
            if !items.is_empty() {
                host[name] = json!(items);
            }
        }
        for (key, name) in VALUES {
            if let Some(value) = raw.get(key).filter(|value| !value.is_null()) {
                host[name] = value.clone();
            }
        }
        for (key, name) in [
            ("mem_limit", "Memory"),
            ("mem_reservation", "MemoryReservation"),
            ("memswap_limit", "MemorySwap"),
            ("shm_size", "ShmSize"),
        ] {
            if let Some(size) = raw.get(key).and_then(text) {
                host[name] = json!(bytes(&size));
            }
        }
        let hosts = match raw.get("extra_hosts") {
            Some(Value::Object(map)) => map
                .iter()
                .filter_map(|(name, address)| Some(format!("{name}:{}", text(address)?)))
                .collect(),
            other => many(other)
                .into_iter()
                .filter_map(text)
                .map(|one| one.replacen('=', ":", 1))
                .collect::<Vec<_>>(),
        };
        host["ExtraHosts"] = json!(hosts);
        let sysctls = pairs(raw.get("sysctls"));
        if !sysctls.is_empty() {
            host["Sysctls"] = sysctls.into_iter().map(|(k, v)| (k, json!(v))).collect();
        }
        let devices = many(raw.get("devices")).into_iter().filter_map(text);
        let devices = devices.map(|one| device(&one)).collect::<Vec<_>>();
        if !devices.is_empty() {
            host["Devices"] = json!(devices);
        }
        if let Some(Value::Object(limits)) = raw.get("ulimits") {
            host["Ulimits"] = limits
                .iter()
                .map(|(name, limit)| ulimit(name, limit))
                .collect();
        }
        if let Some(logging) = raw.get("logging") {
            let options = pairs(logging.get("options")).into_iter();
            let options = options.map(|(name, value)| (name, json!(value)));
            host["LogConfig"] = json!({
                "Type": logging.get("driver").and_then(text).unwrap_or_default(),
                "Config": options.collect::<Map<_, _>>(),
            });
        }
        host
    }

    fn port_bindings(&self) -> Value {
        let mut bindings = Map::new();
        for port in &self.ports {
            let Some(published) = port.published else {
                continue;
            };
            let key = format!("{}/{}", port.target, port.protocol);
            let number = match published {
                0 => String::new(),
                number => number.to_string(),
            };
            let entry = bindings.entry(key).or_insert_with(|| json!([]));
            if let Some(list) = entry.as_array_mut() {
                list.push(json!({ "HostIp": port.address, "HostPort": number }));
            }
        }
        Value::Object(bindings)
    }

    fn restart_policy(&self) -> Value {
        let (name, count) = self.restart.split_once(':').unwrap_or((&self.restart, "0"));
        json!({ "Name": name, "MaximumRetryCount": count.parse::<u32>().unwrap_or(0) })
    }
}

fn health(check: &Value) -> Value {
    let test = match check.get("test") {
        _ if check.get("disable") == Some(&json!(true)) => json!(["NONE"]),
        Some(Value::String(line)) => json!(["CMD-SHELL", line]),
        Some(list) => list.clone(),
        None => Value::Null,
    };
    let mut health = json!({});
    if !test.is_null() {
        health["Test"] = test;
    }
    for (key, name) in [
        ("interval", "Interval"),
        ("timeout", "Timeout"),
        ("start_period", "StartPeriod"),
    ] {
        if let Some(span) = check.get(key).and_then(text) {
            health[name] = json!(nanoseconds(&span));
        }
    }
    if let Some(retries) = check.get("retries").and_then(Value::as_i64) {
        health["Retries"] = json!(retries);
    }
    health
}

/// `host[:container[:rwm]]`
fn device(text: &str) -> Value {
    let mut parts = text.split(':');
    let host = parts.next().unwrap_or_default();
    let inside = parts.next().unwrap_or(host);
    let may = parts.next().unwrap_or("rwm");
    json!({ "PathOnHost": host, "PathInContainer": inside, "CgroupPermissions": may })
}

fn ulimit(name: &str, limit: &Value) -> Value {
    let field = |key: &str| limit.get(key).or(Some(limit)).and_then(Value::as_i64);
    json!({ "Name": name, "Hard": field("hard"), "Soft": field("soft") })
}

/// `1m30s` → 90,000,000,000
fn nanoseconds(text: &str) -> i64 {
    let mut total = 0;
    let mut rest = text;
    while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()) {
        let number = rest[..digits].parse::<i64>().unwrap_or(0);
        let after = &rest[digits..];
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        total += number
            * match &after[..end] {
                "h" => 3_600_000_000_000,
                "m" => 60_000_000_000,
                "s" => 1_000_000_000,
                "ms" => 1_000_000,
                "us" => 1_000,
                _ => 1,
            };
        rest = &after[end..];
    }
    total
}

/// `64m` → 67,108,864
fn bytes(text: &str) -> i64 {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits.parse::<i64>().unwrap_or(0);
    let unit = text[digits.len()..].to_ascii_lowercase();
    match unit.trim_end_matches('b') {
        "k" => number << 10,
        "m" => number << 20,
        "g" => number << 30,
        _ => number,
    }
}
