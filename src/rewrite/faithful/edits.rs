//! The edits of a text: ranges of bytes, and what is written there.
//!
//! Invariant: an edit changes the value of one place only, and in a form that cannot be misread. Anything else is not simple:
//! Compose resolves the text then.

use std::{cmp::Reverse, ops::Range};

use composefile::{
    document::{Document, Entry, Layout, Node, NodeKind, NodeSet},
    reader::Reader,
    services::Service,
};

use super::{
    TextChange,
    write::{NewEntry, NewValue, NotSimple, Secrecy, entries_text, flat, quoted, scalar_text},
};
use crate::text::HIDDEN;

/// A range of the new text that must not be shown, and what to show instead.
pub(super) type Redaction = (Range<usize>, String);

/// The edits of a text.
pub(super) struct Edits<'d> {
    document: &'d Document<'d>,
    /// The nodes that aliases repeat, and whether they stay what they are there: `<<` merges the entries of a mapping into another
    /// one, so that a path of a service is one in every service.
    repeated: Vec<(Node<'d>, bool)>,
    /// The services that extend another one, and those that are extended.
    related: NodeSet,
    all: Vec<Edit>,
}

/// One edit.
struct Edit {
    /// The bytes of the original to remove; empty for an insertion.
    span: Range<usize>,
    /// The text to write in their place.
    text: String,
    /// Whether `text` contains a value of an env file.
    secrecy: Secrecy,
}

/// The new text.
pub(super) struct Written {
    pub(super) text: String,
    /// In the order of the original.
    pub(super) changes: Vec<TextChange>,
    pub(super) redactions: Vec<Redaction>,
}

impl<'d> Edits<'d> {
    pub(super) fn new(reader: &Reader<'d, '_>) -> Self {
        let entries = reader.document.nodes().flat_map(Node::own_entries);
        let merges = entries.filter(Entry::is_merge).map(|entry| entry.value);
        let with_items = |value: Node<'d>| std::iter::once(value).chain(value.own_items());
        let in_merges: NodeSet = merges.flat_map(with_items).map(Node::id).collect();
        let nodes = reader.document.nodes();
        let aliases = nodes.filter(|node| node.kind() == NodeKind::Alias);
        let services = reader.services.iter();
        let chains = services.map(|service| reader.chain(*service));
        let related = chains.filter(|chain| chain.len() > 1).flatten();
        Self {
            document: reader.document,
            repeated: aliases
                .map(|alias| (alias.resolved(), in_merges.contains(&alias.id())))
                .collect(),
            related: related.map(|service| service.node.id()).collect(),
            all: Vec::new(),
        }
    }

    /// Whether keys of a service can be added and removed without an effect on other services.
    pub(super) fn is_simple(&self, service: Service<'d>) -> bool {
        let mut entries = service.node.own_entries();
        is_block(service.node)
            && !self.is_repeated(service.node)
            && !self.related.contains(&service.node.id())
            && !entries.any(|entry| entry.is_merge())
    }

    /// Whether an alias repeats a node, or something around it.
    fn is_repeated(&self, node: Node<'d>) -> bool {
        let mut around = self.around(node);
        node.kind() == NodeKind::Alias || around.next().is_some()
    }

    /// How aliases repeat a node, or something around it.
    fn around(&self, node: Node<'d>) -> impl Iterator<Item = bool> {
        let repeated = self.repeated.iter();
        let around =
            repeated.filter(move |(other, _)| other.id() == node.id() || other.holds(node));
        around.map(|(_, is_merged)| *is_merged)
    }

    /// Gives a scalar another text, wherever it is repeated.
    pub(super) fn inline(
        &mut self,
        node: Node<'d>,
        text: &str,
        secrecy: Secrecy,
    ) -> Result<(), NotSimple> {
        let text = scalar_text(node, text)?;
        self.push(node.span(), text, secrecy);
        Ok(())
    }

