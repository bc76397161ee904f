//! Refuses a file that no pass can read. What else Compose rejects, Compose itself says.

use super::{Finding, Kind};
use composefile::document::{Document, Node, NodeKind};

/// The most nodes a file may have after its aliases are expanded; Compose takes too long to read more.
const MAX_NODES: u64 = 1_000_000;

/// Refuses a file that is no mapping, or whose aliases do not end.
pub(super) fn check(document: &Document<'_>) -> Result<(), Finding> {
    let Some(root) = document.root() else {
        let what = "the Compose file is empty";
        let hint = "pass the right file with --file";
        return Err(Finding::new(what, hint).of_kind(Kind::WrongType));
    };
    let no_mapping = || wrong(root, "the Compose file is not a mapping");
    let other = || (!root.is_mapping()).then(no_mapping);
    endless(document).or_else(other).map_or(Ok(()), Err)
}

/// Refuses an alias inside its own anchor, and aliases that expand to too many nodes.
fn endless(document: &Document) -> Option<Finding> {
    for (written, (node, count)) in (1..).zip(document.expanded()) {
        if node.kind() == NodeKind::Alias && node.resolved().holds(node) {
            return Some(wrong(node, "the alias is inside its own anchor"));
        }
        if count > MAX_NODES.max(10 * written) {
            let what = format!("the aliases expand to more than {MAX_NODES} nodes");
            return Some(wrong(node, what));
        }
    }
    None
}

fn wrong(node: Node<'_>, what: impl AsRef<str>) -> Finding {
    let hint = "see https://docs.docker.com/reference/compose-file/";
    Finding::at(node, Kind::WrongType, what, hint)
}
