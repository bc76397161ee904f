//! What each step of a restore does until the engine is written to.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;

use super::{
    Event, RecordStep, Run,
    container::Inspected,
    plan::{Plan, saved},
};
use crate::{
    failure::Failure,
    model::{Deployment, Record},
    portainer::{Contents, Creation, Deletion, Payload},
    snapshot::{Known, SavedRecord},
};

/// How many lost files are named; the snapshot lists all.
const FILES_SHOWN: usize = 5;

impl Run<'_, '_> {
    pub(super) fn say(&mut self, event: Event) {
        (self.say)(event);
    }

    /// Something that is not brought back, said now and again at the end.
    pub(super) fn trouble(&mut self, what: String) {
        self.say(Event::Warning(what.clone()));
        self.trouble.push(what);
    }

    pub(super) fn require_containers(&mut self) -> Result<()> {
        for (part, reason) in self.snapshot().clone().unknowns() {
            self.say(Event::Warning(format!(
                "{part} could not be read when the snapshot was taken: {reason}"
            )));
        }
        match &self.snapshot().containers {
            Known::Known(_) => Ok(()),
            Known::Unknown(_) => Err(Failure::new(format!(
                "the snapshot {} does not know which containers ran",
                self.r.saved.id
            ))
            .hint("choose another with --to; stacklift restore <STACK> --list names them. The compose text and .env are in its file")
            .into()),
        }
    }

    /// What the manager has of the stack now. Waits while it deploys: nothing is restored while an
    /// outcome is unknown.
    pub(super) fn look_at_record(&mut self) -> Result<RecordStep> {
        let mut record = self.find_record()?;
        if let Some(deploying) = record
            .as_ref()
            .filter(|r| r.deployment == Deployment::Deploying)
        {
            let id = deploying.id.clone();
            self.say(Event::Waiting(format!(
                "waiting until record {id} is deployed"
            )));
            self.r.manager.settle(&id)?;
            record = self.find_record()?;
        }
        let saved = match &self.snapshot().record {
            Known::Unknown(_) => return Ok(RecordStep::Unknown),
            Known::Known(saved) => saved.clone(),
        };
        Ok(match (saved, record) {
            (None, None) => RecordStep::Nothing,
            (None, Some(record)) => RecordStep::Delete(record),
            (Some(saved), None) => RecordStep::Create(contents(saved)),
            (Some(saved), Some(record)) => {
                let wanted = contents(saved);
                if self.r.manager.contents(&record.id)? == wanted {
                    RecordStep::Nothing
                } else {
                    RecordStep::Update(record, wanted)
                }
            }
        })
    }

    /// The stack's record now, by its name or what the manager made of it (M02).
    fn find_record(&self) -> Result<Option<Record>> {
        let name = &self.snapshot().stack;
        let normalised = crate::model::portainer_name(name);
        let records = self.r.manager.records(name, &normalised)?;
        let endpoint = self.snapshot().endpoint;
        Ok(records
            .into_iter()
            .find(|record| record.endpoint_id == endpoint))
    }

    /// What the engine says of the project's containers, and of those with the name of a saved one.
    pub(super) fn there(&self) -> Result<Vec<Value>> {
        let engine = self.r.engine;
        let snapshot = self.snapshot();
        let listed = engine.list(&snapshot.stack)?;
        let ids: Vec<String> = listed.into_iter().map(|container| container.id).collect();
        let mut there = engine.inspect_containers(&ids)?;
        let known: BTreeSet<String> = there
            .iter()
            .map(|c| Inspected(c).name().to_owned())
            .collect();
        let restoring = engine.restoring()?;
        for container in saved(snapshot) {
            if !known.contains(container.name())
                && let Some(other) = restoring.container_by_name(container.name())?
            {
                there.push(other);
            }
        }
        Ok(there)
    }

    /// Says what will be done and what cannot be, before anything is.
    pub(super) fn say_plan(&mut self, record: &RecordStep) -> Result<()> {
        let there = self.there()?;
        let snapshot = self.snapshot().clone();
        let plan = Plan::new(&snapshot, &there);
        let containers = saved(&snapshot);
        for (id, name) in &plan.remove {
            self.refuse_strangers(&there, id, name)?;
        }
        let names: Vec<String> = plan
            .order
            .iter()
            .filter(|index| plan.create.contains(index))
            .map(|&index| containers[index].name().to_owned())
            .collect();
        self.say(Event::Plan {
            record,
            containers: &plan,
            names: &names,
        });
        let takes_all = matches!(record, RecordStep::Delete(_));
        let mut lost: Vec<String> = plan
            .order
            .iter()
            .filter(|index| takes_all || plan.create.contains(index))
            .filter_map(|&index| self.files_lost(containers[index]))
            .collect();
        if let (RecordStep::Create(_), Known::Known(Some(saved))) = (record, &snapshot.record) {
            lost.push(format!(
                "the record's id {}: the manager gives a new one",
                saved.id
            ));
        }
        if !lost.is_empty() {
            self.say(Event::Lost(&lost));
        }
        Ok(())
    }