    /// Gives a scalar another text.
    pub(super) fn set(
        &mut self,
        node: Node<'d>,
        text: &str,
        secrecy: Secrecy,
    ) -> Result<(), NotSimple> {
        let is_same = self.around(node).all(|is_merged| is_merged);
        if node.kind() == NodeKind::Alias || !is_same {
            return Err(NotSimple);
        }
        self.inline(node, text, secrecy)
    }

    /// Writes another value in place of one.
    pub(super) fn replace_value(
        &mut self,
        node: Node<'d>,
        new: &NewValue,
        secrecy: Secrecy,
    ) -> Result<(), NotSimple> {
        self.whole(node)?;
        if is_block(node) || node.anchor().is_some() || node.tag().is_some() {
            return Err(NotSimple);
        }
        self.push(node.span(), flat(new), secrecy);
        Ok(())
    }

    /// Removes a key and its value.
    pub(super) fn remove(&mut self, mapping: Node<'d>, entry: Entry<'d>) -> Result<(), NotSimple> {
        if mapping.own_entries().count() == 1 {
            return Err(NotSimple);
        }
        let span = self.entry(mapping, entry)?;
        self.whole(entry.value)?;
        self.remove_lines(&span);
        Ok(())
    }

    /// Writes other entries in place of one.
    pub(super) fn replace(
        &mut self,
        mapping: Node<'d>,
        entry: Entry<'d>,
        new: &[NewEntry],
    ) -> Result<(), NotSimple> {
        let span = self.entry(mapping, entry)?;
        self.whole(entry.value)?;
        let indent = self.indent(span.start).ok_or(NotSimple)?.len();
        let text = entries_text(self.document, indent, new);
        self.push(span, text, Secrecy::Public);
        Ok(())
    }

    /// Writes entries in front of the first of a mapping that begins a line.
    pub(super) fn insert(&mut self, mapping: Node<'d>, new: &[NewEntry]) -> Result<(), NotSimple> {
        let mut entries = mapping.own_entries();
        let first = entries.find(|entry| self.indent(entry.key.span().start).is_some());
        let start = self.entry(mapping, first.ok_or(NotSimple)?)?.start;
        let indent = self.indent(start).ok_or(NotSimple)?.len();
        let text = entries_text(self.document, indent, new);
        self.insert_line(start - indent, indent, &text);
        Ok(())
    }

    /// Removes items of a list, of which others stay.
    pub(super) fn remove_item(&mut self, list: Node<'d>, item: Node<'d>) -> Result<(), NotSimple> {
        let (start, _) = self.item(list, item)?;
        self.whole(item)?;
        self.remove_lines(&(start..self.end(item)));
        Ok(())
    }

    /// Writes items in front of those of a list.
    pub(super) fn insert_items(
        &mut self,
        list: Node<'d>,
        items: &[String],
    ) -> Result<(), NotSimple> {
        let first = list.own_items().next().ok_or(NotSimple)?;
        let (start, indent) = self.item(list, first)?;
        for item in items {
            self.insert_line(start - indent, indent, &format!("- {}", quoted(item)));
        }
        Ok(())
    }

    /// The bytes of an own entry of a mapping in block style.
    fn entry(&self, mapping: Node<'d>, entry: Entry<'d>) -> Result<Range<usize>, NotSimple> {
        let mut own = mapping.own_entries();
        let is_own = own.any(|other| other.key.id() == entry.key.id());
        let start = entry.key.span().start;
        if !is_own || !is_block(mapping) || self.indent(start).is_none() {
            return Err(NotSimple);
        }
        self.own(mapping)?;
        Ok(start..self.end(entry.value).max(entry.key.span().end))
    }

