//! The create (C53–C55). It is sent once; after a failure, the run reports what exists (B05).

use anyhow::Result;

use super::{Procedure, Rewrite};
use crate::{
    failure::Failure,
    model::{Deployment, Grant},
    observe::with_hint,
    portainer::{Created, Error, Response},
    run::{Event, RecordSeen, State, Witness},
    text::{counted, last_words},
};

impl Procedure<'_, '_> {
    /// C53–C55.
    pub(super) fn create(&mut self, rewrite: &Rewrite) -> Result<Created> {
        let name = self.at.stack.name().as_str();
        self.run
            .wait(format!("Portainer is creating the stack {name}"));
        let creating = State::new(
            "the deployment was in progress, and its outcome is unknown: the stack may exist or may still be deploying",
        );
        let (endpoint, payload) = (self.at.endpoint, rewrite.payload(name));
        let last_sent = rewrite.last_sent();
        let created = self.run.sending(creating.undoable(false), |run| {
            run.deploy(None, endpoint, &payload, &last_sent)
        });
        match created {
            Ok(created) => Ok(created),
            Err(error @ Error::NotSent(_)) => Err(error.into()),
            Err(error) => Err(self.look_after_failure(error)),
        }
    }

    /// C55. Only Portainer's own refusal proves that there is no stack. After any other response, or none, the run waits until
    /// Portainer has finished (B35). The create is not repeated (B05).
    fn look_after_failure(&mut self, error: Error) -> anyhow::Error {
        let may_continue = error.is_unknown();
        let unsettled = if may_continue {
            self.run.settle(Witness::PortainerAndEngine).err()
        } else {
            None
        };
        let found = self.run.seen(self.at.stack.name(), self.at.endpoint);
        let name = self.at.stack.name();
        let response = error.response().cloned();
        let status = response.as_ref().map(Response::status_line);
        let message = match (&found, &status) {
            (RecordSeen::Exists(id, deployment), status) => {
                let unclear = status.as_deref().unwrap_or("no response from Portainer");
                format!("{unclear}, but the stack exists as Portainer stack {id} ({deployment})")
            }
            (_, Some(status)) => format!("failed to create the stack {name}: {status}"),
            (RecordSeen::Unknown, None) => {
                "no response from Portainer, and listing its stacks failed too".to_owned()
            }
            (RecordSeen::Absent, None) => "no response from Portainer: it does not list the stack, but may still be deploying it".to_owned(),
        };
        self.set_failed(&found, may_continue);
        let message = match unsettled {
            Some(error) => format!("{message}; {error:#}"),
            None => message,
        };
        let failure = Failure::new(message);
        let failure = match response {
            Some(response) => failure
                .details(String::from_utf8_lossy(&response.body))
                .hint(response.hint_after_create()),
            None => failure
                .source(error)
                .hint("check the stack in Portainer, then run the command again: that is safe"),
        };
        failure.into()
    }

    /// The state after a create that did not succeed, on which Portainer may still be working: what exists of the stack.
    fn set_failed(&mut self, seen: &RecordSeen, may_continue: bool) {
        let containers = self.run.containers(self.at.stack.name().as_str());
        let removed = self.removed.as_ref();
        let exists = matches!(seen, RecordSeen::Exists(..));
        let is_down = !exists && !may_continue && containers.as_ref().is_ok_and(Vec::is_empty);
        let what = match seen {
            RecordSeen::Exists(..) => seen.to_string(),
            RecordSeen::Absent if may_continue => {
                "Portainer does not list the stack, but may still be deploying it".to_owned()
            }
            RecordSeen::Unknown if may_continue => "the stack was sent to Portainer once, and the outcome is unknown: the stack may exist or may still be deploying".to_owned(),
            _ if is_down => {
                let what = removed.map_or_else(
                    || "Portainer did not create it".to_owned(),
                    |removed| format!("{removed}, and Portainer did not create the stack"),
                );
                format!("the stack is down: {what}")
            }
            _ => "Portainer did not create the stack".to_owned(),
        };
        let here = match &containers {
            Err(_) => Some("its containers could not be listed".to_owned()),
            Ok(all) if all.is_empty() => None,
            Ok(all) => Some(format!(
                "it has {} on this host",
                counted(all.len(), "container")
            )),
        };
        let removed = removed.filter(|_| !is_down).cloned();
        let parts = [Some(what), here, removed].into_iter().flatten();
        let state = State::new(parts.collect::<Vec<_>>().join("; "));
        // As far as the key sees, and if Portainer is not creating it.
        let is_unlisted = *seen == RecordSeen::Absent && !may_continue;
        self.run.set_state(state.undoable(is_unlisted));
    }

