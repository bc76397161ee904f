//! The steps of a migration, except the create.

use anyhow::{Result, ensure};

use super::{Procedure, namesake};
use crate::{
    engine::NoSharedVersion,
    failure::Failure,
    model::{Container, Pull, Record},
    observe::with_hint,
    plan::{Before, Plan, unavailable_images},
    portainer::{Deletion, Error, Response},
    run::{Seen, State, Witness},
    stack::{Backup, StackText},
    text::counted,
};

impl Procedure<'_, '_> {
    /// The state before the create: what was removed besides the Portainer stack.
    fn set_removing(&mut self, what: &str) {
        let deleted = self.deleted.as_ref();
        let deleted = deleted.map_or_else(String::new, |id| {
            format!("Portainer stack {id} was deleted with its containers; ")
        });
        let what = format!("{deleted}{what}; the stack was not sent to Portainer");
        self.run.set_state(State::new(what).undoable(true));
    }

    /// C08.
    pub(super) fn show_banner(&mut self) {
        let (stack, endpoint) = (self.at.stack, self.at.endpoint);
        let (name, dir) = (stack.name(), stack.dir().display());
        let what = format!("{name} from {dir} to environment {endpoint}");
        self.run.step("migrate", what);
    }

    /// If Portainer will rename the stack, refuses a name that is already taken there: that record may belong to another
    /// stack (C59). Returns the listed records (C50).
    pub(super) fn look_for_namesake(&mut self) -> Result<Vec<Record>> {
        let name = self.at.stack.name();
        let portainer_name = name.portainer_name();
        self.run.wait("listing the Portainer stacks");
        // Needs no list.
        namesake(self.at.stack, &[])?;
        if portainer_name != name.as_str() {
            self.run
                .step("name", format!("Portainer will call it {portainer_name}"));
        }
        let records = self.at.records()?;
        namesake(self.at.stack, &records)?;
        Ok(records)
    }

    /// C20–C22.
    pub(super) fn back_up(&mut self, source: &StackText) -> Result<()> {
        let (stack, lock) = (self.at.stack, self.run.lock());
        let backup = stack.back_up(source, self.m.today, lock)?;
        let (path, outcome) = match &backup {
            Backup::Made(path) => (path, "written"),
            Backup::Kept(path) => (path, "already exists and is kept"),
        };
        if let Backup::Made(path) = &backup {
            self.run.wrote(format!("the backup {}", path.display()));
        }
        self.run
            .step("backup", format!("{} {outcome}", path.display()));
        Ok(())
    }

    /// Lists the containers. A failure is tolerated, with a warning (C52), unless no API version is shared: that answer
    /// never counts as no containers without --force.
    pub(super) fn list(&mut self) -> Result<Option<Vec<Container>>> {
        match self.run.engine.list(self.at.stack.name().as_str()) {
            Ok(containers) => Ok(Some(containers)),
            Err(error) if NoSharedVersion::caused(&error) && !self.m.force => Err(error),
            Err(error) => {
                self.run.warn(format!(
                    "{}; continuing, but the stack's containers are unknown: any that remain are not removed",
                    with_hint(&error)
                ));
                Ok(None)
            }
        }
    }

    /// Pulls every image of the plan. Refuses the run if one cannot be pulled, unless `--force` overrides it. Returns
    /// whether it tried: what was observed before may then be out of date.
    pub(super) fn pull(&mut self, plan: &Plan, before: &Before) -> Result<bool> {
        if plan.images.is_empty() {
            return Ok(false);
        }
        let mut failed = Vec::new();
        for pull in &plan.images {
            if let Err(error) = self.pull_one(pull) {
                failed.push(format!("image {pull}: {}", pull.told(&error)));
            }
        }
        if !failed.is_empty() {
            self.refuse(&[unavailable_images().details(failed)])?;
        }
        let when = "while images were pulled";
        self.require_unchanged(before, when)?;
        let stack = self.at.stack;
        let records = self.at.records()?;
        namesake(stack, &records)?;
        let is_own = |one: &&Record| {
            one.name == stack.name().as_str() && one.endpoint_id == self.at.endpoint
        };
        let id = |record: &Record| record.id.clone();
        if records.iter().find(is_own).map(id) != before.remote.record.as_ref().map(id) {
            return Err(Failure::new(format!("the Portainer stack changed {when}"))
                .hint("run the command again: it makes a new plan")
                .into());
        }
        Ok(true)
    }

