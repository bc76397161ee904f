//! The lock of a project: no two runs on one project overlap, whatever directory they were given.
//!
//! It is per state directory and does not depend on the engine: an engine that does not respond cannot weaken it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::PathBuf,
    thread,
    time::Duration,
};

use anyhow::Result;

use super::{Place, folder};
use crate::{disk, failure::Failure};

/// How often the lock is tried if the run that held it removes its file, or the directories that it created, at the same
/// moment.
const ATTEMPTS: usize = 100;

/// How often it is tried while it is held.
const LOOKS: usize = 10;

/// The pause before each further attempt.
const PAUSE: Duration = Duration::from_millis(1);

/// The proof that no other run works on the project. Dropping it unlocks the project and removes the file. A killed run
/// leaves the file, unlocked.
#[derive(Debug)]
pub struct ProjectLock {
    path: PathBuf,
    /// `None` if it only reads.
    file: Option<File>,
    /// The directories that did not exist before, the innermost first.
    created: Vec<PathBuf>,
}

impl Place {
    /// Locks the project. Fails if another run holds the lock, or if the state directory cannot be written.
    pub fn lock(&self) -> Result<ProjectLock> {
        let path = self.path_of_lock();
        let missing = self.state.ancestors().take_while(|dir| !dir.exists());
        let created: Vec<PathBuf> = missing.map(PathBuf::from).collect();
        for attempt in 1..=ATTEMPTS {
            match self.try_lock(&path) {
                Ok(Some(file)) => {
                    return Ok(ProjectLock {
                        path,
                        file: Some(file),
                        created,
                    });
                }
                Ok(None) => {}
                // Somebody may only look whether it is locked.
                Err(error) if error.kind() == ErrorKind::WouldBlock && attempt <= LOOKS => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(self.is_busy()),
                // Another run removed a directory while this one created it, or it is not a directory.
                Err(error) if disk::is_absent(&error) && attempt < ATTEMPTS => {}
                Err(error) => {
                    return Err(Failure::new(format!("failed to lock {}", path.display()))
                        .source(error)
                        .hint("free some space or make the directory writable, or set STACKLIFT_STATE_DIR to another directory")
                        .into());
                }
            }
            thread::sleep(PAUSE);
        }
        Err(self.is_busy())
    }

    /// The same for a run that only reads: it creates nothing, and fails if a run holds the lock.
    pub fn lock_to_read(&self) -> Result<ProjectLock> {
        if self.is_locked() {
            return Err(self.is_busy());
        }
        Ok(ProjectLock {
            path: self.path_of_lock(),
            file: None,
            created: Vec::new(),
        })
    }

    /// The locked file, or `None` if another run removed it in the meantime.
    fn try_lock(&self, path: &std::path::Path) -> io::Result<Option<File>> {
        folder::create(&self.state)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600);
        let file = match file.open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        let held = file.metadata()?;
        let is_same = fs::metadata(path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (held.dev(), held.ino()));
        Ok(is_same.then_some(file))
    }

    /// Whether a run works on the project now. A run that begins at this moment tries again.
    pub(super) fn is_locked(&self) -> bool {
        let file = File::open(self.path_of_lock());
        let tried = file.map(|file| file.try_lock_shared());
        matches!(tried, Ok(Err(TryLockError::WouldBlock)))
    }

    fn path_of_lock(&self) -> PathBuf {
        self.state.join(format!("{}.lock", self.project()))
    }

    fn is_busy(&self) -> anyhow::Error {
        Failure::new(format!(
            "another run of stacklift is working on the stack {}",
            self.name
        ))
        .hint("wait for that run to finish, then run the command again")
        .into()
    }
}

impl Drop for ProjectLock {
    fn drop(&mut self) {
        if self.file.is_none() {
            return;
        }
        // While it is locked: a run that waits for the file sees that it is another one. What cannot be removed is empty.
        let _ = fs::remove_file(&self.path);
        for dir in &self.created {
            if fs::remove_dir(dir).is_err() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(state: PathBuf, name: &str) -> Place {
        Place {
            state,
            name: name.to_owned(),
        }
    }

    #[test]
    fn as_root_b32_a_directory_that_another_user_created_meanwhile_is_not_used() {
        let home = tempfile::tempdir().expect("a directory");
        let state = home.path().join("state");
        fs::create_dir(&state).expect("a directory");
        let target = home.path().join("target");
        std::os::unix::fs::symlink(&target, state.join("web.lock")).expect("a link");
        std::os::unix::fs::chown(&state, Some(54_321), None).expect("root");
        place(state, "web").lock().expect_err("refused");
        assert!(!target.exists(), "nothing is created behind a link");
    }

    #[test]
    fn runs_that_remove_the_file_do_not_share_the_lock() {
        let home = tempfile::tempdir().expect("a directory");
        let state = home.path().join("state");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        if let Ok(held) = place(state.clone(), "web").lock() {
                            use std::sync::atomic::Ordering::SeqCst;
                            assert_eq!(inside.fetch_add(1, SeqCst), 0);
                            thread::sleep(Duration::from_micros(50));
                            inside.fetch_sub(1, SeqCst);
                            drop(held);
                        }
                    }
                });
            }
        });
    }
}