    /// Waits until the deployment ends (C54, N01).
    pub(super) fn wait_for_deployment(&mut self, created: &Created) -> Result<()> {
        let name = self.at.stack.name();
        let mut deployment = created.deployment.clone();
        if deployment == Deployment::Deploying {
            let seen = RecordSeen::Exists(created.id.clone(), Deployment::Deploying);
            self.run
                .set_state(State::new(seen.to_string()).undoable(false));
            self.run
                .wait(format!("Portainer is deploying the stack {name}"));
            deployment = match self.run.wait_for_deployment(&created.id)? {
                Some(deployment) => deployment,
                None => return Err(self.look_after_missing_record(created)),
            };
        }
        if let Deployment::Failed(reason) = deployment {
            let mut found = self.run.seen(name, self.at.endpoint);
            if !matches!(found, RecordSeen::Exists(..)) {
                found = RecordSeen::Exists(created.id.clone(), Deployment::Failed(None));
            }
            self.set_failed(&found, false);
            let reason = reason.as_deref().unwrap_or("Portainer reported no reason");
            return Err(Failure::new(format!("failed to create the stack {name}"))
                .source(last_words(reason))
                .body(reason)
                .hint("fix the error above, then run the command again: that is safe")
                .into());
        }
        Ok(())
    }

    /// A 404 does not prove that the record is gone: only a new listing does (M03).
    fn look_after_missing_record(&mut self, created: &Created) -> anyhow::Error {
        let found = self.run.seen(self.at.stack.name(), self.at.endpoint);
        let id = &created.id;
        let message = match &found {
            RecordSeen::Exists(other, _) if other == id => {
                format!("Portainer lists stack {id}, but returned 404 for it")
            }
            RecordSeen::Exists(..) | RecordSeen::Absent => {
                format!("Portainer stack {id} was removed while it was deploying")
            }
            RecordSeen::Unknown => format!("Portainer stack {id} was not found"),
        };
        if found != RecordSeen::Unknown {
            self.set_failed(&found, false);
        }
        Failure::new(message)
            .hint("check the stack in Portainer, then run the command again")
            .into()
    }

    /// Sets who may use the stack (B23).
    pub(super) fn share(&mut self, id: &str) -> Result<()> {
        let Some(wanted) = self.at.access else {
            return Ok(());
        };
        let (name, endpoint) = (self.at.stack.name(), self.at.endpoint);
        self.run.share(name, (id, endpoint), &wanted.access)?;
        self.run.step("access", Grant::list(&wanted.grants));
        Ok(())
    }

    /// C54: the name and ID, then the containers.
    pub(super) fn report(&mut self, created: &Created) {
        let name = self.at.stack.name();
        let what = format!("the stack was created as Portainer stack {}", created.id);
        self.run.set_state(State::new(what).undoable(false));
        let renamed = match name.portainer_name().as_str() {
            same if same == name.as_str() => String::new(),
            other => format!(", named {other} in Portainer"),
        };
        self.run.step(
            "created",
            format!("stack {name} with Id {}{renamed}", created.id),
        );
        let containers = self.run.containers(name.as_str());
        let containers = containers.unwrap_or_else(|error| {
            self.run.warn(with_hint(&error));
            Vec::new()
        });
        self.run.report(Event::Containers(&containers));
    }
}
