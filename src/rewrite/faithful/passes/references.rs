//! Blocks on names that nothing defines, which Compose rejects: a create that fails removes every container of the
//! project (M06), so nothing is sent that is known to fail.
//!
//! Invariant: every Compose from 2.26 to 5.6 rejects what this pass blocks. What a service inherits by `extends` is
//! checked where it is written. What else Compose rejects, the Compose program of the host says.
#![deny(clippy::disallowed_methods)]

use std::collections::HashSet;

use composefile::{
    document::Node,
    reader::Reader,
    services::{MountSpec, MountType, Service},
};

use crate::rewrite::faithful::{Blocker, Reason, findings::Findings};

/// Finds undefined services, networks, secrets, configs and volumes.
pub(super) fn references<'d>(reader: &Reader<'d, '_>) -> Findings<'d> {
    let services = reader.services.iter();
    let names: HashSet<&str> = services.map(|service| service.name).collect();
    let mut found = Findings::default();
    for &service in &reader.services {
        if !reader.is_active(service) {
            continue;
        }
        for (section, what) in SECTIONS {
            let defined = reader.document.get(section);
            for (name, node) in resources(reader, service, section) {
                let is_implied = section == "networks" && name == "default";
                if !is_implied && defined.is_none_or(|defined| defined.entry(&name).is_none()) {
                    let what = format!(
                        "service {} refers to {what} {name}, which `{section}` does not define",
                        service.name
                    );
                    found.blockers.push(undefined(node, what));
                }
            }
        }
        for (name, node) in needed(reader, service) {
            if !names.contains(name.as_str()) {
                let what = format!(
                    "service {} depends on undefined service {name}",
                    service.name
                );
                found.blockers.push(undefined(node, what));
            }
        }
    }
    found
}

/// The keys of a service whose names a top-level section defines, and the noun for messages.
const SECTIONS: [(&str, &str); 4] = [
    ("networks", "network"),
    ("secrets", "secret"),
    ("configs", "config"),
    ("volumes", "volume"),
];

fn undefined(node: Node<'_>, message: String) -> Blocker {
    let hint = "fix this: Compose rejects the stack as it is";
    Blocker::at(node, Reason::Inconsistent, message, hint)
}

/// A scalar's text after interpolation.
fn read(reader: &Reader<'_, '_>, node: Node<'_>) -> Option<String> {
    let read = reader.read(node.as_str()?).ok()?;
    Some(read.into_owned())
}

/// The names that a key of a service refers to, with the nodes that hold them.
fn resources<'d>(
    reader: &Reader<'d, '_>,
    service: Service<'d>,
    section: &str,
) -> Vec<(String, Node<'d>)> {
    let node = service.node.get(section);
    if section != "volumes" {
        return named(reader, node);
    }
    let volume = |item: Node<'d>| {
        if item.is_mapping() {
            let kind = read(reader, item.get("type")?)?;
            let source = read(reader, item.get("source")?)?;
            let is_named = MountType::named(&kind) == MountType::Volume && !source.is_empty();
            return is_named.then_some((source, item));
        }
        let text = read(reader, item)?;
        let spec = MountSpec::parse(&text)?;
        let source = spec.source.filter(|_| spec.kind == MountType::Volume)?;
        Some((source.to_owned(), item))
    };
    let items = node.into_iter().flat_map(Node::items);
    items.filter_map(volume).collect()
}

/// The names in a list of strings or of mappings with a `source`, or the keys of a mapping.
fn named<'d>(reader: &Reader<'d, '_>, node: Option<Node<'d>>) -> Vec<(String, Node<'d>)> {
    let Some(node) = node else { return Vec::new() };
    let listed = node.items().filter_map(|item| {
        let name = item.get("source").unwrap_or(item);
        Some((read(reader, name)?, name))
    });
    let entries = node.entries().into_iter();
    let mapped = entries.filter_map(|entry| Some((entry.name()?.to_owned(), entry.key)));
    listed.chain(mapped).collect()
}

/// The services that a service depends on, with the nodes that name them.
fn needed<'d>(reader: &Reader<'d, '_>, service: Service<'d>) -> Vec<(String, Node<'d>)> {
    let mut found = named(reader, service.node.get("depends_on"));
    let front = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    for (text, node) in named(reader, service.node.get("links")) {
        let has_alias = text.matches(':').count() == 1;
        found.push((if has_alias { front(&text) } else { text }, node));
    }
    for (text, node) in named(reader, service.node.get("volumes_from")) {
        if !text.starts_with("container:") {
            found.push((front(&text), node));
        }
    }
    for key in ["network_mode", "ipc", "pid"] {
        let node = service.node.get(key);
        let mode = node.and_then(|node| Some((read(reader, node)?, node)));
        found.extend(mode.and_then(|(mode, node)| {
            let name = mode.strip_prefix("service:")?;
            Some((name.to_owned(), node))
        }));
    }
    // `depends_on` takes precedence.
    let mut seen = HashSet::new();
    found.retain(|(name, _)| seen.insert(name.clone()));
    found
}