    /// The `-` of an item of a list in block style, and its indentation.
    fn item(&self, list: Node<'d>, item: Node<'d>) -> Result<(usize, usize), NotSimple> {
        self.own(list)?;
        let before = &self.document.text()[..item.span().start];
        let start = before
            .trim_end_matches(' ')
            .len()
            .checked_sub(1)
            .ok_or(NotSimple)?;
        let indent = self
            .indent(start)
            .filter(|_| before[start..].starts_with('-'));
        match indent {
            Some(indent) if is_block(list) && !is_lines(item) => Ok((start, indent.len())),
            _ => Err(NotSimple),
        }
    }

    fn own(&self, node: Node<'d>) -> Result<(), NotSimple> {
        if self.is_repeated(node) {
            return Err(NotSimple);
        }
        Ok(())
    }

    /// Whether no alias repeats what is in a node.
    fn whole(&self, node: Node<'d>) -> Result<(), NotSimple> {
        self.own(node)?;
        if self.repeated.iter().any(|(other, _)| node.holds(*other)) {
            return Err(NotSimple);
        }
        Ok(())
    }

    /// The blanks in front of a byte, if its line begins with them.
    fn indent(&self, at: usize) -> Option<&'d str> {
        let line = &self.document.text()[self.document.line_start(at)..at];
        let before = line.trim_start_matches('\u{feff}');
        before.bytes().all(|byte| byte == b' ').then_some(before)
    }

    /// The end of a node, without the blanks at the end of a block scalar or in front of an empty node.
    fn end(&self, node: Node<'d>) -> usize {
        self.document.text()[..node.span().end].trim_end().len()
    }

    fn remove_lines(&mut self, span: &Range<usize>) {
        let text = self.document.text();
        let start = span.start - self.indent(span.start).map_or(0, str::len);
        let end = text[span.end..].find('\n').map(|at| span.end + at + 1);
        self.push(
            start..end.unwrap_or(text.len()),
            String::new(),
            Secrecy::Public,
        );
    }

    fn insert_line(&mut self, at: usize, indent: usize, text: &str) {
        let line = format!("{}{text}{}", " ".repeat(indent), self.document.line_end());
        self.push(at..at, line, Secrecy::Public);
    }

    pub(super) fn push(&mut self, span: Range<usize>, text: String, secrecy: Secrecy) {
        self.all.push(Edit {
            span,
            text,
            secrecy,
        });
    }

    /// Writes the edits into the text. An edit inside another one has no effect, and of two in one place the later one has: it
    /// was made from the value that the earlier one writes.
    pub(super) fn apply(mut self) -> Result<Written, NotSimple> {
        let key = |edit: &Edit| {
            let Range { start, end } = edit.span;
            (start, start != end, Reverse(end))
        };
        self.all.sort_by_key(key);
        let mut edits: Vec<Edit> = Vec::with_capacity(self.all.len());
        for mut edit in self.all {
            match edits.last_mut() {
                Some(last) if edit.span == last.span && !edit.span.is_empty() => {
                    edit.secrecy = edit.secrecy.max(last.secrecy);
                    *last = edit;
                }
                Some(last) if edit.span.start < last.span.end => {
                    if edit.span.is_empty() || edit.span.end > last.span.end {
                        return Err(NotSimple);
                    }
                }
                _ => edits.push(edit),
            }
        }
        let text = self.document.text();
        let mut written = Written {
            text: String::with_capacity(text.len() + text.len() / 8),
            changes: Vec::with_capacity(edits.len()),
            redactions: Vec::new(),
        };
        let mut done = 0;
        for edit in edits {
            written.text.push_str(&text[done..edit.span.start]);
            let start = written.text.len();
            written.text.push_str(&edit.text);
            if edit.secrecy == Secrecy::Secret {
                let hidden = (start..written.text.len(), quoted(HIDDEN));
                written.redactions.push(hidden);
            }
            done = edit.span.end;
            written.changes.push(TextChange {
                line: self.document.line(edit.span.start),
                span: edit.span,
            });
        }
        written.text.push_str(&text[done..]);
        Ok(written)
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
