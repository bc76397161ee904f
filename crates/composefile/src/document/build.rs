//! Builds the list of nodes from the events of the parser.

use std::ops::Range;

use granit_parser::{Event, Parser, Span};

use super::{
    Document, Layout, NodeId, NodeKind, ParseError, Position, RawNode, Style, scalar::inside,
};

/// Parses `text`. Nothing else calls the YAML parser.
pub(super) fn build(text: &str) -> Result<Document<'_>, ParseError> {
    if u32::try_from(text.len()).is_err() {
        return Err(error(text, 0, "the text is larger than 4 GiB".into()));
    }
    let options = granit_parser::options! { emit_comments: false, emit_anchor_events: true };
    let mut builder = Builder::new(text);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|failure| {
            let offset = failure.marker().byte_offset().unwrap_or_default();
            error(text, offset, failure.info())
        })?;
        builder.take(event, span)?;
    }
    Ok(builder.document)
}

/// Offsets and numbers of nodes fit: `build` rejects a longer text, and each node takes a byte or more.
pub(super) fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[derive(Default)]
struct Builder<'t> {
    document: Document<'t>,
    /// The open collections, outermost first.
    open: Vec<Open>,
    /// The node of each anchor. The parser counts anchors from 1.
    anchored: Vec<u32>,
    documents: usize,
}

struct Open {
    id: u32,
    /// The column in which the collection starts.
    column: usize,
    /// The number of direct children so far.
    below: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            document: Document {
                text,
                // Most texts have at most one node every 15 bytes.
                nodes: Vec::with_capacity(text.len() / 15),
                ..Document::default()
            },
            ..Self::default()
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ParseError> {
        let range = span.byte_range().unwrap_or_default();
        match event {
            Event::DocumentStart(..) => self.start_document(range.start)?,
            Event::Scalar(value, style, anchor, _) => {
                let range = match style {
                    Style::Plain => self.behind_colon(range, span),
                    _ => range,
                };
                let is_value = self.is_value(&value, style, range.clone());
                self.push(range, NodeKind::Scalar(style), anchor, span);
                if !is_value {
                    let id = NodeId(self.last());
                    self.document.values.insert(id, value.into_owned());
                }
            }
            Event::SequenceStart(layout, anchor, _) => {
                let start = self.sequence_start(layout, range.start);
                let range = start..range.end.max(start);
                self.push(range, NodeKind::Sequence(layout), anchor, span);
                self.open(span);
            }
            Event::MappingStart(layout, anchor, _) => {
                self.push(range, NodeKind::Mapping(layout), anchor, span);
                self.open(span);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&range),
            Event::Alias(anchor) => {
                let known = self.anchored.get(anchor.saturating_sub(1)).copied();
                let target = known.ok_or_else(|| {
                    error(self.document.text, range.start, "unknown alias".into())
                })?;
                self.push(range, NodeKind::Alias, 0, span);
                if let Some(alias) = self.document.nodes.last_mut() {
                    alias.target = target;
                }
            }
            // The parser reports an anchor right after the node that carries it.
            Event::Anchor(..) => {
                let last = NodeId(self.last());
                self.document.anchors.insert(last, range);
            }
            _ => {}
        }
        Ok(())
    }

    fn start_document(&mut self, offset: usize) -> Result<(), ParseError> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        let message = "a second YAML document starts here: only one is supported".into();
        Err(error(self.document.text, offset, message))
    }

    fn push(&mut self, range: Range<usize>, kind: NodeKind, anchor: usize, span: Span) {
        if let Some(outer) = self.open.last_mut() {
            outer.below += 1;
        }
        let id = narrow(self.document.nodes.len());
        if let Some(tag) = span.tag_span().and_then(|tag| tag.byte_range()) {
            self.document.tags.insert(NodeId(id), tag);
        }
        if anchor != 0 {
            let known = self.anchored.len().max(anchor);
            self.anchored.resize(known, id);
            self.anchored[anchor - 1] = id;
        }
        self.document.nodes.push(RawNode {
            start: narrow(range.start),
            end: narrow(range.end),
            kind,
            after: id + 1,
            target: id,
        });
    }

    fn open(&mut self, span: Span) {
        self.open.push(Open {
            id: self.last(),
            column: span.start.col(),
            below: 0,
        });
    }

    fn last(&self) -> u32 {
        narrow(self.document.nodes.len() - 1)
    }

    /// Ends the innermost collection: a flow collection at its bracket, a block collection with its last node.
    fn close(&mut self, range: &Range<usize>) {
        let Some(Open { id, .. }) = self.open.pop() else {
            return;
        };
        let count = narrow(self.document.nodes.len());
        let last_end = self.document.nodes[self.last() as usize].end;
        let node = &mut self.document.nodes[id as usize];
        node.after = count;
        node.end = match node.kind {
            NodeKind::Sequence(Layout::Flow) | NodeKind::Mapping(Layout::Flow) => narrow(range.end),
            _ => last_end.max(node.end),
        };
        // The outer collection takes its end from the last node, which may end before this one.
        let end = node.end;
        if let Some(outer) = self.open.last() {
            let outer = &mut self.document.nodes[outer.id as usize];
            outer.end = outer.end.max(end);
        }
    }

    /// The parser reports a missing value at its colon, or at the start of the next outer key, which may itself be
    /// missing. This moves the span of the former after the colon.
    fn behind_colon(&self, range: Range<usize>, span: Span) -> Range<usize> {
        let is_colon = self.document.text[range.start..].starts_with(':');
        let is_its = |outer: &Open| outer.below % 2 == 1 && outer.column <= span.start.col();
        if range.is_empty() && is_colon && self.open.last().is_some_and(is_its) {
            return range.start + 1..range.end + 1;
        }
        range
    }

    /// Whether the text of a scalar is its value.
    fn is_value(&self, value: &str, style: Style, range: Range<usize>) -> bool {
        let written = self.document.text.get(range).unwrap_or_default();
        // The parser reports a missing scalar as `~`.
        let is_missing = style == Style::Plain && written.is_empty();
        is_missing || inside(style, written) == value
    }

    /// The parser reports a block sequence that is not indented more than its key after its first hyphen.
    fn sequence_start(&self, layout: Layout, reported: usize) -> usize {
        let text = self.document.text;
        if layout == Layout::Flow || text[reported..].starts_with('-') {
            return reported;
        }
        let last = self.document.nodes.last();
        let before = last.map_or(0, |node| node.end as usize);
        let Some(between) = text.get(before..reported) else {
            return reported;
        };
        let mut line = before;
        for piece in between.split_inclusive(['\n', '\r']) {
            let content = piece.trim_start();
            if line > before && content.starts_with('-') {
                return line + piece.len() - content.len();
            }
            line += piece.len();
        }
        reported
    }
}

fn error(text: &str, offset: usize, message: String) -> ParseError {
    ParseError {
        message,
        position: Position::of(text, offset),
    }
}
