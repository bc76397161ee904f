//! The snapshot, and the request that lets Portainer deploy the stack.

use anyhow::{Error, Result};
use serde_json::json;

use super::{Adoption, Prepared, prepare::missing};
use crate::{
    after::changes,
    failure::Failure,
    model::{Deployment, Record},
    observe::with_hint,
    portainer::{self, Contents, Payload},
    run::{RecordSeen, Seen, State, Witness},
    text::bulleted,
};

impl Adoption<'_, '_> {
    /// A part of the stack that cannot be saved stops the adoption.
    pub(super) fn take_snapshot(&mut self, prepared: &Prepared) -> Result<()> {
        let before = &prepared.before;
        let subject = before.subject("adopt", &prepared.source, &self.at);
        let seen = Seen {
            record: None,
            containers: before.host.containers.clone(),
            changes: before.host.changes.clone(),
        };
        let planned = before.remote.contents.as_ref();
        self.run.sees_every_stack = before.remote.rights.see_every_stack();
        self.report.snapshot = self.run.take_snapshot(&subject, seen, |snapshot| {
            if let (Some((planned, _)), Some(saved)) = (planned, snapshot.record.found())
                && (planned.text != saved.text || planned.env != saved.env)
            {
                return Err(edited_meanwhile(&saved.id).into());
            }
            let unknown = snapshot.unknowns();
            if unknown.is_empty() {
                return Ok(());
            }
            let lines = unknown.iter().map(|(part, why)| format!("{part}: {why}"));
            let what = "the snapshot would be incomplete, and what it lacks could not be restored";
            Err(Failure::new(what)
                .details(bulleted(lines))
                .hint("fix the problems above, then run the command again")
                .into())
        })?;
        Ok(())
    }

    /// Sends the create or the update, once (B05), and waits for its end. Returns why the deployment failed, if it did. An
    /// error means that nothing was sent, or that the outcome is unknown.
    pub(super) fn send(&mut self, prepared: &Prepared, payload: &Payload) -> Result<Option<Error>> {
        let name = self.at.stack.name();
        self.run
            .wait(format!("Portainer is deploying the stack {name}"));
        if let Some(git) = &prepared.git
            && !git.is_current(self.run.portainer)?
        {
            return Err(
                Failure::new("the repository changed after the plan was made")
                    .hint("run the command again: it makes a new plan")
                    .into(),
            );
        }
        self.create_volumes(prepared)?;
        self.keep_labels(prepared);
        self.check_edits(prepared)?;
        let unknown = "Portainer may be deploying the stack, and may have recreated its containers";
        let record = prepared.before.remote.record.as_ref();
        let record = record.filter(|_| !prepared.plan.creates());
        let last_sent = prepared.last_sent(payload.text, payload.env);
        let (endpoint, unknown) = (self.at.endpoint, State::new(unknown).undoable(false));
        let answer = self.run.sending(unknown, |run| {
            run.deploy(record, endpoint, payload, &last_sent)
        });
        match answer {
            Ok(created) => self.wait_for_end(&created.id, created.deployment),
            Err(error @ portainer::Error::NotSent(_)) => Err(error.into()),
            Err(portainer::Error::Refused { response, .. }) => {
                let said = (response.reason(), response.hint_after_create());
                let updated = record.filter(|_| response.status == 404);
                let (reason, hint) = match updated {
                    Some(Record { id, .. }) if self.is_gone() => (
                        format!("Portainer stack {id} was deleted during this run"),
                        "run the command again: it makes a new plan".to_owned(),
                    ),
                    _ => said,
                };
                let said = String::from_utf8_lossy(&response.body);
                Ok(Some(self.failed(&reason, said, hint)))
            }
            Err(error @ portainer::Error::Unknown { .. }) => {
                self.settle(prepared, payload, error.into())
            }
        }
    }

