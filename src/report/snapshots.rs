//! What `restore --list` reports.

use schemars::JsonSchema;
use serde::Serialize;

/// What `stacklift restore --list --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift restore --list --output json`")]
pub struct SnapshotsReport {
    /// The version of this format: 1.
    pub version: u32,
    pub stack: String,
    /// Newest first.
    pub snapshots: Vec<SnapshotEntry>,
}

/// A snapshot.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SnapshotEntry {
    /// The time when it was taken, to the millisecond, UTC.
    pub id: String,
    /// The command that took it; null if it cannot be read.
    pub command: Option<String>,
    /// The number of containers; null if it is unknown.
    pub containers: Option<usize>,
    /// The ID of the Portainer stack; null if there was none, or if that is unknown.
    pub portainer_stack: Option<String>,
    /// Whether it is known if there was a Portainer stack.
    pub portainer_known: bool,
    pub state: SnapshotState,
    /// The size of its file in bytes; null if it is unknown.
    pub size: Option<u64>,
}

/// What a snapshot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotState {
    /// The complete stack: `restore` uses this one by default.
    Default,
    /// The complete stack.
    Complete,
    /// What a failed run left.
    Incomplete,
    /// That is unknown.
    Unknown,
    /// It cannot be read.
    Unreadable,
}
