//! What the passes find: edits, blockers and notices.
//!
//! Invariant: an edit changes the value of one place only, and in a form that cannot be misread. Anything else is not simple:
//! Compose resolves the text then.

use std::{cmp::Reverse, ops::Range};

use composefile::{
    document::{Document, Entry, Layout, Node, NodeKind, Position},
    reader::Reader,
    services::Service,
};

pub(super) use super::write::{NewEntry, NewValue};
use super::{
    Finding, Kind, TextChange,
    write::{entries_text, flat, quoted, scalar_text},
};
use crate::rewrite::replaced;

/// What the passes find.
pub(super) struct Findings<'d> {
    document: &'d Document<'d>,
    /// Whether a part of the text is used in another place: by an alias, by a merge, or by a service that extends another one.
    has_repeats: bool,
    edits: Vec<Edit>,
    pub(super) blockers: Vec<Finding>,
    pub(super) notices: Vec<Finding>,
}

/// The bytes of the original to remove, which are none for an insertion, and the text to write in their place.
type Edit = (Range<usize>, String);

impl<'d> Findings<'d> {
    pub(super) fn new(reader: &Reader<'d, '_>) -> Self {
        let mut nodes = reader.document.nodes();
        let repeats = |node: Node<'_>| {
            node.kind() == NodeKind::Alias || node.own_entries().any(|entry| entry.is_merge())
        };
        let mut services = reader.services.iter();
        Self {
            document: reader.document,
            has_repeats: nodes.any(repeats)
                || services.any(|service| service.node.get("extends").is_some()),
            edits: Vec::new(),
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

    /// Leaves a part to Compose.
    pub(super) fn not_simple(&mut self, node: Node<'_>) {
        self.blockers.push(Finding::not_simple(Some(node)));
    }

    pub(super) fn notice(&mut self, line: usize, message: impl AsRef<str>) {
        let position = Position { line, column: 1 };
        self.notices
            .push(Finding::of_stack(message.as_ref()).placed(position));
    }

    /// Whether keys of a service can be added and removed; blocks if not.
    pub(super) fn is_simple(&mut self, service: Service<'_>) -> bool {
        let is_simple = !self.has_repeats && is_block(service.node);
        if !is_simple {
            self.not_simple(service.node);
        }
        is_simple
    }

    /// Gives a scalar another text.
    pub(super) fn set(&mut self, node: Node<'d>, text: &str) {
        let text = scalar_text(node, text);
        self.edit(node, text.map(|text| (node.span(), text)));
    }

    /// Writes another value in place of one.
    pub(super) fn replace_value(&mut self, node: Node<'d>, new: &NewValue) {
        let is_simple = !is_block(node) && node.anchor().is_none() && node.tag().is_none();
        self.edit(node, is_simple.then(|| (node.span(), flat(new))));
    }

    /// Removes a key and its value.
    pub(super) fn remove(&mut self, mapping: Node<'d>, entry: Entry<'d>) {
        let is_alone = mapping.own_entries().count() == 1;
        let span = self.entry(mapping, entry).filter(|_| !is_alone);
        let text = self.document.text();
        let lines = span.map(|span| {
            let start = span.start - self.indent(span.start).unwrap_or_default();
            let end = text[span.end..].find('\n').map(|at| span.end + at + 1);
            start..end.unwrap_or(text.len())
        });
        self.edit(entry.key, lines.map(|lines| (lines, String::new())));
    }

    /// Writes other entries in place of one.
    pub(super) fn replace(&mut self, mapping: Node<'d>, entry: Entry<'d>, new: &[NewEntry]) {
        let edit = self.entry(mapping, entry).and_then(|span| {
            let indent = self.indent(span.start)?;
            Some((span, entries_text(self.document, indent, new)))
        });
        self.edit(entry.key, edit);
    }

    /// Writes entries in front of the first of a mapping that begins a line.
    pub(super) fn insert(&mut self, mapping: Node<'d>, new: &[NewEntry]) {
        let mut entries = mapping.own_entries();
        let first = entries.find(|entry| self.indent(entry.key.span().start).is_some());
        let edit = first.and_then(|first| {
            let start = self.entry(mapping, first)?.start;
            let indent = self.indent(start)?;
            let text = entries_text(self.document, indent, new);
            Some(self.line(start, indent, &text))
        });
        self.edit(mapping, edit);
    }

    /// Writes items in front of those of a list.
    pub(super) fn insert_items(&mut self, list: Node<'d>, items: &[String]) {
        let place = || {
            let first = list.own_items().next().filter(|first| !is_lines(*first))?;
            let before = &self.document.text()[..first.span().start];
            let start = before.trim_end_matches(' ').len().checked_sub(1)?;
            let is_item = is_block(list) && before[start..].starts_with('-');
            self.indent(start)
                .filter(|_| is_item)
                .map(|indent| (start, indent))
        };
        let place = place();
        for item in items {
            let line = |(start, indent)| self.line(start, indent, &format!("- {}", quoted(item)));
            self.edit(list, place.map(line));
        }
    }

    /// The bytes of an own entry of a mapping in block style.
    fn entry(&self, mapping: Node<'d>, entry: Entry<'d>) -> Option<Range<usize>> {
        let start = entry.key.span().start;
        self.indent(start).filter(|_| is_block(mapping))?;
        // Without the blanks at the end of a block scalar or in front of an empty node.
        let end = self.document.text()[..entry.value.span().end]
            .trim_end()
            .len();
        Some(start..end.max(entry.key.span().end))
    }

    /// The blanks in front of a byte, if its line begins with them.
    fn indent(&self, at: usize) -> Option<usize> {
        let line = &self.document.text()[self.document.line_start(at)..at];
        let before = line.trim_start_matches('\u{feff}');
        let is_blank = before.bytes().all(|byte| byte == b' ');
        is_blank.then_some(before.len())
    }

    /// A new line in front of the one on which something starts.
    fn line(&self, start: usize, indent: usize, text: &str) -> Edit {
        let (at, end) = (start - indent, self.document.line_end());
        (at..at, format!("{:indent$}{text}{end}", ""))
    }

    /// Adds an edit. Without one, the place is not simple.
    fn edit(&mut self, node: Node<'_>, edit: Option<Edit>) {
        match edit.filter(|_| !self.has_repeats) {
            Some(edit) => self.edits.push(edit),
            None => self.not_simple(node),
        }
    }

    /// Writes the edits into the text. Returns the changes, too, in the order of the original. An edit inside another one has no
    /// effect, and of two in one place the later one has: it was made from the value that the earlier one writes. `None` if
    /// two contradict each other.
    pub(super) fn apply(mut self) -> Option<(String, Vec<TextChange>)> {
        self.edits.sort_by_key(|(Range { start, end }, _)| {
            let (start, end) = (*start, *end);
            (start, start != end, Reverse(end))
        });
        let mut edits: Vec<Edit> = Vec::with_capacity(self.edits.len());
        for edit in self.edits {
            let (span, is_insertion) = (&edit.0, edit.0.is_empty());
            match edits.last_mut() {
                Some(last) if *span == last.0 && !is_insertion => *last = edit,
                Some((last, _)) if span.start < last.end => {
                    if is_insertion || span.end > last.end {
                        return None;
                    }
                }
                _ => edits.push(edit),
            }
        }
        let change = |(span, _): &Edit| TextChange {
            line: self.document.line(span.start),
            span: span.clone(),
        };
        let changes = edits.iter().map(change).collect();
        Some((replaced(self.document.text(), edits), changes))
    }
}

/// Whether a node is written on lines of its own, and not in brackets.
pub(super) fn is_block(node: Node<'_>) -> bool {
    let is_collection = matches!(
        node.kind(),
        NodeKind::Mapping(Layout::Block) | NodeKind::Sequence(Layout::Block)
    );
    is_collection || is_lines(node)
}

/// Whether a node is a block scalar, whose span begins after its header.
fn is_lines(node: Node<'_>) -> bool {
    use composefile::document::Style::{Folded, Literal};
    matches!(node.kind(), NodeKind::Scalar(Literal | Folded))
}
