//! A Compose file without the values of variables, for output (B34).
#![deny(clippy::disallowed_methods)]

use std::collections::BTreeMap;

use composefile::document::{Document, Node, NodeKind, NodeSet, Style};

use crate::text::Mask;

/// What is shown in place of a value.
pub const HIDDEN: &str = "***";

/// The text with every value below an `environment` or `args` key hidden, also where an alias or a merge leads to it, without
/// the credentials of URLs, and without what `mask` hides: a value of `.env` may stand in a label, a command or a comment.
/// Every line stays a line. Of a text that is not YAML, only the keys stay.
pub fn masked(text: &str, mask: &Mask) -> String {
    let shown = match Document::parse(text) {
        Ok(document) => without_variables(&document),
        Err(_) => text.split_inclusive('\n').map(only_key).collect(),
    };
    let hide = |line: &str| match line.strip_suffix('\n') {
        Some(line) => mask.hide(line) + "\n",
        None => mask.hide(line),
    };
    shown.split_inclusive('\n').map(hide).collect()
}

fn without_variables(document: &Document) -> String {
    let text = document.text();
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    for (start, (end, instead)) in hidden_ranges(document) {
        // A value can be a whole value at one place and an item at another.
        if start >= done {
            shown.push_str(&text[done..start]);
            shown.push_str(&instead);
            done = end;
        }
    }
    shown + &text[done..]
}

/// How a list or a scalar holds values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// As `NAME=value`.
    Assignments,
    Values,
}

/// The end of each range to hide, and the text to show instead, by the start of the range.
fn hidden_ranges(document: &Document) -> BTreeMap<usize, (usize, String)> {
    let entries = document.nodes().flat_map(Node::own_entries);
    let mut ahead: Vec<_> = entries
        .filter(|entry| matches!(entry.name(), Some("environment" | "args")))
        .map(|entry| (entry.value.resolved(), Holds::Assignments))
        .collect();
    let mut seen = [NodeSet::default(), NodeSet::default()];
    let mut ranges = BTreeMap::new();
    while let Some((node, holds)) = ahead.pop() {
        if !seen[holds as usize].insert(node.id()) {
            continue;
        }
        let items = node.own_items();
        ahead.extend(items.map(|item| (item.resolved(), holds)));
        // Merged mappings too, even where a key of this one takes precedence.
        let entries = node.mappings().flat_map(Node::own_entries);
        let values = entries.filter(|entry| !entry.is_merge());
        ahead.extend(values.map(|entry| (entry.value.resolved(), Holds::Values)));
        let Some(value) = node.as_str() else { continue };
        let span = node.span();
        let written = &document.text()[span.clone()];
        let NodeKind::Scalar(style) = node.kind() else {
            continue;
        };
        let name = match holds {
            Holds::Values => 0,
            Holds::Assignments if !value.contains('=') => continue,
            // An escaped `=` may be the one that ends the name.
            Holds::Assignments if written.matches('=').count() != value.matches('=').count() => 0,
            Holds::Assignments => written.find('=').map_or(0, |at| at + 1),
        };
        let instead = instead(written, name, style);
        ranges.insert(span.start + name, (span.end, instead));
    }
    ranges
}

/// What to show in place of the scalar `written`, from the byte `start` on.
fn instead(written: &str, start: usize, style: Style) -> String {
    let quote = match style {
        Style::Literal | Style::Folded => return lines(&written[start..]),
        Style::Plain if start > 0 => return lines(&written[start..]),
        Style::SingleQuoted if start > 0 => "'",
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => "\"",
    };
    if start == 0 {
        return format!("{quote}{}{quote}", lines(written));
    }
    let value = written[start..].strip_suffix(quote);
    lines(value.unwrap_or(&written[start..])) + quote
}

/// Each line hidden, with its indentation and its end.
fn lines(value: &str) -> String {
    let line = |line: &str| match line.trim() {
        "" => line.to_owned(),
        hidden => line.replacen(hidden, HIDDEN, 1),
    };
    value.split_inclusive('\n').map(line).collect()
}

