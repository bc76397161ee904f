//! Limits and other settings of a container that differ from the text, as after `docker update` (B01).

use composefile::schema::SERVICE;
use serde_json::Value;

use crate::{compose::Service, model::Container};

/// A limit: its name, its field of `HostConfig`, and its key in the text.
struct Limit(&'static str, &'static str, &'static str);

const LIMITS: [Limit; 15] = [
    Limit("memory limit", "Memory", "mem_limit"),
    Limit("memory reservation", "MemoryReservation", "mem_reservation"),
    Limit("swap limit", "MemorySwap", "memswap_limit"),
    Limit("memory swappiness", "MemorySwappiness", "mem_swappiness"),
    Limit("CPU limit", "NanoCpus", "cpus"),
    Limit("CPU shares", "CpuShares", "cpu_shares"),
    Limit("CPU quota", "CpuQuota", "cpu_quota"),
    Limit("CPU period", "CpuPeriod", "cpu_period"),
    Limit("CPU set", "CpusetCpus", "cpuset"),
    // Compose has no key for these two.
    Limit("memory nodes", "CpusetMems", ""),
    Limit("kernel memory limit", "KernelMemory", ""),
    Limit("CPU real-time period", "CpuRealtimePeriod", "cpu_rt_period"),
    Limit(
        "CPU real-time runtime",
        "CpuRealtimeRuntime",
        "cpu_rt_runtime",
    ),
    Limit("process limit", "PidsLimit", "pids_limit"),
    Limit("block I/O weight", "BlkioWeight", "blkio_config.weight"),
];

const RESTART_POLICY: &str = "restart policy";
const LOGGING: &str = "logging";
const IPC_MODE: &str = "IPC mode";
const MAC_ADDRESS: &str = "MAC address";

/// Where the text may have a limit instead of at its key.
const DEPLOYED: [(&str, &str); 4] = [
    ("mem_limit", "deploy.resources.limits.memory"),
    ("mem_reservation", "deploy.resources.reservations.memory"),
    ("cpus", "deploy.resources.limits.cpus"),
    ("pids_limit", "deploy.resources.limits.pids"),
];

/// The names of the settings that a container has and its successor will not have. `is_private`: whether the engine's default
/// IPC mode is known to be `private`.
pub fn changed(container: &Container, service: &Service, is_private: bool) -> Vec<&'static str> {
    let limits = LIMITS
        .iter()
        .filter(|limit| limit.is_lost(container, service));
    let mut names: Vec<_> = limits.map(|limit| limit.0).collect();
    if restart_policy(service).is_some_and(|given| given != restarts(container)) {
        names.push(RESTART_POLICY);
    }
    let differs = |pointer: &str, path: &[&str], is_default: &dyn Fn(&str) -> bool| {
        let has = container.text(pointer);
        match service.text(path) {
            _ if has.is_empty() => false,
            None => !is_default(has),
            Some(given) => !given.is_empty() && !given.contains(':') && given != has,
        }
    };
    // The default driver of the engine is not known, but nobody logs nothing by default.
    if differs(
        "/HostConfig/LogConfig/Type",
        &["logging", "driver"],
        &|has| has != "none",
    ) {
        names.push(LOGGING);
    }
    let is_default = |has: &str| has == "private" || has == "shareable" && !is_private;
    if differs("/HostConfig/IpcMode", &["ipc"], &is_default) {
        names.push(IPC_MODE);
    }
    // N32
    if let Some(address) = service.text(&["mac_address"])
        && container.is_running()
        && !container.has_mac_address(&address)
    {
        names.push(MAC_ADDRESS);
    }
    names
}

/// The name of the limit in this field of `HostConfig`, if it is one.
pub fn name(field: &str) -> Option<&'static str> {
    match field {
        "RestartPolicy" => Some(RESTART_POLICY),
        "LogConfig" => Some(LOGGING),
        "IpcMode" => Some(IPC_MODE),
        "MacAddress" => Some(MAC_ADDRESS),
        _ => LIMITS
            .iter()
            .find(|limit| limit.1 == field)
            .map(|one| one.0),
    }
}

