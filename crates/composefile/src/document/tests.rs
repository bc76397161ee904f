use proptest::prelude::*;

use super::{Document, Layout, Node, NodeKind, ScalarType, Style};

fn parse(text: &str) -> Document<'_> {
    match Document::parse(text) {
        Ok(document) => document,
        Err(error) => panic!("{error}: {text:?}"),
    }
}

fn at<'d>(document: &'d Document<'_>, path: &str) -> Node<'d> {
    path.split('.')
        .fold(document.root().expect("a root"), |node, key| {
            match key.parse::<usize>() {
                Ok(index) => node.items().nth(index),
                Err(_) => node.get(key),
            }
            .unwrap_or_else(|| panic!("no {key} in {path}"))
        })
}

fn written<'t>(document: &Document<'t>, path: &str) -> &'t str {
    &document.text()[at(document, path).span()]
}

#[test]
fn spans_count_bytes_of_the_text_as_given() {
    let text = "\u{feff}a:\r\n  - 'x'\r\n  - \"ü\\n\"\r\nb: {k: v, e: }\r\nc: |\r\n  t\r\n";
    let document = parse(text);
    assert_eq!(written(&document, "a.0"), "'x'");
    assert_eq!(written(&document, "a.1"), "\"ü\\n\"");
    assert_eq!(written(&document, "b"), "{k: v, e: }");
    assert_eq!(written(&document, "b.e"), "");
    assert_eq!(at(&document, "a.1").as_str(), Some("ü\n"));
    assert_eq!(at(&document, "c").scalar(), Some(("t\n", Style::Literal)));
}

#[test]
fn a_block_collection_ends_with_its_last_node() {
    let document = parse("a:\n  - [x, y]\n\n# end\nb:\n- k:\n    - v\n\n\n# end\n");
    assert_eq!(written(&document, "a"), "- [x, y]");
    assert_eq!(written(&document, "b"), "- k:\n    - v");
    assert_eq!(at(&document, "a").kind(), NodeKind::Sequence(Layout::Block));
    assert_eq!(
        at(&document, "a.0").kind(),
        NodeKind::Sequence(Layout::Flow)
    );
}

#[test]
fn a_sequence_without_indentation_starts_at_its_first_hyphen() {
    let document = parse("a: # - no\n# - no\n-   # note\n  x\n- y\n");
    assert_eq!(written(&document, "a"), "-   # note\n  x\n- y");
    let document = parse("a:\r# -\r- x\r");
    assert_eq!(written(&document, "a"), "- x");
}

#[test]
fn a_value_that_is_not_there_is_behind_its_colon() {
    let document = parse("a:\n  b: # c\n  d :\nf: {g: , : , h}\n");
    assert_eq!(written(&document, "a"), "b: # c\n  d :");
    let nodes = document.nodes().filter(|node| node.span().is_empty());
    let starts: Vec<_> = nodes.map(|node| node.span().start).collect();
    assert_eq!(starts, [7, 17, 24, 27, 28, 32]);
    let document = parse("a:\n  ?\n: b\n");
    assert_eq!(written(&document, "a"), "?\n");
    let document = parse("a: |\n: b\n");
    assert_eq!(at(&document, "a").span(), 5..5);
}

#[test]
fn anchors_tags_and_aliases_keep_their_places() {
    let document = parse("a: &one !t {k: v}\nb: *one\nc: !!str 1\nd: &one x\ne: *one\n");
    assert_eq!(at(&document, "a").anchor(), Some("one"));
    assert_eq!(at(&document, "a").tag(), Some("!t"));
    assert_eq!(at(&document, "b").kind(), NodeKind::Alias);
    assert_eq!(written(&document, "b"), "*one");
    assert_eq!(at(&document, "b.k").as_str(), Some("v"));
    assert_eq!(at(&document, "e").as_str(), Some("x"));
    assert_eq!(at(&document, "c").scalar_type(), Some(ScalarType::Text));
}

#[test]
fn merges_come_after_own_keys_and_in_their_order() {
    let text = "a: &a {k: a, only: a}\nb: &b {k: b, more: b}\nc:\n  <<: [*a, *b]\n  own: c\nd: {<<: *b, k: d}\n";
    let document = parse(text);
    assert_eq!(at(&document, "c.k").as_str(), Some("a"));
    assert_eq!(at(&document, "c.more").as_str(), Some("b"));
    assert_eq!(at(&document, "d.k").as_str(), Some("d"));
    let names: Vec<_> = at(&document, "c")
        .entries()
        .iter()
        .filter_map(super::Entry::name)
        .collect();
    assert_eq!(names, ["own", "k", "only", "more"]);
    assert_eq!(at(&document, "c").own_entries().count(), 2);
}

#[test]
fn a_quoted_merge_key_is_a_key() {
    let document = parse("a: &a {k: 1}\nb: {\"<<\": *a}\n");
    assert!(at(&document, "b").get("k").is_none());
    assert_eq!(at(&document, "b").entries().len(), 1);
}

#[test]
fn what_is_reset_is_not_there() {
    let document = parse("a: &a {k: 1}\nb: {<<: *a, k: !reset null, l: [1, !reset 2]}\n");
    assert!(at(&document, "b").get("k").is_none());
    assert_eq!(at(&document, "b").entries().len(), 1);
    assert_eq!(at(&document, "b.l").items().count(), 1);
    assert_eq!(at(&document, "b.l").own_items().count(), 2);
}

