//! The journal of unanswered requests (B11): one file per change that was sent to Portainer and is not known to have
//! finished. The file is on disk before the request is sent, so that it survives a kill at any moment.

use std::{fmt, io::ErrorKind, path::PathBuf};

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Store, folder};
use crate::failure::Failure;

/// The end of a file's name.
pub(super) const SUFFIX: &str = ".request";

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
    /// When it was sent, UTC, RFC 3339.
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
    /// Writes a request to the journal, synced to disk. If the disk is full, uses the reserve.
    pub fn remember(&self, request: Request, now: DateTime<Utc>) -> Result<Unanswered> {
        let json = serde_json::to_vec_pretty(&request).context("failed to serialize a request")?;
        let dir = self.own().to_owned();
        let mut now = now;
        loop {
            let name = format!("{}{SUFFIX}", super::store::id_of(now));
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
                if name.ends_with(SUFFIX) {
                    let path = dir.join(&name);
                    let request = folder::read(&path)
                        .context("it cannot be read")
                        .and_then(|json| Ok(serde_json::from_str(&json)?));
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
