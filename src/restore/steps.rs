//! The steps of a restore before its first change: what exists, and the plan.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;

use super::{
    Planned, Procedure, RecordStep,
    containers::{StateChange, changes},
    files::unsaved,
    plan::saved,
};
use crate::{
    failure::Failure,
    model::{Container, projects_of},
    observe::list,
    parallel::in_parallel,
    run::Effect,
    snapshot::{Inspected, Known},
    text::{counted, shell_word},
};

impl Procedure<'_, '_, '_> {
    pub(super) fn show_banner(&mut self) {
        let (snapshot, id) = (self.snapshot(), &self.saved.id);
        self.run.step(
            "restore",
            format!(
                "{} from snapshot {id} (taken by stacklift {})",
                snapshot.stack, snapshot.command
            ),
        );
    }

    pub(super) fn require_containers(&mut self) -> Result<()> {
        for (part, reason) in self.snapshot().unknowns() {
            self.run.warn(format!(
                "{part} could not be read when the snapshot was taken: {reason}"
            ));
        }
        match &self.snapshot().containers {
            Known::Known(_) => Ok(()),
            Known::Unknown(_) => Err(Failure::new(format!(
                "snapshot {} has no container data",
                self.saved.id
            ))
            .hint(format!("choose another snapshot with --to; to list the snapshots, run: stacklift restore {} --list. The snapshot file still contains the Compose file and .env", shell_word(self.restore.name.as_str())))
            .into()),
        }
    }

    /// The stack's containers, as the engine lists them.
    pub(super) fn list(&self) -> Result<Vec<Container>> {
        let mut listed = Vec::new();
        for project in projects_of(&self.snapshot().stack) {
            listed.extend(self.run.engine.list(&project)?);
        }
        Ok(listed)
    }

    /// The stack's containers, and those with the name of a saved one, as the engine inspects them.
    pub(super) fn existing(&self) -> Result<Vec<Value>> {
        let engine = self.run.engine;
        let snapshot = self.snapshot();
        let listed = self.list()?;
        let ids: Vec<String> = listed.into_iter().map(|container| container.id).collect();
        let mut existing = engine.inspect_containers(&ids)?;
        let known: BTreeSet<String> = existing
            .iter()
            .map(|c| Inspected(c).name().to_owned())
            .collect();
        let mut others = saved(snapshot);
        others.retain(|container| !known.contains(container.name()));
        for other in in_parallel(&others, |container| {
            engine.container_by_name(container.name())
        }) {
            existing.extend(other?);
        }
        Ok(existing)
    }

    /// Reports what will be changed and what cannot be restored, before the first change.
    pub(super) fn show_plan(&mut self, planned: &Planned) {
        let Planned {
            record,
            containers: plan,
            networks: replaced,
            ..
        } = planned;
        let snapshot = self.snapshot();
        let containers = saved(snapshot);
        self.run.step("plan", record.to_string());
        let removes_all = record.removes_containers(snapshot);
        let kept: Vec<&str> = plan
            .keep
            .keys()
            .map(|&index| containers[index].name())
            .collect();
        let mut removed: Vec<String> = plan.remove.iter().map(|(_, name)| name.clone()).collect();
        if removes_all.is_some() {
            removed.extend(kept.iter().map(|&name| name.to_owned()));
        }
        removed.extend(replaced.iter().map(|name| format!("network {name}")));
        self.planned(Effect::Removes, "remove", &removed);
        let order = plan.dependencies.order();
        let in_order = || order.iter().map(|&index| (index, containers[index]));
        let mut recreated: Vec<String> = in_order()
            .filter(|(index, _)| removes_all.is_some() || plan.create.contains(index))
            .map(|(_, container)| container.name().to_owned())
            .collect();
        recreated.extend(replaced.iter().map(|name| format!("network {name}")));
        self.planned(Effect::Changes, "recreate", &recreated);
        if removes_all.is_none() {
            self.show_kept(planned, &kept);
        }
        if let Some(verb) = removes_all {
            self.run.warn(format!(
                "{verb} the Portainer stack removes its containers: the stack is down until they are recreated"
            ));
        }
        let mut lost: Vec<String> = in_order()
            .filter(|(index, _)| removes_all.is_some() || plan.create.contains(index))
            .filter_map(|(_, container)| {
                let files = unsaved(container, snapshot);
                (!files.is_empty()).then(|| files.line(container))
            })
            .collect();
        if let (RecordStep::Create(_), Known::Known(Some(saved))) = (record, &snapshot.record) {
            lost.push(format!(
                "the ID {} of the Portainer stack (Portainer will assign a new one)",
                saved.id
            ));
        }
        if !lost.is_empty() {
            self.run.warn(list("these cannot be restored:", &lost));
        }
    }

    fn planned(&mut self, effect: Effect, verb: &str, objects: &[String]) {
        if !objects.is_empty() {
            let object = format!("{verb} {}", objects.join(", "));
            self.run.planned(effect, object);
        }
    }

    /// Reports what happens to the containers that have the configuration of the saved ones.
    fn show_kept(&mut self, planned: &Planned, kept: &[&str]) {
        if kept.is_empty() {
            return;
        }
        if planned.record.replaces_containers() {
            let object = format!(
                "{}: may be replaced when Portainer deploys the stack, then recreated from the snapshot",
                kept.join(", ")
            );
            self.run.planned(Effect::Unknown, object);
            return;
        }
        let changing = self.changing(planned);
        for verb in StateChange::ALL {
            let names: Vec<String> = changing
                .iter()
                .filter(|(_, changes)| changes.contains(&verb))
                .map(|(name, _)| name.clone())
                .collect();
            self.planned(Effect::Changes, verb.verb(), &names);
        }
        let unchanged = kept.len() - changing.len();
        if unchanged > 0 {
            self.run.planned(Effect::Keeps, matching(unchanged));
        }
    }

    /// The kept containers that are started, stopped, paused or unpaused.
    pub(super) fn changing(&self, planned: &Planned) -> BTreeMap<String, Vec<StateChange>> {
        let containers = saved(self.snapshot());
        let kept = planned.containers.keep.iter().filter_map(|(&index, id)| {
            let mut existing = planned.existing.iter().map(Inspected);
            let now = existing.find(|now| now.id() == id)?;
            let changes = changes(containers[index], now);
            (!changes.is_empty()).then(|| (now.name().to_owned(), changes))
        });
        kept.collect()
    }
}

/// `1 container matches the snapshot`.
pub(super) fn matching(count: usize) -> String {
    let verb = if count == 1 { "matches" } else { "match" };
    format!("{} {verb} the snapshot", counted(count, "container"))
}
