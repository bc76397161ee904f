//! Edits on byte ranges, and the expected nodes of the new text.

use std::ops::Range;

use composefile::document::{Document, Entry, Node, NodeKind, NodeMap, NodeSet, Style};

use super::{
    TextChange,
    findings::{NewEntry, NewValue, Secrecy},
    write::{Unwritable, entries_text, flat, is_flow, quoted, scalar_text, separator},
};
use crate::text::HIDDEN;

/// The changes of a text, and the expected result.
#[derive(Default)]
pub(super) struct Splices {
    all: Vec<Splice>,
    expected: Expected,
    /// The collections that get or lose entries or items.
    pub(super) changed: NodeSet,
}

/// A range of the new text that must not be shown, and what to show instead.
pub(super) type Redaction = (Range<usize>, String);

/// One change of the text.
struct Splice {
    /// The bytes of the original to remove; empty for an insertion.
    span: Range<usize>,
    /// The text to write in their place.
    text: String,
    /// The text to show, if `text` contains a value of an env file.
    shown: Option<String>,
}

/// How the nodes of the new text must differ from the original.
#[derive(Default)]
pub(super) struct Expected {
    /// The new values of scalars.
    pub(super) scalars: NodeMap<String>,
    /// The removed keys, each with its value, and the removed items.
    pub(super) removed: NodeSet,
    /// The mappings without any entries left.
    pub(super) emptied: NodeSet,
    /// The items in place of others.
    pub(super) items: NodeMap<NewValue>,
    /// The entries in place of a key.
    pub(super) replaced: NodeMap<Vec<NewEntry>>,
    /// The new entries in front of a key.
    pub(super) before: NodeMap<Vec<NewEntry>>,
    /// The new entries or items at the front of a collection.
    pub(super) front: NodeMap<Vec<NewEntry>>,
}

/// The new text.
pub(super) struct Written {
    pub(super) text: String,
    /// In the order of the original.
    pub(super) changes: Vec<TextChange>,
    pub(super) redactions: Vec<Redaction>,
    pub(super) expected: Expected,
}

/// Two edits change the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overlap;

impl Splices {
    /// Whether a key is removed and nothing is written in its place.
    pub(super) fn is_removed(&self, key: Node<'_>) -> bool {
        self.expected.removed.contains(&key.id())
    }

    /// Gives a scalar another value, in its present style if that can express the value.
    pub(super) fn set(
        &mut self,
        node: Node<'_>,
        value: &str,
        secrecy: Secrecy,
    ) -> Result<(), Unwritable> {
        let node = node.resolved();
        self.expected.scalars.insert(node.id(), value.to_owned());
        if let Some(header) = block_header(node) {
            // On one line: a block cannot express every value, and would need the same indentation.
            let span = header.start..trimmed_end(node.document().text(), node.span().end);
            // The rest of the line after the header: empty, or a comment.
            let line = node.document().text()[header.end..].lines().next();
            let comment = line.unwrap_or_default().trim_end();
            let text = quoted(value) + comment;
            self.push_value(span, text, comment, secrecy);
            return Ok(());
        }
        let text = scalar_text(node, value)?;
        self.push_value(node.span(), text, "", secrecy);
        Ok(())
    }

    /// Removes a key and its value from a mapping.
    pub(super) fn remove_entry(
        &mut self,
        mapping: Node<'_>,
        entry: Entry<'_>,
    ) -> Result<(), Unwritable> {
        self.changed.insert(mapping.id());
        let own = entry_span(entry);
        let span = removal(mapping, &own, own.start)?;
        self.expected.removed.insert(entry.key.id());
        self.push(span, String::new());
        Ok(())
    }

    /// Leaves `{}` of a mapping, in place of its first entry. The caller removes the others.
    pub(super) fn empty(&mut self, mapping: Node<'_>, first: Entry<'_>) {
        self.changed.insert(mapping.id());
        self.expected.emptied.insert(mapping.id());
        let text = if is_flow(mapping) { "" } else { "{}" };
        self.push(entry_span(first), text.to_owned());
    }

