//! Notices about keys that no measured Compose version accepts. They are not refused: a newer version may accept them.
#![deny(clippy::disallowed_methods)]

use super::{Notice, rewriter::Rewriter};
use composefile::{
    document::Node,
    schema::{Place, ROOT, SERVICE},
};

impl<'d> Rewriter<'d, '_> {
    /// Adds a notice for each unknown key of the file and of its services.
    pub(super) fn unknown_keys(&mut self) {
        if let Some(root) = self.document.root() {
            self.unknown_keys_of(root, &ROOT);
            let jobs = root.entry("jobs").map(|entry| Notice {
                line: Some(entry.key.line()),
                message:
                    "only the paths in `jobs` are rewritten; some Compose versions reject the key"
                        .into(),
            });
            self.notices.extend(jobs);
        }
        for service in self.services.clone() {
            self.unknown_keys_of(service.node, &SERVICE);
        }
    }

    fn unknown_keys_of(&mut self, mapping: Node<'d>, place: &Place) {
        for entry in mapping.entries() {
            let name = entry.name().unwrap_or_default();
            if place.key(name).is_none() {
                self.notices.push(Notice {
                    line: Some(entry.key.line()),
                    message: format!("unknown key `{name}`: some Compose versions reject it"),
                });
            }
        }
    }
}
