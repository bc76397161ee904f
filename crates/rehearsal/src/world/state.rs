//! The state of the world, and how to find things in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    container::Container,
    entities::{Endpoint, fingerprint},
    errors::Refused,
    record::Record,
};

/// The generation of Portainer to simulate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Era {
    /// 2.23: runs the Compose program and responds when the deployment is finished (M01–M20).
    #[default]
    Sync,
    /// 2.24 to 2.40: uses the Compose library and responds when the deployment is finished (N04, N18, N26).
    Library,
    /// 2.41 and later: uses the Compose library and responds immediately (N01–N14).
    Async,
}

/// The complete state. Tests compare two of them to prove that nothing changed. Without `Debug`, which could show values of
/// `.env`.
#[derive(Clone, Default, PartialEq)]
pub struct World {
    /// The generation of Portainer to simulate.
    pub era: Era,
    /// `<tool>` in the label `com.<tool>.compose.project`.
    pub tool: String,
    /// Portainer's environments, by ID.
    pub endpoints: BTreeMap<u64, Endpoint>,
    /// The API key of Portainer's administrator.
    pub secret: String,
    /// Portainer's stacks, by ID.
    pub records: BTreeMap<u64, Record>,
    /// The ID of the engine of this host.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// The containers of this host's engine, by ID.
    pub containers: BTreeMap<String, Container>,
    /// The volumes of this host's engine, as it inspects them. `Content` represents the data: the container that wrote first, so
    /// that a test sees whether data survived.
    pub volumes: Vec<Value>,
    /// The networks of this host's engine, as it inspects them, without their containers.
    pub networks: Vec<Value>,
    /// The paths that exist on the host, and the text of each that is a file. A bind mount needs one of them.
    pub host: BTreeMap<String, Option<String>>,
    /// The images on the host, by ID, as the engine inspects them.
    pub images: BTreeMap<String, Value>,
    /// Images that no registry serves.
    pub unpullable: BTreeSet<String>,
    /// The `VOLUME`s of images, by the image's name without tag and registry.
    pub image_volumes: BTreeMap<String, Vec<String>>,
    /// Exit codes of services that exit immediately, by `project/service`.
    pub exits: BTreeMap<String, i64>,
    /// After how many milliseconds services become healthy, by `project/service`; `None` is never. Without an entry: as soon as
    /// they run.
    pub health: BTreeMap<String, Option<i64>>,
    /// How many `GET /api/stacks/<id>` see a deployment in progress, in [`Era::Async`].
    pub deploy_polls: u32,
    /// The home directory of who starts stacks by hand.
    pub home: String,
    /// Milliseconds since 1970.
    pub now: i64,
    /// Whether the clock stands still: then nothing takes time, however slow the machine is.
    pub stands_still: bool,
    /// How far its clock is ahead, in milliseconds.
    pub ahead: i64,
    /// The command lines of the Compose processes in Portainer's container (M21).
    pub processes: Vec<String>,
    /// What happened to containers, as the engine reports it, the oldest first.
    pub events: Vec<Value>,
    /// The next numbers of stacks, of ports, and of other objects.
    pub(super) next_record: u64,
    pub(super) next_port: u16,
    pub(super) next_object: u64,
}

impl World {
    /// Seconds since 1970.
    pub(super) fn seconds(&self) -> i64 {
        self.now / 1000
    }

    /// `com.<tool>.compose.<name>`
    pub(super) fn label(&self, name: &str) -> String {
        format!("com.{}.compose.{name}", self.tool)
    }

    /// The value of Compose's label of that name.
    pub(super) fn label_of<'c>(&self, container: &'c Container, name: &str) -> Option<&'c str> {
        container.labels.get(&self.label(name)).map(String::as_str)
    }

    /// The IDs of the containers of a project that fit.
    pub(super) fn ids(&self, project: &str, fits: impl Fn(&Container) -> bool) -> Vec<String> {
        let all = self.project(project).into_iter();
        all.filter(|one| fits(one))
            .map(|one| one.id.clone())
            .collect()
    }

    /// The containers of a project on this host's engine, sorted by name.
    pub fn project(&self, project: &str) -> Vec<&Container> {
        let is_of = |one: &&Container| self.label_of(one, "project") == Some(project);
        let mut found = self.containers.values().filter(is_of).collect::<Vec<_>>();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// A container by name.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers
            .values()
            .find(|container| container.name == name)
    }

    /// A container by ID, name or the beginning of its ID.
    pub(crate) fn find(&self, name: &str) -> Result<&Container, Refused> {
        let plain = name.trim_start_matches('/');
        let exact = |one: &&Container| one.id == plain || one.name == plain;
        let begins = |one: &&Container| !plain.is_empty() && one.id.starts_with(plain);
        let all = || self.containers.values();
        let found = all().find(exact).or_else(|| all().find(begins));
        found.ok_or_else(|| Refused::new(404, format!("No such container: {name}")))
    }

    /// The same, to change it.
    pub(crate) fn find_mut(&mut self, name: &str) -> Result<&mut Container, Refused> {
        let id = self.find(name)?.id.clone();
        let found = self.containers.get_mut(&id);
        found.ok_or_else(|| Refused::new(404, format!("No such container: {name}")))
    }

    /// A volume by name.
    pub fn volume(&self, name: &str) -> Option<&Value> {
        self.volumes.iter().find(|volume| volume["Name"] == name)
    }

    /// The containers that mount a volume.
    pub(super) fn users(&self, volume: &str) -> impl Iterator<Item = &Container> {
        let mounts_it = move |mount: &Value| mount["Name"] == volume;
        let all = self.containers.values();
        all.filter(move |container| container.mounts.iter().any(mounts_it))
    }

    /// The next object's ID: 64 hexadecimal digits, the same in every run.
    pub(super) fn new_id(&mut self) -> String {
        self.next_object += 1;
        fingerprint(&format!("object {}", self.next_object))
    }
}
