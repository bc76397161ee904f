//! Reads what the engine knows of the containers and of everything around them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use chrono::Utc;
use serde_json::Value;

use crate::{engine::EngineReader, model::Container, plan::Host, run::read_changes};

/// Reads the containers and what is around them. Returns also why a part of them could not be read.
pub(super) fn details(engine: &EngineReader, all: &[Container]) -> (Host, Vec<anyhow::Error>) {
    let mut failures = Vec::new();
    let ids = all.iter().map(|container| &container.id);
    let at = Utc::now();
    let containers = known(engine.inspect_containers(ids), &mut failures);
    let inspected = containers.as_deref().unwrap_or_default();
    let image_of = |one: &Value| one["Image"].as_str().map(str::to_owned);
    let references = inspected.iter().filter_map(image_of).collect();
    let networks = known(engine.all_networks(), &mut failures);
    let volumes = known(engine.all_volumes(), &mut failures);
    let all_volumes = volumes.as_deref().map_or(&[][..], Vec::as_slice);
    let changes = read_changes(engine, inspected, all_volumes);
    let images = images(engine, references, &mut failures);
    let details = Host {
        containers,
        at,
        changes,
        images,
        networks,
        volumes,
        ..Host::default()
    };
    (details, failures)
}

/// One request per image: the response does not say which reference it belongs to. None after the first failure.
pub(super) fn images(
    engine: &EngineReader,
    references: BTreeSet<String>,
    failures: &mut Vec<anyhow::Error>,
) -> BTreeMap<String, Option<Value>> {
    let mut images = BTreeMap::new();
    for reference in references {
        let Some(found) = known(engine.inspect_images([&reference]), failures) else {
            break;
        };
        images.insert(reference, found.into_iter().next());
    }
    images
}

fn known<T>(read: Result<T>, failures: &mut Vec<anyhow::Error>) -> Option<T> {
    read.map_err(|error| failures.push(error)).ok()
}
