//! What a restore replaces: it is listed and saved in a snapshot of its own, and the user is asked (B17).

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::{
    Cause, Planned, RecordStep, Restoration, Scope,
    files::{unsaved, written_since},
    plan::{StateChange, own},
};
use crate::{
    failure::Failure,
    finding::Finding,
    model::{Carried, Container, is_folder_of},
    observe::{NOT_RECREATED, foreign_of, foreign_since, list, with_hint},
    plan::Touch,
    run::{Seen, Subject, changed_before_answer},
    snapshot::{Known, SavedRecord, Snapshot},
    stack::{StackText, export_words},
};

impl Restoration<'_, '_, '_> {
    /// Lists what was written since the snapshot, asks whether to continue, and saves what will be replaced. Returns the plan
    /// with which the restore continues.
    pub(super) fn save_what_is_replaced(&mut self, shown: Planned) -> Result<Option<Planned>> {
        let harms = self.warn_of_harmed(&shown);
        let (lost, replaced) = self.read_replaced(&shown)?;
        for line in &lost {
            if self.restore.cause == Cause::Failure {
                self.run.warn(line.to_string());
            } else {
                self.run.line(format!("  {line}"));
            }
        }
        if self.restore.dry_run {
            return Ok(None);
        }
        let (planned, replaced) = if self.ask(&shown, harms || !lost.is_empty())? {
            self.look_again(&shown, &lost)?
        } else {
            (shown, replaced)
        };
        if let Some(replaced) = replaced {
            let is_edited = is_edited(&planned.record, &replaced);
            let (id, _) = self.run.save_snapshot(replaced)?;
            self.kept_edit = is_edited.then(|| id.clone());
            if self.restore.cause != Cause::Failure {
                self.run.wrote(format!("the snapshot {id}"));
            }
        }
        Ok(Some(planned))
    }

    /// Reads everything again after the question. Stops if something that it said has changed before the answer.
    fn look_again(
        &mut self,
        shown: &Planned,
        told: &[Finding],
    ) -> Result<(Planned, Option<Snapshot>)> {
        let planned = self.plan()?;
        let (lost, replaced) = self.read_replaced(&planned)?;
        let is_same = planned.containers == shown.containers
            && planned.record.record() == shown.record.record();
        let says = |planned: &Planned, lost: &[Finding]| {
            let problems = planned.problems.iter().map(Finding::to_string);
            // A container may write files all the time: which ones does not count.
            let lost = lost.iter().map(|found| {
                let of = found.subject.as_ref().unwrap_or(&found.message);
                format!("loss: {of}")
            });
            let effects = self.effects(planned).into_iter();
            effects.chain(problems).chain(lost).collect::<Vec<_>>()
        };
        let (now, before) = (says(&planned, &lost), says(shown, told));
        if is_same && now == before {
            return Ok((planned, replaced));
        }
        let without = |all: &[String], others: &[String]| {
            let all = all.iter().filter(|one| !others.contains(one));
            all.cloned().collect()
        };
        let what = "the stack's containers, its Portainer stack or what they need";
        let (new, gone) = (without(&now, &before), without(&before, &now));
        Err(changed_before_answer(what, new, gone).into())
    }

    /// What is lost, and what is replaced; `None` if nothing is.
    fn read_replaced(&mut self, planned: &Planned) -> Result<(Vec<Finding>, Option<Snapshot>)> {
        let step = &planned.record;
        let in_memory = self.memory_lost(planned)?;
        if !planned.touches() && step.record().is_none() {
            return Ok((in_memory, None));
        }
        let (certain, possible) = self.removed(planned);
        let removed = [certain, possible].concat();
        self.run.wait("reading what will be replaced");
        let replaced = self.read(step)?;
        let mut lost = self.what_is_lost(step, &replaced, &removed);
        lost.extend(in_memory);
        Ok((lost, Some(replaced)))
    }

    /// Lists the containers outside the stack that use one that the restore touches, or that no longer exists (B21). Returns
    /// whether the restore harms one, or whether that is unknown.
    fn warn_of_harmed(&mut self, planned: &Planned) -> bool {
        let existing = &planned.existing;
        let touch = |now: &Container| {
            if planned.record.replaces_containers() || planned.containers.removes(now) {
                return Some(Touch::Replaced);
            }
            let mut moves = [StateChange::Start, StateChange::Stop].into_iter();
            let is_moved = moves.any(|change| planned.containers.gives(now, change));
            is_moved.then_some(Touch::Restarted)
        };
        let now = own(self.snapshot(), existing).into_iter();
        let gone = self.gone(existing).into_iter();
        let touched: Vec<_> = now
            .filter_map(|container| Some((container, touch(container)?)))
            .chain(gone.map(|container| (container, Touch::Gone)))
            .collect();
        let (restore, tool) = (self.restore, &self.snapshot().tool);
        let found = foreign_of(self.run.engine, &touched, tool, restore.name);
        match found {
            Ok(found) if found.is_empty() => false,
            Ok(found) => {
                let lost: Vec<&Finding> = found.iter().map(|foreign| &foreign.loss).collect();
                self.run.warn(list(NOT_RECREATED, &lost));
                true
            }
            Err(error) => {
                self.run.warn(format!(
                    "{}; it is unknown which containers outside the stack must be restarted or recreated",
                    with_hint(&error)
                ));
                true
            }
        }
    }

    /// Names the containers outside the stack that must be restarted or recreated by now.
    pub(super) fn name_foreign(&mut self) {
        let (before, restore) = (std::mem::take(&mut self.before), self.restore);
        let (gone, tool) = (self.gone(&before), &self.snapshot().tool);
        let engine = self.run.engine;
        let (_, warning) = foreign_since(engine, (&before, &gone), tool, restore.name);
        self.run.warn_all(warning);
    }

    /// The saved containers that do not exist under their IDs.
    fn gone<'v>(&self, existing: &[Container]) -> Vec<&'v Container>
    where
        Self: 'v,
    {
        let saved = self.snapshot().containers.items().iter();
        let is_gone = |old: &&Container| existing.iter().all(|now| now.id() != old.id());
        saved.filter(is_gone).collect()
    }

    fn read(&mut self, step: &RecordStep) -> Result<Snapshot> {
        let restore = self.restore;
        let record = match restore.scope {
            Scope::EngineOnly => None,
            Scope::Everything | Scope::Containers => self.find_record()?,
        };
        let stack = self.stack();
        let source = stack.read_own().unwrap_or_else(|error| {
            self.run
                .warn(format!("the new snapshot has no Compose file: {error:#}"));
            StackText::default()
        });
        let containers = self.run.containers(&self.snapshot().stack)?;
        let subject = Subject {
            command: "restore",
            flags: &[],
            stack: &stack,
            source: &source,
            endpoint: self.snapshot().endpoint,
            tool: &self.snapshot().tool,
            record: record.as_ref(),
            may_be_unseen: record.is_none()
                && matches!(step, RecordStep::OutOfReach(_) | RecordStep::Stays(_)),
            containers: Some(&containers),
        };
        let mut snapshot = self.run.read_snapshot(&subject, Seen::default());
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

    /// The files that are lost with the containers, the volumes that stay behind, and what the Portainer stack loses.
    fn what_is_lost(
        &mut self,
        step: &RecordStep,
        replaced: &Snapshot,
        removed: &[&Container],
    ) -> Vec<Finding> {
        let mut told = carried(step);
        if is_edited(step, replaced) {
            told.push(Finding::of_stack("what was edited in Portainer since the last adoption is removed, and kept in a new snapshot"));
        }
        let saved = self.snapshot().record.found();
        if let (RecordStep::Update(..), Some(wanted), Some(now)) =
            (step, saved, replaced.record.found())
        {
            if wanted.access.is_some() && wanted.access != now.access {
                told.push(Finding::of_stack(
                    "the Portainer stack gets its access rights back, too",
                ));
            }
            if wanted.git.is_some() {
                told.push(Finding::of_stack("the Portainer stack was detached from its Git repository since then, and stays detached"));
            }
        }
        let (name, stack) = (self.restore.name.as_str(), self.stack());
        if let RecordStep::Delete(record) = step
            && !record.is_from_git()
            && !stack.dir().join(stack.file()).exists()
        {
            let command = self.run.command(&export_words(name, stack.dir().to_str()));
            told.push(Finding::of_stack(&format!(
                "the Compose file exists only in Portainer; to keep it, first run `{command}`"
            )));
        }
        let saved = self.snapshot().containers.items().iter();
        let saved = saved.flat_map(Container::volumes).map(|(name, _)| name);
        let saved: BTreeSet<&str> = saved.collect();
        for &container in removed {
            let name = container.name();
            if let RecordStep::Delete(record) = step {
                told.extend(written_below(container, &record.id).map(|path| {
                    Finding::of_stack(&format!(
                        "files in {path} may be lost: Portainer deletes its directory of the stack"
                    ))
                }));
            }
            if let Some(Known::Unknown(reason)) = replaced.changes.get(container.id()) {
                let what = format!(
                    "the files written inside it are lost, and cannot be listed ({reason})"
                );
                told.push(Finding::of_stack(&what).on(name));
            }
            let lost = unsaved(container, replaced).told("written inside it", "lost");
            let written = written_since(container, replaced, self.snapshot());
            let becomes = "removed, and kept in a new snapshot";
            let files = [lost, written.told("written since then", becomes)];
            told.extend(
                files
                    .into_iter()
                    .flatten()
                    .map(|files| Finding::of_stack(&files).on(name)),
            );
            let volumes = container.volumes().into_iter();
            let new = volumes.filter(|(volume, _)| !saved.contains(volume));
            self.kept.extend(new.map(|(volume, target)| {
                (volume.to_owned(), format!("{volume} ({target} of {name})"))
            }));
        }
        told.extend(self.kept.values().map(|volume| {
            Finding::of_stack(&format!(
                "the volume {volume} is kept, but no restored container uses it"
            ))
        }));
        told
    }
}

