//! Gives saved containers a namespace that exists.
//!
//! A container shares a namespace by the ID of another one. Tools that update images replace that one under a new ID. The
//! Compose file still names it.

use anyhow::Result;
use serde_json::Value;

use super::named::shared_namespaces;
use crate::{engine::EngineReader, plan::Sent, snapshot::Inspected};

/// The containers with the IDs of those that no longer exist, and whose namespaces they share, replaced by those of the
/// containers that `network_mode`, `pid` and `ipc` name in the first of the `texts` that names one.
pub(super) fn repaired(
    engine: &EngineReader,
    saved: &[Value],
    tool: &str,
    texts: &[Sent],
) -> Result<Vec<Value>> {
    let is_gone = |id: &str| -> Result<bool> {
        let is_saved = saved
            .iter()
            .any(|container| Inspected(container).id() == id);
        Ok(!is_saved && engine.inspect_containers([id])?.is_empty())
    };
    let mut repaired = saved.to_vec();
    for (container, repaired) in saved.iter().map(Inspected).zip(&mut repaired) {
        let Some(service) = container.compose_label(tool, "service") else {
            continue;
        };
        for (field, id) in container.shared_namespaces() {
            let named = |sent: &Sent| shared_namespaces(*sent, service).remove(field);
            if is_gone(id)?
                && let Some(mode) = texts.iter().find_map(named)
                && let Some(other) = find(engine, saved, tool, &mode)?
            {
                repaired["HostConfig"][field] = format!("container:{other}").into();
            }
        }
    }
    Ok(repaired)
}

/// The ID of the container that `service:…` or `container:…` means.
fn find(engine: &EngineReader, saved: &[Value], tool: &str, mode: &str) -> Result<Option<String>> {
    if let Some(name) = mode.strip_prefix("container:") {
        let found = engine.container_by_name(name)?;
        return Ok(found.map(|one| Inspected(&one).id().to_owned()));
    }
    let service = mode.strip_prefix("service:");
    let mut all = saved.iter().map(Inspected);
    let is_of_service = |one: &Inspected| one.compose_label(tool, "service") == service;
    let found = all.find(is_of_service).filter(|_| service.is_some());
    Ok(found.map(|container| container.id().to_owned()))
}
