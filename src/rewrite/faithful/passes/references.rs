//! Blocks on references and contradictions that Compose rejects: a create that fails removes every container of the
//! project (M06), so nothing is sent that is known to fail.
//!
//! Invariant: every Compose from 2.26 to 5.6 rejects what this pass blocks. What a service inherits by `extends` is
//! checked where it is written.
#![deny(clippy::disallowed_methods)]

use std::collections::{HashMap, HashSet};

use composefile::{
    document::Node,
    reader::Reader,
    services::{MountSpec, MountType, Service},
};

use crate::rewrite::faithful::{Blocker, Reason, findings::Findings};

/// The keys of a service whose names are defined in a top-level section, and the noun for messages.
const DEFINED: [(&str, &str); 3] = [
    ("networks", "network"),
    ("secrets", "secret"),
    ("configs", "config"),
];

/// The sections whose members name their content by exactly one of these keys.
const CONTENTS: [(&str, &[&str]); 2] = [
    ("secrets", &["file", "environment"]),
    ("configs", &["file", "environment", "content"]),
];

/// Finds undefined names, contradictions and dependency cycles.
pub(super) fn references<'d>(reader: &Reader<'d, '_>) -> Findings<'d> {
    let mut found = References::new(reader);
    found.extends();
    found.contents();
    for service in found.active.clone() {
        found.resources(service);
        found.image(service);
    }
    found.dependencies();
    Findings {
        blockers: found.blockers,
        ..Findings::default()
    }
}

struct References<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    names: HashSet<&'d str>,
    /// The services that Compose starts.
    active: Vec<Service<'d>>,
    /// The names that each section defines.
    defined: HashMap<&'static str, HashSet<&'d str>>,
    blockers: Vec<Blocker>,
}

impl<'r, 'd, 'a> References<'r, 'd, 'a> {
    fn new(reader: &'r Reader<'d, 'a>) -> Self {
        let services = &reader.services;
        let profiles = reader.here("COMPOSE_PROFILES").unwrap_or_default();
        let profiles: HashSet<&str> = profiles.split(',').map(str::trim).collect();
        let active = services.iter().copied();
        let sections = ["networks", "secrets", "configs", "volumes"];
        let names = |section| {
            let entries = reader.document.get(section).map(Node::entries);
            let names = entries.into_iter().flatten();
            (section, names.filter_map(|entry| entry.name()).collect())
        };
        Self {
            reader,
            names: services.iter().map(|service| service.name).collect(),
            active: active
                .filter(|&service| is_active(reader, service, &profiles))
                .collect(),
            defined: sections.into_iter().map(names).collect(),
            blockers: Vec::new(),
        }
    }

    fn block(&mut self, node: Node<'d>, message: String) {
        let hint = "fix this: Compose rejects the stack as it is";
        let blocker = Blocker::at(node, Reason::Inconsistent, message, hint);
        self.blockers.push(blocker);
    }

    /// A scalar's text after interpolation.
    fn read(&self, node: Node<'d>) -> Option<String> {
        let read = self.reader.read(node.as_str()?).ok()?;
        Some(read.into_owned())
    }

    /// `extends` of an undefined service, or of the service itself.
    fn extends(&mut self) {
        for &service in &self.reader.services {
            if service.node.get("extends").is_none() {
                continue;
            }
            let chain = self.reader.chain(service);
            let Some(last) = chain.first() else { continue };
            let Some(extends) = last.node.get("extends") else {
                continue;
            };
            if extends.get("file").is_some_and(|file| !file.is_null()) {
                continue;
            }
            let node = extends.get("service").unwrap_or(extends);
            let Some(name) = node.as_str().filter(|name| !name.contains('$')) else {
                continue;
            };
            let service = service.name;
            if chain.iter().any(|base| base.name == name) {
                self.block(node, format!("service {service} extends itself"));
            } else if last.name == service {
                let what = format!("service {service} extends undefined service {name}");
                self.block(node, what);
            }
        }
    }

    /// Secrets and configs without content, or with several contents.
    fn contents(&mut self) {
        for (section, keys) in CONTENTS {
            let entries = self.reader.document.get(section).map(Node::entries);
            for entry in entries.into_iter().flatten() {
                let has = |key: &str| entry.value.get(key).is_some();
                let name = entry.name().unwrap_or_default();
                let one = keys.join(", ");
                match keys.iter().filter(|key| has(key)).count() {
                    0 if has("driver") || has("external") => {}
                    0 => self.block(entry.key, format!("{section}.{name} needs one of {one}")),
                    1 => {}
                    _ => {
                        let what = format!("{section}.{name} can have only one of {one}");
                        self.block(entry.key, what);
                    }
                }
            }
        }
    }

    /// Networks, secrets, configs and volumes that the service refers to and no section defines.
    fn resources(&mut self, service: Service<'d>) {
        for (section, what) in DEFINED {
            for (name, node) in self.named(service.node.get(section)) {
                if !(section == "networks" && name == "default") {
                    self.defined(section, what, service, &name, node);
                }
            }
        }
        let mounts = service.node.get("volumes").into_iter();
        for item in mounts.flat_map(Node::items) {
            if let Some(name) = self.volume(item) {
                self.defined("volumes", "volume", service, &name, item);
            }
        }
        let mode = service.node.get("network_mode");
        let mode = mode.and_then(|node| self.read(node)).unwrap_or_default();
        let networks = self.named(service.node.get("networks"));
        if let ([(_, node), ..], false) = (&networks[..], mode.is_empty()) {
            let name = service.name;
            let what = format!("service {name} has both `network_mode` and `networks`");
            self.block(*node, what);
        }
    }

