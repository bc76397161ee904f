//! Who may use the containers of a stack (B23).

use std::collections::BTreeSet;

use super::{Situation, warning};
use crate::{
    finding::Finding,
    model::{Access, Container, Grant, Uses},
    portainer::Standing,
    text::printable,
};

impl Situation<'_> {
    /// The flags that were typed for `--access`.
    pub fn access_flags(&self) -> Vec<String> {
        let grants = self.access.into_iter().flat_map(|wanted| &wanted.grants);
        let flags = grants.flat_map(|grant| ["--access".to_owned(), grant.as_flag()]);
        flags.collect()
    }

    /// The rights that the labels of containers give, and what `--access` asks for.
    pub(super) fn labeled(&self, all: &[Container]) -> Uses {
        let labeled = all
            .iter()
            .map(|container| (container.id().to_owned(), Grant::of_labels(container)));
        Uses {
            containers: labeled.filter(|(_, grants)| !grants.is_empty()).collect(),
            wanted: self.access.map(|wanted| wanted.grants.clone()),
            ..Uses::default()
        }
    }

    /// Adds what Portainer says. `standing` is that of the Portainer stack.
    ///
    /// Without a Portainer stack, Portainer is not asked for a container with labels: it would store them (M23).
    pub(super) fn uses(
        &self,
        uses: &mut Uses,
        all: &[Container],
        standing: Option<&Standing>,
        warnings: &mut Vec<Finding>,
    ) {
        let Some(portainer) = self.portainer else {
            return;
        };
        let standing = standing.filter(|one| one.control.is_some());
        if standing.is_some() {
            // The rights of the stack come before the labels.
            uses.containers.clear();
        }
        let mut ids: Vec<&str> = all.iter().map(Container::id).collect();
        ids.retain(|id| !uses.containers.contains_key(*id));
        let own = match portainer.own_controls(self.endpoint, &ids) {
            Ok(own) => own,
            Err(error) => return warnings.push(warning(&error)),
        };
        let is_closed = |one: &&Container| {
            let control = own.get(one.id());
            control.is_some_and(|(_, access)| !access.is_shared())
        };
        let opening = self.access.filter(|wanted| wanted.access.is_shared());
        warnings.extend(opening.into_iter().flat_map(|wanted| {
            let grants = Grant::list(&wanted.grants);
            all.iter().filter(is_closed).map(move |one| {
                let name = printable(one.name());
                Finding::as_told(format!(
                    "only administrators may use {name} now: afterwards, {grants} may, too"
                ))
            })
        }));
        uses.is_as_wanted = own.is_empty()
            && standing.map(|one| &one.access) == self.access.map(|wanted| &wanted.access);
        let access = standing.map(|one| &one.access);
        let shared = access.filter(|access| access.is_shared());
        if own.is_empty() && shared.is_none() {
            return;
        }
        // Only administrators may list them.
        let people = portainer.people().unwrap_or_default();
        // A new stack belongs to the user of the API key (B24).
        let of_key = standing.is_none().then(|| portainer.user().ok()).flatten();
        let of_key = of_key.filter(|user| user.is_administrator == Some(false));
        let owner = of_key.and_then(|user| user.id).map(|id| Access {
            users: BTreeSet::from([id]),
            ..Access::default()
        });
        let grants = shared
            .or(owner.as_ref())
            .map(|access| people.grants(access));
        uses.stack = grants.unwrap_or_default();
        let of_containers = own.into_iter();
        let given = of_containers.map(|(id, (_, access))| (id, people.grants(&access)));
        uses.containers
            .extend(given.filter(|(_, grants)| !grants.is_empty()));
    }
}
