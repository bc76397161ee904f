//! Which containers a restore keeps, removes and recreates.
//!
//! Invariant: pure. A restore plans again after every change, so that the next run finishes what a killed run began.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::recipe::NewIds;
use crate::snapshot::{Inspected, Snapshot};

/// The plan, by index into the saved containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The saved containers, dependencies first.
    pub order: Vec<usize>,
    /// The containers that match the snapshot, with their current IDs.
    pub keep: BTreeMap<usize, String>,
    /// Containers that replaced saved ones, or that are not in the snapshot: ID and name.
    pub remove: Vec<(String, String)>,
    /// The containers to recreate.
    pub create: BTreeSet<usize>,
}

impl Plan {
    /// Plans from the `existing` containers: those of the project, and all others with the name of a saved one.
    pub(super) fn new(snapshot: &Snapshot, existing: &[Value]) -> Self {
        let saved = saved(snapshot);
        let order = order(&saved, snapshot);
        let mut plan = Self {
            order: order.clone(),
            ..Self::default()
        };
        let mut ids = NewIds::new();
        for index in order {
            let wanted = saved[index];
            let now = existing
                .iter()
                .map(Inspected)
                .find(|now| now.name() == wanted.name());
            match now {
                Some(now) if matches(wanted, now, &ids, &saved) => {
                    ids.insert(wanted.id().to_owned(), now.id().to_owned());
                    plan.keep.insert(index, now.id().to_owned());
                }
                _ => {
                    plan.create.insert(index);
                }
            }
        }
        let kept: BTreeSet<&String> = plan.keep.values().collect();
        plan.remove = existing
            .iter()
            .map(Inspected)
            .filter(|now| !kept.contains(&now.id().to_owned()))
            .map(|now| (now.id().to_owned(), now.name().to_owned()))
            .collect();
        plan
    }
}

/// The saved containers; none if they are unknown.
pub(super) fn saved(snapshot: &Snapshot) -> Vec<Inspected<'_>> {
    let containers = snapshot.containers.known();
    containers.into_iter().flatten().map(Inspected).collect()
}

/// Whether `now` has the configuration of `wanted`, and shares with the containers that match the saved ones.
///
/// `ids` maps saved containers to those that match them. IDs of containers outside the snapshot must be the same.
fn matches(wanted: Inspected, now: Inspected, ids: &NewIds, saved: &[Inspected]) -> bool {
    let expected: Option<Vec<&str>> = wanted
        .shares_with()
        .into_iter()
        .map(|id| match ids.get(id) {
            Some(new) => Some(new.as_str()),
            None if saved.iter().any(|other| other.id() == id) => None,
            None => Some(id),
        })
        .collect();
    !now.is_being_removed()
        && expected.is_some_and(|expected| expected == now.shares_with())
        && wanted.differences(now).is_empty()
}

/// The saved containers, each after its dependencies: those of its `depends_on` label, and those it shares with.
/// Containers with a fixed address come first, before the engine gives that address to another one. A dependency cycle
/// is cut where it is found.
fn order(saved: &[Inspected], snapshot: &Snapshot) -> Vec<usize> {
    let (service, depends_on) = (snapshot.label("service"), snapshot.label("depends_on"));
    let needs: Vec<Vec<usize>> = saved
        .iter()
        .map(|container| {
            let services = container.depends_on(&depends_on);
            let shared = container.shares_with();
            saved
                .iter()
                .enumerate()
                .filter(|(_, other)| {
                    shared.contains(&other.id())
                        || other
                            .label(&service)
                            .is_some_and(|name| services.contains(&name))
                })
                .map(|(index, _)| index)
                .collect()
        })
        .collect();
    let mut order = Vec::with_capacity(saved.len());
    let mut begun = vec![false; saved.len()];
    let mut starts: Vec<usize> = (0..saved.len()).collect();
    starts.sort_by_key(|&index| saved[index].fixed_networks().next().is_none());
    // An explicit stack, since the number of containers is unlimited.
    for start in starts {
        let mut stack = vec![(start, 0)];
        while let Some((index, next)) = stack.pop() {
            if next == 0 && std::mem::replace(&mut begun[index], true) {
                continue;
            }
            match needs[index].get(next) {
                Some(&need) => {
                    stack.push((index, next + 1));
                    if !begun[need] {
                        stack.push((need, 0));
                    }
                }
                None => order.push(index),
            }
        }
    }
    order
}
