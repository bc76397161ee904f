//! YAML as compose reads it: one document as a tree of nodes, each with its byte span.
//!
//! The tree is a plain list in the order of the text, a collection before what it holds, so memory
//! and time are linear in the text. An alias is a node of its own that points at its target: it is
//! resolved by reference and never expanded, so a billion laughs cost nothing. Nesting is limited to
//! 255 block and 255 flow levels; more is a [`ParseError`].
//!
//! Invariant: spans are byte ranges of the text as given, BOM and CRLF included.

mod build;
mod ids;
mod node;
mod scalar;

use std::{fmt, ops::Range, sync::OnceLock};

pub use ids::{NodeMap, NodeSet};
pub use node::{Entries, Entry, Items, Node, NodeKind};
pub use scalar::{ScalarType, Style};

/// A parsed text that holds at most one YAML document.
pub struct Document<'t> {
    text: &'t str,
    nodes: Vec<RawNode>,
    /// Anchors and tags; few nodes have one. The first stands for "none".
    properties: Vec<Properties>,
    /// The values of scalars that are written otherwise than they read.
    decoded: String,
    lines: OnceLock<Vec<u32>>,
}

/// The place of a node in its document, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Its number, counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Layout of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// By indentation.
    Block,
    /// In brackets.
    Flow,
}

/// A place in a text, as editors count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Position {
    /// Counted from 1; a line ends at LF.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
}

/// Why a text is not a YAML document that compose could read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {}, column {}", position.line, position.column)]
pub struct ParseError {
    /// What is wrong, without its place.
    pub message: String,
    /// The byte of the text where it was noticed.
    pub offset: usize,
    /// The same place for people.
    pub position: Position,
}

/// A key that stands twice in one mapping, which compose refuses.
#[derive(Debug, Clone, Copy)]
pub struct DuplicateKey<'d> {
    /// Where the key stands first.
    pub first: Node<'d>,
    /// Where it stands again.
    pub again: Node<'d>,
}

#[derive(Debug, Clone, Copy)]
struct RawNode {
    start: u32,
    end: u32,
    /// Index into `Document::properties`; 0 is none.
    properties: u32,
    shape: Shape,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Scalar {
        style: Style,
        stored: Stored,
        offset: u32,
        length: u32,
    },
    /// `after` is the first node that is not below this one.
    Sequence {
        layout: Layout,
        after: u32,
    },
    /// `merge` is the first key that is `<<`; 0 is none.
    Mapping {
        layout: Layout,
        after: u32,
        merge: u32,
    },
    Alias {
        target: u32,
    },
}

/// Where a scalar's value lies.
#[derive(Debug, Clone, Copy)]
enum Stored {
    InText,
    Decoded,
}

#[derive(Debug, Clone, Default)]
struct Properties {
    /// `&name`, with the `&`.
    anchor: Option<Range<u32>>,
    /// The tag as written, with the `!`.
    tag: Option<Range<u32>>,
}

impl<'t> Document<'t> {
    /// Reads `text`; a second document in it is an error, an empty text is not.
    pub fn parse(text: &'t str) -> Result<Self, ParseError> {
        build::build(text)
    }

    /// The text that the spans count in.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The outermost node; `None` where the text holds none.
    pub fn root(&self) -> Option<Node<'_>> {
        (!self.nodes.is_empty()).then(|| Node::new(self, 0))
    }

    /// The value of a key of the outermost mapping.
    pub fn get(&self, key: &str) -> Option<Node<'_>> {
        self.root()?.get(key)
    }

    /// A node by its place.
    pub fn node(&self, id: NodeId) -> Option<Node<'_>> {
        (id.index() < self.nodes.len()).then(|| Node::new(self, id.0))
    }

    /// Every node in the order of the text.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node<'_>> {
        (0..self.nodes.len()).map(|id| Node::new(self, build::narrow(id)))
    }

    /// The line that a byte of the text is on, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.line_starts()
            .partition_point(|&start| start as usize <= offset)
    }

    /// The first byte of the line that a byte of the text is on.
    pub fn line_start(&self, offset: usize) -> usize {
        self.line_starts()[self.line(offset) - 1] as usize
    }

    /// The place of a byte for people.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let before = &self.text[self.line_start(offset)..offset];
        Position {
            line: self.line(offset),
            column: before.chars().count() + 1,
        }
    }

    /// How the text ends its first line, CRLF or LF.
    pub fn line_end(&self) -> &'static str {
        match self.line_starts().get(1) {
            Some(&second) if self.text[..second as usize].ends_with("\r\n") => "\r\n",
            _ => "\n",
        }
    }

    fn line_starts(&self) -> &[u32] {
        self.lines.get_or_init(|| line_starts(self.text))
    }

    /// Every key that stands twice in the same mapping, in the order of the text.
    pub fn duplicate_keys(&self) -> Vec<DuplicateKey<'_>> {
        let mut found = Vec::new();
        let mut keys = Vec::new();
        for node in self.nodes() {
            node::duplicates_in(node, &mut keys, &mut found);
        }
        found.sort_by_key(|duplicate| duplicate.again.id());
        found
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Document({} bytes, {} nodes)",
            self.text.len(),
            self.nodes.len()
        )
    }
}

impl Position {
    /// The place of a byte in a text; one behind the end is the end.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// The offset of each line's first byte.
fn line_starts(text: &str) -> Vec<u32> {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes());
    std::iter::once(0)
        .chain(breaks.map(|at| build::narrow(at + 1)))
        .collect()
}

#[cfg(test)]
mod tests;
