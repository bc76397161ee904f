//! Gives saved containers a namespace that exists.
//!
//! A container shares a namespace by the ID of another one. Tools that update images replace that one under a new ID. The
//! Compose file still names it.

use anyhow::Result;
use serde_json::Value;

use crate::{
    engine::Engine,
    model::portainer_name,
    plan::{Sent, shared_namespaces},
    snapshot::{Inspected, Snapshot},
};

/// In `snapshot`, replaces the IDs of containers that no longer exist, and whose namespaces saved ones share, by those of the
/// containers that `network_mode`, `pid` and `ipc` name.
pub(super) fn repair(snapshot: &mut Snapshot, engine: &Engine) -> Result<()> {
    let saved: Vec<Value> = snapshot.containers.known().cloned().unwrap_or_default();
    let is_gone = |id: &str| -> Result<bool> {
        let is_saved = saved.iter().any(|one| Inspected(one).id() == id);
        Ok(!is_saved && engine.inspect_containers([id])?.is_empty())
    };
    let mut changes = Vec::new();
    for (index, container) in saved.iter().map(Inspected).enumerate() {
        for (field, id) in container.shared_namespaces() {
            if is_gone(id)?
                && let Some(mode) = named(snapshot, container, field)
                && let Some(other) = find(snapshot, engine, &saved, &mode)?
            {
                changes.push((index, field, format!("container:{other}")));
            }
        }
    }
    if let Some(containers) = snapshot.containers.known_mut() {
        for (index, field, mode) in changes {
            containers[index]["HostConfig"][field] = mode.into();
        }
    }
    Ok(())
}

/// What the text of the Portainer stack says about a namespace of a container's service, or else the Compose file.
fn named(snapshot: &Snapshot, container: Inspected, field: &str) -> Option<String> {
    let service = container.compose_label(&snapshot.tool, "service")?;
    let record = snapshot.record.known().and_then(Option::as_ref);
    let of_record = record.map(|record| Sent::new(&record.text, &record.env));
    let of_file = Sent::new(&snapshot.compose.text, &[]);
    let project = portainer_name(&snapshot.stack);
    let mut texts = of_record.into_iter().chain([of_file]);
    texts.find_map(|sent| shared_namespaces(sent, &project, service).remove(field))
}

/// The ID of the container that `service:…` or `container:…` means.
fn find(
    snapshot: &Snapshot,
    engine: &Engine,
    saved: &[Value],
    mode: &str,
) -> Result<Option<String>> {
    if let Some(name) = mode.strip_prefix("container:") {
        let found = engine.container_by_name(name)?;
        return Ok(found.map(|one| Inspected(&one).id().to_owned()));
    }
    let service = mode.strip_prefix("service:");
    let mut all = saved.iter().map(Inspected);
    let is_of_service = |one: &Inspected| one.compose_label(&snapshot.tool, "service") == service;
    let found = all.find(is_of_service).filter(|_| service.is_some());
    Ok(found.map(|one| one.id().to_owned()))
}
