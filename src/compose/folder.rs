//! Temporary folders, which only this user may read and which an interrupt removes. A killed process leaves its folder;
//! the next one that creates a folder removes it.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    mem,
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown,
    },
    path::{Path, PathBuf},
    sync::{Mutex, Once},
    time::Duration,
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::{disk, parallel::lock};

const PREFIX: &str = "stacklift-";

/// How the rest of the name starts if it is the folder of a rehearsal, which may contain any file.
const COPIES: &str = "copies-";

/// Where Portainer's directory of a stack is in the folder of a text that is sent. Paths that lead out of it stay in the folder.
pub(super) const STACK: &str = "data/compose/stack";

/// The length of the random end of a name.
const RANDOM: usize = 6;

/// The name of the Compose file that is sent, or of one of several.
pub fn compose_file(at: usize) -> String {
    match at {
        0 => "docker-compose.yml".to_owned(),
        at => format!("docker-compose.{at}.yml"),
    }
}

/// The name of one of the env files that the text names.
pub fn env_file(at: usize) -> String {
    format!("docker-compose.{at}.env")
}

/// The name of the file with the variables of a stack.
pub const ENV_FILE: &str = "stack.env";

/// A folder that is younger may not be locked yet. Older versions did not lock theirs, and had one for 10 seconds.
const YOUNG: Duration = Duration::from_mins(1);

/// The folders that exist now.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the folders that exist now, for a handler that ends the process. No new one can be created after that.
pub fn remove_all() {
    let mut folders = lock(&FOLDERS);
    for folder in folders.drain(..) {
        // Another thread may still write. The process ends anyway, and the next one removes what is left.
        let removed = fs::remove_dir_all(&folder);
        removed.or_else(|_| fs::remove_dir_all(&folder)).ok();
    }
    mem::forget(folders);
}

/// A folder that is removed when it is dropped.
pub struct Folder {
    dir: TempDir,
    /// Locked while this process lives.
    _lock: File,
}

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        let folder = Self::create(PREFIX)?;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder.stack())?;
        Ok(folder)
    }

    /// Lets the programs of a user read what was written. That user can also change it, like those programs, and no other user can
    /// read it.
    pub(super) fn give_to(&self, user: u32) -> io::Result<()> {
        let stack = self.stack();
        for file in fs::read_dir(&stack)? {
            chown(file?.path(), Some(user), None)?;
        }
        for dir in stack.ancestors().take_while(|dir| *dir != self.path()) {
            chown(dir, Some(user), None)?;
        }
        // Until now, the user could not enter the folder.
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o711))
    }

    /// The directory of the text that is sent.
    pub(super) fn stack(&self) -> PathBuf {
        self.path().join(STACK)
    }

    /// One for the copies of a rehearsal.
    pub fn of_rehearsal() -> io::Result<Self> {
        Self::create(&[PREFIX, COPIES].concat())
    }

    fn create(prefix: &str) -> io::Result<Self> {
        static ABANDONED: Once = Once::new();
        ABANDONED.call_once(|| remove_abandoned(&env::temp_dir()));
        disk::check_path(&env::temp_dir())?;
        // Held until it is in the list, so that an interrupt does not miss it.
        let mut folders = lock(&FOLDERS);
        let dir = tempfile::Builder::new()
            .prefix(prefix)
            .rand_bytes(RANDOM)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()?;
        let lock = File::open(dir.path())?;
        // Where a file system has no locks, nothing is removed either.
        lock.try_lock().ok();
        folders.push(dir.path().to_owned());
        Ok(Self { dir, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Creates a file in [`Self::stack`] that only this user may read.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.stack().join(name);
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
        let mut folders = lock(&FOLDERS);
        fs::remove_dir_all(self.path()).ok();
        folders.retain(|folder| folder != self.path());
    }
}

/// Removes the folders in `temporary` that processes of this user left when they were killed. What cannot be removed
/// stays: this run does not need it.
fn remove_abandoned(temporary: &Path) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        let copies = rest.strip_prefix(COPIES);
        let random = copies.unwrap_or(rest);
        if random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            remove_if_abandoned(&entry.path(), copies.is_some()).ok();
        }
    }
}

