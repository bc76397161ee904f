//! The journal of unanswered requests (B11): one file per change that was sent to Portainer and is not known to have
//! finished. The file is on disk before the request is sent, so that it survives a kill at any moment.

use std::{fmt, path::PathBuf};

use anyhow::{Context, Result};
use chrono::SecondsFormat;
use serde::{Deserialize, Serialize};

use super::{
    LastSent,
    folder::{self, time_of},
};
use crate::failure::Failure;

/// The end of the name of a file of the journal.
pub(super) const REQUEST: &str = ".request";

/// A change that is sent to Portainer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SentRequest {
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
    /// What counts as last sent if Portainer has done it (B22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sent: Option<LastSent>,
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
    pub request: SentRequest,
    pub(super) dir: PathBuf,
    pub(super) name: String,
}

/// The requests in these directories that are not known to have finished, oldest first.
pub(super) fn unanswered(dirs: &[PathBuf]) -> Result<Vec<Unanswered>> {
    let mut found = Vec::new();
    for dir in dirs {
        for name in folder::names(dir)? {
            if name.ends_with(REQUEST) {
                let path = dir.join(&name);
                let request = folder::read(&path)
                    .context("it cannot be read")
                    .and_then(|json| Ok(serde_json::from_str(&json)?))
                    .map(|request: SentRequest| request.sent_at(&name))
                    .map_err(|error| {
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

impl SentRequest {
    /// The same, sent when its file got this name: it may have been prepared long before.
    pub(super) fn sent_at(mut self, name: &str) -> Self {
        if let Some(time) = name.strip_suffix(REQUEST).and_then(time_of) {
            self.sent = time.to_rfc3339_opts(SecondsFormat::Secs, true);
        }
        self
    }

    /// `deleting Portainer stack 3`.
    pub fn doing(&self) -> String {
        let verb = match self.kind {
            RequestKind::Create => "creating",
            RequestKind::Stop => "stopping",
            RequestKind::Update => "updating",
            RequestKind::Delete => "deleting",
        };
        match &self.record {
            Some(id) => format!("{verb} Portainer stack {id}"),
            None => format!("{verb} the Portainer stack {}", self.stack),
        }
    }
}

impl Unanswered {
    /// Removes the request from the journal.
    pub(super) fn forget(&self) -> Result<()> {
        let path = self.dir.join(&self.name);
        let what = || format!("failed to remove the finished request {}", path.display());
        folder::remove(&self.dir, &self.name).with_context(what)
    }
}

impl fmt::Display for SentRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, stack, sent) = (&self.kind, &self.stack, &self.sent);
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
            Self::Create => "creation",
            Self::Stop => "stop",
            Self::Update => "update",
            Self::Delete => "deletion",
        })
    }
}
