//! The client of Portainer's API in the domain's verbs: list, read, create, update, delete.
//!
//! It keeps one connection, follows no redirect, and never repeats a request whose outcome is unknown (B05).
//! The changes fail with an [`Error`] that says whether they may have had an effect.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use secrecy::SecretString;
use serde_json::Value;
use ureq::http::Method;

use crate::{
    backoff::Backoff,
    failure::Failure,
    model::{Deployment, Record, portainer_name},
    text::Mask,
    trace::Trace,
};

mod access;
mod address;
mod certificate;
mod connection;
mod entries;
mod environments;
mod error;
mod git;
mod headers;
mod http;
mod owner;
mod status;
mod tls;
mod wire;

pub use access::Standing;
pub use address::BaseUrl;
pub use certificate::{Fingerprint, how_to_compare};
pub use environments::NamedEnvironment;
pub use error::{Error, Response, is_rejected_key, other_key, reason, remedy};
pub use git::{Fetched, Repository};
pub use headers::Headers;
pub use http::ClientOptions;
pub use owner::Owners;
pub use tls::Tls;
pub use wire::{Contents, Created, HINT_FOR_UNCLEAR, ListedRecord, Payload};

use http::{Client, Unread};

/// Completes "failed to …".
const LIST: &str = "list Portainer's stacks";
const HINT_FOR_LIST: &str = "see Portainer's log: it cannot read one of its stacks; from 2.43 on, a stack whose workflow was deleted prevents every list (portainer/portainer#13291)";

/// The pauses between two reads of a record that is deploying: the first and the longest.
const POLL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A client of Portainer that reads and changes.
pub struct Portainer(PortainerReader);

/// A client of Portainer that only reads.
pub struct PortainerReader {
    client: Client,
    /// Whether Portainer could list only the stacks of one environment (N16).
    is_filtered: AtomicBool,
}

/// A record as Portainer stores it (M07).
#[derive(Clone)]
pub struct Stored {
    pub contents: Contents,
    /// The folder of its Compose file, absolute.
    pub folder: String,
    /// Where it comes from, if Portainer deploys it from Git.
    pub git: Option<Repository>,
    /// How many Compose files it has besides the one whose text is known.
    pub further_files: usize,
}

/// The response to a delete (C51).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// 204.
    Done,
    /// Portainer's 404, which does not prove that the record is gone (M03).
    NotFound,
    /// Portainer's 409: the record is deploying (N01).
    Busy,
}

impl Portainer {
    /// Prepares a client, which connects at the first request. Fails where the API key cannot be sent or the
    /// certificates of `options.tls` cannot be used.
    pub fn new(options: ClientOptions) -> Result<Self> {
        Ok(Self(PortainerReader {
            client: Client::new(options)?,
            is_filtered: AtomicBool::default(),
        }))
    }

    /// Another client with the same settings: it hides values of its own, and `trace` receives its requests.
    pub fn again(&self, trace: Trace) -> Result<Self> {
        let options = self.0.client.options.clone();
        Self::new(ClientOptions { trace, ..options })
    }

    /// The fingerprint of the certificate that the server presents. Sends nothing but the beginning of a TLS handshake.
    pub fn certificate(base_url: &BaseUrl, timeout: Duration) -> Result<Fingerprint> {
        let action = "read Portainer's certificate";
        let client = Client::new(ClientOptions {
            base_url: base_url.clone(),
            key: SecretString::default(),
            tls: Tls::Pin(None),
            pin: None,
            headers: Headers::default(),
            timeout,
            trace: Trace::off(),
        })?;
        Ok(client.refused_certificate(action)?.ok_or_else(|| {
            Failure::new(format!("failed to {action}: {base_url} does not use TLS"))
        })?)
    }

    /// The part that cannot change anything.
    pub fn reader(&self) -> &PortainerReader {
        &self.0
    }

    /// Call B, with the record's own endpoint (C51, M19).
    pub fn delete(&self, record: &Record) -> Result<Deletion, Error> {
        let action = format!("delete Portainer stack {}", record.id);
        match self.0.client.delete(&path_of(record), &action) {
            Ok(()) => Ok(Deletion::Done),
            Err(error) => match error.status() {
                Some(404) => Ok(Deletion::NotFound),
                Some(409) => Ok(Deletion::Busy),
                _ => Err(error),
            },
        }
    }

