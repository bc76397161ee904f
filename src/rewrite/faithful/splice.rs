//! Edits on byte spans, and what they make of the nodes of the text.
#![deny(clippy::disallowed_methods)]

use std::{fmt::Write, ops::Range};

use super::block;
use composefile::document::{
    Document, Entry, Layout, Node, NodeKind as Kind, NodeMap, NodeSet, ScalarType, Style,
};

/// What is to become of a text: the edits, and the nodes that they are to change.
#[derive(Default)]
pub(super) struct Splices {
    pub(super) edits: Vec<Edit>,
    pub(super) expected: Expected,
    /// The collections that are to hold other entries or items.
    pub(super) touched: NodeSet,
}

/// A part of the new text that is not to be shown, and what is instead.
pub(super) type Mask = (Range<usize>, String);

/// One change of the text.
pub(super) struct Edit {
    /// The bytes of the original that go; empty for an insertion.
    pub(super) span: Range<usize>,
    /// What comes in their place.
    pub(super) text: String,
    /// The same with what came out of an env file hidden, where something did.
    pub(super) shown: Option<String>,
    pub(super) what: String,
    pub(super) why: &'static str,
}

/// What the nodes are to be after the edits; everything else is to be as it was.
#[derive(Default)]
pub(super) struct Expected {
    /// New values of scalars.
    pub(super) scalars: NodeMap<String>,
    /// Keys that go with their values, and items that go.
    pub(super) removed: NodeSet,
    /// Mappings that hold nothing any more.
    pub(super) emptied: NodeSet,
    /// Keys in whose place others come.
    pub(super) replaced: NodeMap<Vec<(String, Value)>>,
    /// New entries in front of a key.
    pub(super) before: NodeMap<Vec<(String, Value)>>,
    /// New entries or items at the front of a collection.
    pub(super) front: NodeMap<Vec<(String, Value)>>,
}

/// A value that is written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// A string.
    Text(String),
    /// Nothing.
    Null,
    /// A mapping.
    Map(Vec<(String, Value)>),
    /// A list without items.
    Nothing,
    /// An item of a list; the name beside it is not written.
    Item(String),
}

/// The edit cannot be written at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Impossible;

