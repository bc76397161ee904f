//! The create (C53–C55). It is sent once; after a failure, the run reports what exists (B05).

use anyhow::Result;

use super::{
    Procedure, Rewrite,
    progress::{End, Remains, Stage},
};
use crate::{
    failure::Failure,
    model::{Deployment, Grant},
    observe::with_hint,
    portainer::{Created, Error, Response},
    run::{RecordSeen, Witness},
    text::last_words,
};

impl Procedure<'_, '_> {
    /// C53–C55.
    pub(super) fn create(&mut self, rewrite: &Rewrite) -> Result<Created> {
        let name = self.at.stack.name().as_str();
        self.run
            .wait(format!("Portainer is creating the stack {name}"));
        let before = self.progress.stage.clone();
        self.mark(|progress| progress.stage = Stage::Creating);
        let payload = rewrite.payload(name);
        let creation = self.run.create(self.at.endpoint, &payload, None);
        match creation {
            Ok(created) => Ok(created),
            Err(error @ Error::NotSent(_)) => {
                self.mark(|progress| progress.stage = before);
                Err(error.into())
            }
            Err(error) => Err(self.look_after_failure(error)),
        }
    }

    /// C55. Only Portainer's own refusal proves that there is no stack. After any other response, or none, the run waits until
    /// Portainer has finished (B35). The create is not repeated (B05).
    fn look_after_failure(&mut self, error: Error) -> anyhow::Error {
        let (end, unsettled) = if error.is_unknown() {
            let settled = self.run.settle(Witness::PortainerAndEngine);
            (End::MayContinue, settled.err())
        } else {
            (End::Over, None)
        };
        let found = self.look(end);
        let name = self.at.stack.name();
        let response = error.response().cloned();
        let status = response.as_ref().map(Response::status_line);
        let message = match (&found.record, &status) {
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
        self.mark(|progress| progress.stage = Stage::Failed(found));
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

    /// What exists of the stack after a create that did not succeed.
    fn look(&self, end: End) -> Remains {
        let record = self.run.seen(self.at.stack.name(), self.at.endpoint);
        let containers = self.run.containers(self.at.stack.name().as_str());
        Remains {
            record,
            containers: containers.ok().map(|all| all.len()),
            end,
        }
    }

    /// Waits until the deployment ends (C54, N01).
    pub(super) fn wait_for_deployment(&mut self, created: &Created) -> Result<()> {
        let name = self.at.stack.name();
        let mut deployment = created.deployment.clone();
        if deployment == Deployment::Deploying {
            self.mark(|progress| progress.stage = Stage::Deploying(created.id.clone()));
            self.run
                .wait(format!("Portainer is deploying the stack {name}"));
            deployment = match self.run.wait_for_deployment(&created.id)? {
                Some(deployment) => deployment,
                None => return Err(self.look_after_missing_record(created)),
            };
        }
        if let Deployment::Failed(reason) = deployment {
            let mut found = self.look(End::Over);
            if !matches!(found.record, RecordSeen::Exists(..)) {
                found.record = RecordSeen::Exists(created.id.clone(), Deployment::Failed(None));
            }
            self.mark(|progress| progress.stage = Stage::Failed(found));
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
        let found = self.look(End::Over);
        let id = &created.id;
        let message = match &found.record {
            RecordSeen::Exists(other, _) if other == id => {
                format!("Portainer lists stack {id}, but returned 404 for it")
            }
            RecordSeen::Exists(..) | RecordSeen::Absent => {
                format!("Portainer stack {id} was removed while it was deploying")
            }
            RecordSeen::Unknown => format!("Portainer stack {id} was not found"),
        };
        if found.record != RecordSeen::Unknown {
            self.mark(|progress| progress.stage = Stage::Failed(found));
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
        self.mark(|progress| progress.stage = Stage::Created(created.id.clone()));
        let renamed = match name.portainer_name().as_str() {
            same if same == name.as_str() => String::new(),
            other => format!(", named {other} in Portainer"),
        };
        self.run.step(
            "created",
            format!("stack {name} with Id {}{renamed}", created.id),
        );
        let mut containers = Vec::new();
        for project in self.at.stack.name().projects() {
            match self.run.engine.list(&project) {
                Ok(more) => containers.extend(more),
                Err(error) => self.run.warn(with_hint(&error)),
            }
        }
        self.run.show(&containers);
    }
}
