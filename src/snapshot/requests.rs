//! The journal of unanswered requests (B11): one file per change that was sent to Portainer and is not known to have
//! finished. The file is on disk before the request is sent, so that it survives a kill at any moment.

use std::{fmt, io::ErrorKind, path::PathBuf};

use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::{
    Store, folder,
    store::{REQUEST, id_of, time_of},
};
use crate::failure::Failure;

/// A request that is not sent yet. No list shows it.
const PREPARED: &str = ".prepared";

/// A change that is sent to Portainer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Request {
    pub kind: RequestKind,
    /// The stack's name, as it was given.
    pub stack: String,
    /// The ID of the Portainer stack; a create has none.
    pub record: Option<String>,
    /// Portainer's environment.
    pub endpoint: i64,
    /// Portainer's base URL.
    pub base_url: String,
    /// When it was sent or prepared, UTC, RFC 3339.
    pub sent: String,
    /// The ID of the run's snapshot, if there is one.
    pub snapshot: Option<String>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
    Create,
    Update,
    Delete,
    Stop,
}

/// A request that is not known to have finished, with its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    pub request: Request,
    dir: PathBuf,
    name: String,
}

impl Store {
    /// Writes a request next to the journal, so that [`Self::remember`] needs less time. Returns whether that succeeded.
    pub fn prepare(&self, request: &Request) -> bool {
        let json = serde_json::to_vec_pretty(request);
        json.is_ok_and(|json| folder::replace(self.own(), PREPARED, &json).is_ok())
    }

    /// Writes a request to the journal, synced to disk, or renames the prepared one. If the disk is full, uses the reserve.
    pub fn remember(
        &self,
        request: Request,
        is_prepared: bool,
        now: DateTime<Utc>,
    ) -> Result<Unanswered> {
        let dir = self.own().to_owned();
        let name = format!("{}{REQUEST}", id_of(now));
        if is_prepared && !dir.join(&name).exists() && folder::rename(&dir, PREPARED, &name).is_ok()
        {
            return Ok(Unanswered { request, dir, name });
        }
        let json = serde_json::to_vec_pretty(&request).context("failed to serialize a request")?;
        let mut now = now;
        loop {
            let name = format!("{}{REQUEST}", id_of(now));
            match folder::write_new(&dir, &name, &json) {
                Ok(()) => return Ok(Unanswered { request, dir, name }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    now += chrono::TimeDelta::milliseconds(1);
                }
                Err(_) if self.use_reserve() => {}
                Err(error) => return Err(self.failed_to_write("a request", error).into()),
            }
        }
    }

    /// The requests that are not known to have finished, oldest first.
    pub fn unanswered(&self) -> Result<Vec<Unanswered>> {
        let mut found = Vec::new();
        for dir in self.dirs() {
            for name in folder::names(dir)? {
                if name.ends_with(REQUEST) {
                    let path = dir.join(&name);
                    let request = folder::read(&path)
                        .context("it cannot be read")
                        .and_then(|json| Ok(serde_json::from_str(&json)?))
                        .map(|request: Request| request.sent_at(&name));
                    let request = request.map_err(|error| {
                        Failure::new(format!(
                            "failed to read the unanswered request {}",
                            path.display()
                        ))
                        .source(error)
                        .hint("check in Portainer that no deployment of the stack is in progress, then delete this file")
                    })?;
                    let dir = dir.clone();
                    found.push(Unanswered { request, dir, name });
                }
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

impl Request {
    /// The same, sent when its file got this name: it may have been prepared long before.
    fn sent_at(mut self, name: &str) -> Self {
        if let Some(time) = name.strip_suffix(REQUEST).and_then(time_of) {
            self.sent = time.to_rfc3339_opts(SecondsFormat::Secs, true);
        }
        self
    }
}

impl Unanswered {
    /// Removes the request from the journal: it has finished.
    pub fn forget(&self) -> Result<()> {
        let removed = folder::remove(&self.dir, &self.name);
        removed.with_context(|| {
            format!(
                "failed to remove the finished request {}",
                self.dir.join(&self.name).display()
            )
        })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind, stack, sent, ..
        } = self;
        match &self.record {
            Some(id) => write!(
                f,
                "the {kind} of Portainer stack {id} ({stack}), sent {sent}"
            ),
            None => write!(f, "the {kind} of the stack {stack}, sent {sent}"),
        }
    }
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Stop => "stop",
            Self::Update => "update",
            Self::Delete => "delete",
        })
    }
}
