//! The state of the world, and how to find things in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    container::Container,
    entities::{ApiKey, Endpoint, Engine, HostPath, Image, Network, Role, Volume, fingerprint},
    errors::EngineError,
    events::Event,
    in_flight::InFlight,
    record::Record,
};

/// The generation of Portainer to simulate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// 2.23: runs the Compose program and responds when the deployment is finished (M01–M20).
    #[default]
    Sync,
    /// 2.41 and later: uses the Compose library and responds immediately (N01–N12).
    Async,
}

/// The version of the Compose program that starts stacks by hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum LocalCompose {
    /// 2.26.1
    #[default]
    V2_26,
    /// 5.6.1
    V5_6,
}

/// When a container with a health check becomes healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Health {
    /// So many milliseconds after its start.
    After(i64),
    /// Never: it is unhealthy.
    Never,
}

/// The complete state. Tests compare two of them to prove that nothing changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct World {
    /// The generation of Portainer to simulate.
    pub era: Era,
    /// `<tool>` in the label `com.<tool>.compose.project`.
    pub tool: String,
    /// Portainer's environments, by ID.
    pub endpoints: BTreeMap<u64, Endpoint>,
    /// Portainer's API keys.
    #[serde(skip)]
    pub keys: Vec<ApiKey>,
    /// Portainer's stacks, by ID.
    pub records: BTreeMap<u64, Record>,
    /// The engine of this host.
    pub engine: Engine,
    /// The containers of all engines, by ID.
    pub containers: BTreeMap<String, Container>,
    /// The volumes of all engines.
    pub volumes: Vec<Volume>,
    /// The networks of all engines.
    pub networks: Vec<Network>,
    /// The paths that exist on the host. A bind mount needs one of them.
    pub host: BTreeMap<String, HostPath>,
    /// The images on the host, by ID.
    pub images: BTreeMap<String, Image>,
    /// Images that no registry serves.
    pub unpullable: BTreeSet<String>,
    /// The `VOLUME`s of images, by the image's name without tag and registry.
    pub image_volumes: BTreeMap<String, Vec<String>>,
    /// Exit codes of services that exit immediately, by `project/service`.
    pub exits: BTreeMap<String, i64>,
    /// When services become healthy, by `project/service`. Without an entry: as soon as they run.
    pub health: BTreeMap<String, Health>,
    /// The directory of the engine's volumes. Nothing is written to it.
    pub volume_folder: String,
    /// The version of the Compose program that starts stacks by hand.
    pub local_compose: LocalCompose,
    /// Whether the label `version` of new containers is one that no Compose program has, such as `rehearsal-2.26.1`: a
    /// program then does not take the hashes of the world for its own.
    pub(super) labels_say_rehearsal: bool,
    /// How many `GET /api/stacks/<id>` see a deployment in progress, in [`Era::Async`].
    pub deploy_polls: u32,
    /// Milliseconds until a deployment finishes without being polled; `None` is never.
    pub deploy_millis: Option<i64>,
    /// Milliseconds since 1970.
    pub now: i64,
    /// The stacks with a deployment in progress.
    pub(super) deploying: BTreeSet<u64>,
    /// The requests that Portainer is working on, in the order of their arrival.
    pub(super) in_flight: Vec<InFlight>,
    /// What happened to containers, the oldest first.
    pub events: Vec<Event>,
    pub(super) next: Counters,
}

/// The next number of each sequence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Counters {
    pub record: u64,
    pub control: u64,
    pub ticket: u64,
    pub object: u64,
    pub host_port: u16,
}

impl World {
    /// The API key of the first administrator.
    pub(crate) fn admin_key(&self) -> &str {
        let admin = self.keys.iter().find(|key| key.role == Role::Administrator);
        admin.map_or("", |key| key.secret())
    }

    /// Seconds since 1970.
    pub(super) fn seconds(&self) -> i64 {
        self.now / 1000
    }

    /// `com.<tool>.compose.<name>`
    pub(super) fn label(&self, name: &str) -> String {
        format!("com.{}.compose.{name}", self.tool)
    }

    /// The containers of a project on this host's engine, sorted by name.
    pub fn project(&self, project: &str) -> Vec<&Container> {
        self.project_on(&self.engine.id, project)
    }

    pub(super) fn project_on(&self, engine: &str, project: &str) -> Vec<&Container> {
        let label = self.label("project");
        let mut found = self
            .containers
            .values()
            .filter(|container| container.engine == engine)
            .filter(|container| {
                container
                    .labels
                    .get(&label)
                    .is_some_and(|name| name == project)
            })
            .collect::<Vec<_>>();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// A container of this host's engine, by name.
    pub fn container(&self, name: &str) -> Option<&Container> {
        let mut here = self.containers.values();
        here.find(|container| container.engine == self.engine.id && container.name == name)
    }

    /// A container of an engine, by ID, unique ID prefix or name.
    pub(crate) fn find_on(&self, engine: &str, name: &str) -> Result<&Container, EngineError> {
        let here = || self.containers.values().filter(|one| one.engine == engine);
        let plain = name.trim_start_matches('/');
        let exact = here().find(|one| one.id == plain || one.name == plain);
        if let Some(container) = exact {
            return Ok(container);
        }
        let mut starting = here().filter(|one| !plain.is_empty() && one.id.starts_with(plain));
        match (starting.next(), starting.next()) {
            (Some(container), None) => Ok(container),
            (Some(_), Some(_)) => Err(EngineError::new(
                400,
                format!("Multiple IDs found with provided prefix: {name}"),
            )),
            (None, _) => Err(EngineError::no_container(name)),
        }
    }

    /// A volume of this host's engine, by name.
    pub fn volume(&self, name: &str) -> Option<&Volume> {
        let mut here = self.volumes.iter();
        here.find(|volume| volume.engine == self.engine.id && volume.name == name)
    }

    /// The volumes of this host's engine that no container mounts.
    pub fn dangling(&self) -> Vec<&Volume> {
        let here = self
            .volumes
            .iter()
            .filter(|volume| volume.engine == self.engine.id);
        here.filter(|volume| !self.is_mounted(volume)).collect()
    }

    pub(crate) fn is_mounted(&self, volume: &Volume) -> bool {
        let mut there = self
            .containers
            .values()
            .filter(|one| one.engine == volume.engine);
        there.any(|container| {
            container
                .mounts
                .iter()
                .any(|mount| mount.is_volume(&volume.name))
        })
    }

    /// The next object's ID: 64 hexadecimal digits, the same in every run.
    pub(super) fn new_id(&mut self) -> String {
        let number = self.next.object;
        self.next.object += 1;
        fingerprint(&format!("object {number}"))
    }
}
