//! The changes that a run sends to Portainer. Each is in the journal before it is sent, and until its end is known
//! (B11).

use anyhow::{Result, anyhow};
use chrono::{Local, SecondsFormat, Utc};

use super::Run;
use crate::{
    failure::Failure,
    model::{Access, Container, Deployment, Record},
    plan::Sent,
    portainer::{Created, Deletion, Error, Payload, Portainer},
    snapshot::{LastSent, RequestKind, SentRequest, Unanswered},
    stack::StackName,
    text::excerpt,
};

/// A request of this run that is not known to have finished.
pub(super) struct Open {
    pub(super) entry: Unanswered,
    /// Whether this run sent it, and not an earlier one.
    pub(super) is_own: bool,
    /// Whether Portainer accepted it: then it is not unanswered.
    pub(super) accepted: bool,
}

impl Run<'_> {
    /// Writes the journal entry of a create ahead of time: a create that follows then waits less for the disk.
    pub fn prepare_create(&mut self, endpoint: i64, payload: &Payload, last_sent: &LastSent) {
        let request = self.deployment(None, endpoint, payload, last_sent);
        self.is_prepared = self.store().prepare(&request);
    }

    /// Creates the Portainer stack (call C, C53), or sets the text and the variables of `record` (M16). A Git stack takes its
    /// files from the repository (M24). Sent once, ever (B05). `last_sent` is what counts as last sent then (B22).
    /// [`Self::wait_for_deployment`] must follow, unless the deployment has ended.
    pub fn deploy(
        &mut self,
        record: Option<&Record>,
        endpoint: i64,
        payload: &Payload,
        last_sent: &LastSent,
    ) -> Result<Created, Error> {
        let request = self.deployment(record, endpoint, payload, last_sent);
        let call = |portainer: &Portainer| match record {
            None => portainer.create(endpoint, payload),
            Some(record) => portainer.update(record, payload).map(|()| Created {
                id: record.id.clone(),
                deployment: Deployment::Deploying,
            }),
        };
        self.send(request, call, |created| {
            created.deployment != Deployment::Deploying
        })
    }

    /// Call B (C51).
    pub fn delete(&mut self, record: &Record) -> Result<Deletion, Error> {
        let request = self.request_to(RequestKind::Delete, record);
        self.send(request, |portainer| portainer.delete(record), |_| true)
    }

    /// Stops a record: Portainer removes its containers.
    pub fn stop(&mut self, record: &Record) -> Result<(), Error> {
        let request = self.request_to(RequestKind::Stop, record);
        self.send(request, |portainer| portainer.stop(record), |()| true)
    }

    /// Sets the access rights of a resource control. Not in the journal: it deploys nothing.
    pub fn set_access(&mut self, control: i64, access: &Access) -> Result<(), Error> {
        self.changes.set_access(control, access)
    }

    /// Sets who may use a deployed stack and its containers (B23). Returns whether that was not so before.
    pub fn share(
        &mut self,
        name: &StackName,
        (record, endpoint): (&str, i64),
        access: &Access,
    ) -> Result<bool> {
        let mut set = || {
            let (_, standing) = self.portainer.read(record)?;
            let is_set = standing.access == *access;
            if !is_set {
                let none = || anyhow!("Portainer has no resource control for stack {record}");
                self.set_access(standing.control.ok_or_else(none)?, access)?;
            }
            // They come before the rights of the stack (M23).
            let containers = self.containers(&name.portainer_name())?;
            let ids: Vec<&str> = containers.iter().map(Container::id).collect();
            let own = self.portainer.own_controls(endpoint, &ids)?;
            for (control, _) in own.values() {
                self.changes.remove_control(*control)?;
            }
            Ok(!is_set || !own.is_empty())
        };
        set().map_err(|error: anyhow::Error| {
            let what = format!("{name} runs in Portainer, but its access rights could not be set");
            let hint = "set them in Portainer, or run the command again";
            Failure::new(what).source(error).hint(hint).into()
        })
    }

    /// Waits while the record `id` is deploying (N01). `None` if Portainer responds with a 404, which does not prove
    /// that the deployment has ended.
    pub fn wait_for_deployment(&mut self, id: &str) -> Result<Option<Deployment>> {
        let ended = self.portainer.wait_for_deployment(id)?;
        if ended.is_some()
            && let Some(open) = self.open.pop_if(|open| open.accepted)
        {
            self.forget(&open);
        }
        Ok(ended)
    }

    /// A remaining file only makes the next run wait.
    fn forget(&mut self, open: &Open) {
        if let Err(error) = self.store().forget(&open.entry) {
            self.warn(format!("{error:#}"));
        }
    }

    /// Keeps what was last sent: Portainer is known to have it, or to have what it had when that was so (B22).
    pub fn set_last_sent(&mut self, sent: &LastSent) {
        if let Err(error) = self.store().set_last_sent(sent) {
            self.warn(format!("{error:#}"));
        }
    }

    /// Notes why the adoption of `sent` failed, for the next plan.
    pub fn note_failure(&self, sent: Sent, why: &anyhow::Error) {
        let at = Local::now().format("%-d %b %Y, %H:%M");
        let why = excerpt(&self.mask().hide(&format!("{why:#}")));
        let told = format!("the last adoption of this version failed on {at}: {why}");
        let sent = LastSent::of(sent.text, sent.env);
        self.store().set_failure(&sent, &told);
    }

    /// Sends a request. `is_over` says whether a response shows its end; otherwise, the deployment may continue.
    fn send<T>(
        &mut self,
        request: SentRequest,
        call: impl FnOnce(&Portainer) -> Result<T, Error>,
        is_over: impl FnOnce(&T) -> bool,
    ) -> Result<T, Error> {
        let action = format!("send {request}");
        let not_sent = |error: anyhow::Error| {
            let hint = Failure::hint_of(&error).unwrap_or_default().to_owned();
            let failure =
                Failure::new("failed to save the request before sending it").source(error);
            Error::not_sent(&action, failure.hint(hint))
        };
        self.mark_unfinished().map_err(not_sent)?;
        let is_prepared = self.is_prepared && request.kind == RequestKind::Create;
        let entry = self
            .store()
            .remember(request, is_prepared, Utc::now())
            .map_err(not_sent)?;
        self.open.push(Open {
            entry,
            is_own: true,
            accepted: false,
        });
        self.report_state();
        let response = call(self.changes);
        let is_over = match &response {
            Ok(response) => is_over(response),
            Err(error) => !error.is_unknown(),
        };
        if let Some(mut open) = self.open.pop() {
            if is_over {
                if let Err(Error::NotSent(_)) = response {
                    open.entry.request.last_sent = None;
                }
                self.forget(&open);
            } else {
                open.accepted = response.is_ok();
                self.open.push(open);
            }
        }
        self.report_state();
        response
    }

    fn deployment(
        &self,
        record: Option<&Record>,
        endpoint: i64,
        payload: &Payload,
        last_sent: &LastSent,
    ) -> SentRequest {
        let request = match record {
            None => self.request(RequestKind::Create, payload.name, endpoint),
            Some(record) => self.request_to(RequestKind::Update, record),
        };
        let last_sent = match payload.git.and(record) {
            None => last_sent.clone(),
            // What else was read of the repository counts once that is deployed.
            Some(_) => LastSent::of(payload.text, payload.env),
        };
        SentRequest {
            last_sent: Some(last_sent),
            ..request
        }
    }

    fn request_to(&self, kind: RequestKind, record: &Record) -> SentRequest {
        SentRequest {
            record: Some(record.id.clone()),
            ..self.request(kind, &record.name, record.endpoint_id)
        }
    }

    fn request(&self, kind: RequestKind, stack: &str, endpoint: i64) -> SentRequest {
        SentRequest {
            kind,
            stack: stack.to_owned(),
            record: None,
            endpoint,
            base_url: self.setup.base_url.to_string(),
            sent: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
            snapshot: self.snapshot.clone(),
            last_sent: None,
        }
    }
}
