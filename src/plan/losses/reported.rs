//! What the losses of the text say already: a fact is reported once.

use std::collections::BTreeSet;

use composefile::document::Node;

use crate::{
    plan::facts::services::SentService,
    rewrite::loss::{Owner, TextLoss, TextLossKind},
};

/// The losses of the text.
#[derive(Clone, Copy)]
pub struct Reported<'a>(pub &'a [TextLoss]);

impl<'a> Reported<'a> {
    /// The variables that they name for a service.
    pub fn variables(self, service: &str) -> BTreeSet<&'a str> {
        let names = self.0.iter().filter_map(|loss| match &loss.kind {
            TextLossKind::Variable { name, .. } if is_of(loss, service) => Some(name.as_str()),
            _ => None,
        });
        names.collect()
    }

    /// Whether they name a node of a service, or something below it.
    pub fn names<'d>(self, service: &SentService<'_, 'd, '_>, node: Node<'d>) -> bool {
        let path = service.path_of(node);
        self.0.iter().any(|loss| match &loss.kind {
            TextLossKind::Value { place, .. } | TextLossKind::Replaced { place } => {
                let below = place.strip_prefix(&path);
                is_of(loss, service.name)
                    && below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
            }
            _ => false,
        })
    }

    /// Whether they name a path, as the rewritten text has it.
    pub fn moves(self, path: &str) -> bool {
        let mut kinds = self.0.iter().map(|loss| &loss.kind);
        kinds.any(|kind| matches!(kind, TextLossKind::Path { becomes, .. } if becomes == path))
    }
}

fn is_of(loss: &TextLoss, service: &str) -> bool {
    matches!(&loss.owner, Owner::Service(name) if name == service)
}
