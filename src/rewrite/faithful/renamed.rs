//! A text of Portainer as a file of a directory: with the name of its project, and `.env` in place of `stack.env`.

use composefile::document::{Document, Node, NodeKind};

use super::{
    check::compare,
    findings::{NewValue, Secrecy},
    splice::Splices,
};
use crate::rewrite::{env_files::env_file_keys, portainer::STACK_ENV};

/// The key of a Compose file that says what stacklift wrote it from, if the original is lost.
pub const MARK: &str = "x-stacklift";
/// Its value in one that was written from the containers of a project.
pub const FROM_CONTAINERS: &str = "from containers";
/// Its value in one that was written from the data of a Portainer that is gone.
pub const FROM_PORTAINER_DATA: &str = "from portainer-data";

/// The new text, with the value of [`MARK`] if there is one. `None` if it cannot be written, or if it differs by more than
/// that, the name and the env files.
pub fn renamed(text: &str, project: &str, mark: Option<&str>) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let mut splices = Splices::default();
    let mut ahead: Vec<Node<'_>> = Vec::new();
    ahead.extend(env_file_keys(&document).iter().map(|entry| entry.value));
    while let Some(node) = ahead.pop() {
        ahead.extend(node.own_items());
        let entries = node.own_entries();
        let paths = entries.filter(|entry| entry.name() == Some("path"));
        ahead.extend(paths.map(|entry| entry.value));
        // A value with an anchor may have another meaning where an alias repeats it.
        let is_own = matches!(node.kind(), NodeKind::Scalar(_)) && node.anchor().is_none();
        if is_own && node.as_str() == Some(STACK_ENV) {
            splices.set(node, ".env", Secrecy::Public).ok()?;
        }
    }
    let root = document.root()?;
    let entry = |key: &str, value: &str| (key.to_owned(), NewValue::Text(value.to_owned()));
    let mark = mark.map(|mark| entry(MARK, mark));
    let name = [entry("name", project)].into_iter().chain(mark).collect();
    let mut entries = root.own_entries();
    match entries.find(|entry| entry.name() == Some("name")) {
        Some(entry) => splices.replace_entry(root, entry, name),
        None => splices.insert_front(root, name),
    }
    let written = splices.apply(&document).ok()?;
    let new = Document::parse(&written.text).ok()?;
    compare(&document, &new, &written.expected).ok()?;
    Some(written.text)
}
