//! Nodes that an alias brings to a place where they have to stay as they are.
#![deny(clippy::disallowed_methods)]

use std::collections::HashSet;

use super::super::{
    document::{Document, Kind, Node, NodeId},
    services::is_remote_context,
};

/// The part of a compose file that a node stands in, as far as paths are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Root,
    Services,
    Service,
    Mounts,
    Mount,
    Environment,
    /// Where a path is one, or where nothing reads it.
    Known,
    Other,
    /// Behind an alias that stands in `Other`.
    Brought,
}

/// What stands, through an alias, at a place where it is no path and no part of the environment.
pub(super) fn elsewhere(document: &Document) -> HashSet<NodeId> {
    let mut found = HashSet::new();
    if !document.nodes().any(|node| node.kind() == Kind::Alias) {
        return found;
    }
    let mut seen = HashSet::new();
    let mut ahead: Vec<_> = document
        .root()
        .map(|root| (root, Part::Root))
        .into_iter()
        .collect();
    while let Some((node, part)) = ahead.pop() {
        if part == Part::Known || !seen.insert((node.id(), part)) {
            continue;
        }
        if node.kind() == Kind::Alias {
            let part = if part == Part::Other {
                Part::Brought
            } else {
                part
            };
            ahead.push((node.resolved(), part));
            continue;
        }
        if part == Part::Brought {
            found.insert(node.id());
        }
        for entry in node.own_entries() {
            let name = entry.name().unwrap_or_default();
            let below = if entry.is_merge() {
                part
            } else {
                below(part, name, entry.value)
            };
            ahead.push((entry.value, below));
        }
        let item = match part {
            Part::Mounts => Part::Mount,
            Part::Environment => Part::Other,
            part => part,
        };
        ahead.extend(node.own_items().map(|node| (node, item)));
    }
    found
}

/// Whether a build has a remote context.
fn stays(build: Node<'_>) -> bool {
    let context = build.get("context").and_then(Node::as_str);
    context.is_some_and(is_remote_context)
}

fn below(part: Part, name: &str, value: Node<'_>) -> Part {
    match (part, name) {
        (Part::Root, "services") => Part::Services,
        (Part::Root, "volumes" | "secrets" | "configs") | (Part::Mount, "source") => Part::Known,
        (Part::Root | Part::Service, _) if name.starts_with("x-") => Part::Known,
        (Part::Services, _) => Part::Service,
        (Part::Service, "volumes") if value.is_sequence() => Part::Mounts,
        (Part::Service, "build") if stays(value) => Part::Other,
        (Part::Service, "env_file" | "build" | "develop") => Part::Known,
        (Part::Service, "environment") if !value.is_scalar() => Part::Environment,
        (Part::Brought, _) => Part::Brought,
        _ => Part::Other,
    }
}
