//! The state of a stack before a run, complete enough to restore it: the format and the store.
//!
//! One JSON file per snapshot, with a version, written atomically. What could not be read is saved as unknown, with the
//! reason.
//!
//! **Architecture Invariant:** unknown never counts as absent.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Access, Changes, Container, Variable, compose_label};

mod chosen;
mod folder;
mod interrupted;
mod journal;
mod layer;
mod lock;
mod pins;
mod requests;
mod sent;
mod store;
mod whole;

pub use folder::check_state_dir;
pub use interrupted::{Interrupted, Unfinished, marked};
pub use layer::{Layer, MOST_BYTES};
pub use lock::StackLock;
pub use pins::{pin_of, set_pin};
pub use requests::{RequestKind, SentRequest, Unanswered};
pub use sent::LastSent;
pub use store::{Place, Saved, Store, projects};
use whole::{is_same_deployment, is_whole};

/// The version of new snapshots. Older versions stay readable.
pub const VERSION: u32 = 1;

/// The state of a stack before a run. It has no `Debug`: texts and variables may contain secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Snapshot {
    /// The format's version, [`VERSION`] when it was written.
    pub version: u32,
    /// When it was taken, UTC, RFC 3339.
    pub taken: String,
    /// The command that took it.
    pub command: String,
    /// The flags that named the repository of a Git stack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The stack's name.
    pub stack: String,
    /// Whether the stack ran whole, or this is what a failed run left behind (B15). `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_whole: Option<bool>,
    /// The stack's directory.
    pub dir: String,
    /// The container tool: its name is part of the labels.
    pub tool: String,
    /// Portainer's base URL.
    pub base_url: String,
    /// Portainer's environment.
    pub endpoint: i64,
    pub compose: TextFile,
    /// `.env`, if it existed.
    pub env: Option<TextFile>,
    /// Portainer's record, if it existed.
    pub record: Known<Option<SavedRecord>>,
    /// Whether a record may have existed that the API key did not see (B24).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_unseen: bool,
    /// What was last sent to it (B22); empty if that is unknown.
    #[serde(default, skip_serializing_if = "LastSent::is_empty")]
    pub last_sent: LastSent,
    /// The project's containers, one inspect object each.
    pub containers: Known<Vec<Container>>,
    /// The project's networks, one inspect object each.
    pub networks: Known<Vec<Value>>,
    /// The project's volumes and the anonymous ones that its containers mount, one inspect object each.
    pub volumes: Known<Vec<Value>>,
    /// The changed files in each container's own layer, by the container's ID. They are lost with it (M05).
    pub changes: BTreeMap<String, Known<Changes>>,
    /// The files of each container's own layer, as far as they are saved, by the container's ID. There is no entry for a
    /// container without changes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layers: BTreeMap<String, Layer>,
    /// The birth times of the volumes, by name (B18). A volume that was deleted and recreated has another one. There is no
    /// entry for a volume whose directory could not be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub births: BTreeMap<String, String>,
}

/// A file's name and text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextFile {
    /// The file's name in the stack's directory.
    pub name: String,
    /// The text, byte for byte.
    pub text: String,
}

/// A record with everything that an update can restore (M16, M17).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SavedRecord {
    pub id: String,
    pub name: String,
    /// Its environment.
    pub endpoint: i64,
    /// The Compose text.
    pub text: String,
    /// The variables, in order.
    pub env: Vec<Variable>,
    /// Whether a user had stopped it; `None` if that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactive: Option<bool>,
    /// Whether its deployment had failed (B40). Older versions did not record it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Its access rights; `None` if they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// The repository that it is deployed from, as Portainer's client writes it, without the password (M24).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Value>,
}

/// A value that was read, or the reason why it could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known<T> {
    /// The value.
    Known(T),
    /// Why it could not be read.
    Unknown(String),
}

impl<T> Known<T> {
    /// The value of `Ok`, or the text of the error as the reason.
    pub fn from_result(result: anyhow::Result<T>) -> Self {
        match result {
            Ok(known) => Self::Known(known),
            Err(error) => Self::Unknown(format!("{error:#}")),
        }
    }

    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(known) => Some(known),
            Self::Unknown(_) => None,
        }
    }

    /// The value to change, if it is known.
    pub fn known_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Known(known) => Some(known),
            Self::Unknown(_) => None,
        }
    }

    /// The reason, if it is unknown.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(reason) => Some(reason),
        }
    }
}

impl<T> Known<Vec<T>> {
    /// The items; none if they are unknown.
    pub fn items(&self) -> &[T] {
        self.known().map_or(&[], Vec::as_slice)
    }
}

impl<T> Known<Option<T>> {
    /// The value, if it is known that there is one.
    pub fn found(&self) -> Option<&T> {
        self.known()?.as_ref()
    }
}

impl Snapshot {
    /// The unknown parts: name and reason.
    pub fn unknowns(&self) -> Vec<(&str, &str)> {
        let parts = [
            ("the Portainer stack", self.record.unknown()),
            ("the containers", self.containers.unknown()),
            ("the networks", self.networks.unknown()),
            ("the volumes", self.volumes.unknown()),
        ];
        let mut unknowns: Vec<_> = parts
            .into_iter()
            .filter_map(|(part, reason)| Some((part, reason?)))
            .collect();
        let changes = self.changes.values().filter_map(Known::unknown);
        let layers = self
            .layers
            .values()
            .filter_map(|layer| layer.failure.as_deref());
        if let Some(reason) = changes.chain(layers).next() {
            unknowns.push(("the files written inside the containers", reason));
        }
        unknowns
    }

    /// Whether `restore` may choose this snapshot by itself (B15).
    pub fn is_default_of_restore(&self) -> bool {
        self.ran_whole != Some(false) && self.containers.known().is_some() && !self.is_of_restore()
    }

    /// Whether a restore took it, of what it replaced.
    pub fn is_of_restore(&self) -> bool {
        self.command == "restore"
    }

    /// Whether it shows a container that ran.
    pub fn has_running(&self) -> bool {
        self.containers.items().iter().any(Container::is_running)
    }

    /// When it was taken; 1970 if that cannot be read.
    pub fn taken_at(&self) -> DateTime<Utc> {
        let taken = DateTime::parse_from_rfc3339(&self.taken).unwrap_or_default();
        taken.to_utc()
    }

    /// The name of a label of the tool's Compose: `com.<tool>.compose.<name>`.
    pub fn label(&self, name: &str) -> String {
        compose_label(&self.tool, name)
    }
}
