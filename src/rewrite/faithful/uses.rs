//! Aliased nodes that an edit must not change, because they are also used where the change would be wrong.

use composefile::{
    document::{Document, Entry, Node, NodeKind, NodeSet},
    schema::{Holds, Place, ROOT, SERVICE},
    services::is_remote_context,
};

/// What a node is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A place where the rewrite may edit the node or a node below it.
    At(&'static Place),
    /// A path that the rewrite resolves, a key that it removes, or an extension, which Compose ignores.
    Editable,
    /// Any other place.
    Fixed,
    /// Any other place, through an alias.
    Pinned,
}

/// The nodes that an alias brings to a place where they must not change.
pub(super) fn elsewhere(document: &Document) -> NodeSet {
    let mut found = NodeSet::default();
    if !document.nodes().any(|node| node.kind() == NodeKind::Alias) {
        return found;
    }
    let mut seen: Vec<Vec<Use>> = vec![Vec::new(); document.nodes().len()];
    let root = document.root().into_iter();
    let mut ahead: Vec<_> = root.map(|root| (root, Use::At(&ROOT))).collect();
    while let Some((node, used)) = ahead.pop() {
        let seen = &mut seen[node.id().index()];
        if used == Use::Editable || seen.contains(&used) {
            continue;
        }
        seen.push(used);
        if node.kind() == NodeKind::Alias {
            ahead.push((node.resolved(), used.through_alias()));
            continue;
        }
        if used == Use::Pinned {
            found.insert(node.id());
        }
        let entries = node.own_entries();
        ahead.extend(entries.map(|entry| (entry.value, used.below(&entry))));
        ahead.extend(node.own_items().map(|item| (item, used.item(item))));
    }
    found
}

impl Use {
    /// How a value at a place of the schema is used.
    fn of(place: Option<&'static Place>, value: Node<'_>) -> Self {
        // They hold containers whose environment, env files and builds the rewrite leaves alone.
        let left_alone = [ROOT.key("jobs"), SERVICE.key("pre_start")];
        let Some(place) = place.filter(|&place| !left_alone.contains(&Some(place))) else {
            return Self::Fixed;
        };
        match place.holds() {
            Holds::Build if is_remote(value) => Self::Fixed,
            Holds::Build
            | Holds::EnvFile
            | Holds::MountSource
            | Holds::Device
            | Holds::HostPath
            | Holds::LocalPath
            | Holds::Extension => Self::Editable,
            Holds::Mount => Self::At(place),
            Holds::Environment if !value.is_scalar() => Self::At(place),
            _ if EDITED.iter().any(|&holds| place.leads_to(holds)) => Self::At(place),
            _ => Self::Fixed,
        }
    }

    fn through_alias(self) -> Self {
        match self {
            Self::Fixed => Self::Pinned,
            used => used,
        }
    }

    /// How the value of an entry is used.
    fn below(self, entry: &Entry<'_>) -> Self {
        match self {
            _ if entry.is_merge() => self,
            Self::At(place) => Self::of(place.below(entry), entry.value),
            Self::Pinned => Self::Pinned,
            Self::Editable | Self::Fixed => Self::Fixed,
        }
    }

    /// How an item of a list is used, also of a `<<` list.
    fn item(self, item: Node<'_>) -> Self {
        match self {
            Self::At(place) if place.holds() == Holds::Environment => Self::Fixed,
            Self::At(place) => place.item().map_or(self, |one| Self::of(Some(one), item)),
            used => used,
        }
    }
}

/// What the rewrite edits.
const EDITED: [Holds; 8] = [
    Holds::Mount,
    Holds::MountSource,
    Holds::Device,
    Holds::HostPath,
    Holds::LocalPath,
    Holds::EnvFile,
    Holds::Environment,
    Holds::Build,
];

/// Whether a build has a remote context, so that it stays.
fn is_remote(build: Node<'_>) -> bool {
    let context = build.get("context").and_then(Node::as_str);
    context.is_some_and(is_remote_context)
}
