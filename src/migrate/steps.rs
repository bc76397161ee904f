//! The steps of a migration, except the create.

use std::collections::BTreeSet;

use anyhow::Result;

use super::{
    Before, OnRefusal, Procedure, Rewrite,
    progress::{Progress, Step},
};
use crate::{
    failure::Failure,
    model::{Container, Record},
    plan::{self, Loss, Refusal},
    portainer::{Deletion, Error},
    rewrite::{
        damage::{Verdict, judge_document},
        faithful::env_files_needed,
        loss::losses,
    },
    run::Subject,
    stack::{Backup, Shell, Source},
    text::counted,
};
use composefile::document::{Document, ParseError};

impl Procedure<'_, '_> {
    /// Sets how far the run has come.
    pub(super) fn mark(&mut self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress);
        let state = self.progress.state(self.m.stack.name().as_str());
        self.run.set_state(state);
    }

    /// C08.
    pub(super) fn show_banner(&mut self) {
        let (stack, endpoint) = (self.m.stack, self.m.endpoint);
        self.run.step(
            "migrate",
            format!(
                "{} from {} to environment {endpoint}",
                stack.name(),
                stack.dir().display()
            ),
        );
    }

    /// If Portainer will rename the stack, refuses a name that is already taken there: that record may be another
    /// stack's (C59). Returns the records that it had to list.
    pub(super) fn look_for_namesake(&mut self) -> Result<Option<Vec<Record>>> {
        let name = self.m.stack.name();
        let portainer_name = name.portainer_name();
        if portainer_name == name.as_str() {
            return Ok(None);
        }
        if portainer_name.is_empty() {
            return Err(Failure::new(format!(
                "Portainer cannot use the name {name}: it keeps only a-z, 0-9, - and _"
            ))
            .hint("give the stack a name with such characters, and pass its directory with --dir")
            .into());
        }
        self.run
            .step("name", format!("Portainer will call it {portainer_name}"));
        let records = self.run.portainer.records(name.as_str(), &portainer_name)?;
        if let Some(record) = records.iter().find(|record| record.name == portainer_name) {
            return Err(Failure::new(format!(
                "Portainer would call this stack {portainer_name}, but Portainer stack {} on environment {} already has that name: it may be another stack",
                record.id, record.endpoint_id
            ))
            .hint(format!(
                "if it is the same stack, run: stacklift migrate {portainer_name} --dir {}",
                self.m.stack.dir().display()
            ))
            .into());
        }
        Ok(Some(records))
    }

    /// C20–C22.
    pub(super) fn back_up(&mut self, source: &Source) -> Result<()> {
        let backup = self
            .m
            .stack
            .back_up(source, self.m.today, self.run.lock())?;
        let (path, outcome) = match backup {
            Backup::Made(path) => (path, "written"),
            Backup::Kept(path) => (path, "already exists and is kept"),
        };
        self.mark(|progress| progress.backup = Some(path.clone()));
        self.run
            .step("backup", format!("{} {outcome}", path.display()));
        Ok(())
    }

    /// C30–C33 and C40–C43. Refuses a text that the rewrite damages (B02).
    pub(super) fn rewrite(
        &mut self,
        source: &Source,
        document: &Result<Document, ParseError>,
    ) -> Result<Rewrite> {
        let dir = self.m.stack.dir_text();
        let rewrite = Rewrite::literal(source, dir);
        for warning in &rewrite.env.warnings {
            self.run
                .warn(format!("{}/.env: {warning}", self.m.stack.dir().display()));
        }
        match document {
            Err(error) => self.run.warn(format!(
                "cannot parse the compose file: what the stack will lose is unknown ({error})"
            )),
            Ok(document) => {
                if let Verdict::Damaged(places) = judge_document(document, &rewrite.text, dir) {
                    let places = places.iter().map(ToString::to_string).collect();
                    self.refuse(&Refusal::Damage(places))?;
                }
            }
        }
        Ok(rewrite)
    }

    /// The record to delete (C50) and the containers to remove (C52).
    pub(super) fn observe(&mut self, records: Option<Vec<Record>>) -> Result<Before> {
        let name = self.m.stack.name().as_str();
        let records = match records {
            Some(records) => records,
            None => self.run.portainer.records(name, name)?,
        };
        let (mut here, elsewhere): (Vec<_>, Vec<_>) = records
            .into_iter()
            .filter(|record| record.name == name)
            .partition(|record| record.endpoint_id == self.m.endpoint);
        if let Some(other) = elsewhere.first() {
            self.run.warn(format!(
                "Portainer stack {} on environment {} has the same name and is left alone; Portainer may refuse a second stack of that name",
                other.id, other.endpoint_id
            ));
        }
        here.truncate(1);
        Ok(Before {
            record: here.pop(),
            containers: self.list(),
        })
    }

    /// Lists the containers. A failure is tolerated, with a warning (C52).
    pub(super) fn list(&mut self) -> Option<Vec<Container>> {
        match self.run.engine.list(self.m.stack.name().as_str()) {
            Ok(containers) => Some(containers),
            Err(error) => {
                let hint = Failure::hint_of(&error);
                let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
                self.run.warn(format!(
                    "{error:#}{hint}; continuing without knowing the stack's containers"
                ));
                None
            }
        }
    }

    /// B03 and B04.
    pub(super) fn refuse_what_cannot_be_undone(&mut self, before: &Before) -> Result<()> {
        let Some(containers) = before.containers.as_deref().filter(|list| !list.is_empty()) else {
            return Ok(());
        };
        if containers
            .iter()
            .any(|container| container.image.is_empty())
        {
            self.run
                .warn("cannot inspect the containers: what they would lose is unknown");
        }
        let base_url = self.m.base_url;
        let port = base_url.is_this_host().then(|| base_url.port());
        if let Some(refusal) = plan::runs_portainer(containers, port) {
            self.refuse(&refusal)?;
        }
        if self.is_other_engine() {
            let endpoint = self.m.endpoint;
            self.refuse(&Refusal::OtherEngine { endpoint })?;
        }
        Ok(())
    }

    /// Whether the environment is known to be another engine (B03, M17).
    fn is_other_engine(&mut self) -> bool {
        match self.run.portainer.engine_id(self.m.endpoint) {
            Ok(Some(theirs)) => self.run.engine.id().is_ok_and(|ours| ours != theirs),
            Ok(None) => false,
            Err(error) => {
                // Not a reason to stop. But if the environment does not exist, the create will fail after the removal.
                self.run.warn(format!(
                    "could not check that environment {} is this host: {error:#}",
                    self.m.endpoint
                ));
                false
            }
        }
    }

    /// Warns if containers will be removed while a record may exist that the API key cannot see.
    pub(super) fn warn_of_filtered_list(&mut self, before: &Before) {
        let destroys = before.containers.as_ref().is_some_and(|c| !c.is_empty());
        if !destroys || before.record.is_some() {
            return;
        }
        if self
            .run
            .portainer
            .is_administrator()
            .is_ok_and(|is| is == Some(false))
        {
            self.run.warn(format!(
                "a non-admin API key may not see every stack: if Portainer already has a stack {}, the create will fail after the containers are removed; use the key of an administrator",
                self.m.stack.name()
            ));
        }
    }

    fn refuse(&mut self, refusal: &Refusal) -> Result<()> {
        let details = refusal.details();
        if self.m.on_refusal == OnRefusal::Continue {
            let places = details.map_or(String::new(), |places| format!("\n{places}"));
            self.run
                .warn(format!("{refusal}; continuing because of --force{places}"));
            return Ok(());
        }
        let failure = Failure::new(format!("refusing to migrate: {refusal}")).hint(refusal.hint());
        Err(match details {
            Some(details) => failure.details(details),
            None => failure,
        }
        .into())
    }

    /// Warns of what the stack will lose, before the first destructive act (B01).
    pub(super) fn warn_of_losses(
        &mut self,
        source: &Source,
        document: Option<&Document>,
        rewrite: &Rewrite,
        before: &Before,
    ) {
        let mut losses =
            document.map_or_else(Vec::new, |document| self.text_lost(source, document));
        losses.extend(plan::volumes_lost(
            before.containers.as_deref().unwrap_or_default(),
        ));
        if let Some(record) = &before.record {
            let variables = rewrite.env.variables.iter();
            let names: BTreeSet<&str> = variables.map(|variable| variable.name.as_str()).collect();
            losses.extend(plan::record_lost(record, &names));
        }
        if !losses.is_empty() {
            let lines: Vec<_> = losses.iter().map(|loss| format!("  - {loss}")).collect();
            self.run
                .warn(format!("the stack will lose:\n{}", lines.join("\n")));
        }
    }

    /// An env file that cannot be read counts as one loss; it does not stop the run.
    fn text_lost(&self, source: &Source, document: &Document) -> Vec<Loss> {
        let (stack, env) = (self.m.stack, source.env.as_deref());
        let shell = Shell::of(stack, |context| {
            env_files_needed(&source.compose, env, context)
        });
        plan::text_lost(losses(
            document,
            env,
            &shell.context(),
            &stack.name().portainer_name(),
        ))
    }

    pub(super) fn take_snapshot(&mut self, source: &Source, before: &Before) -> Result<()> {
        let subject = Subject {
            command: "migrate",
            stack: self.m.stack,
            source,
            base_url: self.m.base_url,
            endpoint: self.m.endpoint,
            tool: self.m.tool,
            record: before.record.as_ref(),
            containers: before.containers.as_deref(),
        };
        let id = self.run.take_snapshot(&subject)?;
        self.mark(|progress| progress.snapshot = id);
        Ok(())
    }

    /// C51.
    pub(super) fn delete_record(&mut self, before: &Before) -> Result<()> {
        let Some(record) = &before.record else {
            return Ok(());
        };
        let id = &record.id;
        self.run.step("delete", format!("Portainer stack {id}"));
        self.run.wait(format!("deleting Portainer stack {id}"));
        self.mark(|progress| progress.record = Step::Begun(id.clone()));
        let mut deletion = self.delete_once(record, before)?;
        if deletion == Deletion::Busy {
            self.run.wait(format!(
                "waiting for the deployment of Portainer stack {id}"
            ));
            self.mark(|progress| progress.record = Step::NotBegun);
            self.run.wait_for_deployment(id)?;
            self.mark(|progress| progress.record = Step::Begun(id.clone()));
            deletion = self.delete_once(record, before)?;
        }
        match deletion {
            Deletion::Done => {}
            Deletion::NotFound => self.require_gone(record)?,
            Deletion::Busy => {
                self.mark(|progress| progress.record = Step::NotBegun);
                return Err(Failure::new(format!(
                    "failed to delete Portainer stack {id}: Portainer is busy with it"
                ))
                .hint("check the stack in Portainer, then run the command again")
                .into());
            }
        }
        self.mark(|progress| progress.record = Step::Done(id.clone()));
        Ok(())
    }

    /// Sends the delete. If it fails, checks what exists and reports it (B05).
    fn delete_once(&mut self, record: &Record, before: &Before) -> Result<Deletion> {
        let name = self.m.stack.name().as_str();
        self.run.delete(record).map_err(|error| {
            let is_final = match &error {
                Error::NotSent(_) => {
                    self.mark(|progress| progress.record = Step::NotBegun);
                    return error.into();
                }
                Error::Refused { response, .. } => response.is_final(),
                Error::Unknown(_) => false,
            };
            let error = anyhow::Error::from(error);
            match self.run.portainer.records(name, name) {
                Ok(records) if records.iter().any(|other| other.id == record.id) => {
                    if is_final && self.is_unchanged(before) {
                        self.mark(|progress| progress.record = Step::NotBegun);
                    }
                    error.context(format!("Portainer stack {} still exists", record.id))
                }
                Ok(_) => {
                    self.mark(|progress| progress.record = Step::Done(record.id.clone()));
                    error.context(format!(
                        "Portainer stack {} is gone nevertheless",
                        record.id
                    ))
                }
                Err(_) => error,
            }
        })
    }

    /// Whether the containers are the same as before, in the same states. A delete that was refused may have stopped
    /// some of them first.
    fn is_unchanged(&self, before: &Before) -> bool {
        let Some(before) = &before.containers else {
            return false;
        };
        let now = self.run.engine.list(self.m.stack.name().as_str());
        let states = |all: &[Container]| -> Vec<_> {
            all.iter()
                .map(|c| (c.id.clone(), c.state.clone()))
                .collect()
        };
        now.is_ok_and(|now| states(&now) == states(before))
    }

    /// A 404 does not prove that the record is gone: only a new listing does (M03).
    fn require_gone(&mut self, record: &Record) -> Result<()> {
        let name = self.m.stack.name().as_str();
        let records = self.run.portainer.records(name, name)?;
        if records.iter().all(|other| other.id != record.id) {
            return Ok(());
        }
        self.mark(|progress| progress.record = Step::NotBegun);
        Err(Failure::new(format!(
            "failed to delete Portainer stack {}: it was not found, but Portainer still lists it",
            record.id
        ))
        .hint(format!(
            "check in Portainer that environment {} exists, or delete the stack there",
            record.endpoint_id
        ))
        .into())
    }

    /// C52. Removes the containers that were listed before; after a delete, those that a new listing finds.
    pub(super) fn remove_containers(&mut self, before: Before) -> Result<()> {
        let containers = if before.record.is_some() {
            self.list()
        } else {
            before.containers
        };
        let containers = containers.unwrap_or_default();
        if containers.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = containers.iter().map(Container::name).collect();
        self.run.step(
            "remove",
            format!(
                "{}: {}",
                counted(names.len(), "container"),
                names.join(", ")
            ),
        );
        self.mark(|progress| progress.containers = Step::Begun(containers.len()));
        if let Err(error) = self.run.engine.remove(&containers) {
            self.look_after_removal(&containers);
            return Err(error);
        }
        self.mark(|progress| progress.containers = Step::Done(containers.len()));
        Ok(())
    }

    /// Counts the containers that a failed removal did remove. The count stays unknown if the engine cannot be asked.
    fn look_after_removal(&mut self, containers: &[Container]) {
        let Ok(now) = self.run.engine.list(self.m.stack.name().as_str()) else {
            return;
        };
        let is_gone = |old: &&Container| now.iter().all(|container| container.id != old.id);
        let gone = containers.iter().filter(is_gone).count();
        let all = containers.len();
        self.mark(|progress| progress.containers = Step::Partly { gone, all });
    }
}
