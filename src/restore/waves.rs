//! The order in which containers are created and started: waves, whose containers are independent of each other.
//!
//! Invariant: pure.
#![deny(clippy::disallowed_methods)]

use crate::{
    model::{Condition, Container},
    snapshot::Snapshot,
};

/// The dependencies of the saved containers, by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dependencies {
    /// For each container, those that it depends on.
    needs: Vec<Vec<(usize, Condition)>>,
    /// For each container, those whose namespaces or volumes it shares: it can only be created after them.
    shares: Vec<Vec<usize>>,
    /// The containers, each after its dependencies. Those with a fixed address come first, before the engine gives that
    /// address to another one. A dependency cycle is cut where it is found.
    order: Vec<usize>,
    /// How many of `order` have a fixed address, or are needed by such a container.
    fixed: usize,
}

impl Dependencies {
    pub(super) fn of(saved: &[Container], snapshot: &Snapshot) -> Self {
        let (service, depends_on) = (snapshot.label("service"), snapshot.label("depends_on"));
        let shares: Vec<Vec<usize>> = saved
            .iter()
            .map(|container| {
                let shared = container.shares_with();
                let is_shared = |other: &Container| shared.contains(&other.id());
                positions(saved, is_shared).collect()
            })
            .collect();
        let needs = saved.iter().zip(&shares).map(|(container, shares)| {
            let started = shares.iter().map(|&index| (index, Condition::Started));
            let mut needs: Vec<_> = started.collect();
            for (name, condition) in container.depends_on(&depends_on) {
                let condition = Condition::named(condition);
                let is_of_service = |other: &Container| other.label(&service) == Some(name);
                needs.extend(positions(saved, is_of_service).map(|index| (index, condition)));
            }
            needs
        });
        let mut dependencies = Self {
            needs: needs.collect(),
            shares,
            ..Self::default()
        };
        dependencies.sort(saved);
        dependencies
    }

    /// The containers, dependencies first.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// What a container waits for before it starts.
    pub(super) fn needs(&self, index: usize) -> &[(usize, Condition)] {
        &self.needs[index]
    }

    /// The waves in which containers can be created: a container comes after those it shares with.
    pub(super) fn to_create(&self) -> Vec<Vec<usize>> {
        waves(&self.order, |index| self.shares[index].clone())
    }

    /// The waves in which containers start. Containers with a fixed address start before all others.
    pub(super) fn to_start(&self) -> Vec<Vec<usize>> {
        let needs = |index: usize| self.needs[index].iter().map(|(need, _)| *need).collect();
        let (first, rest) = self.order.split_at(self.fixed);
        let mut all = waves(first, needs);
        all.extend(waves(rest, needs));
        all
    }

    fn sort(&mut self, saved: &[Container]) {
        let mut begun = vec![false; saved.len()];
        let mut starts: Vec<usize> = (0..saved.len()).collect();
        let is_free = |index: usize| saved[index].fixed_addresses().next().is_none();
        starts.sort_by_key(|&index| is_free(index));
        // An explicit stack, since the number of containers is unlimited.
        for start in starts {
            let mut stack = vec![(start, 0)];
            while let Some((index, next)) = stack.pop() {
                if next == 0 && std::mem::replace(&mut begun[index], true) {
                    continue;
                }
                match self.needs[index].get(next) {
                    Some(&(need, _)) => {
                        stack.push((index, next + 1));
                        if !begun[need] {
                            stack.push((need, 0));
                        }
                    }
                    None => self.order.push(index),
                }
            }
            if !is_free(start) {
                self.fixed = self.order.len();
            }
        }
    }
}

fn positions(
    saved: &[Container],
    matches: impl Fn(&Container) -> bool,
) -> impl Iterator<Item = usize> {
    let found = saved.iter().enumerate();
    found.filter_map(move |(index, other)| matches(other).then_some(index))
}

/// Groups `order` into waves: a container comes in a later wave than what it needs, if that comes earlier in `order`.
fn waves(order: &[usize], needs: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut level = std::collections::BTreeMap::new();
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for &index in order {
        let needs = needs(index).into_iter();
        let own = needs
            .filter_map(|need| level.get(&need).map(|level| level + 1))
            .max()
            .unwrap_or(0);
        level.insert(index, own);
        if waves.len() == own {
            waves.push(Vec::new());
        }
        waves[own].push(index);
    }
    waves
}
