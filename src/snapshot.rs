//! What was there before a run, enough to bring it back: its format and its store.
//!
//! One file a snapshot, JSON with a version, on disk whole or not at all. What could not be read is kept
//! as unknown, with the reason: unknown is never taken for absent.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Changes, Variable};

mod store;

pub use store::{Key, Saved, Store};

/// The version that is written. Older ones stay readable.
pub const VERSION: u32 = 1;

/// What was there before a run.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Snapshot {
    /// The format's version, [`VERSION`] when it was written.
    pub version: u32,
    /// When it was taken, UTC, RFC 3339.
    pub taken: String,
    /// The command that took it.
    pub command: String,
    /// The stack's name.
    pub stack: String,
    /// The stack's directory.
    pub dir: String,
    /// The container tool: it names the labels.
    pub tool: String,
    /// The manager's base URL.
    pub base_url: String,
    /// The endpoint.
    pub endpoint: i64,
    /// The compose file: its name and its text.
    pub compose: TextFile,
    /// `.env`, where there was one.
    pub env: Option<TextFile>,
    /// The manager's record, where there was one.
    pub record: Known<Option<SavedRecord>>,
    /// What the engine says of the project's containers, one inspect object each.
    pub containers: Known<Vec<Value>>,
    /// The same of its networks.
    pub networks: Known<Vec<Value>>,
    /// The same of its volumes, and of the anonymous ones that its containers mount.
    pub volumes: Known<Vec<Value>>,
    /// What lies in each container's own layer, by the container's id (M05: it goes with the container).
    pub changes: BTreeMap<String, Known<Changes>>,
}

/// A file's name and text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextFile {
    /// Its name in the stack's directory.
    pub name: String,
    /// Its text, byte for byte.
    pub text: String,
}

/// A record of the manager, with all that a PUT can bring back (M16, M17).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SavedRecord {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its endpoint.
    pub endpoint: i64,
    /// Its compose text.
    pub text: String,
    /// Its variables, in order.
    pub env: Vec<Variable>,
}

/// Something that was read, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known<T> {
    /// What it is.
    Known(T),
    /// Why it is not known.
    Unknown(String),
}

impl<T> Known<T> {
    /// What was read, or why it was not: the error becomes the reason.
    pub fn from_result(result: anyhow::Result<T>) -> Self {
        match result {
            Ok(known) => Self::Known(known),
            Err(error) => Self::Unknown(format!("{error:#}")),
        }
    }

    /// What is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(known) => Some(known),
            Self::Unknown(_) => None,
        }
    }

    /// Why it is not known.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(reason) => Some(reason),
        }
    }
}

impl Snapshot {
    /// What is unknown in it: the thing and the reason.
    pub fn unknowns(&self) -> Vec<(&str, &str)> {
        let parts = [
            ("the record", self.record.unknown()),
            ("the containers", self.containers.unknown()),
            ("the networks", self.networks.unknown()),
            ("the volumes", self.volumes.unknown()),
        ];
        let mut unknowns: Vec<_> = parts
            .into_iter()
            .filter_map(|(part, reason)| Some((part, reason?)))
            .collect();
        let changes = self.changes.values().filter_map(Known::unknown);
        if let Some(reason) = changes.into_iter().next() {
            unknowns.push(("the files in the containers' own layers", reason));
        }
        unknowns
    }

    /// The label of the tool's compose, `com.<tool>.compose.<name>`.
    pub fn label(&self, name: &str) -> String {
        format!("com.{}.compose.{name}", self.tool)
    }
}

impl fmt::Debug for Snapshot {
    // Without texts, variables and environments: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("version", &self.version)
            .field("taken", &self.taken)
            .field("command", &self.command)
            .field("stack", &self.stack)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SavedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedRecord")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TextFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextFile({}, {} bytes)", self.name, self.text.len())
    }
}
