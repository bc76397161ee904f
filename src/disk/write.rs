//! Creates and replaces files. No other module writes into directories of users (B30).

use std::{
    collections::hash_map::RandomState,
    fs::File,
    hash::{BuildHasher as _, Hasher as _},
    io::{self, ErrorKind, Write as _},
    iter,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rustix::{
    fd::OwnedFd,
    fs::{
        AtFlags, Dir as Entries, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod,
        fchown, linkat, mkdirat, openat, renameat, renameat_with, statat, symlinkat, unlinkat,
    },
    io::Errno,
    process::geteuid,
};

use super::{FileAccess, Refused, walk::walk};

/// How the name of a file begins until it is complete. A killed run leaves such a file.
pub const INCOMPLETE: &str = ".stacklift-";

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// A directory that was opened once: what is written through it is in it, wherever its path leads later.
#[derive(Debug)]
pub struct Dir(File);

/// The rights of a new file. It has no set-id, sticky or execute bits.
#[derive(Debug, Clone, Copy)]
pub enum Rights {
    /// At most these, without those that the umask withholds.
    AtMost(u32),
    /// At most those of the file that it is a copy of.
    CopyOf(FileAccess),
    /// Those of the file that it replaces, with the same owner. Without one, only its owner has any.
    AsReplaced,
}

/// What happens to a file that already has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the write fails with `AlreadyExists`.
    Keep,
    /// It is replaced, if it belongs to the caller or to the directory's owner and is not of another kind. Otherwise, the
    /// write fails with [`Refused`].
    Replace,
}

impl Dir {
    /// Opens a directory. Fails with [`Refused::LinkOf`] if a link of another user leads to a directory that does not belong
    /// to that user.
    pub fn open(path: &Path) -> io::Result<Self> {
        let own = geteuid().as_raw();
        let mut givers = Vec::new();
        let found = walk(path, &mut |_, stat| {
            let is_foreign = ![0, own].contains(&stat.st_uid);
            givers.extend((is_foreign && kind(stat) == FileType::Symlink).then_some(stat.st_uid));
            Ok(())
        })?;
        let dir = File::from(openat(found, ".", DIRECTORY, Mode::empty())?);
        let owner = dir.metadata()?.uid();
        match givers.into_iter().find(|giver| *giver != owner) {
            Some(giver) => Err(Refused::LinkOf(giver).into()),
            None => Ok(Self(dir)),
        }
    }

    /// The same. Creates it and its parents if they are missing.
    pub fn create(path: &Path) -> io::Result<Self> {
        match (Self::open(path), path.parent(), path.file_name()) {
            (Err(error), Some(parent), Some(name)) if error.kind() == ErrorKind::NotFound => {
                let parent = Self::create(parent)?.0;
                match mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                let flags = DIRECTORY | OFlags::NOFOLLOW;
                Ok(Self(openat(&parent, name, flags, Mode::empty())?.into()))
            }
            (opened, ..) => opened,
        }
    }

