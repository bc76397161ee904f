//! What the losses of the text say already: a fact is reported once.

use std::collections::BTreeSet;

use crate::rewrite::loss::{Owner, TextLoss, TextLossKind};

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

    /// Whether they name a place in a service, such as `volumes[0]`, or something below it.
    pub fn names(self, service: &str, place: &str) -> bool {
        let path = format!("services.{service}.{place}");
        self.0.iter().any(|loss| match &loss.kind {
            TextLossKind::Value { place, .. } | TextLossKind::Replaced { place } => {
                let below = place.strip_prefix(&path);
                is_of(loss, service)
                    && below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
            }
            _ => false,
        })
    }
}

fn is_of(loss: &TextLoss, service: &str) -> bool {
    matches!(&loss.owner, Owner::Service(name) if name == service)
}
