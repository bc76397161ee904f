//! Settings of a container that differ from the text, as after the Compose file was edited (B01). Values are never
//! shown: a command may contain a secret.

use std::collections::{BTreeMap, BTreeSet};

use composefile::{document::Node, path::clean, services::one_or_many};
use serde_json::Value;

use crate::model::compose_label;

use crate::{
    plan::{
        Facts,
        facts::services::{Given, SentService},
        losses::reported::Reported,
    },
    snapshot::Inspected,
};

/// Labels that programs other than Compose add to containers.
const FOREIGN_LABELS: [&str; 4] = [
    "desktop.docker.io/",
    "io.podman.",
    "io.portainer.",
    "PODMAN_",
];

/// A key with one value.
struct Setting {
    key: &'static str,
    /// Where inspect has it.
    pointer: &'static str,
    /// How both values read; `None` for a value that cannot be compared.
    read: fn(&str) -> Option<String>,
    default: Default,
}

/// The value of a key that the text does not give.
enum Default {
    /// One of these.
    OneOf(&'static [&'static str]),
    /// The image's, at the same pointer.
    Image,
}

const fn text(key: &'static str, pointer: &'static str, default: Default) -> Setting {
    Setting {
        key,
        pointer,
        read: |text| Some(text.to_owned()),
        default,
    }
}

const fn flag(key: &'static str, pointer: &'static str) -> Setting {
    Setting {
        key,
        pointer,
        read: boolean,
        default: Default::OneOf(&["", "false"]),
    }
}

const NONE: Default = Default::OneOf(&[""]);
const PRIVATE: Default = Default::OneOf(&["", "private"]);

const SETTINGS: [Setting; 13] = [
    text("user", "/Config/User", Default::Image),
    Setting {
        key: "working_dir",
        pointer: "/Config/WorkingDir",
        read: |path| Some(clean(path)),
        default: Default::Image,
    },
    text("stop_signal", "/Config/StopSignal", Default::Image),
    text("domainname", "/Config/Domainname", NONE),
    text("pid", "/HostConfig/PidMode", PRIVATE),
    text(
        "ipc",
        "/HostConfig/IpcMode",
        Default::OneOf(&["", "private", "shareable"]),
    ),
    text("uts", "/HostConfig/UTSMode", PRIVATE),
    text("userns_mode", "/HostConfig/UsernsMode", NONE),
    flag("privileged", "/HostConfig/Privileged"),
    flag("read_only", "/HostConfig/ReadonlyRootfs"),
    flag("init", "/HostConfig/Init"),
    flag("tty", "/Config/Tty"),
    flag("stdin_open", "/Config/OpenStdin"),
];

/// A key with a list whose order does not matter, where inspect has it, and how an item reads.
type List = (&'static str, &'static str, fn(&str) -> String);

const LISTS: [List; 6] = [
    ("cap_add", "/HostConfig/CapAdd", capability),
    ("cap_drop", "/HostConfig/CapDrop", capability),
    ("group_add", "/HostConfig/GroupAdd", str::to_owned),
    ("dns", "/HostConfig/Dns", str::to_owned),
    ("dns_search", "/HostConfig/DnsSearch", str::to_owned),
    ("devices", "/HostConfig/Devices", device),
];

/// The keys with another value in the text than in the container, as far as that is certain.
pub fn changed(
    facts: &Facts,
    container: Inspected,
    service: &SentService,
    reported: Reported,
) -> Vec<&'static str> {
    if service.is_partial() {
        return Vec::new();
    }
    let compared = Compared {
        facts,
        container,
        service,
        image: facts
            .images
            .get(container.image_id())
            .and_then(Option::as_ref),
    };
    let mut keys = compared.commands();
    keys.extend(compared.hostname().then_some("hostname"));
    keys.extend(compared.network_mode().then_some("network_mode"));
    let settings = SETTINGS.iter().filter(|one| compared.setting(one));
    keys.extend(settings.map(|one| one.key));
    let lists = LISTS.into_iter().filter(|&one| compared.list(one));
    keys.extend(lists.map(|(key, ..)| key));
    keys.extend(compared.labels().then_some("labels"));
    keys.retain(|key| !service.nodes(key).any(|node| reported.names(service, node)));
    keys
}

