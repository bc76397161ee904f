//! The strings that the rewrite replaces a `./` in, though compose takes them for no path of this host.

use std::collections::HashSet;

use super::bind_options;
use crate::compose::{
    document::{Document, Entry, Node, NodeId},
    services::{Service, ServiceMount, Syntax},
};

/// What compose reads as paths, or the rewrite removes; other losses speak of these.
const PATHS: [&str; 6] = [
    "env_file",
    "volumes",
    "build",
    "extends",
    "label_file",
    "develop",
];

/// Those of a service, fragments that it merges included.
pub(super) fn of_service<'d>(service: &Service<'d>) -> Vec<Node<'d>> {
    let entries = service.node.entries();
    let mut search = Search::default();
    for entry in entries {
        if !entry.name().is_some_and(|name| PATHS.contains(&name)) {
            search.entry(&entry);
        }
    }
    for mount in service.mounts() {
        search.mount(&mount);
    }
    search.finish()
}

/// Those at the top level, but services and fragments, which matter where they are used.
pub(super) fn outside_services<'d>(document: &'d Document<'d>) -> Vec<Node<'d>> {
    let mut search = Search::default();
    for entry in document.root().map(Node::entries).unwrap_or_default() {
        match entry.name() {
            Some("services" | "include") => {}
            Some(name) if name.starts_with("x-") => {}
            Some("secrets" | "configs") => search.members(&entry, |member| (member, "file")),
            Some("volumes") => search.members(&entry, |member| {
                bind_options(member).map_or((member, ""), |options| (options, "device"))
            }),
            _ => search.entry(&entry),
        }
    }
    search.finish()
}

#[derive(Default)]
struct Search<'d> {
    /// Places that have been looked at, so that aliases cost nothing.
    seen: HashSet<NodeId>,
    found: Vec<Node<'d>>,
}

impl<'d> Search<'d> {
    fn entry(&mut self, entry: &Entry<'d>) {
        self.below(entry.key);
        self.below(entry.value);
    }

    /// Everything below the members of a section, but the one key of each that names a path.
    fn members(
        &mut self,
        section: &Entry<'d>,
        path: impl Fn(Node<'d>) -> (Node<'d>, &'static str),
    ) {
        for member in section.value.entries() {
            let (holder, key) = path(member.value);
            if let Some(named) = holder.get(key) {
                self.seen.insert(named.resolved().id());
            }
            self.entry(&member);
        }
    }

    /// What of a mount is not its source.
    fn mount(&mut self, mount: &ServiceMount<'d>) {
        match mount.syntax {
            Syntax::Short => {
                let rest = [Some(mount.spec.target), mount.spec.options];
                if rest.into_iter().flatten().any(|text| text.contains("./")) {
                    self.found.push(mount.item);
                }
            }
            Syntax::Long => {
                for entry in mount.item.entries() {
                    if entry.name() != Some("source") {
                        self.entry(&entry);
                    }
                }
            }
        }
    }

    fn below(&mut self, node: Node<'d>) {
        let mut ahead = vec![node];
        while let Some(node) = ahead.pop() {
            let target = node.resolved();
            if !self.seen.insert(target.id()) {
                continue;
            }
            if target.scalar().is_some_and(|(text, _)| text.contains("./")) {
                self.found.push(target);
            }
            ahead.extend(target.items());
            ahead.extend(
                target
                    .entries()
                    .into_iter()
                    .flat_map(|entry| [entry.key, entry.value]),
            );
        }
    }

    fn finish(mut self) -> Vec<Node<'d>> {
        self.found.sort_by_key(|node| node.id());
        self.found
    }
}
