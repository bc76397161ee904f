//! The files that are lost with a container: those written to its own layer (M05).

use crate::{model::Changes, snapshot::Inspected};

/// How many lost files a warning names. The snapshot lists all.
const FILES_SHOWN: usize = 5;

/// The files in a container's own layer; `None` if there are none.
pub(super) fn files_written(container: Inspected, changes: &Changes) -> Option<String> {
    let paths: Vec<&str> = changes
        .listed
        .iter()
        .map(|change| change.path.as_str())
        .collect();
    let files = container.own_files(&paths, &[]);
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
