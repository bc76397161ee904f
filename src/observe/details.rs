//! Reads what the engine knows of the containers and of everything around them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use chrono::Utc;
use serde_json::Value;

use super::{Details, Host};
use crate::{engine::EngineReader, model::Container, run::read_changes};

/// Reads the [`Details`]. Returns also why a part of them could not be read. Of a whole host, what was read before is not
/// read again, and the changed files are not read: they take the engine long, and matter for losses only.
pub(super) fn details(
    engine: &EngineReader,
    host: Option<&Host>,
    all: &[Container],
    mut references: BTreeSet<String>,
) -> (Details, Vec<anyhow::Error>) {
    let mut failures = Vec::new();
    let ids = all.iter().map(|container| &container.id);
    let at = Utc::now();
    let containers = known(engine.inspect_containers(ids), &mut failures);
    let inspected = containers.as_deref().unwrap_or_default();
    let image_of = |one: &Value| one["Image"].as_str().map(str::to_owned);
    references.extend(inspected.iter().filter_map(image_of));
    let (networks, volumes) = match host {
        Some(host) => (host.networks.clone(), host.volumes.clone()),
        None => (
            known(engine.all_networks(), &mut failures),
            known(engine.all_volumes(), &mut failures),
        ),
    };
    let changes = if host.is_some() {
        BTreeMap::new()
    } else {
        let volumes = volumes.as_deref().map_or(&[][..], Vec::as_slice);
        read_changes(engine, inspected, volumes)
    };
    let images = images(engine, host, references, &mut failures);
    let details = Details {
        containers,
        at,
        changes,
        images,
        networks,
        volumes,
        ..Details::default()
    };
    (details, failures)
}

/// One request per image: the response does not say which reference it belongs to. None after the first failure.
pub(super) fn images(
    engine: &EngineReader,
    host: Option<&Host>,
    references: BTreeSet<String>,
    failures: &mut Vec<anyhow::Error>,
) -> BTreeMap<String, Option<Value>> {
    let mut images = BTreeMap::new();
    for reference in references {
        let inspect = || {
            let found = engine.inspect_images([&reference])?;
            Ok(found.into_iter().next())
        };
        let image = match host {
            Some(host) => host.image(&reference, inspect),
            None => inspect(),
        };
        let Some(image) = known(image, failures) else {
            break;
        };
        images.insert(reference, image);
    }
    images
}

fn known<T>(read: Result<T>, failures: &mut Vec<anyhow::Error>) -> Option<T> {
    read.map_err(|error| failures.push(error)).ok()
}