    /// Sets the text and the variables of a record (M16), or lets a Git stack take its files from the repository again (M24).
    pub fn update(&self, record: &Record, payload: &Payload) -> Result<(), Error> {
        let (id, mut body) = (&record.id, payload.update_body(record.prune));
        let (path, action) = match payload.git {
            None => (path_of(record), format!("update Portainer stack {id}")),
            Some(git) => {
                git.authenticate(&mut body);
                (
                    path_of(record).replacen('?', "/git/redeploy?", 1),
                    format!("deploy Portainer stack {id} again"),
                )
            }
        };
        let client = &self.0.client;
        let deployed = client.change_object(id, Method::PUT, &path, &body, &action);
        deployed.map_err(|error| match error.status() {
            // Another request deploys it: that may be a repetition of this one by a proxy (N01).
            Some(409) => error.into_unknown(),
            _ => error,
        })
    }

    /// Call C (C53). A response without a non-empty `Id` is a failure, whatever its status (C55).
    ///
    /// If Portainer responds that the name is taken and lists it, the outcome is unknown: a proxy may have sent the request
    /// twice (B35).
    pub fn create(&self, endpoint: i64, payload: &Payload) -> Result<Created, Error> {
        let action = "create the stack";
        let (way, mut body) = ("string", payload.body());
        let way = payload.git.map_or(way, |git| {
            git.authenticate(&mut body);
            "repository"
        });
        let path = format!("/api/stacks/create/standalone/{way}?endpointId={endpoint}");
        let client = &self.0.client;
        let response = client.change(Method::POST, &path, &body, action)?;
        if let Some(mut created) = response.object() {
            self.0.hide_in(&mut created.deployment);
            return Ok(created);
        }
        let error = client.error(action, response);
        let is_absent = || {
            let (name, normalized) = (payload.name, portainer_name(payload.name));
            let listed = self.0.records(endpoint, name, &normalized);
            listed.is_ok_and(|all| all.iter().all(|record| record.endpoint_id != endpoint))
        };
        if error.status() == Some(409) && !is_absent() {
            return Err(error.into_unknown());
        }
        Err(error)
    }
}

impl PortainerReader {
    /// Reads everything once during a task that changes nothing.
    pub fn remembering<R>(&self, task: impl FnOnce() -> R) -> R {
        self.client.memory.during(task)
    }

    /// Hides values in everything that Portainer says from now on (B13).
    pub fn hide(&self, mask: Mask) {
        self.client.hide(mask);
    }

    /// Hides values in the reason why a deployment failed.
    fn hide_in(&self, deployment: &mut Deployment) {
        if let Deployment::Failed(Some(reason)) = deployment {
            *reason = self.client.mask().hide(reason);
        }
    }

    /// The ID of the engine behind an environment (M17), or the status with which Portainer refuses the environment: 404 if
    /// there is none, 401 or 403 if the API key may not use it.
    ///
    /// A refusal may come from the engine, its agent, or a proxy that refuses this one path: it says nothing about the
    /// environment unless Portainer refuses the environment itself, with its own error object (M01).
    pub fn engine_of(&self, endpoint: i64) -> Result<Result<String, u16>> {
        let path = format!("/api/endpoints/{endpoint}/docker/info");
        let action = format!("read the Docker ID of environment {endpoint}");
        match self.client.get(&path, &action) {
            Ok(info) => {
                let info = wire::read(info).map_err(failed_to(&action))?;
                let id = info["ID"].as_str().filter(|id| !id.is_empty());
                let id = id.context("Portainer does not report which Docker it uses")?;
                Ok(Ok(id.to_owned()))
            }
            Err(error) => match error.response() {
                Some(response) if matches!(response.status, 401 | 403 | 404) => {
                    match self.answer_for(endpoint) {
                        Some(status @ (401 | 403 | 404)) => Ok(Err(status)),
                        Some(200) => Err(Failure::new(format!(
                            "Portainer has environment {endpoint}, but its Docker could not be read"
                        ))
                        .source(response.summary())
                        .hint("check the environment in Portainer: its agent or Docker, or a proxy, refused the request")
                        .into()),
                        _ => Err(error.into()),
                    }
                }
                _ => Err(error.into()),
            },
        }
    }

