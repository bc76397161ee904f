//! The steps of a restore before its first change: what exists, and the plan.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;

use super::{
    Procedure, RecordStep,
    plan::{Plan, saved},
};
use crate::{
    failure::Failure,
    model::portainer_name,
    snapshot::{Inspected, Known},
    text::counted,
};

impl Procedure<'_, '_, '_> {
    pub(super) fn show_banner(&mut self) {
        let (snapshot, id) = (self.snapshot(), &self.saved.id);
        self.run.step(
            "restore",
            format!(
                "{} from the snapshot {id}, taken before a run of {}",
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
                "the snapshot {} does not contain the containers",
                self.saved.id
            ))
            .hint("choose another snapshot with --to; to list them, run: stacklift restore <STACK> --list. The snapshot's file still has the compose text and .env")
            .into()),
        }
    }

    /// The project's containers, and those with the name of a saved one, as the engine inspects them.
    pub(super) fn existing(&self) -> Result<Vec<Value>> {
        let engine = self.run.engine;
        let snapshot = self.snapshot();
        let listed = engine.list(&snapshot.stack)?;
        let ids: Vec<String> = listed.into_iter().map(|container| container.id).collect();
        let mut existing = engine.inspect_containers(&ids)?;
        let known: BTreeSet<String> = existing
            .iter()
            .map(|c| Inspected(c).name().to_owned())
            .collect();
        let restoring = engine.restoring()?;
        for container in saved(snapshot) {
            if !known.contains(container.name())
                && let Some(other) = restoring.container_by_name(container.name())?
            {
                existing.push(other);
            }
        }
        Ok(existing)
    }

    /// Reports what will be changed and what cannot be restored, before the first change.
    pub(super) fn show_plan(&mut self, record: &RecordStep) -> Result<()> {
        let existing = self.existing()?;
        let snapshot = self.snapshot();
        let plan = Plan::new(snapshot, &existing);
        let containers = saved(snapshot);
        for (id, name) in &plan.remove {
            self.refuse_strangers(&existing, id, name)?;
        }
        self.run.step("plan", record.to_string());
        if !plan.remove.is_empty() {
            let names: Vec<&str> = plan.remove.iter().map(|(_, name)| name.as_str()).collect();
            self.run
                .step("plan", format!("remove {}", names.join(", ")));
        }
        let in_order = || plan.order.iter().map(|&index| (index, containers[index]));
        let recreated: Vec<&str> = in_order()
            .filter(|(index, _)| plan.create.contains(index))
            .map(|(_, container)| container.name())
            .collect();
        if !recreated.is_empty() {
            self.run
                .step("plan", format!("recreate {}", recreated.join(", ")));
        }
        if !plan.keep.is_empty() {
            self.run.step("plan", matching(plan.keep.len()));
        }
        let removes_all = matches!(record, RecordStep::Delete(_));
        if removes_all {
            self.run.warn(
                "deleting the Portainer stack removes its containers: the stack is down until they are recreated",
            );
        }
        let mut lost: Vec<String> = in_order()
            .filter(|(index, _)| removes_all || plan.create.contains(index))
            .filter_map(|(_, container)| self.files_lost(container))
            .collect();
        if let (RecordStep::Create(_), Known::Known(Some(saved))) = (record, &snapshot.record) {
            lost.push(format!(
                "the ID {} of the Portainer stack: Portainer assigns a new one",
                saved.id
            ));
        }
        if !lost.is_empty() {
            let lines: Vec<_> = lost.iter().map(|what| format!("  - {what}")).collect();
            self.run
                .warn(format!("this cannot be restored:\n{}", lines.join("\n")));
        }
        Ok(())
    }

    /// Refuses to remove a container that has the name of a saved one but belongs to another project.
    pub(super) fn refuse_strangers(&self, existing: &[Value], id: &str, name: &str) -> Result<()> {
        let label = self.snapshot().label("project");
        let container = existing
            .iter()
            .map(Inspected)
            .find(|container| container.id() == id);
        let project = container.and_then(|container| container.label(&label));
        let stack = self.snapshot().stack.as_str();
        if project.is_some_and(|project| project == stack || project == portainer_name(stack)) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "cannot recreate the container {name}: its name is taken by a container of {}",
            project.map_or_else(
                || "no stack".to_owned(),
                |project| format!("the stack {project}")
            )
        ))
        .hint("rename or remove that container, then run the command again")
        .into())
    }
}

/// `1 container matches the snapshot`.
pub(super) fn matching(count: usize) -> String {
    let verb = if count == 1 { "matches" } else { "match" };
    format!("{} {verb} the snapshot", counted(count, "container"))
}
