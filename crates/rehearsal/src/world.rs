//! The model: what a manager knows and what an engine runs, in memory.
//!
//! Invariant: pure. The clock comes in through [`World::advance`]; a path of the host exists where
//! [`World::host`] says so.
#![deny(clippy::disallowed_methods)]

mod body;
mod container;
mod containers;
mod converge;
mod create;
mod deployment;
mod entities;
mod files;
mod images;
mod mounts;
mod networks;
mod ports;
mod records;
mod refusal;
mod resolve;
mod service;
mod settings;
mod summary;
#[cfg(test)]
mod tests;
mod values;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub(super) use self::images::tagged;
pub use self::{
    container::{Attachment, Change, Container, Live, Mount, MountKind, Port},
    containers::Effect,
    deployment::Hand,
    entities::{
        ApiKey, Endpoint, Engine, HostPath, Image, Network, Problem, Role, SubnetBy, Volume,
    },
    records::{DeploymentNote, Record, ResourceControl, Status, Update, Variable},
    refusal::Refusal,
    summary::Summary,
};

/// Which manager is played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// 2.23: a compose program, and answers when it is done (M01–M20).
    #[default]
    Sync,
    /// From 2.41 on: a compose library, and answers at once (N01–N12).
    Async,
}

/// What well-known images declare as `VOLUME`.
const IMAGE_VOLUMES: [(&str, &str); 12] = [
    ("influxdb", "/var/lib/influxdb"),
    ("mariadb", "/var/lib/mysql"),
    ("mongo", "/data/configdb"),
    ("mongo", "/data/db"),
    ("mysql", "/var/lib/mysql"),
    ("nextcloud", "/var/www/html"),
    ("postgres", "/var/lib/postgresql/data"),
    ("rabbitmq", "/var/lib/rabbitmq"),
    ("redis", "/data"),
    ("registry", "/var/lib/registry"),
    ("valkey", "/data"),
    ("wordpress", "/var/www/html"),
];

/// Everything there is. Comparable, so that a test can say that nothing changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct World {
    /// Which manager is played.
    pub era: Era,
    /// `<tool>` in `com.<tool>.compose.project`.
    pub tool: String,
    /// The manager's endpoints, by id.
    pub endpoints: BTreeMap<u64, Endpoint>,
    /// The manager's keys.
    #[serde(skip)]
    pub keys: Vec<ApiKey>,
    /// The manager's records, by id.
    pub records: BTreeMap<u64, Record>,
    /// The engine of this host.
    pub engine: Engine,
    /// The containers of all engines, by id.
    pub containers: BTreeMap<String, Container>,
    /// The volumes of all engines.
    pub volumes: Vec<Volume>,
    /// The networks of all engines.
    pub networks: Vec<Network>,
    /// The paths of the host that are known to exist; a container can be given no other.
    pub host: BTreeMap<String, HostPath>,
    /// The images that lie on the host, by id.
    pub images: BTreeMap<String, Image>,
    /// Images that no registry gives out.
    pub unpullable: BTreeSet<String>,
    /// The `VOLUME`s of images, by the image's name without tag and registry.
    pub image_volumes: BTreeMap<String, Vec<String>>,
    /// Exit codes of services that end at once, by `project/service`.
    pub exits: BTreeMap<String, i64>,
    /// The compose program that people start stacks with by hand.
    pub hand: Hand,
    /// How many `GET /api/stacks/<id>` see a deployment go on, in [`Era::Async`].
    pub deploy_polls: u32,
    /// After how many milliseconds a deployment ends that nobody asks about; `None` is never.
    pub deploy_millis: Option<i64>,
    /// Milliseconds since 1970.
    pub now: i64,
    /// The records with a deployment that goes on.
    deploying: BTreeSet<u64>,
    next: Counters,
}

/// What the next of each kind is called.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Counters {
    record: u64,
    control: u64,
    object: u64,
    host_port: u16,
}

impl World {
    /// A manager with one endpoint `local` (id 1), which is this host's engine, and nothing in it.
    ///
    /// `secret` is the key of the manager's administrator.
    pub fn new(secret: &str) -> Self {
        let engine = Engine::default();
        let local = Endpoint {
            name: "local".to_owned(),
            engine: engine.id.clone(),
        };
        let mut image_volumes = BTreeMap::<String, Vec<String>>::new();
        for (image, target) in IMAGE_VOLUMES {
            let targets = image_volumes.entry(image.to_owned()).or_default();
            targets.push(target.to_owned());
        }
        let mut world = Self {
            era: Era::Sync,
            tool: "docker".to_owned(),
            endpoints: BTreeMap::from([(1, local)]),
            keys: vec![ApiKey::new(secret, "admin", Role::Administrator)],
            records: BTreeMap::new(),
            engine,
            containers: BTreeMap::new(),
            volumes: Vec::new(),
            networks: Vec::new(),
            host: BTreeMap::new(),
            images: BTreeMap::new(),
            unpullable: BTreeSet::new(),
            image_volumes,
            exits: BTreeMap::new(),
            hand: Hand::V2_26,
            deploy_polls: 2,
            deploy_millis: Some(3_000),
            now: 1_795_255_427_000,
            deploying: BTreeSet::new(),
            next: Counters {
                record: 1,
                control: 1,
                object: 1,
                host_port: 32_768,
            },
        };
        let engine = world.engine.id.clone();
        world.add_predefined_networks(&engine);
        world
    }

