//! YAML as Compose reads it: one document as a tree of nodes, each with its byte span.
//!
//! The tree is a list in the order of the text, each collection before its members, so that memory and time are
//! linear in the length of the text. An alias is a node that points at its target. Aliases are never expanded, so
//! that nested aliases cost nothing. Nesting is limited to 255 block and 255 flow levels.
//!
//! A comment without a space before it, as in `"x"# comment`, is an error, as in YAML. Compose accepts some of them.
//!
//! Spans are byte ranges of the given text. They count a BOM and the CR of CRLF.

mod build;
mod ids;
mod node;
mod scalar;

use std::{fmt, ops::Range, sync::OnceLock};

pub use granit_parser::{ScalarStyle as Style, StructureStyle as Layout};
pub use ids::{NodeMap, NodeSet};
pub use node::{Entry, Node, NodeKind};
pub use scalar::ScalarType;

/// A parsed text that holds at most one YAML document.
#[derive(Default)]
pub struct Document<'t> {
    text: &'t str,
    nodes: Vec<RawNode>,
    /// `&name`, with the `&`.
    anchors: NodeMap<Range<usize>>,
    /// `!tag`, with the `!`.
    tags: NodeMap<Range<usize>>,
    /// The values of scalars whose text differs from their value.
    values: NodeMap<String>,
    lines: OnceLock<Vec<u32>>,
}

/// The number of a node in its document, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// The number, counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A line and a column of a text, as editors count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Position {
    /// Counted from 1. A line ends at LF.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
}

/// Why a text is not a YAML document that Compose can read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {}, column {}", position.line, position.column)]
pub struct ParseError {
    /// The problem, without its position.
    pub message: String,
    /// Where the parser stopped.
    pub position: Position,
}

#[derive(Debug, Clone, Copy)]
struct RawNode {
    start: u32,
    end: u32,
    kind: NodeKind,
    /// The number of the first node that is not below this one.
    after: u32,
    /// The target of an alias; the number of any other node itself.
    target: u32,
}

impl<'t> Document<'t> {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// If the text is not YAML, holds a second document, or is larger than 4 GiB. An empty text is a document without
    /// a root.
    pub fn parse(text: &'t str) -> Result<Self, ParseError> {
        build::build(text)
    }

    /// The nodes, each with the number of nodes so far if aliases are expanded. An alias inside its own anchor counts as one.
    pub fn expanded(&self) -> impl Iterator<Item = (Node<'_>, u64)> {
        // The expanded size of each anchored collection, and the open collections with the count before each.
        let mut sizes: NodeMap<u64> = NodeMap::default();
        let mut open: Vec<(Node<'_>, u64)> = Vec::new();
        let mut count: u64 = 0;
        self.nodes().map(move |node| {
            while let Some((above, before)) = open.pop_if(|(above, _)| !above.holds(node)) {
                sizes.insert(above.id(), count - before);
            }
            let mut size = 1;
            if node.kind() == NodeKind::Alias {
                size = sizes.get(&node.resolved().id()).copied().unwrap_or(size);
            } else if node.anchor().is_some() && !node.is_scalar() {
                open.push((node, count));
            }
            count = count.saturating_add(size);
            (node, count)
        })
    }

    /// The parsed text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The outermost node; `None` for an empty text.
    pub fn root(&self) -> Option<Node<'_>> {
        (!self.nodes.is_empty()).then(|| Node::new(self, 0))
    }

    /// The value of a key of the outermost mapping.
    pub fn get(&self, key: &str) -> Option<Node<'_>> {
        self.root()?.get(key)
    }

    /// The node with this number.
    pub fn node(&self, id: NodeId) -> Option<Node<'_>> {
        (id.index() < self.nodes.len()).then(|| Node::new(self, id.0))
    }

    /// Every node, in the order of the text.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node<'_>> {
        (0..self.nodes.len()).map(|id| Node::new(self, build::narrow(id)))
    }

    /// What Compose rejects before 5.0.0, whose YAML parser is an older one: scalars in brackets without quotes that contain `?` or
    /// begin with `:`, and nodes with an anchor whose name has other characters than letters, digits, `-` and `_`.
    pub fn newer_syntax(&self) -> impl Iterator<Item = Node<'_>> {
        let in_brackets = self.nodes().filter(|node| {
            matches!(
                node.kind(),
                NodeKind::Mapping(Layout::Flow) | NodeKind::Sequence(Layout::Flow)
            )
        });
        let scalars = in_brackets.flat_map(|node| {
            let entries = node.own_entries();
            let entries = entries.flat_map(|entry| [entry.key, entry.value]);
            node.own_items().chain(entries)
        });
        let is_newer = |node: &Node| {
            let scalar = node.scalar();
            scalar.is_some_and(|(text, style)| {
                style == Style::Plain && (text.contains('?') || text.starts_with(':'))
            })
        };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_named = move |node: &Node| {
            let anchor = node.anchor();
            anchor.is_some_and(|name| !name.chars().all(is_of_name))
        };
        scalars
            .filter(is_newer)
            .chain(self.nodes().filter(is_named))
    }

    /// The line of a byte offset, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.line_starts()
            .partition_point(|&start| start as usize <= offset)
    }

    /// The offset of the first byte of the line that holds a byte offset.
    pub fn line_start(&self, offset: usize) -> usize {
        self.line_starts()[self.line(offset) - 1] as usize
    }

    /// The line end of the first line, CRLF or LF.
    pub fn line_end(&self) -> &'static str {
        match self.line_starts().get(1) {
            Some(&second) if self.text[..second as usize].ends_with("\r\n") => "\r\n",
            _ => "\n",
        }
    }

    /// The offset of each line's first byte.
    fn line_starts(&self) -> &[u32] {
        self.lines.get_or_init(|| {
            let breaks = memchr::memchr_iter(b'\n', self.text.as_bytes());
            let starts = breaks.map(|at| build::narrow(at + 1));
            std::iter::once(0).chain(starts).collect()
        })
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, nodes) = (self.text.len(), self.nodes.len());
        write!(f, "Document({bytes} bytes, {nodes} nodes)")
    }
}

impl Position {
    /// The position of a byte offset in a text. An offset after the end counts as the end.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests;
