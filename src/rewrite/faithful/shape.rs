//! Refuses a file whose values do not have the types that Compose expects.
#![deny(clippy::disallowed_methods)]

use std::collections::HashSet;

use super::{Blocker, Reason};
use composefile::{
    document::{Document, Entry, Node, NodeId, NodeKind, NodeMap},
    schema::{Holds, Place, ROOT, Type},
};

/// The most nodes a file may have after its aliases are expanded; Compose takes too long to read more.
const MAX_NODES: u64 = 1_000_000;

const HINT: &str = "see https://docs.docker.com/reference/compose-file/";

/// Finds values of a type that Compose rejects. The error is a file that no pass can read.
pub(super) fn check(document: &Document<'_>) -> Result<Vec<Blocker>, Blocker> {
    let mut shape = Shape {
        document,
        blockers: Vec::new(),
    };
    shape.file()?;
    Ok(shape.blockers)
}

struct Shape<'d> {
    document: &'d Document<'d>,
    blockers: Vec<Blocker>,
}

impl<'d> Shape<'d> {
    fn file(&mut self) -> Result<(), Blocker> {
        let Some(root) = self.document.root() else {
            let what = "the Compose file is empty";
            let hint = "pass the right file with --file";
            return Err(Blocker::new(Reason::WrongType, what, hint));
        };
        if let Some(blocker) = endless(self.document) {
            return Err(blocker);
        }
        if !root.is_mapping() {
            return Err(wrong(root, "the Compose file is not a mapping"));
        }
        for twice in self.document.duplicate_keys() {
            let name = twice.again.scalar().map_or("", |(name, _)| name);
            let line = twice.first.line();
            let what = format!("duplicate key `{name}`, first used in line {line}");
            self.blockers.push(wrong(twice.again, what));
        }
        for entry in self.document.nodes().flat_map(Node::own_entries) {
            if entry.is_merge() {
                let target = entry.value;
                if !target.is_mapping() && !is_list_of_mappings(target) {
                    let what = "`<<` can only merge mappings";
                    self.blockers.push(wrong(place_of(entry.key, target), what));
                }
            } else if Type::of(entry.key) != Type::Text {
                let what = format!("keys must be strings, got {}", Type::of(entry.key));
                self.blockers.push(Blocker::at(
                    entry.key,
                    Reason::WrongType,
                    what,
                    "quote the key",
                ));
            }
        }
        self.check(root, root, &ROOT, &Step::Root, &mut HashSet::new());
        Ok(())
    }

    /// Refuses a value of the wrong type, or every such value below it. `shown` is the node of its key or item.
    fn check(
        &mut self,
        node: Node<'d>,
        shown: Node<'d>,
        place: &'static Place,
        path: &Step<'_>,
        checked: &mut HashSet<(NodeId, &'static Place)>,
    ) {
        let found = Type::of(node);
        let is_accepted = place.accepts(found) && !is_misread(place, found);
        let is_done = is_accepted && (node.is_scalar() || place.is_unchecked());
        if is_done || !checked.insert((node.resolved().id(), place)) {
            return;
        }
        if !is_accepted {
            let named = place.types().iter().filter(|&&named| named != Type::Date);
            let expected: Vec<_> = named.map(ToString::to_string).collect();
            let what = format!("`{path}` must be {}, got {found}", expected.join(" or "));
            self.blockers.push(wrong(place_of(shown, node), what));
            return;
        }
        for Entry { key, value } in node.entries() {
            let Some((name, _)) = key.scalar() else {
                continue;
            };
            if let Some(below) = place.key(name) {
                self.check(value, key, below, &Step::Key(path, name), checked);
            }
        }
        let Some(below) = place.item() else { return };
        for (index, item) in node.items().enumerate() {
            self.check(item, item, below, &Step::Item(path, index), checked);
        }
    }
}

/// The path to a value, for messages.
enum Step<'a> {
    Root,
    Key(&'a Step<'a>, &'a str),
    Item(&'a Step<'a>, usize),
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, name) => f.write_str(name),
            Self::Key(above, name) => write!(f, "{above}.{name}"),
            Self::Item(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

/// Whether Compose reads a value as something other than its text: it turns a date into a time.
fn is_misread(place: &Place, found: Type) -> bool {
    found == Type::Date && !matches!(place.holds(), Holds::Plain | Holds::Extension)
}

/// Refuses an alias inside its own anchor, and aliases that expand to too many nodes.
fn endless(document: &Document) -> Option<Blocker> {
    // The expanded size of each anchored collection, and the open collections with the count before each.
    let mut sizes: NodeMap<u64> = NodeMap::default();
    let mut open: Vec<(Node<'_>, u64)> = Vec::new();
    let mut count: u64 = 0;
    for (written, node) in (1..).zip(document.nodes()) {
        while let Some((above, before)) = open.pop_if(|(above, _)| !above.holds(node)) {
            sizes.insert(above.id(), count - before);
        }
        if node.kind() == NodeKind::Alias {
            let target = node.resolved();
            if target.holds(node) {
                return Some(wrong(node, "the alias is inside its own anchor"));
            }
            let size = sizes.get(&target.id()).copied().unwrap_or(1);
            count = count.saturating_add(size);
        } else {
            if node.anchor().is_some() && !node.is_scalar() {
                open.push((node, count));
            }
            count = count.saturating_add(1);
        }
        if count > MAX_NODES.max(10 * written) {
            let what = format!("the aliases expand to more than {MAX_NODES} nodes");
            return Some(wrong(node, what));
        }
    }
    None
}

fn wrong(node: Node<'_>, what: impl Into<String>) -> Blocker {
    Blocker::at(node, Reason::WrongType, what, HINT)
}

/// The value, or its key where no value is written.
fn place_of<'d>(key: Node<'d>, value: Node<'d>) -> Node<'d> {
    if value.span().is_empty() { key } else { value }
}

fn is_list_of_mappings(node: Node<'_>) -> bool {
    node.is_sequence() && node.items().all(Node::is_mapping)
}
