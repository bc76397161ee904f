//! The create: sent once, ever; whatever its answer, what is there afterwards is looked at and said.

use anyhow::Result;

use super::{
    Event, Rewrite, Run,
    progress::{End, Found, Seen, Sent},
};
use crate::{
    failure::Failure,
    model::{Deployment, Record},
    portainer::{Created, Creation, Outcome, Refusal, outcome_of},
    stack::Source,
    text::{Mask, printable},
};
use composefile::dotenv;

impl Run<'_, '_> {
    /// C53–C55.
    pub(super) fn create(&mut self, source: &Source, rewrite: &Rewrite) -> Result<Created> {
        let name = self.m.stack.name().as_str();
        self.say(Event::Waiting(format!(
            "the manager creates the stack {name}"
        )));
        self.mark(|progress| progress.create = Sent::Unanswered);
        let creation = self
            .m
            .manager
            .create(self.m.endpoint, &rewrite.payload(name));
        match creation {
            Creation::Created(created) => Ok(created),
            Creation::Refused(refusal) => {
                Err(self.look_after_refusal(&refusal, &mask(source, rewrite)))
            }
            Creation::Unknown(error) if outcome_of(&error) == Outcome::NotSent => {
                self.mark(|progress| progress.create = Sent::No);
                Err(error)
            }
            Creation::Unknown(error) => Err(self.look_after_lost_answer(error)),
        }
    }

    /// C55. The answer names no Id, which need not mean that there is no stack: a proxy may have answered
    /// while the manager went on.
    fn look_after_refusal(&mut self, refusal: &Refusal, mask: &Mask) -> anyhow::Error {
        let name = self.m.stack.name();
        let end = if refusal.is_final() {
            End::Over
        } else {
            End::MayGoOn
        };
        let found = self.look(end);
        let there = match &found.record {
            Seen::There(id, deployment) => {
                format!("; the manager has record {id} of the stack all the same ({deployment})")
            }
            _ => String::new(),
        };
        self.mark(|progress| progress.create = Sent::Failed(found));
        let status = mask.hide(&refusal.status_line());
        Failure::new(format!(
            "failed to create the stack {name}: {status}{there}"
        ))
        .details(mask.hide_body(&refusal.body))
        .hint(refusal.hint_after_create())
        .into()
    }

    /// The answer to the create is lost: it is not sent again (B05).
    fn look_after_lost_answer(&mut self, error: anyhow::Error) -> anyhow::Error {
        let found = self.look(End::MayGoOn);
        let there = match &found.record {
            Seen::Unknown => "the manager cannot be asked whether the stack is there".to_owned(),
            Seen::There(id, deployment) => format!(
                "the manager has record {id} of the stack ({deployment}), so the create did arrive"
            ),
            Seen::Absent => "the manager has no record of the stack: it was not created, or is being deployed at this moment".to_owned(),
        };
        self.mark(|progress| progress.create = Sent::Failed(found));
        Failure::new(there)
            .source(error)
            .hint(
                "nothing was sent twice; look at the stack in the manager, then run again: a re-run \
                 is the recovery path",
            )
            .into()
    }

    /// What is there of the stack after a create that did not succeed.
    fn look(&self, end: End) -> Found {
        let name = self.m.stack.name();
        let normalised = name.normalised();
        let here = |record: &Record| record.endpoint_id == self.m.endpoint;
        let record = match self.m.manager.records(name.as_str(), &normalised) {
            Err(_) => Seen::Unknown,
            Ok(records) => match records.into_iter().find(here) {
                Some(record) => Seen::There(record.id, record.deployment),
                None => Seen::Absent,
            },
        };
        let mut projects = vec![name.as_str(), &normalised];
        projects.dedup();
        let counts = projects
            .into_iter()
            .map(|project| Some(self.m.engine.list(project).ok()?.len()));
        Found {
            record,
            containers: counts.sum(),
            end,
        }
    }

    /// Waits for the end of a deployment that goes on (C54, N01).
    pub(super) fn settle(
        &mut self,
        source: &Source,
        rewrite: &Rewrite,
        created: &Created,
    ) -> Result<()> {
        let name = self.m.stack.name();
        let mut deployment = created.deployment.clone();
        if deployment == Deployment::Deploying {
            self.mark(|progress| progress.create = Sent::Deploying(created.id.clone()));
            self.say(Event::Waiting(format!(
                "the manager deploys the stack {name}"
            )));
            deployment = match self.m.manager.settle(&created.id)? {
                Some(deployment) => deployment,
                None => return Err(self.look_after_missing_record(created)),
            };
        }
        if let Deployment::Failed(reason) = deployment {
            let mut found = self.look(End::Over);
            if !matches!(found.record, Seen::There(..)) {
                found.record = Seen::There(created.id.clone(), Deployment::Failed(None));
            }
            self.mark(|progress| progress.create = Sent::Failed(found));
            let reason =
                mask(source, rewrite).hide(reason.as_deref().unwrap_or("no reason is given"));
            return Err(Failure::new(format!("failed to create the stack {name}"))
                .source(printable(reason.trim()).into_owned())
                .hint("mend what the manager names, then run again: a re-run is the recovery path")
                .into());
        }
        Ok(())
    }

    /// A 404 does not prove that the record is gone: only a new listing does (M03).
    fn look_after_missing_record(&mut self, created: &Created) -> anyhow::Error {
        let found = self.look(End::Over);
        let id = &created.id;
        let what = match &found.record {
            Seen::There(other, _) if other == id => {
                format!("the manager says that there is no record {id}, and lists it still")
            }
            Seen::There(..) | Seen::Absent => {
                format!("record {id} went away while it was deployed")
            }
            Seen::Unknown => format!("the manager says that there is no record {id} any more"),
        };
        if found.record != Seen::Unknown {
            self.mark(|progress| progress.create = Sent::Failed(found));
        }
        Failure::new(what)
            .hint("look at the stack in the manager, then run again")
            .into()
    }

    /// C54: the name and id, then the containers.
    pub(super) fn report(&mut self, created: &Created) {
        let name = self.m.stack.name();
        let normalised = name.normalised();
        self.mark(|progress| progress.create = Sent::Created(created.id.clone()));
        self.say(Event::Created {
            name: name.as_str(),
            id: &created.id,
        });
        let mut containers = self.list().unwrap_or_default();
        if containers.is_empty() && normalised != name.as_str() {
            containers = self.m.engine.list(&normalised).unwrap_or_default();
        }
        self.say(Event::Containers(&containers));
    }
}

/// Hides the values of `.env`, as the contract reads them and as compose does.
fn mask(source: &Source, rewrite: &Rewrite) -> Mask {
    let env = source.env.as_deref().unwrap_or_default();
    let compose = dotenv::parse(env, &|_| None).unwrap_or_default();
    let contract = rewrite
        .env
        .variables
        .iter()
        .map(|variable| variable.value.as_str());
    Mask::new(contract.chain(compose.iter().map(|(_, value)| value.as_str())))
}
