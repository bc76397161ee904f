//! Reads what the engine knows of the containers and of everything around them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use chrono::Utc;
use serde_json::Value;

use crate::{
    engine::EngineReader,
    model::{Changes, Container},
    parallel::in_parallel,
    plan::Host,
    run::{read_changes, read_layer},
    snapshot::{Known, MOST_BYTES},
};

/// Reads the containers and what is around them. Returns also why a part of them could not be read.
pub(super) fn details(
    (engine, tool): (&EngineReader, &str),
    all: &[Container],
) -> (Host, Vec<anyhow::Error>) {
    let mut failures = Vec::new();
    let ids = all.iter().map(Container::id);
    let at = Utc::now();
    let containers = known(engine.inspect_containers(ids), &mut failures);
    let inspected = containers.as_deref().unwrap_or_default();
    let image_ids = inspected.iter().flat_map(|container| {
        let created_with = container.compose_label(tool, "image");
        created_with.into_iter().chain([container.image_id()])
    });
    let references = image_ids.filter(|id| !id.is_empty()).map(str::to_owned);
    let references = references.collect();
    let networks = known(engine.all_networks(), &mut failures);
    let volumes = known(engine.all_volumes(), &mut failures);
    let all_volumes = volumes.as_deref().map_or(&[][..], Vec::as_slice);
    let mut changes = read_changes(engine, inspected, all_volumes);
    let unsaved = in_parallel(inspected, |container| {
        let changes = changes.get(container.id())?.known()?;
        let unsaved = unsaved(engine, container, changes);
        Some((container.id().to_owned(), unsaved))
    });
    for (id, unsaved) in unsaved.into_iter().flatten() {
        if let Some(Known::Known(changes)) = changes.get_mut(&id) {
            changes.unsaved = unsaved;
        }
    }
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

/// The files of a container that a snapshot would not keep (B18). Only a layer that is too large is read to find them.
fn unsaved(engine: &EngineReader, container: &Container, changes: &Changes) -> Vec<String> {
    let is_small = || {
        let size = engine.layer_size(container.id());
        size.is_ok_and(|size| size <= MOST_BYTES)
    };
    if changes.listed.is_empty() || is_small() {
        return Vec::new();
    }
    let mut unsaved = read_layer(engine, container, changes, false).unsaved;
    unsaved.retain(|path| changes.has(path));
    unsaved
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