struct Compared<'a, 'f, 'r, 'd, 'x> {
    facts: &'a Facts<'f>,
    container: Inspected<'a>,
    service: &'a SentService<'r, 'd, 'x>,
    /// The image that the container runs.
    image: Option<&'a Value>,
}

impl Compared<'_, '_, '_, '_, '_> {
    /// `entrypoint` and `command`. A service with an entrypoint does not get the image's command.
    fn commands(&self) -> Vec<&'static str> {
        let entrypoint = self.service.node(&["entrypoint"]);
        let command = self.service.node(&["command"]);
        let of_image = |pointer| strings(self.image?.pointer(pointer));
        let after_entrypoint = match entrypoint {
            Some(node) => self.arguments(node),
            None => of_image("/Config/Entrypoint"),
        };
        let after_command = match (command, entrypoint) {
            (Some(node), _) => self.arguments(node),
            (None, Some(_)) => Some(Vec::new()),
            (None, None) => of_image("/Config/Cmd"),
        };
        let differs = |pointer, after: Option<Vec<String>>| {
            let now = strings(self.container.0.pointer(pointer));
            matches!((now, after), (Some(now), Some(after)) if now != after)
        };
        let entrypoint = differs("/Config/Entrypoint", after_entrypoint).then_some("entrypoint");
        let command = differs("/Config/Cmd", after_command).then_some("command");
        entrypoint.into_iter().chain(command).collect()
    }

    /// The arguments of a command; `None` if they are unknown or empty, which resets the image's.
    fn arguments(&self, node: Node<'_>) -> Option<Vec<String>> {
        let stack = self.service.stack;
        let arguments = if node.is_sequence() {
            let items = node.items().map(|item| stack.text(item).known());
            items.collect()
        } else {
            words(&stack.text(node).known()?)
        };
        arguments.filter(|arguments: &Vec<String>| !arguments.is_empty())
    }

    fn setting(&self, setting: &Setting) -> bool {
        let now = match self.container.at(setting.pointer) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(is)) => is.to_string(),
            Some(_) => return false,
        };
        let node = self.service.node(&[setting.key]);
        match (
            node.map(|node| self.service.stack.text(node)),
            &setting.default,
        ) {
            (Some(Given::Unknown), _) => false,
            (Some(Given::Is(after)), _) if !after.is_empty() => {
                if is_sharing(&now) || is_sharing(&after) {
                    return self.shares(&now, &after).unwrap_or(false);
                }
                differs((setting.read)(&now), (setting.read)(&after))
            }
            (_, Default::OneOf(defaults)) => !defaults.contains(&now.as_str()),
            (_, Default::Image) => self.image.is_some_and(|image| {
                let default = image.pointer(setting.pointer).and_then(Value::as_str);
                let default = (setting.read)(default.unwrap_or_default());
                // Older engines write the default signal.
                now != "SIGTERM" && differs((setting.read)(&now), default)
            }),
        }
    }

    /// By default it is the host's in the host's namespace.
    fn hostname(&self) -> bool {
        let is_hosts = ["/HostConfig/NetworkMode", "/HostConfig/UTSMode"]
            .iter()
            .any(|pointer| self.container.text(pointer) == "host");
        match self.service.given(&["hostname"]) {
            Given::Unknown => false,
            Given::Is(after) if !after.is_empty() => {
                self.container.text("/Config/Hostname") != after
            }
            _ => !is_hosts && self.container.hostname().is_some(),
        }
    }

    /// Lost networks are named by themselves.
    fn network_mode(&self) -> bool {
        let now = self.container.text("/HostConfig/NetworkMode");
        let is_listed = self.container.networks().any(|(name, _)| name == now);
        if is_listed || !(is_sharing(now) || matches!(now, "host" | "none")) {
            return false;
        }
        match self.service.given(&["network_mode"]) {
            Given::Unknown => false,
            Given::Is(after) if is_sharing(&after) => self.shares(now, &after).unwrap_or(false),
            Given::Is(after) => after != now,
            Given::No => true,
        }
    }

    /// Whether `after` shares with another container than `now` does; `None` if that is unknown.
    fn shares(&self, now: &str, after: &str) -> Option<bool> {
        let Some(id) = now.strip_prefix("container:") else {
            return is_sharing(after).then_some(true);
        };
        if let Some(service) = after.strip_prefix("service:") {
            let mut own = self.facts.containers?.iter().map(Inspected);
            let shared = own.find(|container| container.id() == id)?;
            return Some(shared.compose_label(self.facts.tool, "service")? != service);
        }
        if let Some(name) = after.strip_prefix("container:") {
            let all = self.facts.others.into_iter().chain(self.facts.listed);
            let named = all.flatten().find(|one| {
                one.names.iter().any(|known| known == name) || one.id.starts_with(name)
            })?;
            return Some(!id.starts_with(&named.id) && !named.id.starts_with(id));
        }
        Some(true)
    }

    fn list(&self, (key, pointer, read): List) -> bool {
        let now = self.container.at(pointer).and_then(Value::as_array);
        let now = now.into_iter().flatten().filter_map(|item| {
            let text = item.as_str().or_else(|| item["PathOnHost"].as_str());
            text.map(read)
        });
        let now: BTreeSet<String> = now.collect();
        let items = self.service.nodes(key).flat_map(one_or_many);
        let after = items.map(|item| {
            let item = item.get("source").unwrap_or(item);
            Some(read(&self.service.stack.text(item).known()?))
        });
        let Some(after) = after.collect::<Option<BTreeSet<String>>>() else {
            return false;
        };
        // Devices may also be requested from a driver, so the container does not list all.
        !now.is_subset(&after) || (key != "devices" && now != after)
    }

    /// The labels that the container has, except those of its image, of Compose and of other programs.
    fn labels(&self) -> bool {
        let (Some(image), Some(after)) = (self.image, self.given_labels()) else {
            return false;
        };
        let of_image = image.pointer("/Config/Labels");
        let compose = compose_label(self.facts.tool, "");
        let now = self
            .container
            .at("/Config/Labels")
            .and_then(Value::as_object);
        now.into_iter().flatten().any(|(name, value)| {
            let is_foreign = FOREIGN_LABELS.iter().any(|prefix| name.starts_with(prefix));
            if is_foreign || name.starts_with(&compose) || name.starts_with("com.docker.compose.") {
                return false;
            }
            match after.get(name) {
                Some(Given::Is(after)) => value.as_str() != Some(after),
                Some(_) => false,
                None => of_image.and_then(|labels| labels.get(name)) != Some(value),
            }
        })
    }

    fn given_labels(&self) -> Option<BTreeMap<String, Given>> {
        if !self.service.label_files().is_empty() {
            return None;
        }
        let stack = self.service.stack;
        let mut found = BTreeMap::new();
        for node in self.service.nodes("labels") {
            for item in node.items() {
                let text = stack.read(item).known()?;
                let (name, value) = text.split_once('=').unwrap_or((&text, ""));
                found.insert(name.to_owned(), Given::Is(value.to_owned()));
            }
            for entry in node.entries() {
                let value = match stack.text(entry.value) {
                    Given::No => Given::Is(String::new()),
                    value => value,
                };
                found.insert(entry.name()?.to_owned(), value);
            }
        }
        Some(found)
    }
}

/// Whether a mode shares the namespace of another container.
fn is_sharing(mode: &str) -> bool {
    mode.starts_with("container:") || mode.starts_with("service:")
}

fn differs(now: Option<String>, after: Option<String>) -> bool {
    matches!((now, after), (Some(now), Some(after)) if now != after)
}

/// A list of texts; `null` is empty, and anything else is unknown.
fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect(),
        Some(_) => None,
    }
}

fn boolean(text: &str) -> Option<String> {
    match text {
        "" | "false" => Some("false".to_owned()),
        "true" => Some("true".to_owned()),
        _ => None,
    }
}

fn capability(name: &str) -> String {
    let name = name.to_uppercase();
    name.strip_prefix("CAP_").unwrap_or(&name).to_owned()
}

fn device(mapping: &str) -> String {
    mapping.split(':').next().unwrap_or_default().to_owned()
}

/// The words of a command as Compose splits it; `None` for a text that is not split by blanks and quotes alone.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            ('\\', None | Some('"')) | ('`' | '(' | ')' | ';' | '&' | '|' | '<' | '>', None) => {
                return None;
            }
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ' | '\t' | '\r' | '\n', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests;
