//! What containers hold in memory, and lose when they stop (B36).

use crate::{
    model::Container,
    plan::{Facts, Fate, Loss, LossKind, ServicePlan, fate_of},
    snapshot::{Inspected, Known},
};

/// What is said if a container could not be looked at.
pub const UNSEEN_MEMORY: &str = "whether files in memory (/dev/shm, tmpfs) are lost is unknown: only root on the host of Docker can look into the containers";

/// The losses of the containers that are stopped or may be, and what is unknown of them.
pub fn losses(facts: &Facts, services: &[ServicePlan]) -> (Vec<Loss>, Option<String>) {
    let fate = |name: &str| fate_of(services, name);
    let stays = |name: &str| {
        fate(name).is_some_and(|fate| fate.is_unchanged() || matches!(fate, Fate::Started(_)))
    };
    let own = facts.listed().iter().filter(|one| stays(one.name()));
    let others: Vec<&Container> = own.chain(facts.others.iter().flatten()).collect();
    let (mut losses, mut unseen) = (Vec::new(), None);
    let mut containers: Vec<Inspected> = facts.observed.inspected().collect();
    containers.sort_by_key(|container| container.name());
    for container in containers.into_iter().filter(|one| !stays(one.name())) {
        let changes = facts.details.changes.get(container.id());
        let Some(changes) = changes.and_then(Known::known) else {
            continue;
        };
        if changes.has_unseen_memory {
            unseen = Some(UNSEEN_MEMORY.to_owned());
        }
        let if_recreated = match fate(container.name()) {
            Some(Fate::Recreated(_) | Fate::Removed(_) | Fate::Restarted(_)) => "",
            _ => facts.if_recreated(container),
        };
        losses.extend(container.emptied(changes, &others).into_iter().map(|path| {
            let message = format!("{if_recreated}the files in memory at {path}");
            Loss::of_container(container, facts.tool, LossKind::Memory, &message)
        }));
    }
    (losses, unseen)
}
