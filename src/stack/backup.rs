//! The backup of the Compose file, in the same directory: written atomically, never overwritten (C20–C22).

use std::{
    io::{self, ErrorKind},
    path::PathBuf,
};

use anyhow::Result;
use chrono::NaiveDate;

use super::{Stack, StackText};
use crate::{
    disk::{Dir, Existing, Refused, Rights},
    failure::Failure,
    snapshot::StackLock,
};

/// The outcome of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backup {
    /// A new backup was written.
    Made(PathBuf),
    /// A backup of this day already existed and was kept.
    Kept(PathBuf),
}

impl Stack {
    /// Copies the Compose file to its backup of that day, unless one exists (C21, C22). The copy has the rights that the file
    /// had when it was read (B30); the copy and its directory are synced before this returns.
    pub fn back_up(&self, source: &StackText, day: NaiveDate, _lock: &StackLock) -> Result<Backup> {
        // A date is displayed as %Y-%m-%d (C20).
        let name = format!("{}.bak-pre-stackmgr-migration-{day}", self.file);
        let path = self.dir.join(&name);
        match self.write_backup(source, &name) {
            Ok(true) => Ok(Backup::Made(path)),
            Ok(false) => Ok(Backup::Kept(path)),
            Err(error) => {
                let hint = match Refused::of(&error) {
                    Some(Refused::NotRegular) => "move it away, then run the command again",
                    Some(Refused::LinkOf(_)) => {
                        "pass the path of the directory without that link with --dir"
                    }
                    _ => {
                        "free some space or make the directory writable, then run the command again"
                    }
                };
                let what = format!("failed to write the backup {}", path.display());
                Err(Failure::new(what).source(error).hint(hint).into())
            }
        }
    }

    /// Whether the backup was written: it may exist.
    fn write_backup(&self, source: &StackText, name: &str) -> io::Result<bool> {
        let dir = Dir::open(&self.dir)?;
        if dir.has_file(name)? {
            return Ok(false);
        }
        let rights = Rights::CopyOf(source.access);
        match dir.write(name, source.compose.as_bytes(), rights, Existing::Keep) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                dir.has_file(name).map(|_| false)
            }
            written => written.and_then(|()| dir.sync()).map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsStr,
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt as _,
    };

    use super::*;
    use crate::{snapshot::Place, stack::StackName};

    #[test]
    fn b30_content_and_mode_are_of_the_same_file() {
        let root = tempfile::tempdir().expect("a folder");
        let name = StackName::new(OsStr::new("web")).expect("a name");
        let stack = Stack::at(name, root.path(), "a.yml");
        let write = |name: &str, mode| {
            let path = root.path().join(name);
            fs::write(&path, name).expect("a file");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        };
        write("a.yml", 0o600);
        write("public", 0o644);
        let source = stack.read_own().expect("read");
        fs::rename(root.path().join("public"), root.path().join("a.yml")).expect("replaced");
        let state = root.path().join("state");
        let lock = Place::new(&state, "web").lock(root.path());
        let lock = lock.expect("a lock");
        let made = stack
            .back_up(&source, NaiveDate::MIN, &lock)
            .expect("a backup");
        let Backup::Made(path) = made else {
            panic!("kept");
        };
        assert_eq!(fs::read(&path).expect("it"), b"a.yml");
        let found = fs::metadata(&path).expect("it").permissions();
        assert_eq!(found.mode() & 0o7777, 0o600);
    }
}
