//! What is the same for all stacks of a host, read once for the plans of many stacks.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Mutex,
};

use anyhow::Result;
use serde_json::Value;

use super::{
    environment::{Evidence, environment},
    identity, with_hint,
};
use crate::{
    engine::EngineReader,
    failure::Failure,
    model::{Container, ListedObjects, Record, Rights},
    parallel::{lock, side_by_side},
    plan::Environment,
    portainer::{HINT_FOR_UNCLEAR, Listed, PortainerReader},
};

/// The whole host, as it was when it was read.
pub struct Host {
    /// The Portainer stacks of all environments; `None` if they could not be listed.
    pub records: Option<Vec<Listed>>,
    /// Why its stacks could not be listed; `None` if they were, or if it was not asked.
    pub unlisted: Option<anyhow::Error>,
    /// All containers; `None` if they could not be listed.
    pub containers: Option<Vec<Container>>,
    pub environment: Environment,
    pub portainer_version: Option<String>,
    /// What the user of the API key sees and may do on the environment.
    pub rights: Rights,
    pub(super) networks: Option<ListedObjects>,
    pub(super) volumes: Option<ListedObjects>,
    images: Mutex<BTreeMap<String, Option<Value>>>,
    files: Mutex<HashMap<String, Identity>>,
    environments: Mutex<BTreeMap<i64, Option<bool>>>,
    /// What could not be read.
    pub warnings: Vec<String>,
}

/// A file of this host: `None` if it may not be looked at, otherwise its device and inode if it exists.
pub(super) type Identity = Option<Option<(u64, u64)>>;

impl Host {
    /// Reads from Portainer and of one of its environments, if there is a client for it, and from the engine, side by side.
    pub fn read(portainer: Option<(&PortainerReader, i64)>, engine: &EngineReader) -> Self {
        let mut warnings = Vec::new();
        let of_engine = || {
            let containers = engine.list_all();
            (containers, engine.all_networks(), engine.all_volumes())
        };
        let of_portainer = |(portainer, endpoint): (&PortainerReader, i64)| {
            let records = portainer.all_records(endpoint);
            // A Portainer that does not respond is asked only once.
            let others = records
                .is_ok()
                .then(|| (portainer.version(), portainer.rights(endpoint)));
            (records, others)
        };
        let ((containers, networks, volumes), of_portainer) =
            side_by_side(of_engine, || portainer.map(of_portainer));
        let doubt = portainer.and_then(|(portainer, _)| portainer.doubt());
        warnings.extend(doubt.map(str::to_owned));
        let (records, others) = of_portainer.unzip();
        let others = others.flatten();
        let is_read = others.is_some();
        let unread = || "Portainer could not be read".to_owned();
        let (version, rights) = others.unwrap_or_else(|| (Ok(None), Rights::Unknown(unread())));
        let portainer_version = known(version, &mut warnings).flatten();
        let containers = known(containers, &mut warnings);
        let environment = match portainer.filter(|_| is_read) {
            Some((portainer, endpoint)) => {
                let others = containers.as_deref().unwrap_or_default();
                let evidence = Evidence { own: &[], others };
                environment(portainer, Some(engine), endpoint, evidence)
            }
            None => Environment::Unknown(unread()),
        };
        // Without containers, the other lists fail for the same reason.
        let mut known = |all| containers.as_ref().and_then(|_| known(all, &mut warnings));
        let (networks, volumes) = (known(networks), known(volumes));
        let (records, unlisted) = match records.transpose() {
            Ok(records) => (records, None),
            Err(error) => (None, Some(error)),
        };
        Self {
            records,
            unlisted,
            environment,
            portainer_version,
            rights,
            networks,
            volumes,
            containers,
            images: Mutex::default(),
            files: Mutex::default(),
            environments: Mutex::default(),
            warnings,
        }
    }

    /// The containers of a project; `None` if they are unknown.
    pub fn project(&self, project: &str, tool: &str) -> Option<Vec<Container>> {
        let is_of = |one: &&Container| one.compose_label(tool, "project") == Some(project);
        let all = self.containers.as_ref()?.iter();
        Some(all.filter(is_of).cloned().collect())
    }

    /// The Portainer stacks with one of these names, in Portainer's order (C50, C59). Fails if an entry may be one of them
    /// but cannot be parsed (B07).
    pub(super) fn records(&self, names: &[&str]) -> Result<Vec<Record>> {
        let Some(records) = &self.records else {
            return Err(Failure::new("Portainer's stacks could not be listed").into());
        };
        let wanted = records
            .iter()
            .filter(|one| names.contains(&one.name.as_str()));
        let records = wanted.map(|one| match &one.record {
            Ok(record) => Ok(record.clone()),
            Err(unclear) => Err(Failure::new(unclear).hint(HINT_FOR_UNCLEAR).into()),
        });
        records.collect()
    }

    /// The inspect object of an image, from `inspect` if it was not read before.
    pub(super) fn image(
        &self,
        reference: &str,
        inspect: impl FnOnce() -> Result<Option<Value>>,
    ) -> Result<Option<Value>> {
        if let Some(image) = lock(&self.images).get(reference) {
            return Ok(image.clone());
        }
        let image = inspect()?;
        lock(&self.images).insert(reference.to_owned(), image.clone());
        Ok(image)
    }

    /// Whether the engine of an environment is that of this host, from `ask` if it was not asked before.
    pub(super) fn is_on_this_host(
        &self,
        endpoint: i64,
        ask: impl FnOnce() -> Option<bool>,
    ) -> Option<bool> {
        *lock(&self.environments).entry(endpoint).or_insert_with(ask)
    }

    /// Which file a path is.
    pub(super) fn identity(&self, path: &str) -> Identity {
        let mut files = lock(&self.files);
        if let Some(&identity) = files.get(path) {
            return identity;
        }
        let identity = identity(path);
        files.insert(path.to_owned(), identity);
        identity
    }
}

pub(super) fn known<T>(read: Result<T>, warnings: &mut Vec<String>) -> Option<T> {
    read.map_err(|error| warnings.push(with_hint(&error))).ok()
}