/// The key of a service in a Compose file that sets this field of `Config` or `HostConfig`, if it is known.
pub fn compose_key(field: &str) -> Option<String> {
    let listed = match field {
        "CgroupnsMode" => "cgroup",
        "DnsOptions" => "dns_opt",
        "OpenStdin" => "stdin_open",
        "PidMode" => "pid",
        "ReadonlyRootfs" => "read_only",
        "StopTimeout" => "stop_grace_period",
        "UTSMode" => "uts",
        _ => "",
    };
    let mut key = listed.to_owned();
    for letter in field.chars().filter(|_| listed.is_empty()) {
        if letter.is_ascii_uppercase() && !key.is_empty() {
            key.push('_');
        }
        key.push(letter.to_ascii_lowercase());
    }
    SERVICE.since(&key).map(|_| key)
}

impl Limit {
    /// Whether a container has a limit that the text does not give it.
    fn is_lost(&self, container: &Container, service: &Service) -> bool {
        let has = match container.at(&format!("/HostConfig/{}", self.1)) {
            Some(Value::Number(number)) if !matches!(number.as_i64(), Some(0 | -1)) => {
                number.to_string()
            }
            // A set of CPUs or memory nodes: `0` is one.
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            _ => return false,
        };
        let given = |key: &str| service.text(&key.split('.').collect::<Vec<_>>());
        let deployed = DEPLOYED.iter().find(|(own, _)| *own == self.2);
        let given = given(self.2).or_else(|| given(deployed?.1));
        match given {
            None => !self.is_default(container, &has),
            Some(text) => self.read(&text).is_some_and(|after| after != has),
        }
    }

    /// A value of the text as inspect shows it; `None` for one that cannot be parsed: it is not compared.
    fn read(&self, text: &str) -> Option<String> {
        match self.1 {
            "NanoCpus" => Some(format!("{:.0}", text.parse::<f64>().ok()? * 1e9)),
            "CpusetCpus" | "CpusetMems" | "KernelMemory" => Some(text.to_owned()),
            _ => Some(text.parse::<i64>().ok()?.to_string()),
        }
    }

    /// The engine itself sets the swap limit to twice the memory limit.
    fn is_default(&self, container: &Container, has: &str) -> bool {
        let memory = container.at("/HostConfig/Memory").and_then(Value::as_u64);
        self.1 == "MemorySwap"
            && memory.is_some_and(|memory| (2 * u128::from(memory)).to_string() == has)
    }
}

/// The restart policy of a container: `no`, `always`, `unless-stopped`, `on-failure` or `on-failure:3`.
fn restarts(container: &Container) -> String {
    let name = container.text("/HostConfig/RestartPolicy/Name");
    let most = container.at("/HostConfig/RestartPolicy/MaximumRetryCount");
    match (name, most.and_then(Value::as_u64)) {
        ("", _) => "no".to_owned(),
        ("on-failure", Some(most)) if most > 0 => format!("on-failure:{most}"),
        (name, _) => name.to_owned(),
    }
}

/// The restart policy that the text gives; `None` for one without a condition, which is not compared.
fn restart_policy(service: &Service) -> Option<String> {
    let given = service.text(&["restart"]);
    let policy = match given.filter(|policy| !policy.is_empty()) {
        Some(policy) => policy,
        None if has_deployed_policy(service) => deployed_policy(service)?,
        None => "no".to_owned(),
    };
    Some(match policy.strip_suffix(":0") {
        Some(name) => name.to_owned(),
        None if policy == "false" => "no".to_owned(),
        None => policy,
    })
}

fn has_deployed_policy(service: &Service) -> bool {
    let deploy = service.get("deploy");
    deploy.is_some_and(|deploy| deploy["restart_policy"].is_object())
}

/// `deploy.restart_policy` as Compose reads it without Swarm; `None` without a condition.
fn deployed_policy(service: &Service) -> Option<String> {
    let given = |key| service.text(&["deploy", "restart_policy", key]);
    let condition = given("condition")?;
    Some(match (condition.as_str(), given("max_attempts")) {
        ("none", _) => "no".to_owned(),
        ("any", _) => "always".to_owned(),
        ("on-failure", Some(attempts)) => format!("on-failure:{attempts}"),
        _ => condition,
    })
}
