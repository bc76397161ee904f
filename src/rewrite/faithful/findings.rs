//! What the passes find: edits, blockers and notices.

use composefile::{
    document::{Entry, Node, Position},
    reader::Reader,
    services::Service,
};

pub(super) use super::write::{NewEntry, NewValue, Secrecy};
use super::{Finding, Kind, edits::Edits, write::NotSimple};

/// What the passes find.
pub(super) struct Findings<'d> {
    pub(super) edits: Edits<'d>,
    pub(super) blockers: Vec<Finding>,
    pub(super) notices: Vec<Finding>,
}

impl<'d> Findings<'d> {
    pub(super) fn new(reader: &Reader<'d, '_>) -> Self {
        Self {
            edits: Edits::new(reader),
            blockers: Vec::new(),
            notices: Vec::new(),
        }
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

    /// Whether keys of a service can be added and removed; blocks if not.
    pub(super) fn is_simple(&mut self, service: Service<'d>) -> bool {
        let is_simple = self.edits.is_simple(service);
        if !is_simple {
            self.edited(Err(NotSimple), service.node);
        }
        is_simple
    }

    /// Gives a scalar another text, wherever it is repeated. A text of [`Findings::set`] takes precedence.
    pub(super) fn inline(&mut self, node: Node<'d>, text: &str, secrecy: Secrecy) {
        let edited = self.edits.inline(node, text, secrecy);
        self.edited(edited, node);
    }

    pub(super) fn set(&mut self, node: Node<'d>, text: &str, secrecy: Secrecy) {
        let edited = self.edits.set(node, text, secrecy);
        self.edited(edited, node);
    }

    pub(super) fn replace_value(&mut self, node: Node<'d>, new: &NewValue, secrecy: Secrecy) {
        let edited = self.edits.replace_value(node, new, secrecy);
        self.edited(edited, node);
    }

    pub(super) fn remove(&mut self, mapping: Node<'d>, entry: Entry<'d>) {
        let edited = self.edits.remove(mapping, entry);
        self.edited(edited, entry.key);
    }

    pub(super) fn replace(&mut self, mapping: Node<'d>, entry: Entry<'d>, new: &[NewEntry]) {
        let edited = self.edits.replace(mapping, entry, new);
        self.edited(edited, entry.key);
    }

    pub(super) fn insert(&mut self, mapping: Node<'d>, new: &[NewEntry]) {
        let edited = self.edits.insert(mapping, new);
        self.edited(edited, mapping);
    }

    pub(super) fn remove_item(&mut self, list: Node<'d>, item: Node<'d>) {
        let edited = self.edits.remove_item(list, item);
        self.edited(edited, item);
    }

    pub(super) fn insert_items(&mut self, list: Node<'d>, items: &[String]) {
        let edited = self.edits.insert_items(list, items);
        self.edited(edited, list);
    }

    fn edited(&mut self, edited: Result<(), NotSimple>, node: Node<'_>) {
        self.blockers.extend(
            edited
                .err()
                .map(|NotSimple| Finding::not_simple(Some(node))),
        );
    }
}
