//! Reads what the engine knows of the containers and of everything around them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;

use super::{Details, Host};
use crate::{
    engine,
    model::{Changes, Container},
    parallel::in_parallel,
    snapshot::Known,
};

/// Reads the [`Details`] and keeps the reasons of the reads that failed.
pub(super) struct Reader<'a> {
    engine: &'a engine::Reader,
    host: Option<&'a Host>,
    failures: Vec<anyhow::Error>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(engine: &'a engine::Reader, host: Option<&'a Host>) -> Self {
        Self {
            engine,
            host,
            failures: Vec::new(),
        }
    }

    pub(super) fn read(
        mut self,
        all: &[Container],
        mut images: BTreeSet<String>,
    ) -> (Details, Vec<anyhow::Error>) {
        let ids: Vec<String> = all.iter().map(|container| container.id.clone()).collect();
        let engine = self.engine;
        let containers = self.known(engine.inspect_containers(&ids));
        let inspected = containers.as_deref().unwrap_or_default();
        let image_of = |one: &Value| one["Image"].as_str().map(str::to_owned);
        images.extend(inspected.iter().filter_map(image_of));
        let changes = self.changes(inspected);
        let images = self.images(images);
        let (networks, volumes) = match self.host {
            Some(host) => (host.networks.clone(), host.volumes.clone()),
            None => (
                self.known(engine.network_names()),
                self.known(engine.volume_names()),
            ),
        };
        let details = Details {
            containers,
            changes,
            images,
            networks,
            volumes,
            ..Details::default()
        };
        (details, self.failures)
    }

    /// The files that each container has changed, which takes the engine long. They matter for losses only, which nobody
    /// asks for of a whole host.
    fn changes(&self, inspected: &[Value]) -> BTreeMap<String, Known<Changes>> {
        if self.host.is_some() {
            return BTreeMap::new();
        }
        let engine = self.engine;
        let changes = in_parallel(inspected, |container| {
            let id = container["Id"].as_str()?;
            Some((id.to_owned(), Known::from_result(engine.changes(id))))
        });
        changes.into_iter().flatten().collect()
    }

    /// One request per image: the response does not say which reference it belongs to.
    fn images(&mut self, references: BTreeSet<String>) -> BTreeMap<String, Option<Value>> {
        let mut images = BTreeMap::new();
        for reference in references {
            let asked = [reference];
            let inspect = || {
                let found = self.engine.inspect_images(&asked)?;
                Ok(found.into_iter().next())
            };
            let image = match self.host {
                Some(host) => host.image(&asked[0], inspect),
                None => inspect(),
            };
            match image {
                Ok(image) => {
                    let [reference] = asked;
                    images.insert(reference, image);
                }
                Err(error) => {
                    self.failures.push(error);
                    break;
                }
            }
        }
        images
    }

    fn known<T>(&mut self, read: Result<T>) -> Option<T> {
        read.map_err(|error| self.failures.push(error)).ok()
    }
}
