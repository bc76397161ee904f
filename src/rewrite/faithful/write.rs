//! How new scalars and entries are written.

use std::fmt::Write;

use composefile::document::{Document, Node, NodeKind, Style};

/// An entry to be written: the name and the value.
pub(super) type NewEntry = (String, NewValue);

/// A value to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NewValue {
    Text(String),
    /// A text without quotes, if it needs none.
    Word(String),
    True,
    Mapping(Vec<NewEntry>),
    List(Vec<String>),
    /// An external volume with this name.
    External(String),
}

/// The source text of a scalar with another value: in the present style, if that can express the value. `None` if the scalar has
/// lines of its own, or is repeated from another place.
pub(in crate::rewrite) fn scalar_text(node: Node<'_>, value: &str) -> Option<String> {
    let NodeKind::Scalar(style) = node.kind() else {
        return None;
    };
    let written = &node.document().text()[node.span()];
    let breaks =
        |c: char| c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
    Some(match style {
        Style::Plain if is_plain(value, written) => value.to_owned(),
        Style::SingleQuoted if !value.contains(breaks) => {
            format!("'{}'", value.replace('\'', "''"))
        }
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => quoted(value),
        Style::Literal | Style::Folded => return None,
    })
}

/// Whether a value without quotes reads as the same text in the place of `before`, which has no quotes.
fn is_plain(value: &str, before: &str) -> bool {
    // A value in brackets cannot hold brackets or commas without quotes.
    let is_in_block = before.contains(['{', '}', '[', ']', ',']);
    let more = if is_in_block { ":${}" } else { ":" };
    let is_between = !value.starts_with([':', '{', '}']) && !value.ends_with(':');
    let word = value.strip_prefix('.').unwrap_or(value);
    is_between && is_word(&word.replace(|c| more.contains(c), "/"))
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

/// The source text of new entries of a mapping in block style, without the indentation of the first one.
pub(super) fn entries_text(document: &Document<'_>, indent: usize, entries: &[NewEntry]) -> String {
    let line = document.line_end().to_owned() + &" ".repeat(indent);
    let text = |entry @ (name, value): &NewEntry| {
        let below: Vec<String> = match value {
            NewValue::List(items) => items
                .iter()
                .map(|item| format!("- {}", quoted(item)))
                .collect(),
            NewValue::Mapping(entries) => entries.iter().map(flat_entry).collect(),
            _ => Vec::new(),
        };
        if below.is_empty() {
            return flat_entry(entry);
        }
        let below = below.iter().map(|below| format!("{line}  {below}"));
        format!("{}:{}", key(name), below.collect::<String>())
    };
    let texts: Vec<String> = entries.iter().map(text).collect();
    texts.join(&line)
}

/// An entry of a mapping, on a single line.
fn flat_entry((name, value): &NewEntry) -> String {
    format!("{}: {}", key(name), flat(value))
}

/// A value, on a single line.
pub(super) fn flat(value: &NewValue) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        NewValue::Word(text) => word(text),
        NewValue::Text(text) => quoted(text),
        NewValue::True => "true".to_owned(),
        NewValue::External(volume) => format!("{{external: true, name: {}}}", quoted(volume)),
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

/// A text, in quotes unless it needs none.
pub(in crate::rewrite) fn word(text: &str) -> String {
    if is_word(text) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Whether a text needs no quotes anywhere: a word or a path.
fn is_word(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/'))
        && text.bytes().all(is_part)
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "y" | "n" | "yes" | "no" | "on" | "off" | "inf" | "nan"
        )
}