    fn defined(
        &mut self,
        section: &str,
        what: &str,
        service: Service<'d>,
        name: &str,
        node: Node<'d>,
    ) {
        if !self.defined[section].contains(name) {
            let service = service.name;
            let what = format!(
                "service {service} refers to {what} {name}, which `{section}` does not define"
            );
            self.block(node, what);
        }
    }

    /// The named volume of a mount.
    fn volume(&self, item: Node<'d>) -> Option<String> {
        if item.is_mapping() {
            let kind = self.read(item.get("type")?)?;
            let source = self.read(item.get("source")?)?;
            let is_named = MountType::named(&kind) == MountType::Volume && !source.is_empty();
            return is_named.then_some(source);
        }
        let read = self.read(item)?;
        let spec = MountSpec::parse(&read)?;
        let source = spec.source.filter(|_| spec.kind == MountType::Volume)?;
        Some(source.to_owned())
    }

    /// The names in a list of strings or of mappings with a `source`, or the keys of a mapping.
    fn named(&self, node: Option<Node<'d>>) -> Vec<(String, Node<'d>)> {
        let Some(node) = node else { return Vec::new() };
        let listed = node.items().filter_map(|item| {
            let name = item.get("source").unwrap_or(item);
            Some((self.read(name)?, name))
        });
        let mapped = node.entries().into_iter();
        let mapped = mapped.filter_map(|entry| Some((entry.name()?.to_owned(), entry.key)));
        listed.chain(mapped).collect()
    }

    /// A service without an image or a build.
    fn image(&mut self, service: Service<'d>) {
        let chain = self.reader.chain(service);
        let has = |key: &str| chain.iter().any(|base| base.node.get(key).is_some());
        let image = chain
            .iter()
            .rev()
            .find_map(|base| base.node.get("image"))
            .map(|node| self.read(node));
        let is_absent = image.is_none_or(|image| image.is_some_and(|image| image.is_empty()));
        let is_known = chain
            .first()
            .is_some_and(|base| base.node.get("extends").is_none());
        if is_absent && is_known && !has("build") && !has("provider") {
            let name = service.name;
            let what = format!("service {name} has neither an image nor a build");
            self.block(service.node, what);
        }
    }

    /// Dependencies on services that do not start, and dependency cycles.
    fn dependencies(&mut self) {
        let places: HashMap<&str, Service<'d>> =
            self.active.iter().map(|&one| (one.name, one)).collect();
        let mut waiting: HashMap<&str, usize> = HashMap::new();
        let mut dependents: HashMap<&str, Vec<&str>> = HashMap::new();
        for service in self.active.clone() {
            for (name, node, is_required) in self.needed(service) {
                if let Some(other) = places.get(name.as_str()) {
                    *waiting.entry(service.name).or_default() += 1;
                    dependents.entry(other.name).or_default().push(service.name);
                    continue;
                }
                let service = service.name;
                let is_known = self.names.contains(name.as_str());
                if !is_known {
                    let what = format!("service {service} depends on undefined service {name}");
                    self.block(node, what);
                } else if is_required {
                    let what =
                        format!("service {service} depends on {name}, whose profile is not active");
                    self.block(node, what);
                }
            }
        }
        let names = self.active.iter().map(|service| service.name);
        let mut free: Vec<&str> = names.filter(|name| !waiting.contains_key(name)).collect();
        while let Some(done) = free.pop() {
            for name in dependents.get(done).into_iter().flatten() {
                let Some(left) = waiting.get_mut(name) else {
                    continue;
                };
                *left -= 1;
                if *left == 0 {
                    waiting.remove(name);
                    free.push(name);
                }
            }
        }
        let first = self
            .active
            .iter()
            .find(|one| waiting.contains_key(one.name));
        if let Some(service) = first.copied() {
            let what = format!("dependency cycle: service {} cannot start", service.name);
            self.block(service.node, what);
        }
    }

    /// The services that a service depends on, the nodes that name them, and whether Compose fails if the profile
    /// of the other service is not active.
    fn needed(&self, service: Service<'d>) -> Vec<(String, Node<'d>, bool)> {
        let get = |key| service.node.get(key);
        let mut found = Vec::new();
        for (name, node) in self.named(get("depends_on")) {
            let required = get("depends_on").and_then(|all| all.get(&name)?.get("required"));
            found.push((name, node, required.and_then(Node::as_bool) != Some(false)));
        }
        let front = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
        for (text, node) in self.named(get("links")) {
            let has_alias = text.matches(':').count() == 1;
            found.push((if has_alias { front(&text) } else { text }, node, true));
        }
        for (text, node) in self.named(get("volumes_from")) {
            if !text.starts_with("container:") {
                found.push((front(&text), node, true));
            }
        }
        for key in ["network_mode", "ipc", "pid"] {
            let Some(node) = get(key) else { continue };
            let text = self.read(node).unwrap_or_default();
            if let Some(name) = text.strip_prefix("service:") {
                found.push((name.to_owned(), node, true));
            }
        }
        // `depends_on` takes precedence.
        let mut seen = HashSet::new();
        found.retain(|(name, _, _)| seen.insert(name.clone()));
        found
    }
}

/// Whether Compose starts a service: it has no profile, or an active one.
fn is_active<'d>(reader: &Reader<'d, '_>, service: Service<'d>, active: &HashSet<&str>) -> bool {
    let chain = reader.chain(service);
    let listed = chain.iter().filter_map(|base| base.node.get("profiles"));
    let mut profiles = listed.flat_map(Node::items).peekable();
    let reads_active = |node: Node<'_>| {
        let read = reader.read(node.as_str().unwrap_or_default());
        read.is_ok_and(|profile| active.contains(profile.as_ref()))
    };
    profiles.peek().is_none() || active.contains("*") || profiles.any(reads_active)
}