/// Whether the text or the variables that are deleted or overwritten were edited in Portainer (B22). A Git stack has the text of
/// its repository.
fn is_edited(step: &RecordStep, replaced: &Snapshot) -> bool {
    let overwrites = matches!(step, RecordStep::Delete(_) | RecordStep::Update(..));
    let now = replaced.record.found();
    let sent = &replaced.last_sent;
    let was_sent = |now: &SavedRecord| match now.git {
        Some(_) => sent.has_variables(&now.env),
        None => sent.has(&now.text, &now.env),
    };
    overwrites && !sent.is_empty() && now.is_some_and(|now| !was_sent(now))
}

/// What the Portainer stack loses when it is deleted or updated, and no snapshot contains.
fn carried(step: &RecordStep) -> Vec<Finding> {
    let (RecordStep::Delete(record) | RecordStep::Update(record, _)) = step else {
        return Vec::new();
    };
    let stays =
        |carried: &&Carried| **carried == Carried::Access && matches!(step, RecordStep::Update(..));
    let lost = record.carries.iter().filter(|carried| !stays(carried));
    let said = |carried| format!("lost: {}", Finding::of_carried(carried).message);
    lost.map(|carried| Finding::of_stack(&said(carried)))
        .collect()
}

/// The paths below Portainer's directory of the Portainer stack `id` that a container may have written to.
fn written_below<'a>(container: &'a Container, id: &'a str) -> impl Iterator<Item = &'a str> {
    let mounts = container.mounts();
    let binds = mounts.filter(|mount| mount["Type"] == "bind" && mount["RW"] == true);
    let places = binds.filter_map(|mount| mount["Source"].as_str());
    places.filter(move |place| is_folder_of(id, place))
}