    /// Removes an item from a list.
    pub(super) fn remove_item(&mut self, list: Node<'_>, item: Node<'_>) -> Result<(), Unwritable> {
        self.changed.insert(list.id());
        let own = item_span(item);
        let before = &list.document().text()[..own.start];
        let start = if is_flow(list) {
            own.start
        } else {
            before.rfind('-').ok_or(Unwritable)?
        };
        let span = removal(list, &(start..own.end), start)?;
        self.expected.removed.insert(item.id());
        self.push(span, String::new());
        Ok(())
    }

    /// Writes another item in place of one.
    pub(super) fn replace_item(
        &mut self,
        list: Node<'_>,
        item: Node<'_>,
        new: NewValue,
        secrecy: Secrecy,
    ) {
        self.changed.insert(list.id());
        self.push_value(item_span(item), flat(&new), "", secrecy);
        self.expected.items.insert(item.id(), new);
    }

    /// Writes other entries in place of one.
    pub(super) fn replace_entry(
        &mut self,
        mapping: Node<'_>,
        entry: Entry<'_>,
        new: Vec<NewEntry>,
    ) {
        self.changed.insert(mapping.id());
        let at = key_start(entry.key);
        let separator = separator(mapping, at);
        let text = entries_text(mapping, at, &new).join(&separator);
        self.push(entry_span(entry), text);
        self.expected.replaced.insert(entry.key.id(), new);
    }

    /// Writes entries in front of a key.
    pub(super) fn insert_before(&mut self, mapping: Node<'_>, key: Node<'_>, new: Vec<NewEntry>) {
        self.changed.insert(mapping.id());
        let at = key_start(key);
        let separator = separator(mapping, at);
        let text = entries_text(mapping, at, &new).join(&separator) + &separator;
        self.push(at..at, text);
        let before = self.expected.before.entry(key.id());
        before.or_default().extend(new);
    }

    /// Writes entries or items at the front of a collection.
    pub(super) fn insert_front(&mut self, collection: Node<'_>, new: Vec<NewEntry>) {
        self.changed.insert(collection.id());
        let span = collection.span();
        let first = collection.own_entries().next();
        let at = match first {
            _ if is_flow(collection) => span.start + 1,
            Some(first) => key_start(first.key),
            None => span.start,
        };
        let separator = separator(collection, at);
        let is_empty = collection.own_items().next().is_none() && first.is_none();
        let end = if is_empty { "" } else { &separator };
        let text = entries_text(collection, at, &new).join(&separator) + end;
        self.push(at..at, text);
        self.expected.front.insert(collection.id(), new);
    }

    fn push(&mut self, span: Range<usize>, text: String) {
        self.push_value(span, text, "", Secrecy::Public);
    }

    /// The same for a value, which may be a secret. `comment` follows it in `text`.
    fn push_value(&mut self, span: Range<usize>, text: String, comment: &str, secrecy: Secrecy) {
        let shown = (secrecy == Secrecy::Secret).then(|| quoted(HIDDEN) + comment);
        self.all.push(Splice { span, text, shown });
    }

    /// Writes the changes into the text of the document.
    pub(super) fn apply(mut self, document: &Document<'_>) -> Result<Written, Overlap> {
        let text = document.text();
        self.all
            .sort_by_key(|splice| (splice.span.start, !splice.span.is_empty()));
        let mut new = String::with_capacity(text.len() + text.len() / 8);
        let mut changes = Vec::with_capacity(self.all.len());
        let mut redactions = Vec::new();
        let mut done = 0;
        for mut splice in self.all {
            if splice.text.is_empty() {
                // Two removed neighbors share the comma between them.
                splice.span.start = splice.span.start.max(done).min(splice.span.end);
            }
            new.push_str(text.get(done..splice.span.start).ok_or(Overlap)?);
            let start = new.len();
            new.push_str(&splice.text);
            redactions.extend(splice.shown.map(|shown| (start..new.len(), shown)));
            done = splice.span.end;
            changes.push(TextChange {
                line: document.line(splice.span.start),
                span: splice.span,
            });
        }
        new.push_str(text.get(done..).ok_or(Overlap)?);
        Ok(Written {
            text: new,
            changes,
            redactions,
            expected: self.expected,
        })
    }
}

