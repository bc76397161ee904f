//! The stack management service over HTTPS, in the domain's verbs: list, get, create, delete, settle.
//!
//! One connection a run, kept; no redirect is followed; nothing is sent twice whose outcome is
//! unknown (B05). The wire shapes are private to `manager/wire.rs`.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use secrecy::SecretString;

use crate::{
    backoff::Backoff,
    failure::Failure,
    model::{Deployment, Record},
    trace::Trace,
};

mod address;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod hints;
mod http;
mod list;
mod scan;
mod tls;
mod wire;

pub use address::BaseUrl;
pub use http::Refusal;
pub use tls::Tls;
pub use wire::{Contents, Created, Payload};

use http::{Client, Patience};

/// How often a deploying record is looked at: at first, and at most.
const POLL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// What a manager client needs.
#[derive(Clone)]
pub struct Options {
    /// Where the manager is.
    pub base_url: BaseUrl,
    /// The API key; sent in the header `X-API-Key` and nowhere else.
    pub key: SecretString,
    /// How the manager's certificate is checked.
    pub tls: Tls,
    /// The bound on the answer to a create or delete, and on the settling after it. Reads have 30 s,
    /// or this where it is less.
    pub timeout: Duration,
    /// Receives each request.
    pub trace: Trace,
}

/// A client of the manager.
#[derive(Debug)]
pub struct Manager {
    client: Client,
    timeout: Duration,
}

/// How a delete ended (C51).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// The manager says it is done.
    Done,
    /// 404: which does not prove that the record is gone (M03).
    NotFound,
    /// 409: the record is deploying (N01).
    Busy,
}

/// What became of a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It never left this host.
    NotSent,
    /// The manager, or what stands in front of it, refused it: it has no further effect.
    Refused,
    /// It may have been done, or be under way.
    Unknown,
}

/// How a create was answered.
#[derive(Debug)]
pub enum Creation {
    /// With a non-empty `Id` (C54).
    Created(Created),
    /// With anything else: the status, and the body as it came (C55).
    Refused(Refusal),
    /// Not at all, or not to the end: the outcome is unknown (B05).
    Unknown(anyhow::Error),
}

impl Manager {
    /// Prepares a client; the connection is made at the first request. Fails where the certificate
    /// file of `tls` cannot be used.
    pub fn new(options: Options) -> Result<Self> {
        let timeout = options.timeout;
        Ok(Self {
            client: Client::new(options)?,
            timeout,
        })
    }

    /// Call A: the records whose name is `name` or `normalised`, in the manager's order (C50, C59).
    /// The list is streamed: its size does not matter.
    pub fn records(&self, name: &str, normalised: &str) -> Result<Vec<Record>> {
        let reply = self
            .client
            .get("/api/stacks", "list the manager's stacks")?;
        wire::records(reply, &[name, normalised])
    }

    /// A record by its id (M17), `None` where the manager does not have it.
    pub fn record(&self, id: &str) -> Result<Option<Record>> {
        let what = format!("look at the record {id}");
        let reply = self.client.get(&format!("/api/stacks/{id}"), &what);
        match reply {
            Ok(reply) => wire::record(reply).map(Some),
            Err(error) if http::is_status(&error, 404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The id of the engine behind an endpoint (M17); `None` where the answer does not say.
    pub fn engine_id(&self, endpoint: i64) -> Result<Option<String>> {
        let path = format!("/api/endpoints/{endpoint}/docker/info");
        let reply = self
            .client
            .get(&path, &format!("ask endpoint {endpoint} for its engine"))?;
        wire::engine_id(reply)
    }

    /// Whether the key is an administrator's; `None` where the answer does not say. Others are not shown
    /// every record.
    pub fn is_administrator(&self) -> Result<Option<bool>> {
        let reply = self
            .client
            .get("/api/users/me", "ask the manager whose key it is")?;
        wire::is_administrator(reply)
    }

    /// Call B, with the record's own endpoint (C51, M19). The body is discarded.
    pub fn delete(&self, record: &Record) -> Result<Deletion> {
        let path = format!(
            "/api/stacks/{}?endpointId={}",
            record.id, record.endpoint_id
        );
        let what = format!("delete the record {}", record.id);
        match self.client.delete(&path, &what) {
            Ok(()) => Ok(Deletion::Done),
            Err(error) if http::is_status(&error, 404) => Ok(Deletion::NotFound),
            Err(error) if http::is_status(&error, 409) => Ok(Deletion::Busy),
            Err(error) => Err(error),
        }
    }

    /// A record's text and variables (M17), to be brought back by an update.
    pub fn contents(&self, id: &str) -> Result<Contents> {
        let what = format!("read the record {id}");
        let record = self.client.get(&format!("/api/stacks/{id}"), &what)?;
        let env = wire::env(record)?;
        let file = self.client.get(
            &format!("/api/stacks/{id}/file"),
            &format!("read the text of the record {id}"),
        )?;
        Ok(Contents {
            text: wire::text(file)?,
            env,
        })
    }

    /// Changes a record's text and variables in place (M16), sent once. An answer of any status is a
    /// success here: [`Refusal::status`] tells.
    pub fn update(&self, record: &Record, contents: &Contents) -> Result<Refusal> {
        let path = format!(
            "/api/stacks/{}?endpointId={}",
            record.id, record.endpoint_id
        );
        let what = format!("give the record {} its text back", record.id);
        self.client.put(&path, &wire::Update(contents), &what)
    }

    /// Call C, sent once, ever (C53, B05).
    pub fn create(&self, endpoint: i64, payload: &Payload) -> Creation {
        let path = format!("/api/stacks/create/standalone/string?endpointId={endpoint}");
        match self.client.post(&path, payload, "create the stack") {
            Ok(refusal) => match wire::created(&refusal.body) {
                Some(created) => Creation::Created(created),
                None => Creation::Refused(refusal),
            },
            Err(error) => Creation::Unknown(error),
        }
    }

    /// Waits while the record `id` is deploying (N01), and says how that ended. `None`: the record
    /// is gone. Fails where the manager cannot be asked any more, or the timeout has passed.
    pub fn settle(&self, id: &str) -> Result<Option<Deployment>> {
        let started = Instant::now();
        let mut backoff = Backoff::new(POLL.0, POLL.1);
        loop {
            let Some(record) = self.record(id)? else {
                return Ok(None);
            };
            if record.deployment != Deployment::Deploying {
                return Ok(Some(record.deployment));
            }
            let pause = backoff.pause();
            if started.elapsed() + pause > self.timeout {
                return Err(Failure::new(format!(
                    "the record {id} is still deploying after {} s",
                    started.elapsed().as_secs()
                ))
                .hint("look at it in the manager, and run again once it has settled; --timeout waits longer")
                .into());
            }
            thread::sleep(pause);
        }
    }
}

/// What became of a request that changes something and failed with `error`.
pub fn outcome_of(error: &anyhow::Error) -> Outcome {
    http::outcome(error)
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("base_url", &self.base_url)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl Patience {
    fn of(options: &Options) -> Self {
        Self {
            connect: options.timeout.min(Duration::from_secs(10)),
            read: options.timeout.min(Duration::from_secs(30)),
            change: options.timeout,
        }
    }
}

type TlsConfig = Arc<rustls::ClientConfig>;
