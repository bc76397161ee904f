//! What the losses of the text say already: a fact is reported once.

use std::collections::BTreeSet;

use composefile::document::Node;

use crate::{
    plan::{Loss, facts::services::SentService},
    rewrite::loss::{Owner, TextLossKind},
};

/// The losses of the text.
#[derive(Clone, Copy)]
pub struct Reported<'a>(pub &'a [Loss]);

impl<'a> Reported<'a> {
    /// The variables that they name for a service.
    pub fn variables(self, service: &str) -> BTreeSet<&'a str> {
        let reported = self.0.iter().filter_map(|loss| match loss {
            Loss::Variables {
                owner: Owner::Service(name),
                names,
                ..
            } if name == service => Some(names),
            _ => None,
        });
        reported.flatten().map(String::as_str).collect()
    }

    /// Whether they name a node of a service, or something below it.
    pub fn names<'d>(self, service: &SentService<'_, 'd, '_>, node: Node<'d>) -> bool {
        let path = service.path_of(node);
        self.texts().any(|(owner, kind)| match kind {
            TextLossKind::Value { place, .. } | TextLossKind::Replaced { place } => {
                let below = place.strip_prefix(&path);
                matches!(owner, Owner::Service(name) if name == service.name)
                    && below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
            }
            _ => false,
        })
    }

    /// Whether they name a path, as the rewritten text has it.
    pub fn moves(self, path: &str) -> bool {
        self.texts()
            .any(|(_, kind)| matches!(kind, TextLossKind::Path { becomes, .. } if becomes == path))
    }

    fn texts(self) -> impl Iterator<Item = (&'a Owner, &'a TextLossKind)> {
        self.0.iter().filter_map(|loss| match loss {
            Loss::Text(loss) => Some((&loss.owner, &loss.kind)),
            _ => None,
        })
    }
}