/// The bytes of a key and its value, without a comment after them.
fn entry_span(entry: Entry<'_>) -> Range<usize> {
    let text = entry.key.document().text();
    let start = key_start(entry.key);
    start..trimmed_end(text, entry.value.span().end).max(entry.key.span().end)
}

/// The bytes of an item, with its anchor, its tag and its header, and without a comment after it.
fn item_span(item: Node<'_>) -> Range<usize> {
    let spans = [item.anchor_span(), item.tag_span(), block_header(item)];
    let starts = spans.into_iter().flatten().map(|span| span.start);
    let start = starts.fold(item.span().start, usize::min);
    start..trimmed_end(item.document().text(), item.span().end).max(start)
}

/// The first byte of a key, with its anchor, its tag and the `?` of an explicit key.
fn key_start(key: Node<'_>) -> usize {
    let properties = [key.anchor_span(), key.tag_span()];
    let starts = properties.into_iter().flatten().map(|span| span.start);
    let start = starts.fold(key.span().start, usize::min);
    let text = &key.document().text()[..start];
    let trimmed = text.trim_end_matches([' ', '\t']);
    let Some(before) = trimmed.strip_suffix('?').filter(|_| trimmed.len() < start) else {
        return start;
    };
    let above = before.trim_end_matches([' ', '\t', '\u{feff}']);
    if above.is_empty() || above.ends_with(['\n', '-', '{', ',', '?', ':']) {
        before.len()
    } else {
        start
    }
}

/// The end of a node, without the blanks at the end of a block scalar's span or in front of an empty node.
fn trimmed_end(text: &str, end: usize) -> usize {
    text[..end].trim_end().len()
}

/// The bytes to remove with a part of a collection: whole lines in a block, a comma in flow.
fn removal(
    collection: Node<'_>,
    span: &Range<usize>,
    start: usize,
) -> Result<Range<usize>, Unwritable> {
    let text = collection.document().text();
    if !is_flow(collection) {
        let line = collection.document().line_start(start);
        let before = text[line..start].trim_start_matches('\u{feff}');
        if !before.trim().is_empty() {
            return Err(Unwritable);
        }
        let after = text[span.end..].find('\n');
        return Ok(line..after.map_or(text.len(), |at| span.end + at + 1));
    }
    let after = text[span.end..].trim_start();
    if after.starts_with(',') {
        let comma = text.len() - after.len() + 1;
        let rest = &text[comma..];
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        return Ok(span.start..comma + blanks);
    }
    let before = text[..span.start].trim_end();
    if before.ends_with(',') {
        return Ok(before.len() - 1..span.end);
    }
    Ok(span.clone())
}

/// The bytes of the header, `|` or `>` with its indicators; `None` for any other node.
fn block_header(node: Node<'_>) -> Option<Range<usize>> {
    let NodeKind::Scalar(Style::Literal | Style::Folded) = node.kind() else {
        return None;
    };
    let text = node.document().text();
    // Its key, or another node that may be on the same line.
    let before = node.before()?;
    let from = if before.holds(node) {
        before.span().start
    } else {
        before.span().end
    };
    let region = text.get(from..node.span().start)?.trim_end();
    let line = from + region.rfind('\n').map_or(0, |at| at + 1);
    let written = &text[line..from + region.len()];
    written.match_indices(['|', '>']).find_map(|(at, _)| {
        let rest = &written[at + 1..];
        let indicators = ['+', '-', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
        let behind = rest.trim_start_matches(indicators);
        let length = rest.len() - behind.len();
        let after = behind.trim_start();
        let is_separate = written[..at].is_empty() || written[..at].ends_with([' ', '\t']);
        let is_header = is_separate && (after.is_empty() || after.starts_with('#'));
        is_header.then(|| line + at..line + at + 1 + length)
    })
}
