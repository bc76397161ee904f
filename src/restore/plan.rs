//! Which containers a restore keeps, removes and recreates.
//!
//! What Portainer does on the way comes on top: it can recreate or remove containers that this plan keeps, unless
//! `keeps_containers` of the restore says that it keeps them, too.
//!
//! Invariant: pure. A restore plans again after every change, so that the next run finishes what a killed run began.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use super::{recipe::NewIds, waves::Dependencies};
use crate::{
    after::Creator,
    model::{Container, projects_of},
    snapshot::Snapshot,
};

/// The plan, by index into the saved containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub dependencies: Dependencies,
    /// The containers that match the snapshot, with their current IDs.
    pub keep: BTreeMap<usize, String>,
    /// Those of them that are started, stopped, paused or unpaused, by name.
    pub changing: BTreeMap<String, Vec<StateChange>>,
    /// Containers that replaced saved ones, or that are not in the snapshot: ID and name.
    pub remove: Vec<(String, String)>,
    /// The containers to recreate.
    pub create: BTreeSet<usize>,
}

/// A change to the state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateChange {
    Unpause,
    Start,
    Stop,
    Pause,
}

impl Plan {
    /// Plans from the `existing` containers: those of the project, and all others with the name of a saved one.
    /// Containers on a network of `replaced`, and those that are `incomplete`, by ID, are recreated.
    pub(super) fn new(
        snapshot: &Snapshot,
        existing: &[Container],
        (replaced, incomplete): (&BTreeSet<String>, &BTreeSet<String>),
    ) -> Self {
        let saved = snapshot.containers.items();
        let mut plan = Self {
            dependencies: Dependencies::of(saved, snapshot),
            ..Self::default()
        };
        let mut ids = NewIds::new();
        for &index in plan.dependencies.order() {
            let wanted = &saved[index];
            let is_kept = |now: &Container| {
                !is_stranger(snapshot, now)
                    && !incomplete.contains(now.id())
                    && !now.networks().any(|(name, _)| replaced.contains(name))
                    && matches(wanted, now, &ids, saved)
            };
            match named(existing, wanted.name()) {
                Some(now) if is_kept(now) => {
                    ids.insert(wanted.id().to_owned(), now.id().to_owned());
                    plan.keep.insert(index, now.id().to_owned());
                    let changes = changes(wanted, now);
                    if !changes.is_empty() {
                        plan.changing.insert(now.name().to_owned(), changes);
                    }
                }
                // It cannot be created while another container has its name.
                Some(now) if is_stranger(snapshot, now) => {}
                _ => {
                    plan.create.insert(index);
                }
            }
        }
        let kept: BTreeSet<&str> = plan.keep.values().map(String::as_str).collect();
        for now in existing {
            if !is_stranger(snapshot, now) && !kept.contains(now.id()) {
                plan.remove
                    .push((now.id().to_owned(), now.name().to_owned()));
            }
        }
        plan
    }

    /// Whether a container is removed.
    pub(super) fn removes(&self, one: &Container) -> bool {
        self.remove.iter().any(|(removed, _)| removed == one.id())
    }

    /// Whether a container that is kept gets this change.
    pub(super) fn gives(&self, container: &Container, change: StateChange) -> bool {
        let changes = self.changing.get(container.name());
        changes.is_some_and(|changes| changes.contains(&change))
    }

    /// Whether every container matches the snapshot.
    pub(super) fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.create.is_empty()
    }
}

impl StateChange {
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Unpause => "unpause",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Pause => "pause",
        }
    }
}

/// The changes from the state of `now` to that of `wanted`.
pub(super) fn changes(wanted: &Container, now: &Container) -> Vec<StateChange> {
    let mut changes = Vec::new();
    if now.is_paused() && !wanted.is_paused() {
        changes.push(StateChange::Unpause);
    }
    match (wanted.is_running(), now.is_running()) {
        (true, false) => changes.push(StateChange::Start),
        (false, true) => changes.push(StateChange::Stop),
        _ => {}
    }
    if wanted.is_paused() && !now.is_paused() {
        changes.push(StateChange::Pause);
    }
    changes
}

/// The container with this name, also if it belongs to another project.
pub(super) fn named<'v>(existing: &'v [Container], name: &str) -> Option<&'v Container> {
    let mut all = existing.iter();
    all.find(|now| now.name() == name)
}

/// The containers of the stack.
pub(super) fn own<'v>(snapshot: &Snapshot, existing: &'v [Container]) -> Vec<&'v Container> {
    let mut own: Vec<&Container> = existing.iter().collect();
    own.retain(|now| !is_stranger(snapshot, now));
    own
}

/// Whether a container belongs to another project, or to none.
pub(super) fn is_stranger(snapshot: &Snapshot, container: &Container) -> bool {
    let project = container.label(&snapshot.label("project"));
    let own = projects_of(&snapshot.stack);
    project.is_none_or(|project| own.iter().all(|own| own != project))
}

/// Whether `now` has the configuration of `wanted`, and shares with the containers that match the saved ones.
///
/// `ids` maps saved containers to those that match them. IDs of containers outside the snapshot must be the same. The saved
/// container itself is kept if it still shares with one that no longer existed then.
fn matches(wanted: &Container, now: &Container, ids: &NewIds, saved: &[Container]) -> bool {
    let is_saved = |id: &str| saved.iter().any(|other| other.id() == id);
    let is_expected = |(wanted_id, id): (&&str, &&str)| match ids.get(*wanted_id) {
        Some(new) => new == id || wanted.id() == now.id() && !is_saved(id),
        None => !is_saved(wanted_id) && wanted_id == id,
    };
    let (expected, shared) = (wanted.shares_with(), now.shares_with());
    !now.is_being_removed()
        && expected.len() == shared.len()
        && expected.iter().zip(&shared).all(is_expected)
        && wanted.differences(now, Creator::Restore).is_empty()
}
