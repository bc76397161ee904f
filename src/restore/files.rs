//! The files that are lost with a container: those written to its own layer (M05).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{model::Changes, snapshot::Inspected};

/// How many lost files a warning names. The snapshot lists all.
const FILES_SHOWN: usize = 5;

/// Where the engine mounts its init program.
const INIT: &str = "/sbin/docker-init";

/// The files in a container's own layer; `None` if there are none.
pub(super) fn files_written(container: Inspected, changes: &Changes) -> Option<String> {
    let paths: Vec<&str> = changes
        .listed
        .iter()
        .map(|change| change.path.as_str())
        .collect();
    let files = container.own_files(&paths);
    if files.is_empty() {
        return None;
    }
    let shown = files[..files.len().min(FILES_SHOWN)].join(", ");
    let unlisted = changes.total.saturating_sub(paths.len());
    let more = files.len().saturating_sub(FILES_SHOWN) + unlisted;
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    Some(format!(
        "{}: files written inside the container: {shown}{more}",
        container.name()
    ))
}

impl Inspected<'_> {
    /// The changed `paths` of its layer that hold data: without the directories of other changed paths, and without the
    /// mount points and the working directory that the engine creates.
    pub(super) fn own_files<'p>(self, paths: &[&'p str]) -> Vec<&'p str> {
        let mut parents = BTreeSet::new();
        let tmpfs = self.at("/HostConfig/Tmpfs").and_then(Value::as_object);
        let targets: Vec<&str> = self
            .mounts()
            .filter_map(|mount| mount["Destination"].as_str())
            .chain(
                tmpfs
                    .into_iter()
                    .flatten()
                    .map(|(target, _)| target.as_str()),
            )
            .chain([self.text("/Config/WorkingDir"), INIT])
            .map(|target| target.trim_end_matches('/'))
            .collect();
        for path in paths.iter().chain(&targets) {
            let mut path = *path;
            while let Some((parent, _)) = path.rsplit_once('/') {
                if !parents.insert(parent) {
                    break;
                }
                path = parent;
            }
        }
        let mut files: Vec<&str> = paths.to_vec();
        files.retain(|path| !parents.contains(path) && !targets.contains(path));
        files
    }
}