    /// Stops if the Portainer stack was edited since it was read: the update would overwrite that (B22). If it cannot be read, the
    /// response to the update says why.
    fn check_edits(&self, prepared: &Prepared) -> Result<()> {
        let before = prepared.before.remote.contents.as_ref();
        let record = prepared.before.remote.record.as_ref();
        let Some((record, (before, standing))) = record.zip(before) else {
            return Ok(());
        };
        let now = self.run.portainer.read(&record.id);
        match now {
            Ok((now, _)) if standing.git.is_none() && now != *before => {
                Err(edited_meanwhile(&record.id).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether Portainer lists no stack of this name. A 404 alone does not prove it (M03).
    fn is_gone(&self) -> bool {
        let seen = self.run.seen(self.at.stack.name(), self.at.endpoint);
        seen == RecordSeen::Absent
    }

    /// Creates the volumes that the text names and that do not exist. A later adoption uses them if this one fails.
    fn create_volumes(&mut self, prepared: &Prepared) -> Result<()> {
        for name in missing(&prepared.runs, &prepared.before) {
            // Without the label of an anonymous one, which `docker volume prune` deletes.
            self.run.engine.create_volume(&json!({ "Name": name }))?;
            if self.run.state().is_untouched() {
                let what = "this run took a snapshot, created empty volumes for the services to start, and changed nothing else";
                self.run.set_state(State::new(what));
            }
        }
        Ok(())
    }

    /// Lets Portainer store the labels that give access to containers: the rights of a new stack would come before them
    /// (M23).
    fn keep_labels(&mut self, prepared: &Prepared) {
        if self.at.access.is_some() || !prepared.plan.creates() {
            return;
        }
        let ids = prepared.before.remote.uses.containers.keys();
        let ids: Vec<&str> = ids.map(String::as_str).collect();
        if let Err(error) = self.run.portainer.own_controls(self.at.endpoint, &ids) {
            self.run.warn(with_hint(&error));
        }
    }

    /// Sets who may use the deployed stack (B23).
    pub(super) fn share(&mut self) -> Result<()> {
        let Some(wanted) = self.at.access else {
            return Ok(());
        };
        let (name, endpoint) = (self.at.stack.name(), self.at.endpoint);
        let id = self.report.portainer_stack.clone().unwrap_or_default();
        let is_new = self.run.share(name, (&id, endpoint), &wanted.access)?;
        self.report.access = is_new.then(|| wanted.grants.clone());
        Ok(())
    }

    /// Waits while Portainer deploys (N01).
    fn wait_for_end(&mut self, id: &str, deployment: Deployment) -> Result<Option<Error>> {
        self.report.portainer_stack = Some(id.to_owned());
        let ended = match deployment {
            Deployment::Deploying => {
                let what = format!(
                    "the stack exists as Portainer stack {id}; it may still be deploying, and its containers may have been recreated"
                );
                self.run.set_state(State::new(what).undoable(false));
                let waited = self.run.wait_for_deployment(id);
                waited.map_err(|error| self.unknown(&error))?
            }
            deployment => Some(deployment),
        };
        match ended {
            Some(Deployment::Active) => {
                self.set_deployed(id, "were not verified");
                Ok(None)
            }
            Some(Deployment::Failed(reason)) => Ok(Some(self.reported(reason.as_deref()))),
            Some(other) => Err(self.unknown(&anyhow::anyhow!(
                "Portainer stack {id} is {other} after the deployment"
            ))),
            None => Err(self.unknown(&anyhow::anyhow!(
                "Portainer stack {id} was removed while it was deploying, or Portainer returned 404 for it"
            ))),
        }
    }

    /// Finds the outcome of a request whose response was lost, or may be another program's (B35). Looks at Portainer and
    /// the engine, and never sends it again (B05, B11).
    ///
    /// That nothing changes any more does not prove that Portainer has finished. So a failure counts as known only if
    /// Portainer says so, or if its `down` has removed everything (M06).
    fn settle(
        &mut self,
        prepared: &Prepared,
        payload: &Payload,
        lost: Error,
    ) -> Result<Option<Error>> {
        if let Err(error) = self.run.settle(Witness::PortainerAndEngine) {
            return Err(self.unknown(&lost.context(format!("{error:#}"))));
        }
        let seen = self.run.seen(self.at.stack.name(), self.at.endpoint);
        // What Portainer had before shows no update.
        let before = prepared.before.remote.contents.as_ref();
        let had = before.is_some_and(|(before, _)| is_sent(before, payload));
        match &seen {
            RecordSeen::Exists(id, deployment) => {
                self.report.portainer_stack = Some(id.clone());
                match deployment {
                    Deployment::Failed(reason) => {
                        return Ok(Some(self.reported(reason.as_deref())));
                    }
                    Deployment::Active if !had && self.has_contents(id, payload) => {
                        self.set_deployed(id, "were not verified");
                        return Ok(None);
                    }
                    // It still has its previous text.
                    Deployment::Active if self.is_removed(prepared) => {
                        return Ok(Some(lost));
                    }
                    _ => {}
                }
            }
            RecordSeen::Absent if prepared.plan.creates() && self.is_removed(prepared) => {
                return Ok(Some(lost));
            }
            RecordSeen::Absent | RecordSeen::Unknown => {}
        }
        let look = self.look();
        let is_same =
            look.is_ok_and(|now| changes(&prepared.ran().compare(&now, self.at.tool)).is_empty());
        self.run.set_state(match seen {
            RecordSeen::Absent | RecordSeen::Exists(..) if is_same => {
                // There is nothing to roll back.
                State::told(format!("no container was changed; {seen}"))
            }
            _ => State::new(format!("{seen}; its containers may have been recreated"))
                .undoable(false),
        });
        Err(self.unknown(&lost))
    }

    /// Whether every container was removed.
    fn is_removed(&self, prepared: &Prepared) -> bool {
        !prepared.ran().containers.is_empty() && self.look().is_ok_and(|now| now.is_empty())
    }

    /// Whether a record has the text and the variables that were sent.
    fn has_contents(&self, id: &str, payload: &Payload) -> bool {
        let read = self.run.read_back(id);
        read.is_ok_and(|(contents, _)| is_sent(&contents, payload))
    }

    /// The failure that Portainer reported for a deployment.
    fn reported(&self, reason: Option<&str>) -> Error {
        let said = reason.unwrap_or("Portainer reported no reason").trim();
        self.failed(&portainer::reason(said), said, portainer::remedy(said))
    }

    /// The failure of a deployment, in Portainer's words.
    fn failed(&self, reason: &str, said: impl Into<String>, hint: impl Into<String>) -> Error {
        let name = self.at.stack.name();
        let failure = Failure::new(format!("Portainer could not deploy {name}: {reason}"));
        failure.body(said).hint(hint).into()
    }
}

/// The refusal of an update that would overwrite an edit in Portainer during the run (B22).
fn edited_meanwhile(id: &str) -> Failure {
    Failure::new(format!(
        "Portainer stack {id} was edited after this run had read it"
    ))
    .hint("look at the edit, then run the command again")
}

fn is_sent(contents: &Contents, payload: &Payload) -> bool {
    contents.text == payload.text && contents.env == payload.env
}
