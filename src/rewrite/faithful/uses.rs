//! Nodes that an alias brings to a place where they have to stay as they are.
#![deny(clippy::disallowed_methods)]

use composefile::{
    document::{Document, Kind, Node, NodeSet},
    services::is_remote_context,
};

/// The part of a compose file that a node stands in, as far as paths are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Root,
    Services,
    Service,
    Mounts,
    Mount,
    Environment,
    Labels,
    /// Behind an alias that stands in `Labels`: these may get more, but what they hold stays.
    SharedLabels,
    /// Where a path is one, or where nothing reads it.
    Known,
    Other,
    /// Behind an alias that stands in `Other`.
    Brought,
}

/// What stands, through an alias, at a place where it is no path and no part of the environment or the labels,
/// or where it is both of these.
pub(super) fn elsewhere(document: &Document) -> NodeSet {
    const ENVIRONMENT: u16 = 1 << Part::Environment as u16;
    const LABELS: u16 = 1 << Part::Labels as u16 | 1 << Part::SharedLabels as u16;
    let mut found = NodeSet::default();
    if !document.nodes().any(|node| node.kind() == Kind::Alias) {
        return found;
    }
    // One bit for each part that a node was seen in.
    let mut seen = vec![0u16; document.nodes().len()];
    let mut ahead: Vec<_> = document
        .root()
        .map(|root| (root, Part::Root))
        .into_iter()
        .collect();
    while let Some((node, part)) = ahead.pop() {
        let (seen, bit) = (&mut seen[node.id().index()], 1 << part as u16);
        if part == Part::Known || *seen & bit != 0 {
            continue;
        }
        *seen |= bit;
        if node.kind() == Kind::Alias {
            let part = match part {
                Part::Other => Part::Brought,
                Part::Labels => Part::SharedLabels,
                part => part,
            };
            ahead.push((node.resolved(), part));
            continue;
        }
        let part = if *seen & ENVIRONMENT != 0 && *seen & LABELS != 0 {
            Part::Brought
        } else {
            part
        };
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
            Part::Environment | Part::Labels => Part::Other,
            Part::SharedLabels => Part::Brought,
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
        (Part::Service, "env_file" | "label_file" | "build" | "develop") => Part::Known,
        (Part::Service, "labels") if !value.is_scalar() => Part::Labels,
        (Part::Service, "environment") if !value.is_scalar() => Part::Environment,
        (Part::Brought | Part::SharedLabels, _) => Part::Brought,
        _ => Part::Other,
    }
}
