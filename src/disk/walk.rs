//! Follows a path step by step, so that every directory and link on it is seen.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat},
    io::Errno,
    process::geteuid,
};

/// The most links on a path, as in the kernel.
const MOST_LINKS: usize = 40;

/// Gets the path and the state of what is on the way.
pub(super) type See<'s> = dyn FnMut(&Path, &Stat) -> io::Result<()> + 's;

const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory, without the right to read it. `see` gets the path and the state of each directory and link on the way,
/// and may refuse it.
pub(super) fn walk(path: &Path, see: &mut See) -> io::Result<OwnedFd> {
    let dir = follow(start(path, see)?, path, see)?;
    Ok(openat(&dir, ".", STEP | OFlags::DIRECTORY, Mode::empty())?)
}

/// Opens what is at a path, which may be relative to a directory, in the same way.
pub(super) fn walk_below(dir: &OwnedFd, path: &Path, see: &mut See) -> io::Result<OwnedFd> {
    let from = if path.is_absolute() {
        start(path, see)?
    } else {
        (dir.try_clone()?, PathBuf::new())
    };
    follow(from, path, see)
}

fn follow(from: (OwnedFd, PathBuf), path: &Path, see: &mut See) -> io::Result<OwnedFd> {
    let (mut dir, mut shown) = from;
    let mut ahead = parts(path);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        let next = openat(&dir, &part, STEP, Mode::empty())?;
        let stat = fstat(&next)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::LOOP.into());
            }
            see(&shown.join(&part), &stat)?;
            let target = readlinkat(&next, "", Vec::new())?;
            let target = Path::new(OsStr::from_bytes(target.as_bytes()));
            if target.is_absolute() {
                (dir, shown) = start(target, see)?;
            }
            ahead.extend(parts(target));
            continue;
        }
        if part == ".." {
            shown.pop();
        } else {
            shown.push(&part);
        }
        see(&shown, &stat)?;
        dir = next;
    }
    Ok(dir)
}

/// Fails unless every existing directory and link on an absolute path belongs to root or to the caller, and only they can
/// replace what is in it: nobody else can write to the directory, or it is sticky (B32).
pub fn check_path(path: &Path) -> io::Result<()> {
    let own = geteuid().as_raw();
    let mut check = |at: &Path, stat: &Stat| {
        let refused = |why: &str| Err(io::Error::other(format!("{} {why}", at.display())));
        if stat.st_uid != 0 && stat.st_uid != own {
            return refused("belongs to another user");
        }
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let is_private = is_private(stat.st_gid);
        let others = if is_private { 0o002 } else { 0o022 };
        if is_dir && stat.st_mode & 0o1000 == 0 && stat.st_mode & others != 0 {
            return refused("is writable by other users");
        }
        Ok(())
    };
    match walk(path, &mut check) {
        // What cannot be opened cannot be used either.
        Err(error) if error.raw_os_error().is_none() => Err(error),
        _ => Ok(()),
    }
}

/// Whether a group is root's or the caller's private one, which has the number of the user: no other user is a member.
pub(super) fn is_private(group: u32) -> bool {
    group == 0 || group == geteuid().as_raw()
}

fn start(path: &Path, see: &mut See) -> io::Result<(OwnedFd, PathBuf)> {
    let from = Path::new(if path.is_absolute() { "/" } else { "." });
    let dir = openat(CWD, from, STEP | OFlags::DIRECTORY, Mode::empty())?;
    see(from, &fstat(&dir)?)?;
    Ok((dir, from.to_owned()))
}

/// The steps of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev();
    let steps = parts.filter(|one| matches!(one, Component::Normal(_) | Component::ParentDir));
    steps.map(|part| part.as_os_str().to_owned()).collect()
}
