//! What a restore replaces: it is listed and saved in a snapshot of its own, and the user is asked (B17).

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    Procedure, RecordStep, Scope,
    files::{unsaved, written_since},
    plan::{Plan, is_stranger, saved},
};
use crate::{
    disk::Access,
    failure::Failure,
    model::Record,
    run::{State, Subject},
    snapshot::{Inspected, Known, Snapshot},
    stack::Source,
};

impl Procedure<'_, '_, '_> {
    /// Lists what was written since the snapshot, asks whether to continue, and saves what will be replaced.
    pub(super) fn save_what_is_replaced(
        &mut self,
        step: &RecordStep,
        existing: &[Value],
        plan: &Plan,
    ) -> Result<()> {
        let snapshot = self.snapshot();
        let removed: Vec<Inspected> = existing
            .iter()
            .map(Inspected)
            .filter(|container| !is_stranger(snapshot, *container))
            .filter(|container| {
                step.replaces_containers() || plan.remove.iter().any(|(id, _)| id == container.id())
            })
            .collect();
        if removed.is_empty() && step.record().is_none() {
            return Ok(());
        }
        self.run.wait("taking a snapshot");
        let record = match step {
            RecordStep::Stays(record) => record.as_ref(),
            step => step.record(),
        };
        let replaced = self.read_replaced(record)?;
        let lost = self.warn_of_what_is_lost(&replaced, &removed);
        let question = format!(
            "restore {} from snapshot {}?",
            snapshot.stack, self.saved.id
        );
        if lost && !(self.restore.confirm)(&question) {
            return Err(Failure::new("canceled: the restore was not confirmed")
                .hint("save the files and volumes above first; to restore without this question, pass --yes")
                .into());
        }
        let (id, _) = self.run.save_snapshot(replaced)?;
        if !self.restore.follows_changes {
            self.run.set_state(State::new(format!(
                "this run changed nothing; only the snapshot {id} was taken"
            )));
        }
        Ok(())
    }

    fn read_replaced(&mut self, record: Option<&Record>) -> Result<Snapshot> {
        let restore = self.restore;
        let stack = self.stack();
        let source = stack.read_own().unwrap_or_else(|error| {
            self.run
                .warn(format!("the new snapshot has no Compose file: {error:#}"));
            Source {
                compose: String::new(),
                env: None,
                access: Access::default(),
            }
        });
        let containers = self.list()?;
        let subject = Subject {
            command: "restore",
            stack: &stack,
            source: &source,
            base_url: restore.base_url,
            endpoint: self.snapshot().endpoint,
            tool: &self.snapshot().tool,
            record,
            containers: Some(&containers),
        };
        let mut snapshot = self.run.read_snapshot(&subject);
        if restore.scope == Scope::EngineOnly {
            let reason = "Portainer was not contacted because of --engine-only";
            snapshot.record = Known::Unknown(reason.to_owned());
        }
        let containers = &snapshot.containers;
        if let Some(reason) = containers.unknown() {
            return Err(Failure::new(reason.to_owned()))
                .context("failed to save the containers that the restore replaces");
        }
        Ok(snapshot)
    }

    /// Lists the files that are lost with the containers and the volumes that stay behind. Returns whether there are any,
    /// or whether that is unknown.
    fn warn_of_what_is_lost(&mut self, replaced: &Snapshot, removed: &[Inspected]) -> bool {
        let (mut files, mut kept) = (Vec::new(), Vec::new());
        for &container in removed {
            if let Some(Known::Unknown(reason)) = replaced.changes.get(container.id()) {
                files.push(format!(
                    "{}: files written inside the container: unknown ({reason})",
                    container.name()
                ));
            }
            let lost = unsaved(container, replaced);
            files.extend((!lost.is_empty()).then(|| lost.line(container)));
            let written = written_since(container, replaced, self.snapshot());
            kept.extend((!written.is_empty()).then(|| written.line(container)));
        }
        let saved: BTreeSet<&str> = saved(self.snapshot())
            .into_iter()
            .flat_map(Inspected::volumes)
            .map(|(name, _)| name)
            .collect();
        let volumes: BTreeSet<String> = removed
            .iter()
            .flat_map(|container| {
                let name = container.name();
                let volumes = container.volumes().into_iter();
                let new = volumes.filter(|(volume, _)| !saved.contains(volume));
                new.map(move |(volume, target)| format!("{volume} ({target} of {name})"))
            })
            .collect();
        let lines = |what: Vec<String>| {
            let lines: Vec<_> = what.iter().map(|what| format!("  - {what}")).collect();
            lines.join("\n")
        };
        let lost = !files.is_empty() || !kept.is_empty() || !volumes.is_empty();
        if !kept.is_empty() {
            self.run.warn(format!(
                "these files will be removed with their containers; only the snapshot that the restore takes keeps them:\n{}",
                lines(kept)
            ));
        }
        if !files.is_empty() {
            self.run.warn(format!(
                "these files will be lost with the containers that the restore removes:\n{}",
                lines(files)
            ));
        }
        if !volumes.is_empty() {
            self.run.warn(format!(
                "these volumes will be kept, but no restored container uses them:\n{}",
                lines(volumes.into_iter().collect())
            ));
        }
        lost
    }
}
