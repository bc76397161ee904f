//! The steps of a restore in Portainer: the record and its deployment.

use anyhow::Result;
use chrono::DateTime;
use serde_json::json;

use super::{Cause, RecordStep, Restoration, Scope, volumes::RECREATED};
use crate::{
    failure::Failure,
    finding::Finding,
    model::{Container, Deployment, Record, Rights, portainer_name},
    observe::{Evidence, environment},
    plan::{Environment, refused_name, unusable},
    portainer::{Contents, Deletion, Error, Payload, Repository},
    run::Run,
    snapshot::{LastSent, SavedRecord},
};

/// An error of a Portainer that does not respond, with a hint at `--engine-only` (B19).
pub(super) fn without_portainer(error: anyhow::Error) -> anyhow::Error {
    let way = "to restore the containers without Portainer, add --engine-only";
    Failure::with_way("cannot read the Portainer stack", error, way).into()
}

impl Restoration<'_, '_, '_> {
    /// Decides on the change to the record. Waits while it deploys: nothing is restored while an outcome is unknown.
    pub(super) fn look_at_record(&mut self) -> Result<RecordStep> {
        if self.restore.scope == Scope::EngineOnly {
            return Ok(RecordStep::Skipped);
        }
        if self.restore.scope == Scope::Everything && self.restore.cause != Cause::Failure {
            self.find_environment()?;
        }
        let mut record = self.find_record().map_err(without_portainer)?;
        if let Some(Record { id, deployment, .. }) = &record
            && *deployment == Deployment::Deploying
        {
            self.run.wait(format!(
                "waiting for the deployment of Portainer stack {id}"
            ));
            self.run.wait_for_deployment(id)?;
            record = self.find_record()?;
        }
        if self.restore.scope == Scope::Containers {
            return Ok(RecordStep::Stays(record));
        }
        match self.run.portainer.rights(self.endpoint) {
            Rights::Administrator => {}
            Rights::OwnStacks(_) | Rights::Unknown(_) if record.is_some() => {}
            rights => return Ok(RecordStep::OutOfReach(rights)),
        }
        let Some(saved) = self.snapshot().record.known() else {
            return Ok(RecordStep::Unknown);
        };
        Ok(match (saved, record) {
            (None, None) if self.run.store().is_unfinished() && self.run.store().was_restored() => {
                RecordStep::Gone
            }
            (None, None) => RecordStep::Nothing,
            (None, Some(record)) => {
                if self.snapshot().may_be_unseen && !self.is_newer(&record)? {
                    return Ok(RecordStep::Unknown);
                }
                RecordStep::Delete(record)
            }
            (Some(wanted), None) if self.is_undeployable(wanted) => RecordStep::Undeployable,
            (Some(wanted), None) => RecordStep::Create(contents(wanted), self.repository(wanted)?),
            // A text would end its link to Git (M24).
            (Some(_), Some(record)) if record.is_from_git() => RecordStep::Stays(Some(record)),
            (Some(wanted), Some(record)) => {
                let (now, standing) = self.run.portainer.read(&record.id)?;
                self.run.hide(None, &now.env);
                let starts = wanted.inactive == Some(false) && standing.inactive;
                let stops = wanted.inactive == Some(true) && !standing.inactive;
                let access = wanted.access.as_ref();
                let failed = matches!(record.deployment, Deployment::Failed(_));
                if now != contents(wanted) || starts || failed {
                    if self.is_undeployable(wanted) {
                        return Ok(RecordStep::Undeployable);
                    }
                    RecordStep::Update(record, contents(wanted))
                } else if stops {
                    RecordStep::Stop(record)
                } else if access.is_some_and(|access| *access != standing.access) {
                    RecordStep::Access(record)
                } else {
                    RecordStep::Nothing
                }
            }
        })
    }

    /// Whether the deployment of a saved record had failed, or that of its text and variables was the last that failed (B40).
    fn is_undeployable(&self, saved: &SavedRecord) -> bool {
        let (failed, _) = self.run.store().failure();
        saved.failed || failed.has(&saved.text, &saved.env)
    }

    /// The repository that a saved record was deployed from.
    fn repository(&self, saved: &SavedRecord) -> Result<Option<Repository>> {
        let git = saved.git.clone().map(serde_json::from_value::<Repository>);
        let password = || self.restore.git_password.clone();
        Ok(git.transpose()?.map(|git| Repository {
            password: git.user.as_ref().and_then(|_| password()),
            ..git
        }))
    }

    /// Whether a record was created after the snapshot was taken.
    fn is_newer(&self, record: &Record) -> Result<bool> {
        let (_, standing) = self.run.portainer.read(&record.id)?;
        let taken = DateTime::parse_from_rfc3339(&self.snapshot().taken).ok();
        let times = taken.zip(standing.created);
        Ok(times.is_some_and(|(taken, created)| created >= taken.timestamp()))
    }

    /// Sets the environment whose stack is restored: that of the snapshot. It may have been removed from Portainer and added
    /// again with another ID; no environment that still exists is left for another one (B37).
    fn find_environment(&mut self) -> Result<()> {
        let (saved, engine) = (self.snapshot().endpoint, self.run.engine);
        let own = self.run.containers(&self.snapshot().stack)?;
        let others = engine.list_all()?;
        let evidence = Evidence {
            own: &own,
            others: &others,
        };
        let environment = environment(self.run.portainer, Some(engine), saved, evidence);
        self.elsewhere = None;
        match environment {
            Environment::NotFound { here: Some(here) } => self.endpoint = here,
            Environment::Unknown(reason) => {
                let what = format!("cannot verify that environment {saved} is this host: {reason}");
                let hint = "check the environment in Portainer, or restore only the containers with --engine-only";
                self.elsewhere = Some(Finding::new(what, hint));
            }
            environment => self.elsewhere = unusable(&environment, saved),
        }
        Ok(())
    }

    /// Why Portainer would not create the record: one on another environment has its name, and there are containers (M20).
    pub(super) fn refused_name(&self) -> Result<Option<Finding>> {
        let (name, portainer) = (&self.snapshot().stack, self.run.portainer);
        let records = portainer.records(self.endpoint, name, &portainer_name(name))?;
        let mut others = records
            .iter()
            .filter(|record| record.endpoint_id != self.endpoint);
        let Some(other) = others.next() else {
            return Ok(None);
        };
        let version = portainer.version()?.unwrap_or_default();
        Ok(refused_name(other, &version, self.endpoint))
    }

    /// The stack's record now.
    pub(super) fn find_record(&self) -> Result<Option<Record>> {
        let records = self.run.records(&self.snapshot().stack, self.endpoint)?;
        Ok(records.into_iter().next())
    }

    /// What counts as last sent afterwards (B22), with the anonymous volumes of the restored containers.
    fn last_sent(&self) -> LastSent {
        let snapshot = self.snapshot();
        let mut last_sent = snapshot.last_sent.clone();
        for container in snapshot.containers.items() {
            let service = container.compose_label(&snapshot.tool, "service");
            for (name, path) in container.anonymous_volumes() {
                let service = service.unwrap_or_default().to_owned();
                let volumes = last_sent.volumes.entry(service).or_default();
                volumes.insert(path.to_owned(), name.to_owned());
            }
        }
        last_sent
    }

    /// Runs before the steps at the engine, which recreate the containers that Portainer removes here.
    pub(super) fn restore_record(&mut self, step: &RecordStep) -> Result<()> {
        let last_sent = &self.last_sent();
        if let RecordStep::Update(_, contents) | RecordStep::Create(contents, None) = step
            && self.restore.force
        {
            // Portainer would create them without the label that tells them from others.
            self.restore_volumes()?;
            for name in self.missing_external_volumes(contents)? {
                self.touch();
                let labels = json!({ RECREATED: "true" });
                let volume = json!({ "Name": name, "Labels": labels });
                self.run.engine.create_volume(&volume)?;
                self.run.warn(format!("volume {name} was created empty"));
            }
        }
        match step {
            RecordStep::Stays(Some(record))
                if record.is_from_git() && self.restore.scope != Scope::Containers =>
            {
                self.run.warn(format!(
                    "Portainer stack {} is deployed from Git, so its Compose file stays as it is: to undo a commit, revert it in the repository",
                    record.id
                ));
                // The containers are those of an earlier commit: it is to be deployed again.
                let read = self.run.portainer.read(&record.id).ok();
                if let Some(git) = read.and_then(|(_, standing)| standing.git) {
                    let mut last_sent = last_sent.clone();
                    last_sent.is_behind = last_sent.commit.as_ref() != Some(&git.commit);
                    last_sent.commit = Some(git.commit);
                    self.run.set_last_sent(&last_sent);
                }
                return Ok(());
            }
            RecordStep::Stays(_) => return Ok(()),
            RecordStep::Unknown
            | RecordStep::Skipped
            | RecordStep::OutOfReach(_)
            | RecordStep::Undeployable => {
                let mut last_sent = self.run.store().last_sent();
                if !last_sent.is_empty() && last_sent.commit.is_none() {
                    last_sent.is_behind = true;
                    self.run.set_last_sent(&last_sent);
                }
                return Ok(());
            }
            RecordStep::Nothing | RecordStep::Gone => {
                self.run.set_last_sent(last_sent);
                return Ok(());
            }
            RecordStep::Delete(record) => {
                self.delete_record(record)?;
                self.run.set_last_sent(last_sent);
                return Ok(());
            }
            RecordStep::Update(record, contents) => {
                self.deploy_record(Some(record), contents, None)?;
            }
            RecordStep::Create(contents, git) => {
                self.deploy_record(None, contents, git.as_ref())?;
            }
            RecordStep::Stop(_) | RecordStep::Access(_) => self.run.set_last_sent(last_sent),
        }
        self.restore_standing()
    }

    /// Stops a record that was stopped, and restores its access rights.
    fn restore_standing(&mut self) -> Result<()> {
        let saved = self.snapshot().record.found();
        let (Some(record), Some(saved)) = (self.find_record()?, saved) else {
            return Ok(());
        };
        let (_, standing) = self.run.portainer.read(&record.id)?;
        let id = &record.id;
        if saved.inactive == Some(true) && !standing.inactive {
            self.run.detail("stop", format!("Portainer stack {id}"));
            self.run.wait(format!("stopping Portainer stack {id}"));
            let stopped = self.send(|run| run.stop(&record));
            self.tolerate_refusal(stopped, &format!("stop Portainer stack {id}"))?;
        }
        let access = saved.access.as_ref();
        let Some(access) = access.filter(|access| **access != standing.access) else {
            return Ok(());
        };
        let Some(control) = standing.control else {
            self.trouble.push(format!(
                "cannot restore the access rights of Portainer stack {id}: Portainer has no resource control for it"
            ));
            return Ok(());
        };
        let rights = format!("the access rights of Portainer stack {id}");
        self.run.detail("update", rights.as_str());
        let set = self.send(|run| run.set_access(control, access));
        self.tolerate_refusal(set, &format!("restore {rights}"))
    }

    /// Sends a request that changes something. If it is not sent, the state is that before it.
    fn send<T>(&mut self, send: impl FnOnce(&mut Run) -> Result<T, Error>) -> Result<T, Error> {
        let before = (self.touched, self.run.state().clone());
        self.touch();
        let outcome = send(self.run);
        if let Err(Error::NotSent(_)) = outcome {
            self.touched = before.0;
            self.run.set_state(before.1);
        }
        outcome
    }

    /// Turns a refusal by Portainer into a warning. If the outcome is unknown, waits until Portainer has finished (B35): the
    /// comparison with the snapshot shows it. Any other failure stops the restore.
    fn tolerate_refusal(&mut self, outcome: Result<(), Error>, action: &str) -> Result<()> {
        match outcome {
            Err(Error::Refused { response, .. }) => {
                let summary = response.summary();
                self.trouble.push(format!("failed to {action}: {summary}"));
                Ok(())
            }
            Err(error @ Error::Unknown { .. }) => {
                self.run.warn(format!("{:#}", anyhow::Error::from(error)));
                self.settle()
            }
            outcome => Ok(outcome?),
        }
    }

    fn delete_record(&mut self, record: &Record) -> Result<()> {
        let id = &record.id;
        let before = (self.touched, self.run.state().clone());
        self.run.detail("delete", format!("Portainer stack {id}"));
        self.run.wait(format!("deleting Portainer stack {id}"));
        let mut deleted = self.send(|run| run.delete(record));
        // Compose's `down` fails under load, and succeeds when it runs again. The response says that the first one has
        // ended, so sending the request again repeats nothing whose outcome is unknown (B05).
        if let Err(Error::Refused { response, .. }) = &deleted
            && response.status == 500
            && let Ok(listed) = self.find_record()
        {
            match listed {
                None => return Ok(()),
                Some(listed) if listed.id == *id => {
                    let again = format!("Portainer stack {id} again: the first attempt failed");
                    self.run.detail("delete", again);
                    deleted = self.send(|run| run.delete(record));
                }
                Some(_) => {}
            }
        }
        match deleted {
            // What it removed is recreated anyway. Compose fails while a service that another one depends on has no
            // container: the next restore can delete it.
            Err(Error::Refused { response, .. }) if response.status == 500 => {
                let summary = response.summary();
                self.trouble
                    .push(format!("failed to delete Portainer stack {id}: {summary}"));
                Ok(())
            }
            Err(error @ Error::NotSent(_)) => Err(error.into()),
            Err(error @ Error::Refused { .. }) => match self.find_record() {
                Ok(None) => Ok(()),
                _ => Err(error.into()),
            },
            Err(error @ Error::Unknown { .. }) => {
                self.settle()?;
                if self.find_record()?.is_none() {
                    return Ok(());
                }
                // The request had no effect: nothing is interrupted for a Portainer stack that stays.
                if self.is_as_before()? {
                    self.touched = before.0;
                    self.run.set_state(before.1);
                    return Err(error.into());
                }
                // The stack is down until the containers are recreated.
                self.trouble
                    .push(format!("{:#}", anyhow::Error::from(error)));
                Ok(())
            }
            Ok(Deletion::Done) => Ok(()),
            // A 404 proves nothing (M03). A 409 means that it is deploying again.
            Ok(Deletion::NotFound | Deletion::Busy) => match self.find_record()? {
                None => Ok(()),
                Some(Record { id, .. }) => {
                    let what =
                        format!("failed to delete Portainer stack {id}: Portainer still lists it");
                    let hint = "check the stack in Portainer, then run the command again";
                    Err(Failure::new(what).hint(hint).into())
                }
            },
        }
    }

    /// Whether there were containers before the first change, and they are as they were.
    fn is_as_before(&self) -> Result<bool> {
        let now = self.existing()?;
        let is_there = |one: &Container| {
            let mut now = now.iter();
            now.any(|other| other.id_and_state() == one.id_and_state())
        };
        Ok(!self.before.is_empty() && self.before.iter().all(is_there))
    }

    /// Creates the record, or updates the one that exists.
    fn deploy_record(
        &mut self,
        record: Option<&Record>,
        contents: &Contents,
        git: Option<&Repository>,
    ) -> Result<()> {
        let (name, endpoint) = (&self.snapshot().stack, self.endpoint);
        let action = if let Some(Record { id, .. }) = record {
            let what = format!("the Compose file and variables of Portainer stack {id}");
            self.run.detail("update", what);
            self.run.wait(format!(
                "waiting for the deployment of Portainer stack {id}"
            ));
            format!("restore the Compose file of Portainer stack {id}")
        } else {
            self.run.detail("create", "the Portainer stack");
            self.run
                .wait(format!("Portainer is deploying the stack {name}"));
            "recreate the Portainer stack".to_owned()
        };
        let payload = Payload {
            git,
            ..Payload::new(name, &contents.text, &contents.env)
        };
        // Its containers are those of the snapshot only if the deployment succeeds.
        let last_sent = self.last_sent().deployed_as(None);
        match self.send(|run| run.deploy(record, endpoint, &payload, &last_sent)) {
            Ok(created) => self.wait_for_deployment(&created.id),
            // Not repeated: the containers that it removed are recreated anyway, and the next run sees the outcome.
            Err(error) => self.tolerate_refusal(Err(error), &action),
        }
    }

    /// Waits until the deployment ends. Its failure does not stop the restore of the containers.
    fn wait_for_deployment(&mut self, id: &str) -> Result<()> {
        match self.run.wait_for_deployment(id)? {
            Some(Deployment::Failed(reason)) => {
                let reason = reason.as_deref().unwrap_or("Portainer reported no reason");
                self.trouble.push(format!(
                    "the deployment of Portainer stack {id} failed: {}",
                    reason.trim()
                ));
            }
            None => self.trouble.push(format!(
                "Portainer returned 404 for Portainer stack {id} while it was deploying"
            )),
            Some(_) => self.run.set_last_sent(&self.last_sent()),
        }
        Ok(())
    }
}

fn contents(saved: &SavedRecord) -> Contents {
    Contents {
        text: saved.text.clone(),
        env: saved.env.clone(),
    }
}
