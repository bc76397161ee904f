//! Settings that inspect shows as Compose prints them, such as the user and the command, and that differ from the text (B38).

use composefile::path::clean;
use serde_json::Value;

use crate::{
    compose::Service,
    model::{Container, is_short_id, is_unset},
    plan::Facts,
};

/// A setting: where inspect shows it, and its key in the text.
const SETTINGS: [(&str, &str); 24] = [
    ("/Config/Cmd", "command"),
    ("/Config/Domainname", "domainname"),
    ("/Config/Entrypoint", "entrypoint"),
    ("/Config/Hostname", "hostname"),
    ("/Config/OpenStdin", "stdin_open"),
    ("/Config/StopSignal", "stop_signal"),
    ("/Config/Tty", "tty"),
    ("/Config/User", "user"),
    ("/Config/WorkingDir", "working_dir"),
    ("/HostConfig/CapAdd", "cap_add"),
    ("/HostConfig/CapDrop", "cap_drop"),
    ("/HostConfig/CgroupParent", "cgroup_parent"),
    ("/HostConfig/Dns", "dns"),
    ("/HostConfig/DnsOptions", "dns_opt"),
    ("/HostConfig/DnsSearch", "dns_search"),
    ("/HostConfig/GroupAdd", "group_add"),
    ("/HostConfig/Init", "init"),
    ("/HostConfig/OomScoreAdj", "oom_score_adj"),
    ("/HostConfig/PidMode", "pid"),
    ("/HostConfig/Privileged", "privileged"),
    ("/HostConfig/ReadonlyRootfs", "read_only"),
    ("/HostConfig/ShmSize", "shm_size"),
    ("/HostConfig/UTSMode", "uts"),
    ("/HostConfig/UsernsMode", "userns_mode"),
];

/// The keys of the settings that a container has otherwise than the service that is sent. What only another image gives it is not
/// one of them.
pub fn changed(facts: &Facts, container: &Container, service: &Service) -> Vec<&'static str> {
    let image = |name: &str| facts.host.image(name);
    let images = (
        image(container.image_id()),
        service.image.as_deref().and_then(image),
    );
    let differ = |(pointer, key): &(&str, &str)| match *key {
        "hostname" => hostname_differs(container, service),
        key => {
            let has = container.at(pointer).and_then(|value| normal(key, value));
            let gets = service.get(key).and_then(|value| normal(key, value));
            match gets {
                // A container in the network of another, or of the host, has the domain of that.
                _ if key == "domainname" && shares_network(container) => false,
                // The IDs of containers, and a mode that Compose resolves to one.
                _ if key == "pid" && container.text(pointer).contains(':') => false,
                Some(Setting::One(mode)) if key == "pid" && mode.contains(':') => false,
                // Podman shows a list as one text.
                Some(gets) if has.as_ref().is_some_and(|has| !has.is_like(&gets)) => false,
                Some(gets) => has != Some(gets),
                None if pointer.starts_with("/Config/") => {
                    // An entrypoint without a command is started without that of the image.
                    let is_reset = key == "command" && service.get("entrypoint").is_some();
                    let of = |image: &Value| normal(key, image.pointer(pointer)?);
                    let (Some(old), Some(new)) = images else {
                        return false;
                    };
                    has != of(old).filter(|_| !is_reset) && has != of(new).filter(|_| !is_reset)
                }
                None => has.is_some(),
            }
        }
    };
    let changed = SETTINGS.iter().filter(|setting| differ(setting));
    let mut keys: Vec<&str> = changed.map(|(_, key)| *key).collect();
    if labels_differ(container, service, images) {
        keys.push("labels");
    }
    keys
}

/// A value as it takes effect.
#[derive(PartialEq, Eq)]
enum Setting {
    One(String),
    List(Vec<String>),
}

impl Setting {
    fn is_like(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::One(_), Self::One(_)) | (Self::List(_), Self::List(_))
        )
    }
}

/// `None` for a value that is not set, or that has its default.
fn normal(key: &str, value: &Value) -> Option<Setting> {
    let text = |value: &Value| {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match key {
            "cap_add" | "cap_drop" => {
                let name = text.to_ascii_uppercase();
                name.trim_start_matches("CAP_").to_owned()
            }
            "working_dir" => clean(&text),
            _ => text,
        }
    };
    if is_unset(value) {
        return None;
    }
    if let Value::Array(items) = value {
        let mut items: Vec<String> = items.iter().map(text).collect();
        if matches!(key, "cap_add" | "cap_drop" | "group_add") {
            items.sort();
        }
        return Some(Setting::List(items));
    }
    let text = text(value);
    let is_default = match key {
        "oom_score_adj" => text == "0",
        // 64 MB.
        "shm_size" => text == "67108864",
        "stop_signal" => matches!(text.as_str(), "SIGTERM" | "15"),
        _ => text.is_empty(),
    };
    (!is_default).then_some(Setting::One(text))
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

/// Whether the labels differ from those of the service and of its image.
fn labels_differ(
    container: &Container,
    service: &Service,
    (old, new): (Option<&Value>, Option<&Value>),
) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return false;
    };
    let given = service.get("labels").and_then(Value::as_object);
    let is_of = |image: &Value| {
        let image = Container(image.clone());
        let mut expected = image.labels();
        let given = given.into_iter().flatten();
        expected.extend(given.map(|(name, value)| (name.as_str(), value)));
        expected == container.labels()
    };
    service.get("label_file").is_none() && !is_of(old) && !is_of(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_capability_is_the_same_in_each_spelling() {
        let [listed, shown] = [
            json!(["cap_sys_time", "CHOWN"]),
            json!(["CAP_CHOWN", "CAP_SYS_TIME"]),
        ];
        assert!(normal("cap_add", &listed) == normal("cap_add", &shown));
    }
}