    /// A container of another project that has the name of a saved one is not ours to remove.
    pub(super) fn refuse_strangers(&self, there: &[Value], id: &str, name: &str) -> Result<()> {
        let label = self.snapshot().label("project");
        let container = there
            .iter()
            .map(Inspected)
            .find(|container| container.id() == id);
        let project = container.and_then(|container| container.label(&label));
        let stack = self.snapshot().stack.as_str();
        if project.is_some_and(|project| {
            project == stack || project == crate::model::portainer_name(stack)
        }) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the container {name} has the name of one to be brought back, and belongs to {}",
            project.map_or_else(
                || "no stack".to_owned(),
                |project| format!("the stack {project}")
            )
        ))
        .hint("rename it or remove it, then run again")
        .into())
    }

    /// The files in a container's own layer: they went with it.
    fn files_lost(&self, container: Inspected) -> Option<String> {
        let changes = self.snapshot().changes.get(container.id())?.known()?;
        let paths: Vec<&str> = changes
            .listed
            .iter()
            .map(|change| change.path.as_str())
            .collect();
        let files = container.own_files(&paths);
        if files.is_empty() {
            return None;
        }
        let shown = files[..files.len().min(FILES_SHOWN)].join(", ");
        let unlisted = changes.total.saturating_sub(paths.len());
        let more = files.len().saturating_sub(FILES_SHOWN) + unlisted;
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        Some(format!(
            "{}: files written inside the container's own layer: {shown}{more}",
            container.name()
        ))
    }

    /// The manager first: what it takes down is brought back after.
    pub(super) fn restore_record(&mut self, step: &RecordStep) -> Result<()> {
        match step {
            RecordStep::Nothing | RecordStep::Unknown => Ok(()),
            RecordStep::Delete(record) => self.delete_record(record),
            RecordStep::Update(record, contents) => self.update_record(record, contents),
            RecordStep::Create(contents) => self.create_record(contents),
        }
    }

    fn delete_record(&mut self, record: &Record) -> Result<()> {
        self.touch();
        self.say(Event::Step(
            "delete",
            format!("record {} at the manager", record.id),
        ));
        self.say(Event::Waiting(format!("deleting record {}", record.id)));
        match self.r.manager.delete(record)? {
            Deletion::Done => Ok(()),
            // A 404 proves nothing (M03); a 409 means that it deploys again.
            Deletion::NotFound | Deletion::Busy => match self.find_record()? {
                None => Ok(()),
                Some(record) => Err(Failure::new(format!(
                    "the manager does not delete record {}, and lists it still",
                    record.id
                ))
                .hint("look at the stack in the manager, then run again")
                .into()),
            },
        }
    }

    fn update_record(&mut self, record: &Record, contents: &Contents) -> Result<()> {
        self.touch();
        self.say(Event::Step(
            "update",
            format!("record {}: its text and variables", record.id),
        ));
        self.say(Event::Waiting(format!(
            "the manager deploys record {}",
            record.id
        )));
        let answer = self.r.manager.update(record, contents)?;
        if !(200..300).contains(&answer.status) {
            // What it took down is brought back all the same.
            let summary = self.mask.hide(&answer.summary());
            self.trouble(format!(
                "record {} did not get its text back: {summary}",
                record.id
            ));
            return Ok(());
        }
        self.settle(&record.id)
    }

    fn create_record(&mut self, contents: &Contents) -> Result<()> {
        self.touch();
        let name = self.snapshot().stack.clone();
        self.say(Event::Step(
            "create",
            "the record at the manager".to_owned(),
        ));
        self.say(Event::Waiting(format!(
            "the manager deploys the stack {name}"
        )));
        let payload = Payload {
            name: &name,
            text: &contents.text,
            env: &contents.env,
        };
        match self.r.manager.create(self.snapshot().endpoint, &payload) {
            Creation::Created(created) => self.settle(&created.id),
            Creation::Refused(answer) => {
                let summary = self.mask.hide(&answer.summary());
                self.trouble(format!(
                    "the manager did not make the record again: {summary}"
                ));
                Ok(())
            }
            // Sent once: the next run sees what it came to.
            Creation::Unknown(error) => Err(error),
        }
    }

    /// Waits for the end of a deployment; that it failed does not keep the containers from coming back.
    fn settle(&mut self, id: &str) -> Result<()> {
        match self.r.manager.settle(id)? {
            Some(Deployment::Failed(reason)) => {
                let reason = reason.as_deref().unwrap_or("no reason is given").trim();
                let reason = self.mask.hide(reason);
                self.trouble(format!("the deployment of record {id} failed: {reason}"));
            }
            None => self.trouble(format!("record {id} went away while it was deployed")),
            Some(_) => {}
        }
        Ok(())
    }
}

fn contents(saved: SavedRecord) -> Contents {
    Contents {
        text: saved.text,
        env: saved.env,
    }
}