    /// Whether the directory belongs to the caller.
    pub fn is_own(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.uid() == geteuid().as_raw())
    }

    /// Syncs the names of the files.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// Whether the directory has a regular file of this name. Fails with [`Refused`] for another kind of file.
    pub fn has_file(&self, name: &str) -> io::Result<bool> {
        match self.find(name)?.map(|found| kind(&found)) {
            None => Ok(false),
            Some(FileType::RegularFile) => Ok(true),
            Some(_) => Err(Refused::NotRegular.into()),
        }
    }

    /// Removes what killed runs left.
    pub fn remove_incomplete(&self) -> io::Result<()> {
        for entry in Entries::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_bytes().starts_with(INCOMPLETE.as_bytes()) {
                unlinkat(&self.0, name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// Gives a file another name as well, `NAME.old` or one with a number behind it. Returns that name; `None` without a file.
    pub fn keep(&self, name: &str) -> io::Result<Option<String>> {
        let numbers = (2..).map(|number: u32| number.to_string());
        for number in iter::once(String::new()).chain(numbers) {
            let copy = format!("{name}.old{number}");
            match linkat(&self.0, name, &self.0, &copy, AtFlags::empty()) {
                Ok(()) => return Ok(Some(copy)),
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Writes a file that is complete or absent, and syncs it. The directory is not synced.
    pub fn write(
        &self,
        name: &str,
        contents: &[u8],
        rights: Rights,
        existing: Existing,
    ) -> io::Result<()> {
        self.prepare(name, contents, rights, existing)?.finish()
    }

    /// The same without the last step: the file has another name until it is finished. It is removed if it never is.
    pub fn prepare<'d>(
        &'d self,
        name: &'d str,
        contents: &[u8],
        rights: Rights,
        existing: Existing,
    ) -> io::Result<Incomplete<'d>> {
        let replaced = match existing {
            Existing::Replace => self.check_replaced(name, &[FileType::RegularFile])?,
            Existing::Keep => None,
        };
        let owner = replaced.filter(|_| matches!(rights, Rights::AsReplaced));
        let rights = owner.map_or(rights, |found| {
            Rights::CopyOf(FileAccess {
                mode: found.st_mode & 0o666,
                gid: found.st_gid,
            })
        });
        let mode = match rights {
            Rights::AtMost(mode) => mode,
            Rights::AsReplaced | Rights::CopyOf(_) => 0o600,
        };
        let (incomplete, file) = self.new_file(mode)?;
        let prepared = Incomplete {
            dir: self,
            now: incomplete,
            name,
            existing,
        };
        if let Some(found) = owner {
            // Only root can, and another caller replaces its own file.
            fchown(&file, Some(Uid::from_raw(found.st_uid)), None).ok();
        }
        fill(&file.into(), contents, rights)?;
        Ok(prepared)
    }

    /// Creates a link to `target`, which replaces a file or link of this name.
    pub fn link(&self, name: &str, target: &str, existing: Existing) -> io::Result<()> {
        let kinds = [FileType::RegularFile, FileType::Symlink];
        if existing == Existing::Replace && self.check_replaced(name, &kinds)?.is_some() {
            unlinkat(&self.0, name, AtFlags::empty())?;
        }
        Ok(symlinkat(target, &self.0, name)?)
    }

    fn new_file(&self, mode: u32) -> io::Result<(String, OwnedFd)> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            // The keys of each of them are random.
            let random = RandomState::new().build_hasher().finish();
            let name = format!("{INCOMPLETE}{random:016x}");
            match openat(&self.0, &name, flags, Mode::from_raw_mode(mode & 0o666)) {
                Err(Errno::EXIST) => {}
                file => return Ok((name, file?)),
            }
        }
    }

    fn give_name(&self, incomplete: &str, name: &str, existing: Existing) -> io::Result<()> {
        let dir = &self.0;
        if existing == Existing::Replace {
            return Ok(renameat(dir, incomplete, dir, name)?);
        }
        match renameat_with(dir, incomplete, dir, name, RenameFlags::NOREPLACE) {
            // Some file systems do not support it.
            Err(Errno::INVAL | Errno::NOSYS) => {
                linkat(dir, incomplete, dir, name, AtFlags::empty())?;
                Ok(unlinkat(dir, incomplete, AtFlags::empty())?)
            }
            named => Ok(named?),
        }
    }

    /// What has this name. Fails if it may not be replaced.
    fn check_replaced(&self, name: &str, kinds: &[FileType]) -> io::Result<Option<Stat>> {
        let Some(found) = self.find(name)? else {
            return Ok(None);
        };
        if !kinds.contains(&kind(&found)) {
            return Err(Refused::NotRegular.into());
        }
        let owners = [geteuid().as_raw(), self.0.metadata()?.uid()];
        if !owners.contains(&found.st_uid) {
            return Err(Refused::OwnedBy(found.st_uid).into());
        }
        Ok(Some(found))
    }

    fn find(&self, name: &str) -> io::Result<Option<Stat>> {
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some(found?)),
        }
    }
}

/// A file that was written and does not have its name yet.
pub struct Incomplete<'d> {
    dir: &'d Dir,
    /// The name that it has now.
    now: String,
    name: &'d str,
    existing: Existing,
}

impl Incomplete<'_> {
    pub fn finish(self) -> io::Result<()> {
        self.dir.give_name(&self.now, self.name, self.existing)
    }
}

impl Drop for Incomplete<'_> {
    fn drop(&mut self) {
        // It is gone if it was finished.
        unlinkat(&self.dir.0, &self.now, AtFlags::empty()).ok();
    }
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

fn fill(mut file: &File, contents: &[u8], rights: Rights) -> io::Result<()> {
    file.write_all(contents)?;
    if let Rights::CopyOf(source) = rights {
        let mut mode = source.mode & 0o666;
        let is_same = file.metadata()?.gid() == source.gid
            || fchown(file, None, Some(Gid::from_raw(source.gid))).is_ok();
        if !is_same {
            // To the source, the members of this group are others.
            mode &= 0o606 | (mode & 0o006) << 3;
        }
        fchmod(file, Mode::from_raw_mode(mode))?;
    }
    // An empty file has nothing to lose.
    if contents.is_empty() {
        return Ok(());
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn c22_a_file_that_appears_meanwhile_is_kept() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("file");
        let dir = Dir::open(root.path()).expect("open");
        let new = dir
            .prepare("file", b"new", Rights::AtMost(0o600), Existing::Keep)
            .expect("a file");
        fs::write(&path, "other").expect("another file");
        let error = new.finish().expect_err("kept");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "other");
        let left = fs::read_dir(root.path()).expect("entries").count();
        assert_eq!(left, 1, "the incomplete file is removed");
    }
}
