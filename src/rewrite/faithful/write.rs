//! How new scalars and entries are written.

use std::fmt::Write;

use composefile::document::{Document, Layout, Node, NodeKind, ScalarType, Style};

use super::findings::{NewEntry, NewValue};

/// The new text cannot be written in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unwritable;

/// The source text of a scalar with another value: in the present style, if that can express the value.
pub(super) fn scalar_text(node: Node<'_>, value: &str) -> Result<String, Unwritable> {
    let NodeKind::Scalar(style) = node.kind() else {
        return Err(Unwritable);
    };
    let written = &node.document().text()[node.span()];
    let breaks =
        |c: char| c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
    Ok(match style {
        Style::Plain if is_plain(value, written) => value.to_owned(),
        Style::SingleQuoted if !value.contains(breaks) => {
            format!("'{}'", value.replace('\'', "''"))
        }
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => quoted(value),
        Style::Literal | Style::Folded => return Err(Unwritable),
    })
}

/// Whether a value without quotes reads as the same text in the place of `before`, which has no quotes.
fn is_plain(value: &str, before: &str) -> bool {
    // A flow collection cannot hold brackets or commas without quotes.
    let is_in_block = before.contains(['{', '}', '[', ']', ',']);
    let line = if is_in_block {
        format!("k: {value}")
    } else {
        format!("[{value}]")
    };
    let document = Document::parse(&line);
    let Some(root) = document.as_ref().ok().and_then(Document::root) else {
        return false;
    };
    let read = if is_in_block {
        root.get("k")
    } else {
        root.items().next()
    };
    let is_alone = root.own_items().count() + root.own_entries().count() == 1;
    let is_value = |node: Node<'_>| {
        let is_text = node.scalar_type() == Some(ScalarType::Text);
        is_text && node.kind() == NodeKind::Scalar(Style::Plain) && node.as_str() == Some(value)
    };
    is_alone && read.is_some_and(is_value)
}

/// A value in double quotes, on a single line.
pub(in crate::rewrite) fn quoted(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether a collection is written in flow style.
pub(super) fn is_flow(collection: Node<'_>) -> bool {
    matches!(
        collection.kind(),
        NodeKind::Sequence(Layout::Flow) | NodeKind::Mapping(Layout::Flow)
    )
}

/// The source text between two entries or items of a collection.
pub(super) fn separator(collection: Node<'_>, at: usize) -> String {
    if is_flow(collection) {
        return ", ".to_owned();
    }
    new_line(collection.document(), at)
}

/// A line end, with the indentation of what begins at `at`.
fn new_line(document: &Document<'_>, at: usize) -> String {
    let before = document.text()[document.line_start(at)..at].trim_start_matches('\u{feff}');
    document.line_end().to_owned() + &" ".repeat(before.chars().count())
}

/// The source text of each new entry or item of a collection, `at` being where the first one is written.
pub(super) fn entries_text(collection: Node<'_>, at: usize, entries: &[NewEntry]) -> Vec<String> {
    let is_flow = is_flow(collection);
    let deeper = new_line(collection.document(), at) + "  ";
    let one = |entry @ (name, value): &NewEntry| match value {
        NewValue::Item(_) if is_flow => flat(value),
        NewValue::Item(_) => format!("- {}", flat(value)),
        NewValue::Text(_) | NewValue::Word(_) | NewValue::True | NewValue::External(_) => {
            flat_entry(entry)
        }
        NewValue::List(_) | NewValue::Mapping(_) if is_flow => flat_entry(entry),
        NewValue::List(items) => {
            let lines = items.iter().map(|one| format!("{deeper}- {}", quoted(one)));
            format!("{}:{}", key(name), lines.collect::<String>())
        }
        NewValue::EmptyList => flat_entry(entry),
        NewValue::Mapping(entries) => {
            let inside = entries
                .iter()
                .map(|entry| format!("{deeper}{}", flat_entry(entry)));
            format!("{}:{}", key(name), inside.collect::<String>())
        }
    };
    entries.iter().map(one).collect()
}

/// An entry of a mapping, on a single line.
fn flat_entry((name, value): &NewEntry) -> String {
    format!("{}: {}", key(name), flat(value))
}

/// A value, on a single line.
pub(super) fn flat(value: &NewValue) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        NewValue::Word(text) if is_word(text) => text.clone(),
        NewValue::Text(text) | NewValue::Word(text) | NewValue::Item(text) => quoted(text),
        NewValue::True => "true".to_owned(),
        NewValue::External(volume) => format!("{{external: true, name: {}}}", quoted(volume)),
        NewValue::EmptyList => "[]".to_owned(),
        NewValue::List(items) => {
            format!(
                "[{}]",
                joined(items.iter().map(|item| quoted(item)).collect())
            )
        }
        NewValue::Mapping(entries) => {
            format!("{{{}}}", joined(entries.iter().map(flat_entry).collect()))
        }
    }
}

/// A name as a key.
fn key(name: &str) -> String {
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_plain && is_word(name) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// Whether a text needs no quotes anywhere: a word or a path.
fn is_word(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/'))
        && text.bytes().all(is_part)
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "y" | "n" | "yes" | "no" | "on" | "off"
        )
}