/// A line of a text that is not YAML: what follows its key is hidden.
fn only_key(line: &str) -> String {
    let item = line.trim_start_matches([' ', '\t', '-', '\u{feff}']);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = item.trim_start_matches(is_of_name);
    let ends_name =
        |c: char| c == '=' || (c == ':' && name[1..].starts_with([' ', '\n', '\r', '\t']));
    let is_key = name.len() < item.len() && name.starts_with(ends_name);
    let kept = line.len() - if is_key { name.len() - 1 } else { item.len() };
    format!("{}{}", &line[..kept], lines(&line[kept..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hidden(text: &str) -> String {
        masked(text, &Mask::default())
    }

    #[test]
    fn b34_the_values_of_variables_are_hidden() {
        for (text, shown) in [
            (
                "environment: {A: x, B: 1, C: , D: 'x', \"E\": \"x\", F: !!str x} # c",
                "environment: {A: \"***\", B: \"***\", C: , D: \"***\", \"E\": \"***\", F: !!str \"***\"} # c",
            ),
            (
                "environment:\n- A=x=y\n- B\n- 'C=x'\n- \"D=x\"\n- \"E\\x3Dx\"\n- F=\n",
                "environment:\n- A=***\n- B\n- 'C=***'\n- \"D=***\"\n- \"***\"\n- F=\n",
            ),
            (
                "environment:\r\n  A: |\r\n    x\r\n\r\n    y\r\n  B: x\r\n    y\r\n  C: 'x\r\n    '\r\n",
                "environment:\r\n  A: |\r\n    ***\r\n\r\n    ***\r\n  B: \"***\r\n    ***\"\r\n  C: \"***\r\n    ***\"\r\n",
            ),
            (
                "build: {args: {A: x}, labels: {B: x}}\nsecrets: {s: {environment: A}}",
                "build: {args: {A: \"***\"}, labels: {B: x}}\nsecrets: {s: {environment: A}}",
            ),
            (
                "x-a: &a {A: x}\nx-b: &b x\nx-c: &c [C=x]\na: {environment: {<<: *a, A: y, B: *b}}\nb: {environment: *c}",
                "x-a: &a {A: \"***\"}\nx-b: &b \"***\"\nx-c: &c [C=***]\na: {environment: {<<: *a, A: \"***\", B: *b}}\nb: {environment: *c}",
            ),
            // Compose rejects these.
            (
                "environment: [{A: x, B: [x]}]\nx: {args: A=x}",
                "environment: [{A: \"***\", B: [\"***\"]}]\nx: {args: A=***}",
            ),
            (
                "command: psql postgres://u:x@db/a # https://u:x@h",
                "command: psql postgres://***@db/a # https://***@h",
            ),
        ] {
            assert_eq!(hidden(text), shown, "{text}");
        }
    }

    #[test]
    fn b34_of_a_text_that_is_not_yaml_only_the_keys_stay() {
        let text = "\u{feff}a: [\n  b: x # y\n  - C=x: y\n  - \"D=x\"\n  # x\n\n  e:\n  x\n  https://x\n f:x\r\n  G=";
        let shown = "\u{feff}a: ***\n  b: ***\n  - C=***\n  - ***\n  ***\n\n  e:\n  ***\n  ***\n ***\r\n  G=";
        assert_eq!(hidden(text), shown);
    }

    #[test]
    fn b34_a_chain_of_aliases_is_followed_without_recursion() {
        use std::fmt::Write as _;
        let mut text = "x0: &a0 [x]\n".to_owned();
        for n in 1..20_000 {
            writeln!(text, "x{n}: &a{n} [*a{}]", n - 1).expect("a string");
        }
        text.push_str("environment: {A: *a19999, B: &b [*b]}\n");
        assert!(hidden(&text).starts_with("x0: &a0 [\"***\"]\n"));
    }

    proptest! {
        #[test]
        fn b34_every_line_stays_a_line(
            text in "(environment|args|[ab]|-|  |: |\\n|\\n  |\\n    |A=|[|>&*'\"{}\\[\\],#!=]|[a-c]|é){0,30}",
        ) {
            let shown = hidden(&text);
            prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
        }
    }
}
