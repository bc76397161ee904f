//! What containers hold in memory, and lose when they stop (B36).

use std::collections::BTreeSet;

use crate::{
    finding::{Finding, Kind},
    model::{Changes, Container},
    plan::{Facts, Fate, ServicePlan, fate_of, losses::if_recreated},
    text::{first_of, listed},
};

/// What is said if containers could not be looked at, for these reasons.
pub fn unseen_memory(reasons: &BTreeSet<String>) -> Option<Finding> {
    let all: Vec<&str> = reasons.iter().map(String::as_str).collect();
    let all = all.join("; ");
    let what = format!("whether files in memory (/dev/shm, tmpfs) are lost is unknown: {all}");
    (!all.is_empty()).then(|| Finding::of_stack(&what).of_kind(Kind::UnseenMemory(all)))
}

/// The losses of the containers that are stopped or may be, and why others of them are unknown.
pub fn losses(facts: &Facts, services: &[ServicePlan]) -> (Vec<Finding>, BTreeSet<String>) {
    let own = facts.host.listed().iter();
    let own = own.filter(|container| stays(services, container.name()));
    let others: Vec<&Container> = own.chain(facts.host.others()).collect();
    let (mut losses, mut unseen) = (Vec::new(), BTreeSet::new());
    let stopped = looked_at(facts).into_iter();
    for (container, changes) in stopped.filter(|(one, _)| !stays(services, one.name())) {
        unseen.extend(changes.unseen_memory.iter().cloned());
        let if_recreated = if_recreated(facts, services, container);
        losses.extend(container.emptied(changes, &others).into_iter().map(|path| {
            let message = format!("{if_recreated}the files in memory at {path}");
            Finding::of_container(container, facts.tool, Kind::Memory, &message)
        }));
        losses.extend(changes.replaced.iter().map(|path| {
            let path = facts.below_dir(path);
            let message = format!(
                "{if_recreated}the earlier {path}, which the container still uses: another one has taken its place"
            );
            Finding::of_container(container, facts.tool, Kind::Other, &message)
        }));
    }
    (losses, unseen)
}

/// What the containers that keep running lose if the deployment fails: it removes every container, and no restore brings back
/// files in memory (B16), or files that a snapshot does not keep (B18).
pub fn lost_by_failure(facts: &Facts, services: &[ServicePlan]) -> Vec<String> {
    let others: Vec<&Container> = facts.host.others().collect();
    let (mut in_memory, mut lost) = (Vec::new(), Vec::new());
    let all = looked_at(facts).into_iter();
    for (container, changes) in all.filter(|(one, _)| stays(services, one.name())) {
        let name = container.name();
        let paths = container.emptied(changes, &others).into_iter();
        in_memory.extend(paths.map(|path| format!("{path} of {name}")));
        if let Some(files) = first_of(&changes.unsaved, 0) {
            lost.push(format!(
                "if the deployment fails, these files written inside {name} are lost, because no snapshot would contain them: {files}"
            ));
        }
    }
    if !in_memory.is_empty() {
        let all = listed(&in_memory);
        lost.push(format!(
            "if the deployment fails, the files in memory at {all} are lost"
        ));
    }
    lost
}

fn stays(services: &[ServicePlan], name: &str) -> bool {
    let fate = fate_of(services, name);
    fate.is_some_and(|fate| fate.is_unchanged() || matches!(fate, Fate::Started(_)))
}

/// The containers that could be looked at, by name.
fn looked_at<'f>(facts: &'f Facts) -> Vec<(&'f Container, &'f Changes)> {
    let mut containers: Vec<&Container> = facts.host.inspected().collect();
    containers.sort_by_key(|container| container.name());
    let changes = |one: &&Container| facts.host.changes.get(one.id())?.known();
    let known = containers.into_iter();
    known
        .filter_map(|container| Some((container, changes(&container)?)))
        .collect()
}
