//! A Compose file in several files: parts of it moved into another one, and files that add to it.

use std::{fmt::Write, ops::Range};

use composefile::{
    document::{Document, Entry, Layout, Node, NodeKind},
    services::{Service, services},
};

/// Bytes of a text, and what comes in their place.
pub type Edit = (Range<usize>, String);

/// The words of `mutations.txt` that make a stack one of several files.
pub const WORDS: [&str; 4] = ["split", "include", "extends", "override"];

/// The changes to the file, and the text of the other one. `None` where it does not apply.
pub fn moved(
    document: &Document<'_>,
    word: &str,
    argument: &str,
    lines: &str,
) -> Option<(Vec<Edit>, (String, String))> {
    let (file, keys) = argument.split_once(' ').unwrap_or((argument, ""));
    let keys: Vec<&str> = keys.split_whitespace().collect();
    let all = services(document);
    let all: Vec<Entry<'_>> = document
        .get("services")?
        .own_entries()
        .filter(|entry| is_block(entry.value) && all.iter().any(|one| is_of(one, entry)))
        .collect();
    let mut edits = Vec::new();
    let mut text = "services:\n".to_owned();
    match word {
        "split" => {
            for service in &all {
                let own: Vec<Entry<'_>> = service.value.own_entries().collect();
                let goes =
                    |entry: &&Entry<'_>| entry.name().is_some_and(|name| keys.contains(&name));
                let going: Vec<_> = own.iter().filter(goes).collect();
                if going.is_empty() || going.len() == own.len() {
                    continue;
                }
                head(&mut text, service);
                for entry in going {
                    let span = lines_of(entry, service.value)?;
                    text += &document.text()[span.clone()];
                    edits.push((span, String::new()));
                }
            }
            if edits.is_empty() {
                return None;
            }
        }
        "include" => {
            let [_, .., last] = all.as_slice() else {
                return None;
            };
            let span = lines_of(last, document.get("services")?)?;
            text += &document.text()[span.clone()];
            edits.push((span, String::new()));
            edits.push(front(document, lines)?);
        }
        "extends" => {
            let first = all.first()?;
            let own: Vec<Entry<'_>> = first.value.own_entries().collect();
            let start = lines_of(own.first()?, first.value)?.start;
            let end = lines_of(own.last()?, first.value)?.end;
            head(&mut text, first);
            text += &document.text()[start..end];
            let indent = " ".repeat(column(own.first()?.key));
            let name = &document.text()[first.key.span()];
            let new = format!("{indent}extends: {{file: {file}, service: {name}}}\n");
            edits.push((start..end, new));
        }
        _ => {
            for service in &all {
                head(&mut text, service);
                let indent = " ".repeat(column(service.key) + 2);
                for line in lines.lines() {
                    writeln!(text, "{indent}{line}").expect("written");
                }
            }
        }
    }
    Some((edits, (file.to_owned(), text)))
}

fn is_of(service: &Service<'_>, entry: &Entry<'_>) -> bool {
    entry.name() == Some(service.name)
}

fn is_block(node: Node<'_>) -> bool {
    node.kind() == NodeKind::Mapping(Layout::Block) && node.anchor().is_none()
}

/// The line with the name of a service.
fn head(text: &mut String, service: &Entry<'_>) {
    let document = service.key.document();
    let indent = " ".repeat(column(service.key).max(1));
    let name = &document.text()[service.key.span()];
    writeln!(text, "{indent}{name}:").expect("written");
}

pub fn column(node: Node<'_>) -> usize {
    let start = node.span().start;
    start - node.document().line_start(start)
}

/// The lines of an entry, if they are its own: until the next entry, or the end of its mapping.
fn lines_of(entry: &Entry<'_>, mapping: Node<'_>) -> Option<Range<usize>> {
    let document = mapping.document();
    let text = document.text();
    let start = document.line_start(entry.key.span().start);
    let next = mapping
        .own_entries()
        .map(|other| other.key.span().start)
        .find(|at| *at > entry.key.span().start);
    let end = if let Some(next) = next {
        document.line_start(next)
    } else {
        let end = mapping.span().end.max(entry.value.span().end);
        let end = start + text[start..end].trim_end().len();
        text[end..].find('\n').map_or(text.len(), |at| end + at + 1)
    };
    let is_alone = text[start..entry.key.span().start].trim().is_empty();
    let whole = text[start..end].ends_with('\n');
    (is_alone && whole && start < end).then_some(start..end)
}

/// Lines at the front of the file, if it is a block mapping.
fn front(document: &Document<'_>, lines: &str) -> Option<Edit> {
    let first = document.root()?.own_entries().next()?.key.span().start;
    let is_first = document.line_start(first) == first;
    let has_none = document.get("include").is_none();
    (is_first && has_none).then(|| (first..first, lines.to_owned()))
}
