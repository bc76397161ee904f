//! The files that are lost with a container: those written to its own layer (M05).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{model::Changes, snapshot::Inspected};

/// Where the engine mounts its init program.
const INIT: &str = "/sbin/docker-init";

/// The changed files of a container's own layer that hold data, and the number of all. `placed` are the files that
/// Compose itself puts into the container.
pub(super) fn written<'c>(
    container: Inspected,
    changes: &'c Changes,
    placed: &[String],
) -> (Vec<&'c str>, usize) {
    let paths: Vec<&str> = changes
        .listed
        .iter()
        .map(|change| change.path.as_str())
        .filter(|path| placed.iter().all(|placed| placed != path))
        .collect();
    let unlisted = changes.total.saturating_sub(changes.listed.len());
    let files = own_files(container, &paths, placed);
    let total = files.len() + unlisted;
    (files, total)
}

/// The changed `paths` without the directories of other changed paths, the mount points, and the working directory
/// that the engine creates.
fn own_files<'p>(container: Inspected, paths: &[&'p str], placed: &[String]) -> Vec<&'p str> {
    let tmpfs = container.at("/HostConfig/Tmpfs").and_then(Value::as_object);
    let tmpfs = tmpfs
        .into_iter()
        .flatten()
        .map(|(target, _)| target.as_str());
    let targets: Vec<&str> = container
        .mounts()
        .filter_map(|mount| mount["Destination"].as_str())
        .chain(tmpfs)
        .chain([container.text("/Config/WorkingDir"), INIT])
        .chain(placed.iter().map(String::as_str))
        .map(|target| target.trim_end_matches('/'))
        .collect();
    let mut parents = BTreeSet::new();
    for path in paths.iter().chain(&targets) {
        let mut path = *path;
        while let Some((parent, _)) = path.rsplit_once('/') {
            if !parents.insert(parent) {
                break;
            }
            path = parent;
        }
    }
    let mut files = paths.to_vec();
    files.retain(|path| !parents.contains(path) && !targets.contains(path));
    files
}
