//! The snapshot, and the request that lets Portainer deploy the stack.

use anyhow::Result;

use super::{Prepared, Procedure};
use crate::{
    failure::Failure,
    model::Deployment,
    plan::Request,
    portainer::Contents,
    run::{Seen, State, Subject},
};

impl Procedure<'_, '_> {
    /// A part of the stack that cannot be saved stops the adoption.
    pub(super) fn take_snapshot(&mut self, prepared: &Prepared) -> Result<()> {
        let before = &prepared.before;
        let subject = Subject {
            command: "adopt",
            stack: self.a.stack,
            source: &prepared.source,
            base_url: self.a.base_url,
            endpoint: self.a.endpoint,
            tool: self.a.tool,
            record: before.record.as_ref(),
            containers: before.all.as_deref(),
        };
        let snapshot = self.run.take_snapshot(&subject, Seen::default())?;
        let name = self.a.stack.name().as_str();
        let mut state = State::new("this run has sent nothing to Portainer");
        if let Some(id) = &snapshot {
            state = state.with_snapshot(name, id);
        }
        self.run.set_state(state);
        Ok(())
    }

    /// Sends the create or the update, once (B05), and waits for the deployment.
    pub(super) fn send(&mut self, prepared: &Prepared) -> Result<()> {
        let name = self.a.stack.name().as_str();
        let Some(payload) = prepared.payload(name) else {
            return Ok(());
        };
        self.run.wait("Portainer is deploying the stack");
        let (id, deployment) = match (&prepared.plan.request, &prepared.before.record) {
            (Request::Update(_), Some(record)) => {
                let contents = Contents {
                    text: payload.text.to_owned(),
                    env: payload.env.to_vec(),
                };
                self.run.update(record, &contents)?;
                (record.id.clone(), Deployment::Deploying)
            }
            _ => {
                let created = self.run.create(self.a.endpoint, &payload)?;
                (created.id, created.deployment)
            }
        };
        let ended = match deployment {
            Deployment::Deploying => self.run.wait_for_deployment(&id)?,
            deployment => Some(deployment),
        };
        match ended {
            Some(Deployment::Active) => {
                self.run.step("deployed", format!("Portainer stack {id}"));
                Ok(())
            }
            other => {
                let state = other.map_or("gone".to_owned(), |state| state.to_string());
                Err(Failure::new(format!(
                    "Portainer stack {id} is {state} after the deployment"
                ))
                .into())
            }
        }
    }
}
