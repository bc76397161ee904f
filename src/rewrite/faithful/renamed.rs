//! A text of Portainer as a file of a directory: with the name of its project, and `.env` in place of `stack.env`.

use std::ops::Range;

use composefile::{
    document::{Document, Node, NodeKind},
    services::{EnvFile, Service, services},
};

use super::{
    findings::is_block,
    write::{quoted, scalar_text},
};
use crate::rewrite::{portainer::STACK_ENV, replaced};

/// The key of a Compose file that says what stacklift wrote it from, if the original is lost.
pub const MARK: &str = "x-stacklift";
/// Its value in one that was written from the containers of a project.
pub const FROM_CONTAINERS: &str = "from containers";
/// Its value in one that was written from the data of a Portainer that is gone.
pub const FROM_PORTAINER_DATA: &str = "from portainer-data";

/// The new text, with the value of [`MARK`] if there is one, and whether it still names `stack.env`. `None` if it cannot be written.
pub fn renamed(text: &str, project: &str, mark: Option<&str>) -> Option<(String, bool)> {
    let document = Document::parse(text).ok()?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for EnvFile { node, path, .. } in services(&document).iter().flat_map(Service::env_files) {
        // A value with an anchor may have another meaning where an alias repeats it.
        let is_own = matches!(node.kind(), NodeKind::Scalar(_)) && node.anchor().is_none();
        if is_own && path == STACK_ENV {
            edits.push((node.span(), scalar_text(node, ".env")?));
        }
    }
    let root = document.root()?;
    let start = document.line_start(root.own_entries().next()?.key.span().start);
    let line = text[start..].trim_start_matches('\u{feff}');
    let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
    let new_line = document.line_end().to_owned() + indent;
    let separator = if is_block(root) { &new_line } else { ", " };
    let mark = mark.map(|mark| format!("{separator}{}: {}", quoted(MARK), quoted(mark)));
    let name = format!("name: {}{}", quoted(project), mark.unwrap_or_default());
    let mut entries = root.own_entries();
    let named = entries.find(|entry| entry.name() == Some("name"));
    edits.push(if let Some(entry) = named {
        let end = text[..entry.value.span().end].trim_end().len();
        (entry.key.span().start..end, name)
    } else {
        let first = text.len() - line.len() + indent.len();
        let inside = root.span().start + 1;
        let at = if is_block(root) { first } else { inside };
        (at..at, name + separator)
    });
    edits.sort_by_key(|(span, _)| span.start);
    let written = replaced(text, edits);
    let new = Document::parse(&written).ok()?;
    let mut scalars = new.nodes().filter_map(Node::as_str);
    let names_stack_env = scalars.any(|text| text.contains(STACK_ENV));
    let is_named = new.get("name").and_then(Node::as_str) == Some(project);
    is_named.then(|| (written.clone(), names_stack_env))
}
