//! `/containers/<id>/archive`: files of a container's own layer. The files of its image are not simulated.

use std::io::Read as _;

use crate::{
    http::Response,
    world::{Container, EngineError, LayerChange},
};

/// Writes `path` and everything below it as a tar archive.
pub(super) fn read(container: &Container, path: &str) -> Result<Response, EngineError> {
    let path = path.trim_end_matches('/');
    let (parent, _) = path.rsplit_once('/').unwrap_or_default();
    let is_below = |one: &str, dir: &str| {
        let rest = one.strip_prefix(dir);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let existing = || container.changes.iter().filter(|change| change.kind != 2);
    let mut archive = tar::Builder::new(Vec::new());
    let mut found = false;
    for change in existing() {
        if change.path != path && !is_below(&change.path, path) {
            continue;
        }
        found = true;
        let mut header = tar::Header::new_ustar();
        let is_directory = existing().any(|other| is_below(&other.path, &change.path));
        let (kind, mode) = if is_directory {
            (tar::EntryType::Directory, 0o755)
        } else {
            (tar::EntryType::Regular, 0o644)
        };
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(change.data.len() as u64);
        let name = change.path[parent.len()..].trim_start_matches('/');
        let appended = archive.append_data(&mut header, name, change.data.as_slice());
        appended.map_err(|error| EngineError::new(500, error.to_string()))?;
    }
    if !found {
        let text = format!(
            "Could not find the file {path} in container {}",
            container.id
        );
        return Err(EngineError::new(404, text));
    }
    let bytes = archive.into_inner();
    let written = bytes.map_err(|error| EngineError::new(500, error.to_string()))?;
    Ok(Response::new(200, "application/x-tar", written))
}

/// Unpacks a tar archive into the root directory.
pub(super) fn unpack(container: &mut Container, body: &[u8]) -> Result<Response, EngineError> {
    let changes = changes(body).map_err(|error| EngineError::new(500, error.to_string()))?;
    let is_new = |old: &LayerChange| changes.iter().any(|new| new.path == old.path);
    container.changes.retain(|old| !is_new(old));
    container.changes.extend(changes);
    Ok(Response::new(200, "text/plain", ""))
}

fn changes(body: &[u8]) -> std::io::Result<Vec<LayerChange>> {
    let mut changes = Vec::new();
    for entry in tar::Archive::new(body).entries()? {
        let mut entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut data = Vec::new();
        entry.read_to_end(&mut data)?;
        changes.push(LayerChange {
            path: format!("/{}", path.trim_end_matches('/')),
            kind: 1,
            data,
        });
    }
    Ok(changes)
}
