//! What a pass returns: edits, blockers and notices.
#![deny(clippy::disallowed_methods)]

use composefile::document::{Entry, Node};

use super::{Blocker, Changed, Notice, Weight};

/// The result of one pass. No pass sees the findings of another.
#[derive(Default)]
pub(super) struct Findings<'d> {
    pub(super) edits: Vec<Edit<'d>>,
    pub(super) blockers: Vec<Blocker>,
    pub(super) notices: Vec<Notice>,
}

impl Findings<'_> {
    pub(super) fn append(&mut self, mut other: Self) {
        self.edits.append(&mut other.edits);
        self.blockers.append(&mut other.blockers);
        self.notices.append(&mut other.notices);
    }

    pub(super) fn notice(&mut self, line: usize, message: impl Into<String>) {
        self.notices.push(Notice {
            line: Some(line),
            message: message.into(),
            weight: Weight::Important,
        });
    }

    /// A notice that only explains the text.
    pub(super) fn detail(&mut self, line: usize, message: impl Into<String>) {
        self.notices.push(Notice {
            line: Some(line),
            message: message.into(),
            weight: Weight::Detail,
        });
    }
}

/// A change that a pass asks for. The merge decides which of them are compatible.
pub(super) enum Edit<'d> {
    /// Writes the values of shell variables into a scalar. This is right wherever the scalar is used, and
    /// [`Edit::SetScalar`] replaces it: passes compute their texts from [`super::shell::effective_text`].
    InlineVariables {
        node: Node<'d>,
        text: String,
        note: Note,
    },
    /// Gives a scalar another text.
    SetScalar {
        node: Node<'d>,
        text: String,
        note: Note,
    },
    /// The effective text of the scalar is right in one of its places: another text would be wrong there.
    KeepScalar { node: Node<'d> },
    /// Gives a key without a value a value.
    FillEntry {
        entry: Entry<'d>,
        text: String,
        note: Note,
    },
    /// Removes a key and its value, wherever the mapping with that key is written.
    RemoveEntry { entry: Entry<'d> },
    /// Writes other entries in place of a key and its value. Includes its removal.
    ReplaceEntry {
        entry: Entry<'d>,
        new: Vec<NewEntry>,
        note: Note,
    },
    /// Adds entries to a mapping.
    InsertEntries {
        mapping: Node<'d>,
        new: Vec<NewEntry>,
        note: Note,
    },
    /// Adds entries or items at the front of a collection.
    InsertFront {
        collection: Node<'d>,
        new: Vec<NewEntry>,
        note: Note,
    },
    /// Writes another item in place of one.
    ReplaceItem {
        list: Node<'d>,
        item: Node<'d>,
        text: String,
        note: Note,
    },
    /// Removes an item from a list.
    RemoveItem {
        list: Node<'d>,
        item: Node<'d>,
        note: Note,
    },
}

/// An entry to be written: the name and the value.
pub(super) type NewEntry = (String, NewValue);

/// A value to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NewValue {
    Text(String),
    Mapping(Vec<NewEntry>),
    EmptyList,
    List(Vec<String>),
    /// An external volume with this name.
    External(String),
    /// An item of a list. The name of the entry is not written.
    Item(String),
}

/// What an edit does, for people.
#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) what: Changed,
    pub(super) secrecy: Secrecy,
}

/// Whether an edit writes a value of an env file or of a container, which must not be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Secrecy {
    Public,
    Secret,
}

impl Note {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self::of(Changed::Other(what.into()))
    }

    pub(super) fn of(what: Changed) -> Self {
        Self {
            what,
            secrecy: Secrecy::Public,
        }
    }

    pub(super) fn with(self, secrecy: Secrecy) -> Self {
        Self {
            secrecy: self.secrecy.max(secrecy),
            ..self
        }
    }
}
