//! Files and directories of the store: private, atomic, and synced to disk.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
};

use anyhow::Result;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use crate::{
    disk::{self, Dir, Existing, Refused, Rights},
    failure::Failure,
};

const ID_FORMAT: &str = "%Y%m%dT%H%M%S%.3fZ";

/// Refuses an existing state directory that belongs to another user or that others can enter: its files contain
/// secrets. Refuses one that another user can replace (B32).
pub fn check_state_dir(dir: &Path) -> Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let refused = |why: &str, hint: String| {
        Err(Failure::new(format!(
            "refusing to use the state directory {}: {why}",
            dir.display()
        ))
        .hint(hint)
        .into())
    };
    // If it is a file, the error appears when something is written.
    let metadata = fs::metadata(dir).ok().filter(fs::Metadata::is_dir);
    if metadata.as_ref().is_some_and(|found| found.uid() != own) {
        return refused(
            "it belongs to another user",
            "run stacklift as its owner, or set STACKLIFT_STATE_DIR to a directory of your own"
                .to_owned(),
        );
    }
    let mode = metadata.map_or(0, |found| found.mode() & 0o777);
    if mode & 0o077 != 0 {
        return refused(
            &format!("its mode is {mode:03o}, but snapshots contain secrets"),
            format!(
                "if only stacklift uses this directory, run `chmod 700 {}`; otherwise, set STACKLIFT_STATE_DIR to another directory",
                dir.display()
            ),
        );
    }
    disk::check_path(dir).or_else(|error| {
        refused(
            &error.to_string(),
            "another user could replace the snapshots: set STACKLIFT_STATE_DIR to a directory below one of your own"
                .to_owned(),
        )
    })
}

/// Reads a file. Fails for one that the caller did not write.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let (file, metadata) = disk::open(path)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(Refused::OwnedBy(metadata.uid()).into());
    }
    io::read_to_string(file)
}

/// Writes a new file atomically with mode 0600, and syncs it with its directory.
pub(super) fn write_new(dir: &Path, name: &str, contents: &[u8]) -> io::Result<()> {
    write(dir, name, contents, Existing::Keep)
}

/// The same with the first free ID from `now` on, and this ending, as the name. Returns the ID.
pub(super) fn write_next(
    dir: &Path,
    mut now: DateTime<Utc>,
    ending: &str,
    contents: &[u8],
) -> io::Result<String> {
    loop {
        let id = id_of(now);
        match write_new(dir, &format!("{id}{ending}"), contents) {
            // Something else was written in the same millisecond.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                now += TimeDelta::milliseconds(1);
            }
            written => return written.map(|()| id),
        }
    }
}

/// Writes a file atomically with mode 0600 in place of the one with that name, and syncs it with its directory.
pub(super) fn replace(dir: &Path, name: &str, contents: &[u8]) -> io::Result<()> {
    write(dir, name, contents, Existing::Replace)
}

fn write(dir: &Path, name: &str, contents: &[u8], existing: Existing) -> io::Result<()> {
    let dir = create(dir)?;
    dir.write(name, contents, Rights::AtMost(0o600), existing)?;
    dir.sync()
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
        Err(error) if !disk::is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// The names of the files in a directory; none if it does not exist.
pub(super) fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        // If it is something else, the error appears when something is written.
        Err(error) if disk::is_absent(&error) => return Ok(Vec::new()),
        entries => entries.map_err(|error| {
            Failure::new(format!("failed to read the snapshots in {}", dir.display())).source(error)
        })?,
    };
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect())
}

/// Opens a directory. Creates the missing ones, each with mode 0700 and synced into its parent. Fails if another user created
/// it after it was checked.
pub(super) fn create(dir: &Path) -> io::Result<Dir> {
    create_all(dir)?;
    let dir = Dir::open(dir)?;
    if dir.is_own()? {
        Ok(dir)
    } else {
        Err(ErrorKind::PermissionDenied.into())
    }
}

fn create_all(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let Some(parent) = dir.parent() else {
        return Ok(());
    };
    create_all(parent)?;
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

/// The ID of what is written now: it sorts by time.
pub(super) fn id_of(now: DateTime<Utc>) -> String {
    now.format(ID_FORMAT).to_string()
}

/// When a file with this ID was written.
pub(super) fn time_of(id: &str) -> Option<DateTime<Utc>> {
    Some(NaiveDateTime::parse_from_str(id, ID_FORMAT).ok()?.and_utc())
}
