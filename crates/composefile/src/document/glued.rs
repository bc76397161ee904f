//! Comments without a space before them, as in `"x"# comment`. YAML forbids them, but the parsers of Compose accept
//! them after a quote, a bracket, a comma, and the header of a block scalar.

use std::ops::Range;

use super::{Document, Layout, NodeKind};

/// The most comments of this kind in a text. Each of them needs another pass over the text.
pub(super) const MOST: usize = 256;

/// The bytes of the glued comment at an offset, if there is one that Compose accepts.
pub(super) fn comment(text: &str, offset: usize) -> Option<Range<usize>> {
    let rest = text.get(offset..)?;
    if !rest.starts_with('#') {
        return None;
    }
    let before = &text[..offset];
    let without_header = before.trim_end_matches(|c: char| matches!(c, '+' | '-' | '1'..='9'));
    if !before.ends_with(['"', '\'', '[', ']', '{', '}', ','])
        && !without_header.ends_with(['|', '>'])
    {
        return None;
    }
    let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
    Some(offset..offset + length)
}

/// The offset of a comment that Compose does not accept: one between a key of a flow mapping and its colon.
pub(super) fn misplaced(document: &Document<'_>, comments: &[Range<usize>]) -> Option<usize> {
    if comments.is_empty() {
        return None;
    }
    let text = document.text();
    let flow = NodeKind::Mapping(Layout::Flow);
    let mappings = document.nodes().filter(|node| node.kind() == flow);
    let mut keys = mappings.flat_map(|mapping| mapping.own_entries().map(|entry| entry.key));
    let key = keys.find(|key| {
        let span = key.span();
        let is_explicit = text[..span.start].trim_end().ends_with('?');
        let comment = comments.iter().find(|comment| comment.start == span.end);
        !is_explicit && comment.is_some_and(|comment| starts_with_colon(&text[comment.end..]))
    })?;
    Some(key.span().end)
}

/// Whether a colon follows, after white space and comments.
fn starts_with_colon(rest: &str) -> bool {
    let mut lines = rest.lines().map(str::trim_start);
    let content = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    content.is_some_and(|content| content.starts_with(':'))
}
