//! Whether a text has the shape of a compose file, as far as the rewrite reads it.
#![deny(clippy::disallowed_methods)]

use super::{super::document::Node, Reason, Refusal, rewriter::Rewriter};

impl Rewriter<'_, '_> {
    /// Whether the file has the shape of a compose file, as far as it is read.
    pub(super) fn shape(&mut self) {
        let wrong = |node: Node<'_>, what: String| {
            Refusal::at(
                node,
                Reason::WrongType,
                what,
                "see https://docs.docker.com/reference/compose-file/",
            )
        };
        let Some(root) = self.document.root() else {
            self.refusals.push(Refusal::of(
                Reason::WrongType,
                "the compose file is empty",
                "name the right file with --file",
            ));
            return;
        };
        if !root.is_mapping() {
            self.refusals
                .push(wrong(root, "the compose file is no mapping".into()));
            return;
        }
        for twice in self.document.duplicate_keys() {
            let name = twice.again.scalar().map_or("", |(name, _)| name);
            if name == "<<" {
                continue;
            }
            let what = format!(
                "the key {name} stands a second time in one mapping, first in line {}",
                twice.first.line()
            );
            self.refusals.push(wrong(twice.again, what));
        }
        for section in ["services", "volumes", "secrets", "configs"] {
            let Some(node) = root.get(section).filter(|node| !node.is_null()) else {
                continue;
            };
            if !node.is_mapping() {
                self.refusals
                    .push(wrong(node, format!("`{section}` is no mapping")));
            }
        }
        for service in self.services.clone() {
            if !service.node.is_mapping() {
                self.refusals.push(wrong(
                    service.node,
                    format!("the service {} is no mapping", service.name),
                ));
                continue;
            }
            let volumes = service.node.get("volumes");
            if let Some(node) = volumes.filter(|node| !node.is_null() && !node.is_sequence()) {
                self.refusals.push(wrong(
                    node,
                    format!("`volumes` of the service {} is no list", service.name),
                ));
            }
            if let Some(node) = service
                .node
                .get("label_file")
                .filter(|node| !node.is_null())
            {
                self.refusals.push(Refusal::at(
                    node,
                    Reason::UnreadableFile,
                    format!(
                        "`label_file` of the service {} names a file that the manager cannot read",
                        service.name
                    ),
                    "write the labels into `labels:`",
                ));
            }
        }
    }
}
