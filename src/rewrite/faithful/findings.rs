//! What a pass returns: edits, blockers and notices.

use std::collections::BTreeMap;

use composefile::document::{Entry, Node, NodeId, NodeSet, Position};

use super::{Finding, Kind};

/// The result of one pass. No pass sees the findings of another.
#[derive(Default)]
pub(super) struct Findings<'d> {
    pub(super) edits: Edits<'d>,
    pub(super) blockers: Vec<Finding>,
    pub(super) notices: Vec<Finding>,
}

impl<'d> Findings<'d> {
    pub(super) fn append(&mut self, mut other: Self) {
        self.blockers.append(&mut other.blockers);
        self.notices.append(&mut other.notices);
        let (edits, mut others) = (&mut self.edits, other.edits);
        edits.inlined.append(&mut others.inlined);
        edits.set.append(&mut others.set);
        edits.kept.extend(others.kept);
        edits.removed.append(&mut others.removed);
        edits.replaced.append(&mut others.replaced);
        edits.filled.append(&mut others.filled);
        edits.inserted.append(&mut others.inserted);
        edits.in_front.append(&mut others.in_front);
        edits.items.append(&mut others.items);
    }

    pub(super) fn block(
        &mut self,
        node: Node<'_>,
        reason: Kind,
        message: impl AsRef<str>,
        hint: impl AsRef<str>,
    ) {
        let blocker = Finding::at(node, reason, message, hint);
        self.blockers.push(blocker);
    }

    pub(super) fn notice(&mut self, line: usize, message: impl AsRef<str>) {
        let position = Position { line, column: 1 };
        self.notices
            .push(Finding::of_stack(message.as_ref()).placed(position));
    }

    pub(super) fn set(&mut self, node: Node<'d>, text: String, secrecy: Secrecy) {
        self.edits.set.push(Scalar {
            node,
            text,
            secrecy,
        });
    }

    pub(super) fn remove(&mut self, entry: Entry<'d>) {
        self.edits.removed.insert(entry.key.id(), entry);
    }

    pub(super) fn replace(&mut self, entry: Entry<'d>, new: Vec<NewEntry>) {
        self.edits.replaced.push(Replacement { entry, new });
    }

    pub(super) fn insert(&mut self, collection: Node<'d>, new: Vec<NewEntry>) {
        self.edits.inserted.push(Insertion { collection, new });
    }

    pub(super) fn insert_front(&mut self, collection: Node<'d>, new: Vec<NewEntry>) {
        self.edits.in_front.push(Insertion { collection, new });
    }
}

/// The changes that passes ask for. The merge decides which of them are compatible.
#[derive(Default)]
pub(super) struct Edits<'d> {
    /// Scalars with the values of shell variables. This is right wherever a scalar is used, and a text in `set` replaces
    /// it: passes compute their texts from [`super::shell::effective_text`].
    pub(super) inlined: Vec<Scalar<'d>>,
    /// Scalars with another text.
    pub(super) set: Vec<Scalar<'d>>,
    /// Scalars whose effective text is right in one of their places: another text would be wrong there.
    pub(super) kept: NodeSet,
    /// Keys that are removed with their values, wherever the mapping with the key is written.
    pub(super) removed: BTreeMap<NodeId, Entry<'d>>,
    /// Other entries in place of a key and its value. Includes its removal.
    pub(super) replaced: Vec<Replacement<'d>>,
    /// The same for keys without a value. Other edits of a key take precedence.
    pub(super) filled: Vec<Replacement<'d>>,
    /// New entries of mappings.
    pub(super) inserted: Vec<Insertion<'d>>,
    /// New entries or items at the front of collections.
    pub(super) in_front: Vec<Insertion<'d>>,
    /// Items that are replaced or removed.
    pub(super) items: Vec<ItemEdit<'d>>,
}

/// A new text of a scalar.
pub(super) struct Scalar<'d> {
    pub(super) node: Node<'d>,
    pub(super) text: String,
    pub(super) secrecy: Secrecy,
}

/// New entries in place of one.
pub(super) struct Replacement<'d> {
    pub(super) entry: Entry<'d>,
    pub(super) new: Vec<NewEntry>,
}

/// New entries or items of a collection.
pub(super) struct Insertion<'d> {
    pub(super) collection: Node<'d>,
    pub(super) new: Vec<NewEntry>,
}

/// Another value for an item of a list; `None` removes it.
pub(super) struct ItemEdit<'d> {
    pub(super) list: Node<'d>,
    pub(super) item: Node<'d>,
    pub(super) new: Option<NewValue>,
    pub(super) secrecy: Secrecy,
}

/// An entry to be written: the name and the value.
pub(super) type NewEntry = (String, NewValue);

/// A value to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NewValue {
    Text(String),
    /// A text without quotes, if it needs none.
    Word(String),
    True,
    Mapping(Vec<NewEntry>),
    EmptyList,
    List(Vec<String>),
    /// An external volume with this name.
    External(String),
    /// An item of a list. The name of the entry is not written.
    Item(String),
}

/// Whether an edit writes a value of an env file or of a container, which must not be shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Secrecy {
    #[default]
    Public,
    Secret,
}
