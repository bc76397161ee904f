//! What the text says about itself that compose would refuse: a create that fails takes every container of
//! the project with it (M06), so nothing is sent that is known to fail.
//!
//! Invariant: what is refused here, compose refuses from 2.26 to 5.6; what a service gets by `extends` is
//! looked at where it is written.
#![deny(clippy::disallowed_methods)]

use std::collections::{HashMap, HashSet};

use super::{Reason, Refusal, rewriter::Rewriter};
use composefile::{
    document::Node,
    interpolate::interpolate,
    services::{MountSpec, MountType as MountKind, Service},
};

/// A service's key, and the section that its names are defined in.
const DEFINED: [(&str, &str); 3] = [
    ("networks", "network"),
    ("secrets", "secret"),
    ("configs", "config"),
];

/// What has to say where its content is, and how it can.
const CONTENTS: [(&str, &[&str]); 2] = [
    ("secrets", &["file", "environment"]),
    ("configs", &["file", "environment", "content"]),
];

impl Rewriter<'_, '_> {
    /// Refuses references to what is not there, and what contradicts itself.
    pub(super) fn references(&mut self) {
        let mut found = References::new(self);
        found.extends();
        found.contents();
        for service in found.active.clone() {
            found.resources(service);
            found.image(service);
        }
        found.dependencies();
        let refusals = found.refusals;
        self.refusals.extend(refusals);
    }
}

struct References<'r, 'd, 'a> {
    rewriter: &'r Rewriter<'d, 'a>,
    names: HashSet<&'d str>,
    /// The services that compose starts.
    active: Vec<Service<'d>>,
    /// What each section defines.
    defined: HashMap<&'static str, HashSet<&'d str>>,
    refusals: Vec<Refusal>,
}

impl<'r, 'd, 'a> References<'r, 'd, 'a> {
    fn new(rewriter: &'r Rewriter<'d, 'a>) -> Self {
        let services = &rewriter.services;
        let profiles = rewriter.here("COMPOSE_PROFILES").unwrap_or_default();
        let profiles: HashSet<&str> = profiles.split(',').map(str::trim).collect();
        let active = services.iter().copied();
        let sections = ["networks", "secrets", "configs", "volumes"];
        let names = |section| {
            let entries = rewriter.document.get(section).map(Node::entries);
            let names = entries.into_iter().flatten();
            (section, names.filter_map(|entry| entry.name()).collect())
        };
        Self {
            rewriter,
            names: services.iter().map(|service| service.name).collect(),
            active: active
                .filter(|&service| is_active(rewriter, service, &profiles))
                .collect(),
            defined: sections.into_iter().map(names).collect(),
            refusals: Vec::new(),
        }
    }

    fn refuse(&mut self, node: Node<'d>, what: String) {
        let hint = "mend it: compose refuses the stack as it is";
        let refusal = Refusal::at(node, Reason::Inconsistent, what, hint);
        self.refusals.push(refusal);
    }

    fn read(&self, node: Node<'d>) -> Option<String> {
        self.rewriter.read(node)
    }

    /// `extends` of what is not there, or of itself.
    fn extends(&mut self) {
        for &service in &self.rewriter.services {
            if service.node.get("extends").is_none() {
                continue;
            }
            let chain = self.rewriter.chain(service);
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
                self.refuse(node, format!("the service {service} extends itself"));
            } else if last.name == service {
                let what = format!("the service {service} extends {name}, which is not there");
                self.refuse(node, what);
            }
        }
    }

    /// Secrets and configs that do not say what is in them.
    fn contents(&mut self) {
        for (section, keys) in CONTENTS {
            let entries = self.rewriter.document.get(section).map(Node::entries);
            for entry in entries.into_iter().flatten() {
                let has = |key: &str| entry.value.get(key).is_some();
                let name = entry.name().unwrap_or_default();
                let one = keys.join(", ");
                match keys.iter().filter(|key| has(key)).count() {
                    0 if has("driver") || has("external") => {}
                    0 => self.refuse(entry.key, format!("{section}.{name} has none of {one}")),
                    1 => {}
                    _ => {
                        let what = format!("{section}.{name} has more than one of {one}");
                        self.refuse(entry.key, what);
                    }
                }
            }
        }
    }

    /// Networks, secrets, configs and volumes that the service names and the text does not define.
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
            let what = format!("the service {name} has both `network_mode` and `networks`");
            self.refuse(*node, what);
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
            let what =
                format!("the {what} {name} of the service {service} is not defined in `{section}`");
            self.refuse(node, what);
        }
    }

    /// The named volume of a mount.
    fn volume(&self, item: Node<'d>) -> Option<String> {
        if item.is_mapping() {
            let kind = self.read(item.get("type")?)?;
            let source = self.read(item.get("source")?)?;
            let is_named = MountKind::named(&kind) == MountKind::Volume && !source.is_empty();
            return is_named.then_some(source);
        }
        let read = self.read(item)?;
        let spec = MountSpec::parse(&read)?;
        let source = spec.source.filter(|_| spec.kind == MountKind::Volume)?;
        Some(source.to_owned())
    }

    /// The names in a list of texts or of mappings with a `source`, or the keys of a mapping.
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

    /// A service without image or build.
    fn image(&mut self, service: Service<'d>) {
        let chain = self.rewriter.chain(service);
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
            let what = format!("the service {name} has neither an image nor a build");
            self.refuse(service.node, what);
        }
    }

    /// Services that need one that is not started, or each other.
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
                    let what = format!("the service {service} needs {name}, which is not there");
                    self.refuse(node, what);
                } else if is_required {
                    let what =
                        format!("the service {service} needs {name}, whose profile is not active");
                    self.refuse(node, what);
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
            let what = format!("the service {} waits for itself in the end", service.name);
            self.refuse(service.node, what);
        }
    }

    /// The services that this one needs, where it says so, and whether compose insists on one whose profile
    /// is not active.
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
        // What `depends_on` says of a service stands.
        let mut seen = HashSet::new();
        found.retain(|(name, _, _)| seen.insert(name.clone()));
        found
    }
}

/// Whether compose starts a service: it has no profile, or an active one.
fn is_active<'d>(
    rewriter: &Rewriter<'d, '_>,
    service: Service<'d>,
    active: &HashSet<&str>,
) -> bool {
    let chain = rewriter.chain(service);
    let listed = chain.iter().filter_map(|base| base.node.get("profiles"));
    let mut profiles = listed.flat_map(Node::items).peekable();
    let here = |name: &str| rewriter.here(name);
    let reads_active = |node: Node<'_>| {
        let read = interpolate(node.as_str().unwrap_or_default(), &here);
        read.is_ok_and(|profile| active.contains(profile.as_ref()))
    };
    profiles.peek().is_none() || active.contains("*") || profiles.any(reads_active)
}
