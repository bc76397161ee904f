//! The steps of a restore before its first change: what exists, and the plan.

use anyhow::Result;
use chrono::{DateTime, Local};

use super::{Cause, Planned, Restoration, files::unsaved, plan::named};
use crate::{
    failure::Failure,
    model::Container,
    observe::list,
    parallel::in_parallel,
    text::{counted, shell_word},
};

impl Restoration<'_, '_, '_> {
    pub(super) fn require_containers(&mut self) -> Result<()> {
        for (part, reason) in self.snapshot().unknowns() {
            self.run.warn(format!(
                "{part} could not be read when the snapshot was taken: {reason}"
            ));
        }
        if self.snapshot().containers.known().is_some() {
            return Ok(());
        }
        let what = format!("snapshot {} has no container data", self.saved.id);
        let hint = format!(
            "choose another snapshot with --to; to list the snapshots, run `stacklift restore {} --list`. The snapshot file still contains the Compose file and .env",
            shell_word(self.restore.name.as_str())
        );
        Err(Failure::new(what).hint(hint).into())
    }

    /// The stack's containers, and those with the name of a saved one, as the engine inspects them.
    pub(super) fn existing(&self) -> Result<Vec<Container>> {
        let engine = self.run.engine;
        let snapshot = self.snapshot();
        let mut existing = self.run.inspect(&snapshot.stack)?;
        let saved = snapshot.containers.items().iter();
        let others: Vec<&Container> = saved
            .filter(|container| named(&existing, container.name()).is_none())
            .collect();
        for other in in_parallel(&others, |container| {
            engine.container_by_name(container.name())
        }) {
            existing.extend(other?);
        }
        Ok(existing)
    }

    /// Reports what will be changed and what cannot be restored, before the first change.
    pub(super) fn show_plan(&mut self, planned: &Planned) {
        let (record, plan) = (&planned.record, &planned.containers);
        let (snapshot, id) = (self.snapshot(), &self.saved.id);
        let about = format!("{} from snapshot {id}", snapshot.stack);
        self.run.detail("restore", about);
        // The error of the run says what was not restored.
        if self.restore.cause == Cause::Failure {
            return;
        }
        self.run.line(self.headline());
        if !snapshot.has_running() {
            let name = &snapshot.stack;
            self.run.line(format!(
                "  {name} was not running then, and will not run after the restore"
            ));
        }
        for effect in self.effects(planned) {
            self.run.line(format!("  {effect}"));
        }
        let removes_all = record.removes_containers(snapshot);
        let containers = snapshot.containers.items();
        let order = plan.dependencies.order().iter();
        let recreated = order.filter(|&index| removes_all || plan.create.contains(index));
        let lost: Vec<String> = recreated
            .filter_map(|&index| {
                let files = unsaved(&containers[index], snapshot);
                (!files.is_empty()).then(|| files.line(&containers[index]))
            })
            .collect();
        if !lost.is_empty() {
            self.run.warn(list("these cannot be restored:", &lost));
        }
    }

    /// `web goes back to 22 Nov 2026, 14:12 (before stacklift adopt)`.
    fn headline(&self) -> String {
        let snapshot = self.snapshot();
        let taken = match DateTime::parse_from_rfc3339(&snapshot.taken) {
            Ok(taken) => {
                let seconds = if self.shares_its_minute() { ":%S" } else { "" };
                let format = format!("%-d %b %Y, %H:%M{seconds}");
                taken.with_timezone(&Local).format(&format).to_string()
            }
            Err(_) => self.saved.id.clone(),
        };
        let is_incomplete = snapshot.ran_whole == Some(false);
        let incomplete = if is_incomplete { ", incomplete" } else { "" };
        let (stack, command) = (&snapshot.stack, &snapshot.command);
        format!("{stack} goes back to {taken} (before stacklift {command}{incomplete})")
    }

    /// Whether another snapshot of the stack was taken in the same minute.
    fn shares_its_minute(&self) -> bool {
        // `20261122T1412…`
        let minute = |id: &str| id.get(..13).map(str::to_owned);
        let of = minute(&self.saved.id);
        let ids = self.run.store().ids().unwrap_or_default();
        ids.iter().filter(|id| minute(id) == of).count() > 1
    }
}

/// `1 container matches the snapshot`.
pub(super) fn matching(count: usize) -> String {
    let verb = if count == 1 { "matches" } else { "match" };
    format!("{} {verb} the snapshot", counted(count, "container"))
}
