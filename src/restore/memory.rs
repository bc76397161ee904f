//! The files in memory, which no restore brings back (B36).

use std::collections::BTreeSet;

use anyhow::Result;

use super::{
    Planned, Restoration,
    plan::{StateChange, named, own},
};
use crate::{
    finding::Finding,
    model::{Changes, Container},
    plan::unseen_memory,
    run::look_into,
    snapshot::Known,
    text::listed,
};

impl Restoration<'_, '_, '_> {
    /// The files in memory of the containers that the restore removes or stops, or that Portainer may remove.
    pub(super) fn memory_lost(&self, planned: &Planned) -> Result<Vec<Finding>> {
        let (mut stopped, possible) = self.removed(planned);
        let stops = |one: &&Container| planned.containers.gives(one, StateChange::Stop);
        let own = own(self.snapshot(), &planned.existing).into_iter();
        stopped.extend(own.filter(stops));
        let certain = stopped.len();
        stopped.extend(possible);
        let volumes = stopped.iter().flat_map(|container| container.volumes());
        let volumes: BTreeSet<&str> = volumes.map(|(name, _)| name).collect();
        let volumes = self.run.engine.inspect_volumes(volumes)?;
        let changes: Vec<Changes> = (stopped.iter())
            .map(|container| look_into(container, &volumes))
            .collect();
        if changes.iter().all(|change| *change == Changes::default()) {
            return Ok(Vec::new());
        }
        let mut others = self.run.engine.list_all()?;
        others.retain(|other| stopped.iter().all(|container| container.id() != other.id()));
        let others: Vec<&Container> = others.iter().collect();
        let mut told = Vec::new();
        for (at, (container, changes)) in stopped.iter().zip(&changes).enumerate() {
            let name = container.name();
            let are = if at < certain { "are" } else { "may be" };
            let emptied = container.emptied(changes, &others).into_iter();
            let lost = emptied.map(|path| format!("the files in memory at {path} {are} lost"));
            told.extend(lost.map(|what| Finding::of_stack(&what).on(name)));
        }
        let unseen = changes.into_iter().flat_map(|change| change.unseen_memory);
        told.extend(unseen_memory(&unseen.collect()));
        Ok(told)
    }

    /// What is said of the files in memory of the saved containers that have stopped since the snapshot.
    pub(super) fn emptied(&self, existing: &[Container]) -> Result<Vec<String>> {
        let snapshot = self.snapshot();
        let (kept, stopped): (Vec<&Container>, Vec<_>) = snapshot
            .containers
            .items()
            .iter()
            .partition(|old| named(existing, old.name()).is_some_and(|now| runs_on(old, now)));
        let known = stopped.into_iter().filter_map(|old| {
            let changes = snapshot.changes.get(old.id()).and_then(Known::known)?;
            changes.have_memory().then_some((old, changes))
        });
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let mut others = self.run.engine.list_all()?;
        others.retain(|container| {
            kept.iter().any(|old| old.id() == container.id())
                || existing.iter().all(|now| now.id() != container.id())
        });
        let others: Vec<&Container> = others.iter().collect();
        let (mut lost, mut unseen) = (Vec::new(), Vec::new());
        for (old, changes) in known {
            let name = old.name();
            let emptied = old.emptied(changes, &others).into_iter();
            lost.extend(emptied.map(|path| format!("{path} of {name}")));
            if !changes.unseen_memory.is_empty() {
                unseen.push(name);
            }
        }
        let lost = (!lost.is_empty())
            .then(|| format!("the files in memory at {} are lost", listed(&lost)));
        let unseen = (!unseen.is_empty()).then(|| {
            format!(
                "whether files in memory of {} are lost is unknown",
                listed(&unseen)
            )
        });
        Ok(lost.into_iter().chain(unseen).collect())
    }

    /// Whether a container has not the files in memory that it had in the snapshot, or may have had.
    pub(super) fn has_lost_memory(&self, now: &Container) -> bool {
        let snapshot = self.snapshot();
        let had = |old: &Container| {
            let changes = snapshot.changes.get(old.id()).and_then(Known::known);
            changes.is_some_and(Changes::have_memory)
        };
        let mut all = snapshot.containers.items().iter();
        all.any(|old| old.name() == now.name() && had(old) && !runs_on(old, now))
    }
}

/// Whether it is the same container since the same start.
fn runs_on(old: &Container, now: &Container) -> bool {
    let start = "/State/StartedAt";
    now.id() == old.id() && now.text(start) == old.text(start)
}
