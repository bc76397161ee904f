//! The snapshots on disk: one directory per stack below the state directory, one file per snapshot.
//!
//! Files have mode 0600, directorys 0700. The store keeps the oldest snapshot of a stack and the nine newest.

use std::{
    fmt::Write as _,
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::{Snapshot, VERSION};
use crate::failure::Failure;

/// How many of the newest snapshots are kept, besides the oldest.
const NEWEST: usize = 9;

/// What identifies a stack in the store.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// The stack's name. It makes the directory's name readable, but does not identify the stack.
    pub name: &'a str,
    /// The stack's directory.
    pub dir: &'a str,
    /// Portainer's base URL.
    pub base_url: &'a str,
    /// Portainer's environment.
    pub endpoint: i64,
}

/// The snapshots of one stack.
#[derive(Debug, Clone)]
pub struct Store {
    stack: String,
    folder: PathBuf,
}

/// A snapshot on disk.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The time when it was taken, to the millisecond, UTC.
    pub id: String,
    pub snapshot: Snapshot,
}

impl Store {
    /// The snapshots of a stack below the state directory. Does not access the disk.
    pub fn new(state: &Path, key: &Key) -> Self {
        let identity = format!("{}\0{}\0{}", key.dir, key.base_url, key.endpoint);
        let hash = digest(&SHA256, identity.as_bytes());
        let mut hex = String::new();
        for byte in &hash.as_ref()[..8] {
            // Writing to a String does not fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Self {
            stack: key.name.to_owned(),
            folder: state.join("snapshots").join(format!("{}-{hex}", key.name)),
        }
    }

    /// Writes a snapshot atomically, synced with its directory, and gives its ID. Then removes old snapshots; a failure to
    /// remove one is not an error.
    pub fn save(&self, snapshot: &Snapshot, now: DateTime<Utc>) -> Result<String> {
        let failed = |error: io::Error| {
            Failure::new(format!(
                "failed to write a snapshot to {}",
                self.folder.display()
            ))
            .source(error)
            .hint("free some space or make the directory writable, or set STACKLIFT_STATE_DIR to another directory")
        };
        let json =
            serde_json::to_vec_pretty(snapshot).context("failed to serialize the snapshot")?;
        create_folder(&self.folder).map_err(failed)?;
        let mut now = now;
        loop {
            let id = now.format("%Y%m%dT%H%M%S%.3fZ").to_string();
            match self.write(&self.path(&id), &json) {
                Ok(()) => {
                    self.prune();
                    return Ok(id);
                }
                // Another snapshot was taken in the same millisecond.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    now += chrono::TimeDelta::milliseconds(1);
                }
                Err(error) => return Err(failed(error).into()),
            }
        }
    }

    fn write(&self, path: &Path, json: &[u8]) -> io::Result<()> {
        // Temporary files have mode 0600.
        let mut file = tempfile::Builder::new()
            .prefix(".snapshot-")
            .tempfile_in(&self.folder)?;
        file.write_all(json)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        File::open(&self.folder)?.sync_all()
    }

    /// The IDs of all snapshots, oldest first.
    pub fn ids(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(Failure::new(format!(
                    "failed to read the snapshots in {}",
                    self.folder.display()
                ))
                .source(error)
                .into());
            }
        };
        let mut ids: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .filter(|id| !id.starts_with('.'))
            .collect();
        ids.sort();
        Ok(ids)
    }

    /// Reads the snapshot with this ID; `None` for the newest.
    pub fn choose(&self, id: Option<&str>) -> Result<Saved> {
        if let Some(id) = id {
            return self.load(id);
        }
        let ids = self.ids()?;
        // A restore that is run again restores the same snapshot, not what it replaced itself (B17).
        let by_restore = |id: &&String| matches!(self.load(id), Ok(saved) if saved.snapshot.command == "restore");
        let newest = ids.iter().rev().find(|id| !by_restore(id)).or(ids.last());
        match newest {
            Some(newest) => self.load(newest),
            None => Err(Failure::new(format!(
                "no snapshot of the stack {} in {}",
                self.stack,
                self.folder.display()
            ))
            .hint("each run that changes a stack takes a snapshot, for one directory, base URL and environment of the stack: pass the same ones")
            .into()),
        }
    }

    /// Reads the snapshot with this ID.
    pub fn load(&self, id: &str) -> Result<Saved> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let path = self.path(id);
        let failed = || format!("failed to read the snapshot {}", path.display());
        if id.contains('/') || !self.ids()?.iter().any(|known| known == id) {
            return Err(
                Failure::new(format!("no snapshot {id} of the stack {}", self.stack))
                    .hint("to list the snapshots, run: stacklift restore <STACK> --list")
                    .into(),
            );
        }
        let json = fs::read(&path).with_context(failed)?;
        let head: Head = serde_json::from_slice(&json).with_context(failed)?;
        if head.version > VERSION {
            return Err(Failure::new(format!(
                "the snapshot {id} has version {}: this stacklift reads versions up to {VERSION}",
                head.version
            ))
            .hint("use the stacklift version that wrote it, or a newer one")
            .into());
        }
        Ok(Saved {
            id: id.to_owned(),
            snapshot: serde_json::from_slice(&json).with_context(failed)?,
        })
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn prune(&self) {
        let Ok(ids) = self.ids() else { return };
        let between = ids.len().saturating_sub(NEWEST);
        for id in ids.iter().take(between).skip(1) {
            // The next run tries again.
            let _ = fs::remove_file(self.path(id));
        }
    }
}

/// Creates the missing directorys, each with mode 0700 and synced into its parent.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_folder(parent)?;
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => File::open(parent)?.sync_all(),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    } else {
        Ok(())
    }
}
