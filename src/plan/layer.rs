//! The files that are lost with a container: those written to its own layer (M05).

use crate::{model::Changes, snapshot::Inspected};

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
    let files = container.own_files(&paths, placed);
    let total = files.len() + unlisted;
    (files, total)
}