    fn pull_one(&mut self, pull: &Pull) -> Result<()> {
        self.run.pull(pull)?;
        // The command may have reached another engine.
        let found = self.run.engine.inspect_images([&pull.image])?;
        ensure!(
            !found.is_empty(),
            "it was pulled, but Docker does not have it"
        );
        Ok(())
    }

    /// Takes a snapshot of what will be destroyed.
    pub(super) fn take_snapshot(
        &mut self,
        source: &StackText,
        before: &Before,
        seen: Seen,
    ) -> Result<Option<String>> {
        if before.remote.record.is_none() && before.host.listed.is_none() {
            self.run
                .warn("no snapshot is taken: the stack's containers are unknown");
        }
        let subject = before.subject("migrate", source, &self.at);
        self.run.sees_every_stack = before.remote.rights.see_every_stack();
        self.run.take_snapshot(&subject, seen, |_| Ok(()))
    }

    /// C51.
    pub(super) fn delete_record(&mut self, before: &Before) -> Result<()> {
        let Some(record) = &before.remote.record else {
            return Ok(());
        };
        let id = &record.id;
        self.run.step("delete", format!("Portainer stack {id}"));
        self.run.wait(format!("deleting Portainer stack {id}"));
        let mut deletion = self.delete_once(record, before)?;
        if deletion == Deletion::Busy {
            self.run.wait(format!(
                "waiting for the deployment of Portainer stack {id}"
            ));
            self.run.set_state(self.untouched.clone());
            self.run.wait_for_deployment(id)?;
            deletion = self.delete_once(record, before)?;
        }
        match deletion {
            Deletion::Done => {}
            Deletion::NotFound => self.require_gone(record, before)?,
            Deletion::Busy => {
                self.mark_if_unchanged(before);
                let what = format!(
                    "failed to delete Portainer stack {id}: Portainer is busy with that stack"
                );
                let hint = "check the stack in Portainer, then run the command again";
                return Err(Failure::new(what).hint(hint).into());
            }
        }
        self.set_deleted(id);
        Ok(())
    }

    fn set_deleted(&mut self, id: &str) {
        self.deleted = Some(id.to_owned());
        self.removed = Some(format!(
            "the old containers of Portainer stack {id} were removed"
        ));
        self.set_removing("no other container was removed");
    }

    /// Sends the delete. If it fails, checks what exists and reports it (B05). If the outcome is unknown, waits before until
    /// Portainer has finished (B35): a Portainer stack that is gone after a 2xx was deleted, whatever the body (C51), and one
    /// that still exists may be deleted later.
    fn delete_once(&mut self, record: &Record, before: &Before) -> Result<Deletion> {
        let id = &record.id;
        let deleting = State::new(format!(
            "Portainer stack {id} was being deleted, and the outcome is unknown: it and its containers may be gone"
        ));
        let deleted = self
            .run
            .sending(deleting.undoable(false), |run| run.delete(record));
        let error = match deleted {
            Ok(deletion) => return Ok(deletion),
            Err(error @ Error::NotSent(_)) => return Err(error.into()),
            Err(error) => error,
        };
        let is_success = error.response().is_some_and(Response::is_success);
        let is_refused = !error.is_unknown();
        let error = anyhow::Error::from(error);
        if let Err(unsettled) = self.run.settle(Witness::PortainerAndEngine) {
            return Err(error.context(format!("{unsettled:#}")));
        }
        match self.is_listed(record) {
            Ok(true) => {
                if is_refused {
                    self.mark_if_unchanged(before);
                }
                Err(error.context(format!("Portainer stack {id} still exists")))
            }
            Ok(false) if is_success => Ok(Deletion::Done),
            Ok(false) => {
                self.set_deleted(id);
                Err(error.context(format!(
                    "Portainer did not confirm the deletion, but Portainer stack {id} was deleted"
                )))
            }
            Err(_) => Err(error),
        }
    }

