//! The settings of a container that its successor will have in another way: limits, as after `docker update` (B01), and what the files
//! change, such as the user and the command (B38).

use serde_json::{Value, json};

use crate::{
    compose::Service,
    model::{Container, ContainerSetting, SETTINGS, effective, given_labels, is_short_id},
    plan::Facts,
};

/// Limits, which `docker update` changes. An engine drops those that its kernel does not support: what a container lacks is not
/// compared.
const LIMITS: &str = "BlkioWeight CpuPeriod CpuQuota CpuRealtimePeriod CpuRealtimeRuntime CpuShares CpusetCpus CpusetMems KernelMemory Memory \
    MemoryReservation MemorySwap MemorySwappiness NanoCpus OomKillDisable PidsLimit";

/// Other settings that can change although the files have not.
const OF_CONTAINER: [&str; 4] = ["IpcMode", "LogConfig", "MacAddress", "RestartPolicy"];

/// Settings that the engine may give a container, or take from it, by itself.
const OF_ENGINE: [&str; 4] = ["Annotations", "CgroupnsMode", "Runtime", "Ulimits"];

/// Where the text may have a limit instead of at its key.
const DEPLOYED: [(&str, &str); 4] = [
    ("mem_limit", "deploy.resources.limits.memory"),
    ("mem_reservation", "deploy.resources.reservations.memory"),
    ("cpus", "deploy.resources.limits.cpus"),
    ("pids_limit", "deploy.resources.limits.pids"),
];

/// The names of the settings that change: those that the user edited, in the files of a container that was started by hand (`is_edited`)
/// or in the text that Portainer deployed, and those that are reset to the text. A migration compares its texts instead, and resets
/// what is not in them.
pub fn changed(
    facts: &Facts,
    container: &Container,
    service: &Service,
    is_edited: bool,
) -> (Vec<&'static str>, Vec<&'static str>) {
    let of = |service| Comparison {
        facts,
        container,
        service,
    };
    let deployed = facts.projects.deployed.as_ref();
    let deployed = deployed
        .and_then(|deployed| deployed.service(&service.name))
        .map(of);
    let (mut edited, mut reset) = (Vec::new(), Vec::new());
    for setting in SETTINGS
        .iter()
        .filter(|setting| of(service).differs(setting))
    {
        let is_reset = is_limit(setting) || OF_CONTAINER.contains(&setting.field);
        let is_edited = is_edited || deployed.as_ref().is_some_and(|one| !one.differs(setting));
        match (is_reset, is_edited) {
            (true, false) => reset.push(setting.name()),
            (true, true) => edited.push(setting.name()),
            (false, _) if facts.is_adoption() => edited.push(setting.name()),
            (false, _) => {}
        }
    }
    (edited, reset)
}

/// A container, and the service that replaces it.
struct Comparison<'a, 'f> {
    facts: &'a Facts<'f>,
    container: &'a Container,
    service: &'a Service,
}

