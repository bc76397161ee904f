//! The source ranges of a block scalar (`|`, `>`), whose header is on the line before its span.
#![deny(clippy::disallowed_methods)]

use std::ops::Range;

use composefile::document::{Node, NodeKind, Style};

/// The bytes of the header, `|` or `>` with its indicators; `None` for any other node.
pub(super) fn header(node: Node<'_>) -> Option<Range<usize>> {
    if !matches!(
        node.kind(),
        NodeKind::Scalar(Style::Literal | Style::Folded)
    ) {
        return None;
    }
    let text = node.document().text();
    // Its key, or another node that may be on the same line.
    let before = node.before()?;
    let from = if before.holds(node) {
        before.span().start
    } else {
        before.span().end
    };
    let region = text.get(from..node.span().start)?.trim_end();
    let line = from + region.rfind('\n').map_or(0, |at| at + 1);
    let written = &text[line..from + region.len()];
    written.match_indices(['|', '>']).find_map(|(at, _)| {
        let rest = &written[at + 1..];
        let length = rest
            .bytes()
            .take_while(|byte| matches!(byte, b'+' | b'-' | b'1'..=b'9'))
            .count();
        let after = rest[length..].trim_start();
        let is_separate = written[..at].is_empty() || written[..at].ends_with([' ', '\t']);
        let is_header = is_separate && (after.is_empty() || after.starts_with('#'));
        is_header.then(|| line + at..line + at + 1 + length)
    })
}

/// The rest of the line after the header: empty, or a comment.
pub(super) fn after_header(node: Node<'_>, header: &Range<usize>) -> String {
    let text = node.document().text();
    let line = text[header.end..].lines().next().unwrap_or_default();
    line.trim_end().to_owned()
}

/// The first byte of a node, including its anchor, its tag and its header.
pub(super) fn start(node: Node<'_>) -> usize {
    let spans = [node.anchor_span(), node.tag_span(), header(node)];
    let starts = spans.into_iter().flatten().map(|span| span.start);
    starts.fold(node.span().start, usize::min)
}
