//! The `env_file` keys of a text, and the lines that the literal rewrite deletes.

use std::ops::Range;

use super::literal::{TextEdit, edits};
use composefile::{
    document::{Document, Entry, Node},
    schema::{Holds, INCLUDE, ROOT, SERVICE, SchemaNode},
};

/// The position of a walk through a text; `None` if no `env_file` can be below it.
pub(super) type Where = Option<&'static SchemaNode>;

/// Whether an entry is an `env_file` of a service or of an included file. One below an extension counts: an alias or a
/// merge may bring it to a service.
pub(super) fn is_env_file(at: Where, entry: &Entry<'_>) -> bool {
    let has_env_file = |place: &SchemaNode| {
        place == &SERVICE || place == &INCLUDE || place.holds() == Holds::Extension
    };
    at.is_some_and(has_env_file) && entry.name() == Some("env_file")
}

/// The position of the value of an entry.
pub(super) fn below(at: Where, entry: &Entry<'_>) -> Where {
    at?.below(entry).filter(|place| can_hold_env_file(place))
}

/// The position of an item of a list. An item of a `<<` list is at the position of the mapping that merges it.
pub(super) fn item(at: Where) -> Where {
    let place = at?;
    Some(place.item().unwrap_or(place)).filter(|place| can_hold_env_file(place))
}

fn can_hold_env_file(place: &SchemaNode) -> bool {
    place.leads_to(Holds::EnvFile) || place.holds() == Holds::Extension
}

/// Every `env_file` of a service or of an included file, in the order of the text.
pub(super) fn env_file_keys<'d>(document: &'d Document<'d>) -> Vec<Entry<'d>> {
    let mut found = Vec::new();
    let root = document.root().into_iter();
    let mut ahead: Vec<(Node<'d>, Where)> = root.map(|root| (root, Some(&ROOT))).collect();
    while let Some((node, at)) = ahead.pop() {
        if at.is_none() {
            continue;
        }
        for entry in node.own_entries() {
            if is_env_file(at, &entry) {
                found.push(entry);
            } else {
                ahead.push((entry.value, below(at, &entry)));
            }
        }
        ahead.extend(node.own_items().map(|node| (node, item(at))));
    }
    found.sort_by_key(|entry| entry.key.id());
    found
}

/// The lines that the literal rewrite deletes from a text.
pub(super) struct DeletedLines(Vec<Range<usize>>);

impl DeletedLines {
    pub(super) fn of(text: &str) -> Self {
        let lines = edits(text).filter_map(|edit| match edit {
            TextEdit::Delete(line) => Some(line),
            TextEdit::Replace { .. } => None,
        });
        Self(lines.collect())
    }

    /// The lines that are not part of these entries.
    pub(super) fn without(&self, entries: &[Entry<'_>]) -> Self {
        let is_stray = |line: &&Range<usize>| {
            let at = entries.partition_point(|entry| entry.key.span().start < line.end);
            let above = entries[..at].last();
            above.is_none_or(|above| above.value.span().end.max(above.key.span().end) <= line.start)
        };
        Self(self.0.iter().filter(is_stray).cloned().collect())
    }

    /// Whether a byte of the text is deleted.
    pub(super) fn hold(&self, offset: usize) -> bool {
        self.first_in(&(offset..offset + 1)).is_some()
    }

    /// The first deleted line that has a byte in a range.
    pub(super) fn first_in(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let at = self.0.partition_point(|line| line.end <= range.start);
        let line = self.0.get(at).filter(|line| line.start < range.end);
        line.cloned()
    }

    /// The first byte of a range that is not deleted, blank or part of a comment.
    pub(super) fn first_left(&self, text: &str, range: &Range<usize>) -> Option<usize> {
        let mut at = range.start;
        for line in text.get(range.clone())?.split_inclusive('\n') {
            let content = line.trim_start();
            let start = at + line.len() - content.len();
            at += line.len();
            if !content.is_empty() && !content.starts_with('#') && !self.hold(start) {
                return Some(start);
            }
        }
        None
    }
}