impl<'a> Comparison<'a, '_> {
    fn differs(&self, setting: &ContainerSetting) -> bool {
        let (container, service, field) = (self.container, self.service, setting.field);
        let has = setting.at(&container.0);
        let text = has.and_then(Value::as_str).unwrap_or_default();
        match field {
            "Hostname" => hostname_differs(container, service),
            "Labels" => self.labels_differ(),
            // N32
            "MacAddress" => service.text(&["mac_address"]).is_some_and(|address| {
                container.is_running() && !container.has_mac_address(&address)
            }),
            // A container in the network of another, or of the host, has the domain of that.
            "Domainname" if shares_network(container) => false,
            // The IDs of containers, and a mode that Compose resolves to one.
            "PidMode" | "IpcMode" if text.contains(':') => false,
            "PidMode" | "IpcMode"
                if (service.text(&[setting.key])).is_some_and(|mode| mode.contains(':')) =>
            {
                false
            }
            "IpcMode" => self.ipc_mode_differs(text),
            "LogConfig" => self.logging_differs(setting),
            _ => {
                let has = has.and_then(|value| effective(field, value));
                let is_none = has.as_ref().is_none_or(|has| *has == -1);
                if is_limit(setting) && is_none {
                    return false;
                }
                let gets = self.gets(setting);
                gets.is_some_and(|all| all.iter().all(|gets| is_other(has.as_ref(), gets.as_ref())))
            }
        }
    }

    /// What a new container may have, by the text and by the images of this one and of the new one. `None` if that is unknown.
    fn gets(&self, setting: &ContainerSetting) -> Option<Vec<Option<Value>>> {
        let field = setting.field;
        let given = self.given(setting)?;
        let of_image = |image: &Value| {
            // An entrypoint without a command is started without that of the image.
            let is_reset = field == "Cmd" && self.service.get("entrypoint").is_some();
            setting
                .at(image)
                .filter(|_| !is_reset)
                .cloned()
                .unwrap_or_default()
        };
        let is_completed = matches!(field, "ExposedPorts" | "Healthcheck");
        let all = if given.is_null() && OF_ENGINE.contains(&field) {
            return None;
        } else if setting.section == "/Config" && (given.is_null() || is_completed) {
            let [old, new] = self.images();
            let both = [old?, new?].into_iter().map(of_image);
            both.map(|image| with(image, &given)).collect()
        } else {
            vec![given]
        };
        Some(all.iter().map(|value| effective(field, value)).collect())
    }

    /// What the text gives, as an inspect object shows it: `null` for nothing. `None` if it cannot be parsed.
    fn given(&self, setting: &ContainerSetting) -> Option<Value> {
        let service = self.service;
        let at = |path: &str| {
            let (key, below) = path.split_once('.').unwrap_or((path, ""));
            let below = below.split('.').filter(|key| !key.is_empty());
            below.fold(service.get(key), |value, key| value?.get(key))
        };
        let deployed = DEPLOYED.iter().find(|(own, _)| *own == setting.key);
        let value = at(setting.key).or_else(|| at(deployed?.1));
        match (setting.field, value) {
            ("RestartPolicy", _) => restart_policy(service),
            // The engine itself sets it to twice the memory limit.
            ("MemorySwap", None) => {
                let memory = self
                    .container
                    .at("/HostConfig/Memory")
                    .and_then(Value::as_i64);
                Some(memory.map(|memory| memory.saturating_mul(2)).into())
            }
            // Those of ports are said of the ports.
            ("ExposedPorts", given) => {
                let mut exposed = given.map_or(Some(json!({})), setting.shown)?;
                for (port, _) in self.container.fields("/HostConfig/PortBindings") {
                    exposed[port] = json!({});
                }
                Some(exposed)
            }
            (_, None) => Some(Value::Null),
            // Docker before 25 drops it.
            ("Healthcheck", Some(value)) => {
                let mut check = (setting.shown)(value)?;
                let has = self.container.at("/Config/Healthcheck/StartInterval");
                if has.is_none_or(|has| *has == 0) {
                    check["StartInterval"] = Value::Null;
                }
                Some(check)
            }
            (_, Some(value)) => (setting.shown)(value),
        }
    }

    /// The images of the container and of the service.
    fn images(&self) -> [Option<&'a Value>; 2] {
        let image = |name: &str| self.facts.host.image(name);
        let new = self.service.image.as_deref();
        [image(self.container.image_id()), new.and_then(image)]
    }

    /// Whether the labels differ from those of the service and of its image.
    fn labels_differ(&self) -> bool {
        let (container, service) = (self.container, self.service);
        let [Some(old), Some(new)] = self.images() else {
            return false;
        };
        let given = given_labels(service.get("labels"));
        let is_of = |image: &Value| {
            let mut expected = given_labels(image.pointer("/Config/Labels"));
            expected.extend(&given);
            expected == container.labels()
        };
        service.get("label_file").is_none() && !is_of(old) && !is_of(new)
    }

    /// Without the key, the engine's default applies, which may be that of another container.
    fn ipc_mode_differs(&self, has: &str) -> bool {
        match self.service.text(&["ipc"]) {
            _ if has.is_empty() => false,
            Some(given) => !given.is_empty() && given != has,
            None if has == "shareable" => {
                let mut all = self.facts.host.inspected();
                all.any(|container| container.text("/HostConfig/IpcMode") == "private")
            }
            None => has != "private",
        }
    }

    /// The default driver of the engine is not known, nor its options, but nobody logs nothing by default.
    fn logging_differs(&self, setting: &ContainerSetting) -> bool {
        let has = setting.at(&self.container.0).unwrap_or(&Value::Null);
        let given = self.given(setting).unwrap_or_default();
        if given.is_null() {
            return has["Type"] == "none";
        }
        let options = given["Config"].as_object().into_iter().flatten();
        let driver = options.map(|(name, value)| (value, &has["Config"][name]));
        let mut all = driver.chain([(&given["Type"], &has["Type"])]);
        !has.is_null() && all.any(|(given, has)| !given.is_null() && given != has)
    }
}