#[test]
fn aliases_inside_their_own_target_end() {
    let document = parse("a: &a [*a]\nb: &b {<<: *b, k: *b}\n");
    assert_eq!(at(&document, "a.0.0.0").span(), at(&document, "a.0").span());
    assert!(at(&document, "b").get("absent").is_none());
    assert_eq!(at(&document, "b").entries().len(), 1);
}

#[test]
fn a_billion_laughs_cost_nothing() {
    let level = |level: usize| {
        let below = level - 1;
        format!(
            "l{level}: &l{level} {{<<: [*l{below}, *l{below}], k{level}: [*l{below}, *l{below}]}}\n"
        )
    };
    let levels: Vec<_> = (1..60).map(level).collect();
    let text = format!("l0: &l0 {{k: v}}\n{}", levels.concat());
    let document = parse(&text);
    assert!(at(&document, "l59").get("absent").is_none());
    assert_eq!(at(&document, "l59").entries().len(), 60);
    assert_eq!(at(&document, "l59.k").as_str(), Some("v"));
}

#[test]
fn scalars_have_the_type_compose_gives_them() {
    use ScalarType::{Bool, Merge, Null, Number, Text};
    for (texts, expected) in [
        ("~ null", Null),
        ("true False", Bool),
        (
            "12 -1.5e3 0x1F 0o17 1_000 .inf -.inf .nan !!int~'1'",
            Number,
        ),
        (
            "'null' yes off '12' 1.2.3 22:22 inf -nan e3 '<<' !!str~1",
            Text,
        ),
        ("<<", Merge),
    ] {
        for text in texts.split(' ').map(|text| text.replace('~', " ")) {
            let text = if text == " " { "~".to_owned() } else { text };
            let line = format!("[{text}]");
            let document = parse(&line);
            assert_eq!(at(&document, "0").scalar_type(), Some(expected), "{text}");
        }
    }
}

#[test]
fn as_str_is_text_but_not_null() {
    let document = parse("{a: 1, b: ~, c: '', d: , e: true, f: []}");
    let read = |key| document.get(key).and_then(Node::as_str);
    let expected = [Some("1"), None, Some(""), None, Some("true"), None];
    assert_eq!(["a", "b", "c", "d", "e", "f"].map(read), expected);
    assert_eq!(at(&document, "e").as_bool(), Some(true));
    assert_eq!(at(&document, "a").as_bool(), None);
}

#[test]
fn an_empty_text_has_no_root() {
    for text in ["", "\n", "# only a comment\n", "\u{feff}"] {
        assert!(parse(text).root().is_none(), "{text:?}");
    }
    assert!(parse("---\n").root().is_some_and(Node::is_null));
}

#[test]
fn errors_say_where() {
    for (text, line, column, part) in [
        ("a: 1\n---\nb: 2\n", 2, 1, "second YAML document"),
        ("a: [1\nb: 2\n", 2, 2, ""),
        ("ü: *none\n", 1, 4, "anchor"),
        ("a: 1\n\tb: 2\n", 1, 4, "tab"),
    ] {
        let error = Document::parse(text).expect_err(text);
        let position = error.position;
        assert_eq!(
            (position.line, position.column),
            (line, column),
            "{text:?}: {error}"
        );
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let flow = format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let mixed = format!("a: {}", "- {k: [".repeat(10_000));
    let block: String = (0..10_000)
        .map(|depth| " ".repeat(depth) + "a:\n")
        .collect();
    let inline = "- ".repeat(10_000) + "a";
    for text in [flow, mixed, block, inline] {
        assert!(Document::parse(&text).is_err());
    }
}

#[test]
fn a_line_is_found_by_its_byte() {
    let document = parse("a: 1\r\nb: 2\nc: 3");
    let expected = [1, 1, 2, 2, 3, 3];
    assert_eq!([0, 5, 6, 10, 11, 14].map(|at| document.line(at)), expected);
}

proptest! {
    /// For any text: no panic, spans are inside the text and in order, and every node can be read.
    #[test]
    fn any_text_is_read_or_refused(text in "([a-c:{}\\[\\],&*!|>'\"#<\\- \n\t\r]|<<: |&a |\\*a|- ){0,60}") {
        if let Ok(document) = Document::parse(&text) {
            for node in document.nodes() {
                let span = node.span();
                prop_assert!(span.start <= span.end && span.end <= text.len());
                prop_assert!(text.get(span).is_some());
                let _ = (node.as_str(), node.entries(), node.items().count(), node.get("a"), node.tag());
            }
        }
    }

    /// A scalar that is written as it reads keeps its value as a place in the text.
    #[test]
    fn scalars_round_trip(value in "[ -~äß\n]{0,20}") {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let text = format!("k: \"{escaped}\"\n");
        let document = parse(&text);
        prop_assert_eq!(at(&document, "k").scalar(), Some((value.as_str(), Style::DoubleQuoted)));
        if !value.contains('\n') {
            let single = format!("k: '{}'\n", value.replace('\'', "''"));
            let document = parse(&single);
            prop_assert_eq!(at(&document, "k").scalar(), Some((value.as_str(), Style::SingleQuoted)));
        }
    }
}
