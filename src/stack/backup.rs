//! The backup of the Compose file, in the same directory: written atomically, never overwritten (C20–C22).

use std::{
    fs::{self, File, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

use anyhow::Result;
use chrono::NaiveDate;
use tempfile::Builder;

use super::{Lock, Source, Stack};
use crate::failure::Failure;

/// The outcome of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backup {
    /// A new backup was written.
    Made(PathBuf),
    /// A backup of this day already existed and was kept.
    Kept(PathBuf),
}

impl Stack {
    /// The backup's path for a day (C20).
    pub fn backup_path(&self, day: NaiveDate) -> PathBuf {
        self.dir.join(format!(
            "{}.bak-pre-stackmgr-migration-{}",
            self.file,
            day.format("%Y-%m-%d")
        ))
    }

    /// Copies the Compose file to its backup of that day, unless one exists (C21, C22). The copy keeps the mode; the
    /// copy and its directory are synced before this returns.
    pub fn back_up(&self, source: &Source, day: NaiveDate, _lock: &Lock) -> Result<Backup> {
        let path = self.backup_path(day);
        if fs::symlink_metadata(&path).is_ok() {
            return Ok(Backup::Kept(path));
        }
        match self.write_backup(source, &path) {
            Ok(()) => Ok(Backup::Made(path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Backup::Kept(path)),
            Err(error) => Err(Failure::new(format!(
                "failed to write the backup {}",
                path.display()
            ))
            .source(error)
            .hint("free some space or make the directory writable, then run the command again")
            .into()),
        }
    }

    fn write_backup(&self, source: &Source, path: &PathBuf) -> std::io::Result<()> {
        let mode = Permissions::from_mode(source.access.mode);
        let mut copy = Builder::new()
            .prefix(".stacklift-backup-")
            .tempfile_in(&self.dir)?;
        copy.write_all(source.compose.as_bytes())?;
        copy.as_file().set_permissions(mode)?;
        copy.as_file().sync_all()?;
        copy.persist_noclobber(path).map_err(|error| error.error)?;
        File::open(&self.dir)?.sync_all()
    }
}
