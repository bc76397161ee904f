//! The lock of a stack: no two runs on one project or in one directory overlap, whatever name or path they were given.
//!
//! It lies in the state directory, where only the caller can take it (B45), and does not depend on the engine: an engine that
//! does not respond cannot weaken it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
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

/// The proof that no other run works on the stack. Dropping it unlocks the stack and removes the files. A killed run leaves
/// them, unlocked.
#[derive(Debug)]
pub struct StackLock {
    /// Empty if the run only reads.
    held: Vec<(PathBuf, File)>,
    /// The directories that did not exist before, the innermost first.
    created: Vec<PathBuf>,
}

impl Place {
    /// Locks the project and the stack's directory, if that exists. Fails if another run holds one of the locks, or if the state
    /// directory cannot be written.
    pub fn lock(&self, dir: &Path) -> Result<StackLock> {
        let missing = self.state.ancestors().take_while(|dir| !dir.exists());
        let mut lock = StackLock {
            created: missing.map(PathBuf::from).collect(),
            held: Vec::new(),
        };
        for path in self.locks(dir) {
            let file = self.hold(&path)?;
            lock.held.push((path, file));
        }
        Ok(lock)
    }

    /// The same for a run that only reads: it creates nothing, and fails if a run holds one of the locks.
    pub fn lock_to_read(&self, dir: &Path) -> Result<StackLock> {
        if self.locks(dir).iter().any(|path| is_held(path)) {
            return Err(self.is_busy());
        }
        Ok(StackLock {
            held: Vec::new(),
            created: Vec::new(),
        })
    }

    fn hold(&self, path: &Path) -> Result<File> {
        for attempt in 1..=ATTEMPTS {
            match self.try_lock(path) {
                Ok(Some(file)) => return Ok(file),
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

    /// The locked file, or `None` if another run removed it in the meantime.
    fn try_lock(&self, path: &Path) -> io::Result<Option<File>> {
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
        is_held(&self.lock_of_project())
    }

    fn lock_of_project(&self) -> PathBuf {
        self.state.join(format!("{}.lock", self.project()))
    }

    /// The files that a run on a stack in this directory locks. No project has a colon in its name.
    fn locks(&self, dir: &Path) -> Vec<PathBuf> {
        let found = disk::metadata(dir).ok().filter(fs::Metadata::is_dir);
        let of_dir = found.map(|found| {
            let name = format!("{:x}:{:x}.lock", found.dev(), found.ino());
            self.state.join(name)
        });
        [self.lock_of_project()].into_iter().chain(of_dir).collect()
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

fn is_held(path: &Path) -> bool {
    let tried = File::open(path).map(|file| file.try_lock_shared());
    matches!(tried, Ok(Err(TryLockError::WouldBlock)))
}

impl Drop for StackLock {
    fn drop(&mut self) {
        // While they are locked: a run that waits for a file sees that it is another one. What cannot be removed is empty.
        for (path, _) in &self.held {
            let _ = fs::remove_file(path);
        }
        let created = self.created.iter().filter(|_| !self.held.is_empty());
        for dir in created {
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
        place(state, "web")
            .lock(Path::new("/nowhere"))
            .expect_err("refused");
        assert!(!target.exists(), "nothing is created behind a link");
    }

    #[test]
    fn b45_other_names_of_a_directory_and_other_directories_of_a_project_share_a_lock() {
        let home = tempfile::tempdir().expect("a directory");
        let state = home.path().join("state");
        let [one, other, link] = ["one", "other", "link"].map(|name| home.path().join(name));
        fs::create_dir(&one).expect("a directory");
        fs::create_dir(&other).expect("a directory");
        std::os::unix::fs::symlink(&one, &link).expect("a link");
        let [web, db] = ["web", "db"].map(|name| place(state.clone(), name));
        let held = web.lock(&one).expect("a lock");
        web.lock(&other).expect_err("the same project");
        db.lock(&link).expect_err("the same directory");
        db.lock_to_read(&one).expect_err("the same directory");
        drop(db.lock(&other).expect("a lock"));
        drop(held);
        drop(db.lock(&link).expect("a lock"));
        assert!(!state.exists(), "nothing is left");
        // Whoever can read the directory cannot hold it.
        let reader = File::open(&one).expect("the directory");
        reader.try_lock().expect("a lock");
        web.lock(&one).expect("a lock");
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
                        if let Ok(held) = place(state.clone(), "web").lock(home.path()) {
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