    /// The address of an environment, if it is a socket that Portainer's Compose does not use (M17).
    pub fn other_socket(&self, endpoint: i64) -> Option<String> {
        let path = format!("/api/endpoints/{endpoint}");
        let json = self.json(&path, "read the environment").ok()?;
        let address = json["URL"].as_str()?;
        let socket = address.strip_prefix("unix://")?;
        let is_default = ["/var/run/docker.sock", "/run/docker.sock"].contains(&socket);
        (!is_default).then(|| address.to_owned())
    }

    /// The status with which Portainer itself responds to a request for an environment: 200 if it exists and the API key may
    /// use it. `None` if the response is not Portainer's.
    fn answer_for(&self, endpoint: i64) -> Option<u16> {
        let path = format!("/api/endpoints/{endpoint}");
        match self.client.get(&path, "read the environment") {
            Ok(response) => {
                let json = wire::read(response).ok()?;
                (json["Id"].as_i64() == Some(endpoint)).then_some(200)
            }
            Err(error) => error.status(),
        }
    }

    /// Call A: the records whose name is `name` or `normalized`, in Portainer's order (C50, C59).
    ///
    /// Fails if an entry may be such a record in the environment `endpoint` but cannot be parsed (B07).
    pub fn records(&self, endpoint: i64, name: &str, normalized: &str) -> Result<Vec<Record>> {
        let listed = self.listed(endpoint, Some(&[name, normalized]))?;
        let records = listed.into_iter().map(|listed| listed.record);
        records
            .collect::<Result<_, _>>()
            .map_err(|unclear| failed_to(LIST)(Failure::new(unclear).hint(HINT_FOR_UNCLEAR).into()))
    }

    /// Call A for every stack: the records of all environments, in Portainer's order. An entry that may be a record of the
    /// environment `endpoint`, but cannot be parsed, says why (B07).
    pub fn all_records(&self, endpoint: i64) -> Result<Vec<ListedRecord>> {
        self.listed(endpoint, None)
    }

    fn listed(&self, endpoint: i64, names: Option<&[&str]>) -> Result<Vec<ListedRecord>> {
        let list = self.list(endpoint)?;
        let mut listed = wire::records(list, endpoint, names).map_err(failed_to(LIST))?;
        for record in listed
            .iter_mut()
            .filter_map(|listed| listed.record.as_mut().ok())
        {
            self.hide_in(&mut record.deployment);
        }
        Ok(listed)
    }

    /// The response to call A. If Portainer cannot list the stacks of all environments, those of the environment `endpoint`
    /// (N16).
    fn list(&self, endpoint: i64) -> Result<Unread> {
        let response = match self.client.get("/api/stacks", LIST) {
            Err(Error::Refused { response, .. }) if response.status == 500 => response,
            listed => return Ok(listed?),
        };
        let path = format!("/api/stacks?filters=%7B%22EndpointID%22%3A{endpoint}%7D");
        let listed = self.client.get(&path, LIST).map_err(|_| {
            Failure::new(format!("failed to {LIST}"))
                .source(response.summary())
                .hint(HINT_FOR_LIST)
        })?;
        self.is_filtered.store(true, Ordering::Relaxed);
        Ok(listed)
    }