fn is_limit(setting: &ContainerSetting) -> bool {
    let mut limits = LIMITS.split_whitespace();
    limits.any(|field| field == setting.field)
}

/// A value of an image with what the text gives: its own fields come first.
fn with(mut image: Value, given: &Value) -> Value {
    if !image.is_object() && given.is_object() {
        image = json!({});
    }
    let given = given.as_object().into_iter().flatten();
    for (field, value) in given.filter(|(_, value)| !value.is_null()) {
        image[field] = value.clone();
    }
    image
}

/// Whether two values differ. Podman shows a list as one text: it is not compared.
fn is_other(one: Option<&Value>, other: Option<&Value>) -> bool {
    let is_list = |value: Option<&Value>| value.map(Value::is_array);
    let are_alike = is_list(one)
        .zip(is_list(other))
        .is_none_or(|(one, other)| one == other);
    are_alike && one != other
}

fn shares_network(container: &Container) -> bool {
    let mode = container.text("/HostConfig/NetworkMode");
    mode == "host" || mode.contains(':')
}

/// A container without a hostname gets its ID. One in the network of the host has the hostname of that.
fn hostname_differs(container: &Container, service: &Service) -> bool {
    if let Some(given) = service.text(&["hostname"]) {
        return container.text("/Config/Hostname") != given;
    }
    let modes = ["/HostConfig/NetworkMode", "/HostConfig/UTSMode"];
    let is_of_host = modes.iter().any(|mode| container.text(mode) == "host");
    let chosen = container.hostname().filter(|name| !is_short_id(name));
    !is_of_host && chosen.is_some()
}

