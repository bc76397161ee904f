//! Facts about the world, as the adapters report them and the plan reads them.
//!
//! Invariant: pure data; nothing here reads, writes or calls.
#![deny(clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde::Serialize;

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