    /// What is not known because Portainer could list only the stacks of one environment (N16).
    pub fn doubt(&self) -> Option<&'static str> {
        self.is_filtered.load(Ordering::Relaxed).then_some(
            "Portainer could list only the stacks of this environment; its log says which other stack it cannot read",
        )
    }

    /// The text and the variables of a record, and its status and access rights (M17).
    pub fn read(&self, id: &str) -> Result<(Contents, Standing)> {
        let (contents, record) = self.contents(id)?;
        Ok((contents, Standing::of(&record)))
    }

    /// The text and the variables of a record as Portainer stores them (M07, M17).
    pub fn stored(&self, id: &str) -> Result<Stored> {
        let (contents, record) = self.contents(id)?;
        let folder = record["ProjectPath"]
            .as_str()
            .filter(|path| path.starts_with('/'));
        let folder = folder.map_or_else(|| format!("/data/compose/{id}"), str::to_owned);
        let git = Repository::of(&record);
        let below = git.as_ref().map_or("", Repository::folder);
        Ok(Stored {
            contents,
            folder: format!("{folder}/{below}").trim_end_matches('/').to_owned(),
            git,
            further_files: wire::further_files(&record)
                .map_err(failed_to(&format!("read Portainer stack {id}")))?,
        })
    }

    /// The text and the variables of a record, and its JSON.
    fn contents(&self, id: &str) -> Result<(Contents, Value)> {
        let action = format!("read Portainer stack {id}");
        let record = self.json(&format!("/api/stacks/{id}"), &action)?;
        let env = wire::env(&record).map_err(failed_to(&action))?;
        let action = format!("read the Compose file of Portainer stack {id}");
        let file = self.client.get(&format!("/api/stacks/{id}/file"), &action);
        let file = file.map_err(|error| match error.status() {
            // N20
            Some(409) => Failure::new(format!(
                "the Git settings of Portainer stack {id} were changed and not deployed"
            ))
            .hint("redeploy the stack in Portainer, then run the command again")
            .into(),
            _ => anyhow::Error::from(error),
        })?;
        let text = wire::text(file).map_err(failed_to(&action))?;
        Ok((Contents { text, env }, record))
    }

    /// Waits while the record `id` is deploying (N01) and returns its state then, or `None` where Portainer
    /// responds with a 404. Fails where Portainer refuses or the timeout has passed.
    pub fn wait_for_deployment(&self, id: &str) -> Result<Option<Deployment>> {
        let started = Instant::now();
        let deadline = started + self.client.options.timeout;
        let mut backoff = Backoff::new(POLL.0, POLL.1);
        loop {
            let deployment = persist(deadline, || self.deployment(id))?;
            if deployment != Some(Deployment::Deploying) {
                return Ok(deployment);
            }
            let pause = backoff.pause();
            if Instant::now() + pause > deadline {
                return Err(Failure::new(format!(
                    "Portainer stack {id} is still deploying after {} s",
                    started.elapsed().as_secs()
                ))
                .hint("once it has finished, run the command again, with a longer --timeout if necessary; Portainer 2.41 to 2.43 can miss the end: upgrade it if the deployment never finishes")
                .into());
            }
            thread::sleep(pause);
        }
    }

    /// The JSON of the response to a GET.
    fn json(&self, path: &str, action: &str) -> Result<Value> {
        let response = self.client.get(path, action)?;
        wire::read(response).map_err(failed_to(action))
    }

    fn deployment(&self, id: &str) -> Result<Option<Deployment>> {
        let action = format!("read Portainer stack {id}");
        match self.client.get(&format!("/api/stacks/{id}"), &action) {
            Ok(record) => {
                let mut status = wire::status(record).map_err(failed_to(&action))?;
                self.hide_in(&mut status);
                Ok(Some(status))
            }
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Repeats a read of a run that waits, until the deadline: a Portainer or an engine that restarts responds again (B11). Only
/// Portainer's own refusal of this client ends it before.
pub fn persist<T>(deadline: Instant, read: impl Fn() -> Result<T>) -> Result<T> {
    let mut backoff = Backoff::new(POLL.0, POLL.1);
    loop {
        let answer = read();
        let pause = backoff.pause();
        let is_late = Instant::now() + pause > deadline;
        match &answer {
            Err(error) if !is_late && may_respond(error) => thread::sleep(pause),
            _ => return answer,
        }
    }
}

/// Whether a read may succeed later: Portainer itself did not refuse the request because of the client.
pub fn may_respond(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<Error>();
    error
        .and_then(Error::status)
        .is_none_or(|status| status >= 500)
}

fn path_of(record: &Record) -> String {
    format!(
        "/api/stacks/{}?endpointId={}",
        record.id, record.endpoint_id
    )
}

/// The context of a response that cannot be read.
fn failed_to(action: &str) -> impl Fn(anyhow::Error) -> anyhow::Error {
    move |error| error.context(format!("failed to {action}"))
}
