//! What happens to containers, as the engine reports it.

use std::collections::BTreeMap;

use serde::Serialize;

/// What happened to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It was created.
    Create,
    /// It started.
    Start,
    /// It ended.
    Die,
    /// It was removed.
    Destroy,
}

/// Something that happened to a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// The ID of the container.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}