    /// The key of the first administrator.
    pub(super) fn admin_key(&self) -> &str {
        let admin = self.keys.iter().find(|key| key.role == Role::Administrator);
        admin.map_or("", |key| key.secret())
    }

    /// Moves the whole world in time so that this moment is `now`: what ran for two hours still has.
    pub(super) fn rebase(&mut self, now: i64) {
        let by = (now - self.now) / 1000;
        self.now = now;
        let shift = |time: &mut i64| {
            if *time != 0 {
                *time += by;
            }
        };
        for container in self.containers.values_mut() {
            shift(&mut container.created);
            shift(&mut container.started);
            shift(&mut container.finished);
        }
        for record in self.records.values_mut() {
            shift(&mut record.created);
            shift(&mut record.updated);
            record
                .deployments
                .iter_mut()
                .for_each(|note| shift(&mut note.time));
            record.shift_due(by * 1000);
        }
        self.images
            .values_mut()
            .for_each(|image| shift(&mut image.created));
        self.volumes
            .iter_mut()
            .for_each(|volume| shift(&mut volume.created));
        self.networks
            .iter_mut()
            .for_each(|network| shift(&mut network.created));
    }

    /// Sets the clock, which never goes back, and lets happen what is due.
    pub fn advance(&mut self, now: i64) {
        self.now = self.now.max(now);
        self.settle_due();
    }

    /// Seconds since 1970.
    pub(super) fn seconds(&self) -> i64 {
        self.now / 1000
    }

    /// `com.<tool>.compose.<name>`
    pub fn label(&self, name: &str) -> String {
        format!("com.{}.compose.{name}", self.tool)
    }

    /// Adds an endpoint with an engine of its own; gives the engine's id.
    pub fn add_endpoint(&mut self, id: u64, name: &str) -> String {
        let engine = format!("REMOTE-ENGINE-{id}");
        self.endpoints.insert(
            id,
            Endpoint {
                name: name.to_owned(),
                engine: engine.clone(),
            },
        );
        self.add_predefined_networks(&engine);
        engine
    }

    /// Adds a key that is no administrator's: it sees only what is public or its own.
    pub fn add_user(&mut self, secret: &str, name: &str) {
        self.keys.push(ApiKey::new(secret, name, Role::Standard));
    }

    /// The containers of a project on this host's engine, in the order of their names.
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

    /// A container of this host's engine by its name.
    pub fn container(&self, name: &str) -> Option<&Container> {
        let mut here = self.containers.values();
        here.find(|container| container.engine == self.engine.id && container.name == name)
    }

    /// A volume of this host's engine by its name.
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

    pub(super) fn is_mounted(&self, volume: &Volume) -> bool {
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

    /// Removes a container; with `volumes`, the volumes made for it go with it, else they dangle.
    pub fn remove_container(&mut self, id: &str, volumes: Volumes) -> Option<Container> {
        let container = self.containers.remove(id)?;
        if volumes == Volumes::Removed {
            for mount in container.mounts.iter().filter(|mount| mount.own) {
                // One that another container mounts, too, stays.
                let name = mount.name.as_deref().unwrap_or_default();
                let _ = self.remove_volume(&container.engine, name);
            }
        }
        Some(container)
    }

    /// Adds a container that belongs to no project, and starts it.
    ///
    /// # Panics
    /// Where the name is taken.
    pub fn add_container(&mut self, name: &str, image: &str) -> String {
        self.add_image(image);
        let engine = self.engine.id.clone();
        let id = self
            .create_container(&engine, Some(name), &serde_json::json!({ "Image": image }))
            .expect("a container can be made");
        self.start_container(&id).expect("a container starts");
        id
    }

    /// The next object's id: 64 hexadecimal digits, the same in every run.
    pub(super) fn new_id(&mut self) -> String {
        let number = self.next.object;
        self.next.object += 1;
        entities::fingerprint(&format!("object {number}"))
    }
}

/// What becomes of a container's anonymous volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volumes {
    /// They stay without a container.
    Kept,
    /// They go, too.
    Removed,
}