/// The restart policy that the text gives, also in `deploy`, as Compose reads it without Swarm; `None` for one without a condition,
/// which is not compared.
fn restart_policy(service: &Service) -> Option<Value> {
    let given = service
        .text(&["restart"])
        .filter(|policy| !policy.is_empty());
    let deploy = service
        .get("deploy")
        .map(|deploy| &deploy["restart_policy"]);
    let deployed = deploy.filter(|policy| policy.is_object());
    let (policy, most) = match (&given, deployed) {
        (Some(policy), _) => policy.split_once(':').unwrap_or((policy, "0")),
        (None, Some(policy)) => {
            let condition = policy["condition"].as_str()?;
            let most = policy["max_attempts"].as_u64().unwrap_or(0);
            return Some(json!({
                "Name": match condition {
                    "none" => "no",
                    "any" => "always",
                    other => other,
                },
                "MaximumRetryCount": if condition == "on-failure" { most } else { 0 },
            }));
        }
        (None, None) => ("no", "0"),
    };
    let name = if policy == "false" { "no" } else { policy };
    let most = most.parse::<u64>().unwrap_or(0);
    Some(json!({ "Name": name, "MaximumRetryCount": most }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{
        Sent,
        tests::{read, world},
    };

    /// What changes in a container with these settings if its service gets this line.
    fn changes(section: &str, has: Value, line: &str) -> Vec<&'static str> {
        let text = format!("services:\n  web:\n    image: x\n    {line}\n");
        let project = read(Sent::new(&text, &[])).expect("a project");
        let mut container = json!({"Image": "sha256:x", "Config": {}, "HostConfig": {}});
        container[section] = has;
        let (container, service) = (Container(container), &project.services[0]);
        world(&text).with_facts(|facts| {
            let of = Comparison {
                facts,
                container: &container,
                service,
            };
            let all = SETTINGS.iter().filter(|setting| of.differs(setting));
            all.map(ContainerSetting::name).collect()
        })
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn b38_what_a_container_has_is_compared_as_the_engine_shows_it() {
        for (section, has, same, other, name) in [
            (
                "HostConfig",
                json!({"Sysctls": {"net.a": "1"}}),
                "sysctls: {net.a: 1}",
                "sysctls: {net.a: 2}",
                "sysctls",
            ),
            (
                "HostConfig",
                json!({"ExtraHosts": ["b:1.2.3.4"]}),
                "extra_hosts: ['b=1.2.3.4']",
                "",
                "extra_hosts",
            ),
            (
                "HostConfig",
                json!({"Tmpfs": {"/a": "size=1m"}}),
                "tmpfs: '/a:size=1m'",
                "tmpfs: /a",
                "tmpfs",
            ),
            (
                "HostConfig",
                json!({"ShmSize": 1 << 20}),
                "shm_size: 1m",
                "",
                "shm_size",
            ),
            (
                "HostConfig",
                json!({"SecurityOpt": ["a:b", "label=disable"]}),
                "security_opt: ['a:b']",
                "",
                "security_opt",
            ),
            (
                "HostConfig",
                json!({"OomScoreAdj": 0, "Init": false}),
                "oom_score_adj: 0",
                "oom_score_adj: 5",
                "oom_score_adj",
            ),
            (
                "HostConfig",
                json!({"Ulimits": [{"Name": "nofile", "Soft": 1, "Hard": 2}]}),
                "ulimits: {nofile: {soft: 1, hard: 2}}",
                "ulimits: {nofile: 2}",
                "ulimits",
            ),
            (
                "HostConfig",
                json!({"Devices": [{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": "rwm"}]}),
                "devices: ['/dev/a:/dev/b']",
                "devices: ['/dev/a']",
                "devices",
            ),
            (
                "HostConfig",
                json!({"LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "of-engine": "1"}}}),
                "logging: {options: {max-size: 10m}}",
                "logging: {options: {max-size: 20m}}",
                "logging",
            ),
            (
                "Config",
                json!({"StopTimeout": 90}),
                "stop_grace_period: 1m30s",
                "stop_grace_period: 5s",
                "stop_grace_period",
            ),
            (
                "Config",
                json!({"StopTimeout": 10}),
                "",
                "stop_grace_period: 5s",
                "stop_grace_period",
            ),
            (
                "Config",
                json!({"WorkingDir": "/a/"}),
                "working_dir: /a",
                "working_dir: /b",
                "working directory",
            ),
            (
                "Config",
                json!({"ExposedPorts": {"80/tcp": {}}}),
                "expose: [80]",
                "expose: [81]",
                "expose",
            ),
            (
                "Config",
                json!({"Healthcheck": {"Test": ["CMD", "a"], "Interval": 1_500_000_000, "Retries": 3}}),
                "healthcheck: {test: [CMD, a], interval: 1.5s, retries: 3, start_interval: 1s}",
                "healthcheck: {test: [CMD, a], interval: 5s, retries: 3}",
                "health check",
            ),
        ] {
            assert_eq!(changes(section, has.clone(), same), [""; 0], "{same}");
            assert_eq!(changes(section, has, other), [name], "{other}");
        }
        // What an engine or its configuration may have done.
        let limits = json!({"Name": "nofile", "Soft": 1, "Hard": 2});
        let by_engine = json!({"Ulimits": [limits], "Runtime": "x", "Memory": 0, "MemorySwap": -1});
        assert_eq!(changes("HostConfig", by_engine, "mem_limit: 1m"), [""; 0]);
    }
}
