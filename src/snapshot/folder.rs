//! Files and directories of the store: private, atomic, and synced to disk.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
};

use anyhow::Result;

use crate::failure::Failure;

/// Refuses an existing state directory that belongs to another user or that others can enter: its files contain
/// secrets.
pub fn check_state_dir(dir: &Path) -> Result<()> {
    let Some(metadata) = fs::metadata(dir).ok().filter(fs::Metadata::is_dir) else {
        // If it is a file, the error appears when something is written.
        return Ok(());
    };
    let own = rustix::process::geteuid().as_raw();
    let refused = |why: &str, hint: String| {
        Err(Failure::new(format!(
            "refusing to use the state directory {}: {why}",
            dir.display()
        ))
        .hint(hint)
        .into())
    };
    if metadata.uid() != own {
        return refused(
            "it belongs to another user",
            "run stacklift as its owner, or set STACKLIFT_STATE_DIR to a directory of your own"
                .to_owned(),
        );
    }
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return refused(
            &format!("its mode is {mode:03o}, but snapshots contain secrets"),
            format!(
                "if only stacklift uses this directory, run: chmod 700 {}; otherwise, set STACKLIFT_STATE_DIR to another directory",
                dir.display()
            ),
        );
    }
    Ok(())
}

/// Writes a new file atomically with mode 0600, and syncs it with its directory.
pub(super) fn write_new(dir: &Path, name: &str, contents: &[u8]) -> io::Result<()> {
    create(dir)?;
    // Temporary files have mode 0600.
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
    file.write_all(contents)?;
    if !contents.is_empty() {
        file.as_file().sync_all()?;
    }
    file.persist_noclobber(dir.join(name))
        .map_err(|error| error.error)?;
    File::open(dir)?.sync_all()
}

/// Writes a file atomically with mode 0600 in place of the one with that name, and syncs it with its directory.
pub(super) fn replace(dir: &Path, name: &str, contents: &[u8]) -> io::Result<()> {
    create(dir)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    file.persist(dir.join(name)).map_err(|error| error.error)?;
    File::open(dir)?.sync_all()
}

/// Renames a file, and syncs the directory.
pub(super) fn rename(dir: &Path, from: &str, to: &str) -> io::Result<()> {
    fs::rename(dir.join(from), dir.join(to))?;
    File::open(dir)?.sync_all()
}

/// Removes a file. A file that does not exist is not an error.
///
/// The removal is not synced: if a power failure undoes it, the next run is only more careful.
pub(super) fn remove(dir: &Path, name: &str) -> io::Result<()> {
    match fs::remove_file(dir.join(name)) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The names of the files in a directory; none if it does not exist.
pub(super) fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        // If it is something else, the error appears when something is written.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => {
            return Err(
                Failure::new(format!("failed to read the snapshots in {}", dir.display()))
                    .source(error)
                    .into(),
            );
        }
    };
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect())
}

/// Creates the missing directories, each with mode 0700 and synced into its parent.
pub(super) fn create(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let Some(parent) = dir.parent() else {
        return Ok(());
    };
    create(parent)?;
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => File::open(parent)?.sync_all(),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // The callers retry with another name if the file already exists.
            if dir.is_dir() {
                Ok(())
            } else {
                Err(ErrorKind::NotADirectory.into())
            }
        }
        Err(error) => Err(error),
    }
}