impl Splices {
    /// Gives a scalar another value in the style it has, where that style can hold it.
    pub(super) fn set(
        &mut self,
        node: Node<'_>,
        value: &str,
        raw: Option<String>,
        (what, why, secret): (String, &'static str, bool),
    ) -> Result<(), Impossible> {
        let node = node.resolved();
        self.expected.scalars.insert(node.id(), value.to_owned());
        if let (Some(header), None) = (block::header(node), &raw) {
            // On one line: a block cannot say every value, and its indentation would have to be kept.
            let span = header.start..trimmed_end(node.document().text(), node.span().end);
            let comment = block::behind(node, &header);
            let shown = secret.then(|| quoted(MASK) + &comment);
            self.push(span, quoted(value) + &comment, shown, what, why);
            return Ok(());
        }
        let mut text = scalar_text(node, value, raw)?;
        let shown = secret.then(|| quoted(MASK));
        // A block scalar's span may end in what is the next line's.
        let span = node.span();
        let written = &node.document().text()[span.clone()];
        let blanks = written.len() - written.trim_end().len();
        text.truncate(text.len() - blanks);
        self.push(span.start..span.end - blanks, text, shown, what, why);
        Ok(())
    }

    /// Gives a key that has no value one.
    pub(super) fn fill(
        &mut self,
        entry: Entry<'_>,
        value: &str,
        (what, why, secret): (String, &'static str, bool),
    ) -> Result<(), Impossible> {
        // With an anchor, it is nothing at other places too.
        if entry.value.kind() == Kind::Alias || entry.value.anchor().is_some() {
            return Err(Impossible);
        }
        if !entry.value.span().is_empty() {
            return self.set(entry.value, value, Some(quoted(value)), (what, why, secret));
        }
        let at = entry.value.span().start;
        if !entry.key.document().text()[..at].ends_with(':') {
            return Err(Impossible);
        }
        self.expected
            .scalars
            .insert(entry.value.id(), value.to_owned());
        let shown = secret.then(|| format!(" {}", quoted(MASK)));
        self.push(at..at, format!(" {}", quoted(value)), shown, what, why);
        Ok(())
    }

    /// Takes a key with its value out of a mapping.
    pub(super) fn remove_entry(
        &mut self,
        mapping: Node<'_>,
        entry: Entry<'_>,
        (what, why): (String, &'static str),
    ) -> Result<(), Impossible> {
        self.touched.insert(mapping.id());
        let span = entry_span(entry);
        let span = removal(mapping, &span, span.start)?;
        self.expected.removed.insert(entry.key.id());
        self.push(span, String::new(), None, what, why);
        Ok(())
    }

    /// Leaves `{}` of a mapping, in the place of its first entry; the others are taken out by themselves.
    pub(super) fn empty(
        &mut self,
        mapping: Node<'_>,
        first: Entry<'_>,
        (what, why): (String, &'static str),
    ) {
        self.touched.insert(mapping.id());
        self.expected.emptied.insert(mapping.id());
        let is_flow = mapping.kind() == Kind::Mapping(Layout::Flow);
        let text = if is_flow { "" } else { "{}" };
        self.push(entry_span(first), text.to_owned(), None, what, why);
    }

    /// Takes an item out of a list.
    pub(super) fn remove_item(
        &mut self,
        list: Node<'_>,
        item: Node<'_>,
        (what, why): (String, &'static str),
    ) -> Result<(), Impossible> {
        self.touched.insert(list.id());
        let text = list.document().text();
        let start = block::start(item);
        let span = start..trimmed_end(text, item.span().end).max(start);
        let span = match list.kind() {
            Kind::Sequence(Layout::Block) => {
                let hyphen = text[..start].rfind('-').ok_or(Impossible)?;
                removal(list, &(hyphen..span.end), hyphen)?
            }
            _ => removal(list, &span, start)?,
        };
        self.expected.removed.insert(item.id());
        self.push(span, String::new(), None, what, why);
        Ok(())
    }

    /// Writes other entries in the place of one.
    pub(super) fn replace_entry(
        &mut self,
        mapping: Node<'_>,
        entry: Entry<'_>,
        entries: Vec<(String, Value)>,
        (what, why, secret): (String, &'static str, bool),
    ) {
        self.touched.insert(mapping.id());
        let at = key_start(entry.key);
        let separator = separator(mapping, at);
        let text = entries_text(mapping, at, &entries).join(&separator);
        let shown = secret.then(|| entries_text(mapping, at, &masked(&entries)).join(&separator));
        self.expected.replaced.insert(entry.key.id(), entries);
        self.push(entry_span(entry), text, shown, what, why);
    }

    /// Writes an entry in front of a key.
    pub(super) fn insert_before(
        &mut self,
        mapping: Node<'_>,
        key: Node<'_>,
        new: (String, Value),
        (what, why, secret): (String, &'static str, bool),
    ) {
        self.touched.insert(mapping.id());
        let at = key_start(key);
        let separator = separator(mapping, at);
        let new = vec![new];
        let write = |new: &[(String, Value)]| entries_text(mapping, at, new).concat() + &separator;
        let text = write(&new);
        let shown = secret.then(|| write(&masked(&new)));
        self.expected
            .before
            .entry(key.id())
            .or_default()
            .extend(new);
        self.push(at..at, text, shown, what, why);
    }

    /// Writes entries or items at the front of a collection.
    pub(super) fn insert_front(
        &mut self,
        collection: Node<'_>,
        new: Vec<(String, Value)>,
        (what, why, secret): (String, &'static str, bool),
    ) {
        self.touched.insert(collection.id());
        let span = collection.span();
        let is_flow = matches!(
            collection.kind(),
            Kind::Sequence(Layout::Flow) | Kind::Mapping(Layout::Flow)
        );
        let first = collection.own_entries().next();
        let at = match first {
            _ if is_flow => span.start + 1,
            Some(first) => key_start(first.key),
            None => span.start,
        };
        let separator = separator(collection, at);
        let is_empty =
            collection.own_items().next().is_none() && collection.own_entries().next().is_none();
        let end = if is_empty { "" } else { &separator };
        let write =
            |new: &[(String, Value)]| entries_text(collection, at, new).join(&separator) + end;
        let text = write(&new);
        let shown = secret.then(|| write(&masked(&new)));
        self.expected.front.insert(collection.id(), new);
        self.push(at..at, text, shown, what, why);
    }

    fn push(
        &mut self,
        span: Range<usize>,
        text: String,
        shown: Option<String>,
        what: String,
        why: &'static str,
    ) {
        self.edits.push(Edit {
            span,
            text,
            shown,
            what,
            why,
        });
    }

    /// The text with the edits, whose texts it uses up; and where something in it came out of an env file, with
    /// what is shown there.
    pub(super) fn apply(&mut self, text: &str) -> Result<(String, Vec<Mask>), Impossible> {
        self.edits
            .sort_by_key(|edit| (edit.span.start, !edit.span.is_empty()));
        let mut new = String::with_capacity(text.len() + text.len() / 8);
        let mut masks = Vec::new();
        let mut done = 0;
        for edit in &mut self.edits {
            if edit.text.is_empty() {
                // Neighbours that both go share the comma between them.
                edit.span.start = edit.span.start.max(done).min(edit.span.end);
            }
            new.push_str(text.get(done..edit.span.start).ok_or(Impossible)?);
            let start = new.len();
            new.push_str(&std::mem::take(&mut edit.text));
            let shown = edit.shown.take();
            masks.extend(shown.map(|shown| (start..new.len(), shown)));
            done = edit.span.end;
        }
        new.push_str(text.get(done..).ok_or(Impossible)?);
        Ok((new, masks))
    }
}

/// What stands in the place of a value that is not to be shown.
const MASK: &str = "***";

fn masked(entries: &[(String, Value)]) -> Vec<(String, Value)> {
    let one = |(name, value): &(String, Value)| {
        let value = match value {
            Value::Text(_) => Value::Text(MASK.into()),
            Value::Item(_) => Value::Item(format!("{name}={MASK}")),
            Value::Map(entries) => Value::Map(masked(entries)),
            Value::Null | Value::Nothing => value.clone(),
        };
        (name.clone(), value)
    };
    entries.iter().map(one).collect()
}

/// A scalar with another value: in its own style where that can hold it.
fn scalar_text(node: Node<'_>, value: &str, raw: Option<String>) -> Result<String, Impossible> {
    let Kind::Scalar(style) = node.kind() else {
        return Err(Impossible);
    };
    if let Some(raw) = raw {
        return Ok(raw);
    }
    let written = &node.document().text()[node.span()];
    let breaks =
        |c: char| c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
    Ok(match style {
        Style::Plain if is_plain(value, written) => value.to_owned(),
        Style::SingleQuoted if !value.contains(breaks) => {
            format!("'{}'", value.replace('\'', "''"))
        }
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => quoted(value),
        Style::Literal | Style::Folded => return Err(Impossible),
    })
}

/// Whether a value reads the same without quotes where `before` stood without them: as a text, which `before`
/// with a variable in it was.
fn is_plain(value: &str, before: &str) -> bool {
    // What holds a bracket or comma without quotes stands in no flow collection.
    let is_in_block = before.contains(['{', '}', '[', ']', ',']);
    if is_surely_plain(value, is_in_block) {
        return true;
    }
    let line = if is_in_block {
        format!("k: {value}")
    } else {
        format!("[{value}]")
    };
    let Ok(document) = Document::parse(&line) else {
        return false;
    };
    let Some(root) = document.root() else {
        return false;
    };
    let read = if is_in_block {
        root.get("k")
    } else {
        root.items().next()
    };
    let is_alone = root.own_items().count() + root.own_entries().count() == 1;
    let is_it = |node: Node<'_>| {
        let is_text = node.scalar_type() == Some(ScalarType::Text);
        is_text && node.kind() == Kind::Scalar(Style::Plain) && node.as_str() == Some(value)
    };
    is_alone && read.is_some_and(is_it)
}

/// Whether a value is one of the paths, mounts and variables that most are, which the parser need not be
/// asked about.
fn is_surely_plain(value: &str, in_block: bool) -> bool {
    let is_safe = |byte: u8| match byte {
        b'/' | b'.' | b'_' | b'-' | b'=' | b'$' => true,
        b'{' | b'}' => in_block,
        _ => byte.is_ascii_alphanumeric(),
    };
    let mut parts = value.split(':');
    value.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '$'))
        && !value.eq_ignore_ascii_case("null")
        && parts.all(|part| !part.is_empty() && part.bytes().all(is_safe))
}

/// A value in double quotes, on one line.
pub(super) fn quoted(value: &str) -> String {
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
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The bytes of a key and its value, without what follows on the line.
fn entry_span(entry: Entry<'_>) -> Range<usize> {
    let text = entry.key.document().text();
    let start = key_start(entry.key);
    start..trimmed_end(text, entry.value.span().end).max(entry.key.span().end)
}

/// Where a key starts, with its anchor, its tag and the `?` in front of it.
fn key_start(key: Node<'_>) -> usize {
    let properties = [key.anchor_span(), key.tag_span()];
    let properties = properties.into_iter().flatten().map(|span| span.start);
    let start = properties.fold(key.span().start, usize::min);
    let before = &key.document().text()[..start];
    let before = before.trim_end_matches([' ', '\t']);
    let Some(before) = before.strip_suffix('?').filter(|_| before.len() < start) else {
        return start;
    };
    let is_first = before.trim_end_matches([' ', '\t', '\u{feff}']);
    if is_first.is_empty() || is_first.ends_with(['\n', '-', '{', ',', '?', ':']) {
        before.len()
    } else {
        start
    }
}

/// Where a node ends, without the blanks that a block scalar's span may end in, or that are in front of an
/// empty one.
fn trimmed_end(text: &str, end: usize) -> usize {
    text[..end].trim_end().len()
}

/// What goes with a part of a collection: its lines in a block, its comma in flow.
fn removal(
    collection: Node<'_>,
    span: &Range<usize>,
    start: usize,
) -> Result<Range<usize>, Impossible> {
    let text = collection.document().text();
    let is_block = matches!(
        collection.kind(),
        Kind::Sequence(Layout::Block) | Kind::Mapping(Layout::Block)
    );
    if is_block {
        let line = collection.document().line_start(start);
        if !text[line..start]
            .trim_start_matches('\u{feff}')
            .trim()
            .is_empty()
        {
            return Err(Impossible);
        }
        let end = text[span.end..]
            .find('\n')
            .map_or(text.len(), |at| span.end + at + 1);
        return Ok(line..end);
    }
    let after = text[span.end..].trim_start();
    if after.starts_with(',') {
        let comma = text.len() - after.len() + 1;
        let rest = &text[comma..];
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        return Ok(span.start..comma + blanks);
    }
    let before = text[..span.start].trim_end();
    if before.ends_with(',') {
        return Ok(before.len() - 1..span.end);
    }
    Ok(span.clone())
}

/// What stands between two entries or items of a collection.
fn separator(collection: Node<'_>, at: usize) -> String {
    match collection.kind() {
        Kind::Sequence(Layout::Flow) | Kind::Mapping(Layout::Flow) => ", ".to_owned(),
        _ => {
            let document = collection.document();
            format!(
                "{}{}",
                document.line_end(),
                " ".repeat(column(document, at))
            )
        }
    }
}

fn column(document: &Document<'_>, at: usize) -> usize {
    document.text()[document.line_start(at)..at]
        .trim_start_matches('\u{feff}')
        .chars()
        .count()
}

fn entries_text(collection: Node<'_>, at: usize, entries: &[(String, Value)]) -> Vec<String> {
    let is_flow = matches!(
        collection.kind(),
        Kind::Sequence(Layout::Flow) | Kind::Mapping(Layout::Flow)
    );
    let document = collection.document();
    let deeper = || {
        let blanks = " ".repeat(column(document, at) + 2);
        format!("{}{blanks}", document.line_end())
    };
    let one = |(name, value): &(String, Value)| match value {
        Value::Item(item) if is_flow => quoted(item),
        Value::Item(item) => format!("- {}", quoted(item)),
        Value::Text(value) => format!("{}: {}", key(name), quoted(value)),
        Value::Nothing => format!("{}: []", key(name)),
        Value::Null => format!("{}:{}", key(name), if is_flow { " null" } else { "" }),
        Value::Map(entries) if is_flow => {
            let inside: Vec<_> = entries.iter().map(flat).collect();
            format!("{}: {{{}}}", key(name), inside.join(", "))
        }
        Value::Map(entries) => {
            let deeper = deeper();
            let inside = entries
                .iter()
                .map(|entry| format!("{deeper}{}", flat(entry)));
            format!("{}:{}", key(name), inside.collect::<String>())
        }
    };
    entries.iter().map(one).collect()
}

/// One entry on one line.
fn flat((name, value): &(String, Value)) -> String {
    match value {
        Value::Text(value) => format!("{}: {}", key(name), quoted(value)),
        _ => format!("{}: null", key(name)),
    }
}

/// A name as a key.
fn key(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !matches!(
            name.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "y" | "n" | "yes" | "no" | "on" | "off"
        );
    if is_plain {
        name.to_owned()
    } else {
        quoted(name)
    }
}
