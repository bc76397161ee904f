//! The files that are lost with a container: those written to its own layer (M05).

use crate::{model::Changes, plan::ContainerLoss, snapshot::Inspected};

/// How many files of one container are named.
const FILES_SHOWN: usize = 5;

impl ContainerLoss {
    /// The files that are lost with a container. `placed` are those that Compose itself puts into it.
    pub fn files(container: Inspected, changes: &Changes, placed: &[String]) -> Option<Self> {
        let (files, total) = written(container, changes, placed);
        let shown = files.into_iter().take(FILES_SHOWN).map(str::to_owned);
        (total > 0).then(|| Self::Files {
            shown: shown.collect(),
            total,
        })
    }
}

/// The changed files of a container's own layer that hold data, and the number of all. `placed` are the files that
/// Compose itself puts into the container.
fn written<'c>(
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