/// Removes a folder of this user that no process has locked. Unless it is one of a rehearsal, it contains nothing but the files
/// of a [`Folder`].
fn remove_if_abandoned(path: &Path, is_rehearsed: bool) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    let is_private = found.is_dir()
        && found.uid() == rustix::process::geteuid().as_raw()
        && [0o700, 0o711].contains(&(found.mode() & 0o777));
    let is_young = found.modified()?.elapsed().map_or(true, |age| age < YOUNG);
    if !is_private || is_young {
        return Ok(());
    }
    // Held until the folder is gone.
    let lock = File::open(path)?;
    lock.try_lock()?;
    let mut entries = fs::read_dir(path)?;
    let is_data = |entry: fs::DirEntry| STACK.split('/').next() == entry.file_name().to_str();
    if is_rehearsed || entries.all(|entry| entry.is_ok_and(is_data)) {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_folders_that_killed_processes_left_are_removed() {
        let temporary = tempfile::tempdir().expect("a directory");
        let folder = |name: &str, file: &str, mode: u32, age: u64| {
            let path = temporary.path().join(name);
            let file = path.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, "TOKEN=x").expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            let folder = File::open(&path).expect("a folder");
            let time = SystemTime::now() - Duration::from_secs(age);
            folder.set_modified(time).expect("a time");
            folder
        };
        let own = "data/compose/stack/stack.env";
        folder("stacklift-killed", own, 0o700, 120);
        folder("stacklift-Kille2", own, 0o711, 120);
        folder("stacklift-copies-killed", "photo.jpg", 0o700, 120);
        let rehearsing = folder("stacklift-copies-livess", own, 0o700, 120);
        rehearsing.try_lock().expect("a lock");
        let lives = folder("stacklift-livess", own, 0o700, 120);
        lives.try_lock().expect("a lock");
        folder("stacklift-younge", own, 0o700, 0);
        folder("stacklift-public", own, 0o755, 120);
        folder("stacklift-others", "photo.jpg", 0o700, 120);
        folder("stacklift-test.abc123", own, 0o700, 120);
        folder("another-abc123", ENV_FILE, 0o700, 120);
        let target = temporary.path().join("another-abc123");
        std::os::unix::fs::symlink(target, temporary.path().join("stacklift-linked"))
            .expect("a link");
        remove_abandoned(temporary.path());
        let left = fs::read_dir(temporary.path()).expect("a directory");
        let left = left.map(|entry| entry.expect("an entry").file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        let expected = [
            "another-abc123",
            "stacklift-copies-livess",
            "stacklift-linked",
            "stacklift-livess",
            "stacklift-others",
            "stacklift-public",
            "stacklift-test.abc123",
            "stacklift-younge",
        ];
        assert_eq!(left, expected);
        assert!(temporary.path().join("another-abc123/stack.env").exists());
        // Its process has ended. A program that another test starts at this moment inherits the lock until it runs.
        drop(lives);
        let deadline = SystemTime::now() + Duration::from_mins(1);
        let path = temporary.path().join("stacklift-livess");
        while path.exists() && SystemTime::now() < deadline {
            remove_abandoned(temporary.path());
        }
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_is_locked_while_it_exists() {
        let folder = Folder::new().expect("a folder");
        let other = File::open(folder.path()).expect("it");
        assert!(matches!(
            other.try_lock(),
            Err(fs::TryLockError::WouldBlock)
        ));
    }

    #[test]
    fn as_root_b44_a_folder_is_given_to_one_user() {
        let folder = Folder::new().expect("a folder");
        folder.write(ENV_FILE, "TOKEN=x").expect("a file");
        folder.give_to(54_321).expect("root");
        let found = |path: &Path| {
            let found = fs::metadata(path).expect("it");
            (found.uid(), found.mode() & 0o777)
        };
        assert_eq!(found(folder.path()), (0, 0o711));
        assert_eq!(found(&folder.path().join("data")), (54_321, 0o700));
        assert_eq!(found(&folder.stack().join(ENV_FILE)), (54_321, 0o600));
    }
}
