//! Temporary folders, which only this user may read and which an interrupt removes.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    mem,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

/// The folders that exist now.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the folders that exist now, for a handler that ends the process. No new one can be created after that.
pub fn remove_all() {
    let mut folders = folders();
    for folder in folders.drain(..) {
        // The process ends anyway, and the user cannot do anything about an empty folder.
        fs::remove_dir_all(folder).ok();
    }
    mem::forget(folders);
}

/// A folder that is removed when it is dropped.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        // Held until it is in the list, so that an interrupt does not miss it.
        let mut folders = folders();
        let folder = tempfile::Builder::new()
            .prefix("stacklift-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()?;
        folders.push(folder.path().to_owned());
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Creates a file that only this user may read.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path().join(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("failed to write {}", path.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Held until the folder is gone, so that an interrupt does not leave the rest of it.
        let mut folders = folders();
        fs::remove_dir_all(self.path()).ok();
        folders.retain(|folder| folder != self.path());
    }
}
