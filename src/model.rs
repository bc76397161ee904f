//! Facts about the world, as the adapters report them and the plan reads them.
//!
//! Invariant: pure data; nothing here reads, writes or calls.
#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};

/// A container of a project, as the engine lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Container {
    /// The full id: 64 hexadecimal digits.
    pub id: String,
    /// Its names, without the leading slash the Engine API writes.
    pub names: Vec<String>,
    /// The image as it was named when the container was created.
    pub image: String,
    /// `running`, `exited`, `created`, `paused`, `restarting`, `removing`, `dead`.
    pub state: String,
    /// The state in the engine's words: `Up 2 hours`, `Exited (0) 3 days ago`.
    pub status: String,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// Ports published on this host; ports that are only exposed are left out.
    pub ports: Vec<PublishedPort>,
    /// Everything mounted into it.
    pub mounts: Vec<Mount>,
}

impl Container {
    /// Its first name, or its id where it has none.
    pub fn name(&self) -> &str {
        self.names.first().unwrap_or(&self.id)
    }
}

/// A container port that is published on a port of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedPort {
    /// The address it listens on: `0.0.0.0`, `::`, `127.0.0.1`.
    pub address: String,
    /// The port of this host.
    pub host_port: u16,
    /// The port inside the container.
    pub container_port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
}

/// One mount of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// What kind of mount it is.
    pub kind: MountKind,
    /// The volume's name; `None` for other kinds.
    pub name: Option<String>,
    /// Where it lies on the host.
    pub source: String,
    /// Where it appears in the container.
    pub target: String,
}

/// The kinds of mounts that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MountKind {
    /// A path of the host.
    Bind,
    /// A volume of the engine, named or anonymous.
    Volume,
    /// Anything else: `tmpfs`, `npipe`, …
    Other,
}

/// How many changes of one container are kept; the others are counted.
pub const MOST_CHANGES: usize = 10_000;

/// What differs between a container's own layer and its image, in the engine's order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The first [`MOST_CHANGES`].
    pub listed: Vec<Change>,
    /// How many there are in all.
    pub total: usize,
}

impl Changes {
    pub fn add(&mut self, change: Change) {
        self.total += 1;
        if self.listed.len() < MOST_CHANGES {
            self.listed.push(change);
        }
    }
}

/// A path that differs. A folder is modified, too, where something in it was added or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The absolute path in the container.
    pub path: String,
    /// In which way.
    pub kind: ChangeKind,
}

/// How a path differs from the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The image has it not.
    Added,
    /// The image has it with other content or other rights.
    Modified,
    /// Only the image has it.
    Deleted,
}

/// The name that Portainer gives a stack called `name`: lower case, without characters outside `[-_a-z0-9]` (M02).
pub fn portainer_name(name: &str) -> String {
    name.chars()
        .flat_map(char::to_lowercase)
        .filter(|c| matches!(c, '-' | '_' | 'a'..='z' | '0'..='9'))
        .collect()
}

/// The manager's entry of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Its number, as the manager writes it.
    pub id: String,
    /// Its normalised name (M02).
    pub name: String,
    /// The endpoint it runs on.
    pub endpoint_id: i64,
    /// Where its deployment stands.
    pub deployment: Deployment,
    /// What it carries that a new record will not.
    pub carries: Vec<Carried>,
    /// The names of its variables.
    pub variables: BTreeSet<String>,
}

/// Where the deployment of a record stands (N01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Deployment {
    /// It has been deployed, or the manager does not say otherwise.
    Active,
    /// It was stopped by a person.
    Inactive,
    /// It goes on.
    Deploying,
    /// It failed, with the manager's reason.
    Failed(Option<String>),
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Inactive => "inactive",
            Self::Deploying => "still deploying",
            Self::Failed(_) => "in error",
        })
    }
}

/// One entry of the `env` that is sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name, possibly empty or odd: nothing is checked (C42).
    pub name: String,
    /// Its value; secret.
    #[serde(default)]
    pub value: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({}=…)", self.name)
    }
}

/// What a record carries that a new one of the same name will not (B01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Carried {
    /// The link to a git repository, with its URL.
    Git(String),
    /// The automatic update at an interval.
    AutoUpdate,
    /// The webhook's address.
    Webhook,
    /// Access rights of users and teams.
    Access,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m02_portainer_keeps_lower_case_letters_digits_hyphens_and_underscores() {
        assert_eq!(portainer_name("Rec.Two_x-1"), "rectwo_x-1");
        assert_eq!(portainer_name("web"), "web");
        assert_eq!(portainer_name("ÄÖ"), "");
        // The Kelvin sign lower-cases to an ASCII k in Go and in Rust.
        assert_eq!(portainer_name("\u{212a}"), "k");
    }
}
