//! Builds the list of nodes from the events of the parser.

use std::{ops::Range, sync::OnceLock};

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};

use super::{
    Document, Layout, Node, ParseError, Position, Properties, RawNode, ScalarType, Shape, Stored,
    Style,
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
                properties: vec![Properties::default()],
                decoded: String::new(),
                lines: OnceLock::new(),
            },
            open: Vec::new(),
            anchored: Vec::new(),
            documents: 0,
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ParseError> {
        let range = span.byte_range().unwrap_or_default();
        match event {
            Event::DocumentStart(..) => self.start_document(range.start)?,
            Event::Scalar(value, style, anchor, _) => {
                let range = match style {
                    ScalarStyle::Plain => self.behind_colon(range, span),
                    _ => range,
                };
                let shape = self.scalar(&value, style, range.clone());
                self.push(range, shape, anchor, span);
                if value == "<<" {
                    self.merge_key();
                }
            }
            Event::SequenceStart(style, anchor, _) => {
                let layout = layout(style);
                let start = self.sequence_start(layout, range.start);
                let shape = Shape::Sequence { layout, after: 0 };
                self.push(start..range.end.max(start), shape, anchor, span);
                self.open(span);
            }
            Event::MappingStart(style, anchor, _) => {
                let shape = Shape::Mapping {
                    layout: layout(style),
                    after: 0,
                    merge: 0,
                };
                self.push(range, shape, anchor, span);
                self.open(span);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&range),
            Event::Alias(anchor) => {
                let known = self.anchored.get(anchor.saturating_sub(1)).copied();
                let target = known.ok_or_else(|| {
                    error(self.document.text, range.start, "unknown alias".into())
                })?;
                self.push(range, Shape::Alias { target }, 0, span);
            }
            Event::Anchor(..) => self.anchor_span(&range),
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
        Err(ParseError {
            is_second_document: true,
            ..error(self.document.text, offset, message)
        })
    }

    fn push(&mut self, range: Range<usize>, shape: Shape, anchor: usize, span: Span) {
        if let Some(outer) = self.open.last_mut() {
            outer.below += 1;
        }
        let id = narrow(self.document.nodes.len());
        let tag = span.tag_span().and_then(|tag| tag.byte_range());
        let properties = if anchor != 0 || tag.is_some() {
            self.document.properties.push(Properties {
                anchor: None,
                tag: tag.map(narrow_range),
            });
            narrow(self.document.properties.len() - 1)
        } else {
            0
        };
        if anchor != 0 {
            let known = self.anchored.len().max(anchor);
            self.anchored.resize(known, id);
            self.anchored[anchor - 1] = id;
        }
        self.document.nodes.push(RawNode {
            start: narrow(range.start),
            end: narrow(range.end),
            properties,
            shape,
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

    /// The parser reports an anchor right after the node that carries it.
    fn anchor_span(&mut self, range: &Range<usize>) {
        if let Some(node) = self.document.nodes.last() {
            self.document.properties[node.properties as usize].anchor =
                Some(narrow_range(range.clone()));
        }
    }

    /// Marks the open mapping as one that merges, if the last node is its `<<` key.
    fn merge_key(&mut self) {
        let last = self.last();
        let is_merge = Node::new(&self.document, last).scalar_type() == Some(ScalarType::Merge);
        let Some(&Open { id, below, .. }) = self.open.last() else {
            return;
        };
        if let Shape::Mapping { merge, .. } = &mut self.document.nodes[id as usize].shape
            && is_merge
            && below % 2 == 1
            && *merge == 0
        {
            *merge = last;
        }
    }

    /// Ends the innermost collection: a flow collection at its bracket, a block collection with its last node.
    fn close(&mut self, range: &Range<usize>) {
        let Some(Open { id, .. }) = self.open.pop() else {
            return;
        };
        let count = narrow(self.document.nodes.len());
        let last_end = self.document.nodes[self.last() as usize].end;
        let node = &mut self.document.nodes[id as usize];
        let (Shape::Sequence { layout, after } | Shape::Mapping { layout, after, .. }) =
            &mut node.shape
        else {
            return;
        };
        *after = count;
        node.end = match layout {
            Layout::Flow => narrow(range.end),
            Layout::Block => last_end.max(node.end),
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

    fn scalar(&mut self, value: &str, style: ScalarStyle, range: Range<usize>) -> Shape {
        let style = style_of(style);
        let (stored, offset, length) = self.store(value, style, range);
        Shape::Scalar {
            style,
            stored,
            offset: narrow(offset),
            length: narrow(length),
        }
    }

    /// Stores a value as a range of the text if the text is the value.
    fn store(&mut self, value: &str, style: Style, range: Range<usize>) -> (Stored, usize, usize) {
        let written = self.document.text.get(range.clone()).unwrap_or_default();
        // The parser reports a missing scalar as `~`.
        if style == Style::Plain && written.is_empty() {
            return (Stored::InText, range.start, 0);
        }
        let (inner, skipped) = match style {
            Style::SingleQuoted | Style::DoubleQuoted => {
                (written.get(1..written.len().saturating_sub(1)), 1)
            }
            _ => (Some(written), 0),
        };
        if inner.unwrap_or_default() == value {
            return (Stored::InText, range.start + skipped, value.len());
        }
        let offset = self.document.decoded.len();
        self.document.decoded.push_str(value);
        (Stored::Decoded, offset, value.len())
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
        is_second_document: false,
        offset,
        position: Position::of(text, offset),
    }
}

fn narrow_range(range: Range<usize>) -> Range<u32> {
    narrow(range.start)..narrow(range.end)
}

fn layout(style: StructureStyle) -> Layout {
    match style {
        StructureStyle::Block => Layout::Block,
        StructureStyle::Flow => Layout::Flow,
    }
}

fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}
