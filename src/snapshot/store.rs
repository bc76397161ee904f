//! Where snapshots lie: a folder a stack below the state folder, a file a snapshot.
//!
//! Files are 0600 in folders 0700. Kept are the oldest of a stack and the nine newest.

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

/// How many of the newest are kept, besides the oldest.
const NEWEST: usize = 9;

/// What a stack is known by in the store: its directory, the manager, the endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// The stack's name, for people who look into the folder.
    pub name: &'a str,
    /// The stack's directory.
    pub dir: &'a str,
    /// The manager's base URL.
    pub base_url: &'a str,
    /// The endpoint.
    pub endpoint: i64,
}

/// The snapshots of one stack.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// A snapshot on disk.
#[derive(Debug, Clone)]
pub struct Saved {
    /// Its id: when it was taken, to the millisecond, UTC.
    pub id: String,
    /// What is in it.
    pub snapshot: Snapshot,
}

impl Store {
    /// The snapshots of a stack below the state folder. Touches nothing.
    pub fn new(state: &Path, key: &Key) -> Self {
        let identity = format!("{}\0{}\0{}", key.dir, key.base_url, key.endpoint);
        let hash = digest(&SHA256, identity.as_bytes());
        let mut hex = String::new();
        for byte in &hash.as_ref()[..8] {
            // Writing to a String does not fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Self {
            folder: state.join("snapshots").join(format!("{}-{hex}", key.name)),
        }
    }

    /// Where the snapshots of this stack lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a snapshot, whole or not at all, synced with its folder; gives its id. Removes what is no
    /// longer kept; that this fails is no failure, since nothing is lost by it.
    pub fn save(&self, snapshot: &Snapshot, now: DateTime<Utc>) -> Result<String> {
        let failed = |error: io::Error| {
            Failure::new(format!(
                "failed to write a snapshot to {}",
                self.folder.display()
            ))
            .source(error)
            .hint("make room or make the folder writable, or name another in STACKLIFT_STATE_DIR")
        };
        let json = serde_json::to_vec_pretty(snapshot).context("failed to write JSON")?;
        make_folder(&self.folder).map_err(failed)?;
        let mut now = now;
        loop {
            let id = now.format("%Y%m%dT%H%M%S%.3fZ").to_string();
            match self.write(&self.path(&id), &json) {
                Ok(()) => {
                    self.prune();
                    return Ok(id);
                }
                // Another run took one in the same millisecond.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    now += chrono::TimeDelta::milliseconds(1);
                }
                Err(error) => return Err(failed(error).into()),
            }
        }
    }

    fn write(&self, path: &Path, json: &[u8]) -> io::Result<()> {
        // 0600, as every temporary file.
        let mut file = tempfile::Builder::new()
            .prefix(".snapshot-")
            .tempfile_in(&self.folder)?;
        file.write_all(json)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        File::open(&self.folder)?.sync_all()
    }

    /// The ids, oldest first.
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

    /// Reads one.
    pub fn load(&self, id: &str) -> Result<Saved> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let path = self.path(id);
        let what = || format!("failed to read the snapshot {}", path.display());
        if id.contains('/') || !self.ids()?.iter().any(|known| known == id) {
            return Err(
                Failure::new(format!("there is no snapshot {id} of this stack"))
                    .hint("stacklift restore <STACK> --list names those that are there")
                    .into(),
            );
        }
        let json = fs::read(&path).with_context(what)?;
        let head: Head = serde_json::from_slice(&json).with_context(what)?;
        if head.version > VERSION {
            return Err(Failure::new(format!(
                "the snapshot {id} has version {}, and this program knows none above {VERSION}",
                head.version
            ))
            .hint("use the version of stacklift that wrote it, or a newer one")
            .into());
        }
        Ok(Saved {
            id: id.to_owned(),
            snapshot: serde_json::from_slice(&json).with_context(what)?,
        })
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn prune(&self) {
        let Ok(ids) = self.ids() else { return };
        let between = ids.len().saturating_sub(NEWEST);
        for id in ids.iter().take(between).skip(1) {
            // It will be tried again at the next run.
            let _ = fs::remove_file(self.path(id));
        }
    }
}

/// Makes the folders that are missing, each 0700 and synced into its parent.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent)?;
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => File::open(parent)?.sync_all(),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    } else {
        Ok(())
    }
}