    /// The Portainer stack still exists. If its containers are unchanged, too, the delete had no effect.
    fn mark_if_unchanged(&mut self, before: &Before) {
        if self.is_unchanged(before) {
            self.run.set_state(self.untouched.clone());
        }
    }

    /// Whether the containers are the same as before, in the same states. A delete that was refused may have stopped
    /// some of them first.
    pub(super) fn is_unchanged(&self, before: &Before) -> bool {
        let Some(before) = &before.host.listed else {
            return false;
        };
        let states =
            |all: &[Container]| -> Vec<_> { all.iter().map(Container::id_and_state).collect() };
        let now = self.run.containers(self.at.stack.name().as_str());
        now.is_ok_and(|now| states(&now) == states(before))
    }

    /// Whether Portainer still lists a record.
    fn is_listed(&self, record: &Record) -> Result<bool> {
        let records = self.run.records(&record.name, record.endpoint_id)?;
        Ok(records.iter().any(|other| other.id == record.id))
    }

    /// A 404 does not prove that the record is gone: only a new listing does (M03).
    fn require_gone(&mut self, record: &Record, before: &Before) -> Result<()> {
        if !self.is_listed(record)? {
            return Ok(());
        }
        self.mark_if_unchanged(before);
        let (id, endpoint) = (&record.id, record.endpoint_id);
        let what = format!(
            "failed to delete Portainer stack {id}: Portainer lists it, but returned 404 for it"
        );
        let hint = format!(
            "check in Portainer that environment {endpoint} exists, or delete the stack in Portainer"
        );
        Err(Failure::new(what).hint(hint).into())
    }

    /// C52. Removes the containers that were listed before; after a delete, those that a new listing finds.
    pub(super) fn remove_containers(&mut self, before: Before) -> Result<()> {
        let containers = match &before.remote.record {
            Some(_) => self.list()?,
            None => before.host.own,
        }
        .unwrap_or_default();
        if containers.is_empty() {
            return Ok(());
        }
        self.run.step("remove", named(&containers));
        let count = counted(containers.len(), "container");
        self.run.wait(format!("removing {count}"));
        let which = match containers.len() {
            1 => "1 container".to_owned(),
            _ => format!("some of the {count}"),
        };
        self.set_removing(&format!("{which} may have been removed"));
        if let Err(error) = self.run.engine.remove(&containers) {
            self.look_after_removal(&containers);
            return Err(error);
        }
        let verb = if containers.len() == 1 { "was" } else { "were" };
        let removed = counted(containers.len(), "old container");
        let removed = format!("{removed} {verb} removed");
        if self.deleted.is_some() {
            self.set_removing(&removed);
        } else {
            self.set_removing(&format!("the stack is down: {removed}"));
            self.removed = Some(removed);
        }
        Ok(())
    }

    /// Counts the containers that a failed removal did remove. The count stays unknown if the engine cannot be asked.
    fn look_after_removal(&mut self, containers: &[Container]) {
        let Ok(now) = self.run.engine.list(self.at.stack.name().as_str()) else {
            return;
        };
        let is_gone = |old: &&Container| now.iter().all(|container| container.id() != old.id());
        let gone = containers.iter().filter(is_gone).count();
        let (all, count) = (containers.len(), counted(containers.len(), "container"));
        let verb = if gone == 1 || all == 1 { "was" } else { "were" };
        self.set_removing(&format!("{gone} of {count} {verb} removed"));
    }
}

/// The number of containers and their names.
fn named(containers: &[Container]) -> String {
    let names: Vec<_> = containers.iter().map(Container::name).collect();
    let count = counted(names.len(), "container");
    format!("{count}: {}", names.join(", "))
}
