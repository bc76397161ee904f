//! What each step of the procedure does.

use std::collections::BTreeSet;

use anyhow::Result;

use super::{
    Before, Event, OnRefusal, Rewrite, Run,
    progress::{Progress, Step},
};
use crate::{
    failure::Failure,
    model::{Container, Record},
    plan::{self, Loss, Refusal},
    portainer::{self, Deletion, Outcome},
    rewrite::{
        damage::{Verdict, judge_document},
        loss::losses,
    },
    stack::{Backup, Lock, Source, Surroundings},
};
use composefile::document::{Document, ParseError};

impl Run<'_, '_> {
    pub(super) fn say(&mut self, event: Event) {
        (self.say)(event);
    }

    /// Notes how far the run has come, where an interrupt can see it.
    pub(super) fn mark(&mut self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress);
        let progress = self.progress.clone();
        self.say(Event::Progress(&progress));
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.say(Event::Warning(warning.into()));
    }

    /// Where the manager will call the stack otherwise, a record of that name may be another
    /// stack's: refuses before anything is written (C59). Returns the records it had to ask for.
    pub(super) fn look_for_namesake(&mut self) -> Result<Option<Vec<Record>>> {
        let name = self.m.stack.name();
        let normalised = name.portainer_name();
        if normalised == name.as_str() {
            return Ok(None);
        }
        if normalised.is_empty() {
            return Err(Failure::new(format!(
                "the manager keeps nothing of the name {name}: it drops all but a-z, 0-9, - and _"
            ))
            .hint("give the stack such a name, and its directory with --dir")
            .into());
        }
        self.say(Event::Normalised(&normalised));
        let records = self.m.manager.records(name.as_str(), &normalised)?;
        if let Some(record) = records.iter().find(|record| record.name == normalised) {
            return Err(Failure::new(format!(
                "the manager would call this stack {normalised}, and record {} on endpoint {} has that name: it may be another stack's",
                record.id, record.endpoint_id
            ))
            .hint(format!(
                "if it is this stack's: stacklift migrate {normalised} --dir {}",
                self.m.stack.dir().display()
            ))
            .into());
        }
        Ok(Some(records))
    }

    /// C20–C22.
    pub(super) fn back_up(&mut self, source: &Source, lock: &Lock) -> Result<()> {
        let backup = self.m.stack.back_up(source, self.m.today, lock)?;
        let (Backup::Made(path) | Backup::Kept(path)) = &backup;
        self.mark(|progress| progress.backup = Some(path.clone()));
        self.say(Event::Backup(&backup));
        Ok(())
    }

    /// C30–C33 and C40–C43; refuses a text that the rewrite damages (B02).
    pub(super) fn rewrite(
        &mut self,
        source: &Source,
        document: &Result<Document, ParseError>,
    ) -> Result<Rewrite> {
        let dir = self.m.stack.dir_text();
        let rewrite = Rewrite::literal(source, dir);
        for warning in &rewrite.env.warnings {
            self.warn(format!("{}/.env: {warning}", self.m.stack.dir().display()));
        }
        match document {
            Err(error) => self.warn(format!(
                "the compose file cannot be understood ({error}); it is sent as the contract says, and what it loses is not known"
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

    /// The record to delete (C50) and the containers to remove (C52), as they are now.
    pub(super) fn observe(&mut self, records: Option<Vec<Record>>) -> Result<Before> {
        let name = self.m.stack.name().as_str();
        let records = match records {
            Some(records) => records,
            None => self.m.manager.records(name, name)?,
        };
        let (mut here, elsewhere): (Vec<_>, Vec<_>) = records
            .into_iter()
            .filter(|record| record.name == name)
            .partition(|record| record.endpoint_id == self.m.endpoint);
        if let Some(other) = elsewhere.first() {
            self.warn(format!(
                "record {} on endpoint {} has the same name and is left alone; the manager may refuse a second one of that name",
                other.id, other.endpoint_id
            ));
        }
        here.truncate(1);
        Ok(Before {
            record: here.pop(),
            containers: self.list(),
        })
    }

    /// A listing that fails is tolerated, and said (C52).
    pub(super) fn list(&mut self) -> Option<Vec<Container>> {
        match self.m.engine.list(self.m.stack.name().as_str()) {
            Ok(containers) => Some(containers),
            Err(error) => {
                let hint = Failure::hint_of(&error);
                let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
                self.warn(format!(
                    "{error:#}{hint}; going on without knowing the stack's containers"
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
            self.warn(
                "the container command lists the stack's containers and does not say what they are: what is lost with them is not known",
            );
        }
        let base_url = self.m.base_url;
        let port = base_url.is_this_host().then(|| base_url.port());
        if let Some(refusal) = plan::runs_manager(containers, port) {
            self.refuse(&refusal)?;
        }
        if self.is_other_engine() {
            let endpoint = self.m.endpoint;
            self.refuse(&Refusal::OtherEngine { endpoint })?;
        }
        Ok(())
    }

    /// Whether the endpoint's engine is known to be another one (B03, M17).
    fn is_other_engine(&mut self) -> bool {
        match self.m.manager.engine_id(self.m.endpoint) {
            Ok(Some(theirs)) => self.m.engine.id().is_ok_and(|ours| ours != theirs),
            Ok(None) => false,
            Err(error) => {
                // Not knowable is no reason to stop, but one to speak: an endpoint that is not there
                // would let the create fail after the removal.
                self.warn(format!(
                    "whether endpoint {} is this host's engine is not known: {error:#}",
                    self.m.endpoint
                ));
                false
            }
        }
    }

    /// A key that is no administrator's is shown a part of the records only: where containers are about
    /// to be removed and no record was found, there may be one all the same. Not knowable: nothing is said.
    pub(super) fn warn_of_filtered_list(&mut self, before: &Before) {
        let destroys = before.containers.as_ref().is_some_and(|c| !c.is_empty());
        if !destroys || before.record.is_some() {
            return;
        }
        if self
            .m
            .manager
            .is_administrator()
            .is_ok_and(|is| is == Some(false))
        {
            self.warn(format!(
                "the key is no administrator's, so the manager lists only some of its stacks: a record of {} may be there unseen, and the create would then fail after the removal; use a key of an administrator",
                self.m.stack.name()
            ));
        }
    }

    fn refuse(&mut self, refusal: &Refusal) -> Result<()> {
        let details = refusal.details();
        if self.m.on_refusal == OnRefusal::GoOn {
            let places = details.map_or(String::new(), |places| format!("\n{places}"));
            self.warn(format!("{refusal}; going on because of --force{places}"));
            return Ok(());
        }
        let failure = Failure::new(format!("refusing to migrate: {refusal}")).hint(refusal.hint());
        Err(match details {
            Some(details) => failure.details(details),
            None => failure,
        }
        .into())
    }

    /// B01: what the stack will lose, before the first destructive act.
    pub(super) fn say_losses(
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
            self.say(Event::Losses(&losses));
        }
    }

    /// An env file that cannot be read is named as a whole; it does not stop a run of the contract.
    fn text_lost(&self, source: &Source, document: &Document) -> Vec<Loss> {
        let stack = self.m.stack;
        let surroundings = Surroundings::of(stack, source);
        plan::text_lost(losses(
            document,
            source.env.as_deref(),
            &surroundings.context(),
            &stack.name().portainer_name(),
        ))
    }

    /// C51.
    pub(super) fn delete_record(&mut self, before: &Before) -> Result<()> {
        let Some(record) = &before.record else {
            return Ok(());
        };
        self.say(Event::Deleting(record));
        self.say(Event::Waiting(format!("deleting record {}", record.id)));
        self.mark(|progress| progress.record = Step::Begun(record.id.clone()));
        let mut deletion = self.delete_once(record, before)?;
        if deletion == Deletion::Busy {
            self.say(Event::Waiting(format!(
                "waiting until record {} is deployed",
                record.id
            )));
            self.mark(|progress| progress.record = Step::NotBegun);
            self.m.manager.settle(&record.id)?;
            self.mark(|progress| progress.record = Step::Begun(record.id.clone()));
            deletion = self.delete_once(record, before)?;
        }
        match deletion {
            Deletion::Done => {}
            Deletion::NotFound => self.require_gone(record)?,
            Deletion::Busy => {
                self.mark(|progress| progress.record = Step::NotBegun);
                return Err(Failure::new(format!(
                    "the manager will not delete record {} at this moment: it is busy with it",
                    record.id
                ))
                .hint("look at the stack in the manager, then run again")
                .into());
            }
        }
        self.mark(|progress| progress.record = Step::Done(record.id.clone()));
        Ok(())
    }

    /// Sends the delete. Where it fails, looks at what is there and says it (B05).
    fn delete_once(&mut self, record: &Record, before: &Before) -> Result<Deletion> {
        let name = self.m.stack.name().as_str();
        self.m.manager.delete(record).map_err(|error| {
            let outcome = portainer::outcome_of(&error);
            if outcome == Outcome::NotSent {
                self.mark(|progress| progress.record = Step::NotBegun);
                return error;
            }
            match self.m.manager.records(name, name) {
                Ok(records) if records.iter().any(|other| other.id == record.id) => {
                    if outcome == Outcome::Refused && self.is_unchanged(before) {
                        self.mark(|progress| progress.record = Step::NotBegun);
                    }
                    error.context(format!("record {} is still there", record.id))
                }
                Ok(_) => {
                    self.mark(|progress| progress.record = Step::Done(record.id.clone()));
                    error.context(format!("record {} is gone all the same", record.id))
                }
                Err(_) => error,
            }
        })
    }

    /// Whether the containers are those of before, in the same state: a delete that was refused may have
    /// stopped some of them first.
    fn is_unchanged(&self, before: &Before) -> bool {
        let Some(before) = &before.containers else {
            return false;
        };
        let now = self.m.engine.list(self.m.stack.name().as_str());
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
        let records = self.m.manager.records(name, name)?;
        if records.iter().all(|other| other.id != record.id) {
            return Ok(());
        }
        self.mark(|progress| progress.record = Step::NotBegun);
        Err(Failure::new(format!(
            "the manager says that there is no record {}, and lists it still",
            record.id
        ))
        .hint(format!(
            "check in the manager that endpoint {} exists, or delete the stack there",
            record.endpoint_id
        ))
        .into())
    }

    /// C52. What was listed before counts, unless a delete has changed it since.
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
        self.say(Event::Removing(&containers));
        self.mark(|progress| progress.containers = Step::Begun(containers.len()));
        if let Err(error) = self.m.engine.remove(&containers) {
            self.look_after_removal(&containers);
            return Err(error);
        }
        self.mark(|progress| progress.containers = Step::Done(containers.len()));
        Ok(())
    }

    /// How many containers a removal that failed did remove; where the engine cannot be asked, that stays
    /// open.
    fn look_after_removal(&mut self, containers: &[Container]) {
        let Ok(now) = self.m.engine.list(self.m.stack.name().as_str()) else {
            return;
        };
        let is_gone = |old: &&Container| now.iter().all(|container| container.id != old.id);
        let gone = containers.iter().filter(is_gone).count();
        let all = containers.len();
        self.mark(|progress| progress.containers = Step::Partly { gone, all });
    }
}
