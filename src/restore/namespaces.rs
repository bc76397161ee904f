//! Gives saved containers a namespace that exists.
//!
//! A container shares a namespace by the ID of another one. Tools that update images replace that one under a new ID. The
//! Compose file still names it.

use anyhow::Result;

use super::named::shared_namespaces;
use crate::{engine::EngineReader, model::Container, plan::Sent};

/// The containers with the IDs of those that no longer exist, and whose namespaces they share, replaced by those of the
/// containers that `network_mode`, `pid` and `ipc` name in the first of the `texts` that names one.
pub(super) fn repaired(
    engine: &EngineReader,
    saved: &[Container],
    tool: &str,
    texts: &[Sent],
) -> Result<Vec<Container>> {
    let is_gone = |id: &str| -> Result<bool> {
        let is_saved = saved.iter().any(|container| container.id() == id);
        Ok(!is_saved && engine.inspect_containers([id])?.is_empty())
    };
    let mut repaired = saved.to_vec();
    for (container, repaired) in saved.iter().zip(&mut repaired) {
        let Some(service) = container.compose_label(tool, "service") else {
            continue;
        };
        for (field, id) in container.shared_namespaces() {
            let named = |sent: &Sent| shared_namespaces(*sent, service).remove(field);
            if is_gone(id)?
                && let Some(mode) = texts.iter().find_map(named)
                && let Some(other) = find(engine, saved, tool, &mode)?
            {
                repaired.0["HostConfig"][field] = format!("container:{other}").into();
            }
        }
    }
    Ok(repaired)
}

/// The ID of the container that `service:…` or `container:…` means.
fn find(
    engine: &EngineReader,
    saved: &[Container],
    tool: &str,
    mode: &str,
) -> Result<Option<String>> {
    if let Some(name) = mode.strip_prefix("container:") {
        let found = engine.container_by_name(name)?;
        return Ok(found.map(|one| one.id().to_owned()));
    }
    let service = mode.strip_prefix("service:");
    let mut all = saved.iter();
    let is_of_service = |one: &&Container| one.compose_label(tool, "service") == service;
    let found = all.find(is_of_service).filter(|_| service.is_some());
    Ok(found.map(|container| container.id().to_owned()))
}
