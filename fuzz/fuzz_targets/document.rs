//! The tree of a YAML document: the promises of its module for every text, compared with the parser's events.
#![no_main]

use std::{collections::HashMap, fmt::Debug, ops::Range};

use granit_parser::{Event, Parser, ScalarStyle};
use libfuzzer_sys::fuzz_target;
use composefile::document::{Document, NodeKind, Layout, Node, ParseError, Style};

fuzz_target!(|text: &str| {
    let events = events(text);
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            assert!(events.is_none(), "the parser reads it: {error}");
            return is_a_place(&error, text);
        }
    };
    assert_eq!(said(&document), events.expect("the parser refuses it"));
    assert!(document.nodes().count() <= 2 * text.len() + 2);
    nodes_are_written_there(&document);
    children_are_inside(&document);
    aliases_point_back(&document);
});

/// The events of the parser; `None` if it fails or finds a second document.
fn events(text: &str) -> Option<Vec<String>> {
    let mut said = Vec::new();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, _) = event.ok()?;
        match event {
            Event::DocumentStart(..) => documents += 1,
            Event::Scalar(value, style, ..) => {
                // The parser reports a missing scalar as `~`.
                let value = match &*value {
                    "~" if style == ScalarStyle::Plain => "",
                    value => value,
                };
                said.push(scalar(value, style));
            }
            Event::SequenceStart(style, ..) => said.push(format!("[ {style:?}")),
            Event::MappingStart(style, ..) => said.push(format!("{{ {style:?}")),
            Event::SequenceEnd | Event::MappingEnd => said.push("end".into()),
            Event::Alias(_) => said.push("*".into()),
            _ => {}
        }
    }
    (documents <= 1).then_some(said)
}

/// The same events, from the tree.
fn said(document: &Document) -> Vec<String> {
    let mut said = Vec::new();
    let mut ahead: Vec<Option<Node>> = document.root().map(Some).into_iter().collect();
    while let Some(step) = ahead.pop() {
        let Some(node) = step else {
            said.push("end".into());
            continue;
        };
        match node.kind() {
            NodeKind::Scalar(style) => {
                let value = match node.scalar().expect("a scalar") {
                    ("~", Style::Plain) => "",
                    (value, _) => value,
                };
                said.push(scalar(value, style));
            }
            NodeKind::Sequence(layout) => said.push(format!("[ {layout:?}")),
            NodeKind::Mapping(layout) => said.push(format!("{{ {layout:?}")),
            NodeKind::Alias => said.push("*".into()),
        }
        if is_collection(node) {
            ahead.push(None);
            ahead.extend(children(node).into_iter().rev().map(Some));
        }
    }
    said
}

/// The styles of the parser and of the tree have the same names.
fn scalar(value: &str, style: impl Debug) -> String {
    format!("{style:?} {value:?}")
}

fn is_collection(node: Node) -> bool {
    matches!(node.kind(), NodeKind::Sequence(_) | NodeKind::Mapping(_))
}

fn children(node: Node) -> Vec<Node> {
    let entries = node.own_entries();
    let pairs = entries.flat_map(|entry| [entry.key, entry.value]);
    node.own_items().chain(pairs).collect()
}

fn is_a_place(error: &ParseError, text: &str) {
    let lines = text.matches('\n').count() + 1;
    assert!((1..=lines).contains(&error.position.line), "{error:?}");
    assert!(!error.message.is_empty());
}

fn slice<'t>(text: &'t str, span: &Range<usize>) -> &'t str {
    text.get(span.clone())
        .expect("a span is a part of the text")
}

/// Each kind of node is at its span, after its properties.
fn nodes_are_written_there(document: &Document) {
    let text = document.text();
    for node in document.nodes() {
        let written = slice(text, &node.span());
        for (span, sign) in [(node.anchor_span(), '&'), (node.tag_span(), '!')] {
            let Some(span) = span else { continue };
            assert!(slice(text, &span).starts_with(sign), "{node:?}");
            assert!(span.end <= node.span().start, "{node:?}");
        }
        match node.kind() {
            NodeKind::Scalar(style) => scalar_is_written_there(node, style, written),
            NodeKind::Alias => assert!(written.starts_with('*'), "{node:?}"),
            NodeKind::Sequence(Layout::Flow) => {
                assert!(
                    written.starts_with('[') && written.ends_with(']'),
                    "{node:?}"
                );
            }
            // `[a: b]` holds a mapping without braces.
            NodeKind::Mapping(Layout::Flow) if written.starts_with('{') => {
                assert!(written.ends_with('}'), "{node:?}");
            }
            NodeKind::Sequence(Layout::Block) => assert!(written.starts_with('-'), "{node:?}"),
            NodeKind::Mapping(_) => {}
        }
    }
}

/// The value equals the source text, unless that has special characters.
fn scalar_is_written_there(node: Node, style: Style, written: &str) {
    let (value, _) = node.scalar().expect("a scalar");
    let inside = |quote: char| {
        let inside = written.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inside).filter(|_| written.len() >= 2)
    };
    match style {
        Style::Plain if written.contains(['\n', '\r']) => {}
        Style::Plain => assert_eq!(value, written, "{node:?}"),
        Style::SingleQuoted | Style::DoubleQuoted => {
            let quote = if style == Style::SingleQuoted {
                '\''
            } else {
                '"'
            };
            let inside = inside(quote).expect("between quotes");
            if !inside.contains(['\'', '\\', '\n', '\r']) {
                assert_eq!(value, inside, "{node:?}");
            }
        }
        Style::Literal | Style::Folded => {}
    }
}

/// Spans are in the order of the text, do not overlap, and lie inside those of their collections.
fn children_are_inside(document: &Document) {
    let mut last = None;
    let mut below = 0;
    for node in document.nodes() {
        assert!(last < Some((node.span().start, node.id())), "{node:?}");
        last = Some((node.span().start, node.id()));
        let span = node.span();
        let mut done = span.start;
        for child in children(node) {
            let inside = child.span();
            assert!(
                done <= inside.start && inside.end <= span.end,
                "{node:?} holds {child:?}"
            );
            assert!(child.id() > node.id());
            done = inside.end;
            below += 1;
        }
        assert_eq!(document.node(node.id()).map(Node::span), Some(span));
    }
    assert_eq!(below, document.nodes().count().saturating_sub(1));
}

/// `*name` is the last node before it with the anchor `&name`.
fn aliases_point_back(document: &Document) {
    let mut named = HashMap::new();
    for node in document.nodes() {
        if node.kind() == NodeKind::Alias {
            let name = &slice(document.text(), &node.span())[1..];
            assert_eq!(Some(&node.resolved().id()), named.get(name), "{node:?}");
        } else {
            assert_eq!(node.resolved().id(), node.id());
        }
        if let Some(name) = node.anchor() {
            named.insert(name, node.id());
        }
    }
}
