//! Writes the definition of an anchor in place of an alias, because the part of the text with the definition is removed.
#![deny(clippy::disallowed_methods)]

use std::ops::Range;

use composefile::document::{Document, Layout, Node, NodeKind, Style};

use super::{block, write::Unwritable};

/// A definition and the alias that it replaces.
pub(super) struct Move {
    /// The bytes of the definition, with its anchor.
    pub(super) from: Range<usize>,
    /// The bytes of the alias.
    pub(super) to: Range<usize>,
    /// By how many columns the lines of the definition move to the right.
    shift: isize,
}

impl Move {
    /// Fails if the definition cannot be written in place of an alias. The error is that alias.
    pub(super) fn new(definition: Node<'_>, alias: Node<'_>) -> Result<Self, Unwritable> {
        let document = definition.document();
        let text = document.text();
        let start = block::start(definition);
        let from = start..text[..definition.span().end].trim_end().len().max(start);
        let written = &text[from.clone()];
        let is_block = match definition.kind() {
            NodeKind::Sequence(layout) | NodeKind::Mapping(layout) => layout == Layout::Block,
            NodeKind::Scalar(style) => matches!(style, Style::Literal | Style::Folded),
            NodeKind::Alias => true,
        };
        let is_flow = |node: &Node<'_>| {
            let layout = NodeKind::Sequence(Layout::Flow);
            let is_flow = node.kind() == layout || node.kind() == NodeKind::Mapping(Layout::Flow);
            is_flow && node.holds(alias)
        };
        let is_plain = definition.kind() == NodeKind::Scalar(Style::Plain);
        if document.nodes().any(|node| is_flow(&node))
            && (is_block || is_plain && written.contains(['[', ']', '{', '}', ',']))
        {
            return Err(Unwritable);
        }
        let to = alias.span();
        // A comment after the alias would become part of a block scalar.
        let rest = text[to.end..].lines().next().unwrap_or_default();
        if is_block && rest.contains('#') && ends_in_block_scalar(definition) {
            return Err(Unwritable);
        }
        let first = definition.own_entries().next().map(|entry| entry.key);
        let first = first.or_else(|| definition.own_items().next().map(|_| definition));
        let before = match first {
            Some(first) if is_block => {
                let at = block::start(first);
                text[document.line_start(at)..at].chars().count()
            }
            _ => indentation(document, start),
        };
        let shift = indentation(document, to.start).cast_signed() - before.cast_signed();
        Ok(Self { from, to, shift })
    }

    /// Whether a change of the text is inside the definition, and so moves with it.
    pub(super) fn holds(&self, span: &Range<usize>) -> bool {
        self.from.start < span.start && span.end <= self.from.end
    }

    /// A writer of the definition's text in its new place.
    pub(super) fn writer(&self) -> Writer {
        Writer {
            shift: self.shift,
            blanks: None,
            text: String::new(),
        }
    }
}

/// Writes text piece by piece, and indents each line but the first.
pub(super) struct Writer {
    shift: isize,
    /// The spaces at the start of the current line so far; `None` after them.
    blanks: Option<usize>,
    pub(super) text: String,
}

impl Writer {
    pub(super) fn push(&mut self, piece: &str) {
        for c in piece.chars() {
            match (c, self.blanks) {
                ('\n', _) => self.blanks = Some(0),
                (' ', Some(blanks)) => {
                    self.blanks = Some(blanks + 1);
                    continue;
                }
                (_, Some(blanks)) => {
                    let blanks = blanks.saturating_add_signed(self.shift);
                    self.text.extend(std::iter::repeat_n(' ', blanks));
                    self.blanks = None;
                }
                (_, None) => {}
            }
            self.text.push(c);
        }
    }
}

fn ends_in_block_scalar(node: Node<'_>) -> bool {
    let below = node.document().nodes().filter(|other| node.holds(*other));
    below
        .chain([node])
        .any(|other| block::header(other).is_some() && other.span().end >= node.span().end)
}

/// The column at which the children of a collection at this offset would start.
fn indentation(document: &Document<'_>, at: usize) -> usize {
    let before = &document.text()[document.line_start(at)..at];
    let mut rest = before.trim_start_matches(['\u{feff}', ' ']);
    while let Some(after) = rest.strip_prefix("- ") {
        rest = after.trim_start_matches(' ');
    }
    let column = before.chars().count() - rest.chars().count();
    if rest.is_empty() { column } else { column + 2 }
}
