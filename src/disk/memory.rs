//! Looks into the mounts of a container, which only its own processes see.

use std::{
    ffi::CStr,
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2},
    io::{Errno, read},
    process::geteuid,
};

use super::{DEADLINE, Refused, in_time_of};

/// A directory as it is read.
const DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// A file or directory as it is looked at.
const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The most directories one inside the other that are read: containers choose how deep theirs are.
const DEEPEST: u32 = 32;

/// Whether a directory of a container has anything in it (B36) besides mount points. `process` is the first one of the container,
/// in the numbers of its engine's host. Fails with [`Refused::Hidden`] if this user may not look, and unless that is the process
/// here, too: its parent, which containerd starts, names the container.
///
/// The path belongs to the users of the container: no link leads out of its root directory, and a file system that does not
/// respond is waited for once.
pub fn holds_files(process: u64, container: &str, path: &str) -> io::Result<bool> {
    let path = PathBuf::from(path);
    look(process, container, move |roots| {
        let flags = DIR.difference(OFlags::NOFOLLOW);
        let dir = openat2(
            &roots.own,
            &path,
            flags,
            Mode::empty(),
            ResolveFlags::IN_ROOT,
        )?;
        Ok(content(&dir, DEEPEST)? == Content::Own)
    })
}

/// Whether a container mounts another file or directory at `target` than its host has at `source` now: it was replaced since, or a
/// file system was mounted there. Fails as [`holds_files`] does, and if there is none.
pub fn is_replaced(process: u64, container: &str, target: &str, source: &str) -> io::Result<bool> {
    let (target, source) = (PathBuf::from(target), PathBuf::from(source));
    look(process, container, move |roots| {
        let open = |root: &OwnedFd, path: &Path| {
            openat2(root, path, PATH, Mode::empty(), ResolveFlags::IN_ROOT)
        };
        let mounted = fstat(open(&roots.own, &target)?)?;
        let now = fstat(open(&roots.of_host, &source)?)?;
        let kind = FileType::from_raw_mode(mounted.st_mode);
        let is_same = (mounted.st_dev, mounted.st_ino) == (now.st_dev, now.st_ino);
        Ok(matches!(kind, FileType::RegularFile | FileType::Directory) && !is_same)
    })
}

/// The root directory of a container, and that of containerd, which is its host's.
struct Roots {
    own: OwnedFd,
    of_host: OwnedFd,
}

fn look<T: Send + 'static>(
    process: u64,
    container: &str,
    read: impl FnOnce(&Roots) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let own = container.to_owned();
    // The ID stands for all of its file systems.
    let looked = in_time_of(DEADLINE, Path::new(container), move || {
        read(&roots(process, &own)?)
    });
    looked.map_err(|error| {
        let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
        if is_denied && !geteuid().is_root() {
            return Refused::Hidden.into();
        }
        error
    })
}

fn roots(process: u64, container: &str) -> io::Result<Roots> {
    let own = match openat(CWD, format!("/proc/{process}"), PATH, Mode::empty()) {
        Err(Errno::NOENT) => return Err(Refused::Hidden.into()),
        own => own?,
    };
    let status = text(&own, "status")?;
    let mut lines = status.lines();
    let parent = lines.find_map(|line| line.strip_prefix("PPid:"));
    let parent = parent.unwrap_or_default().trim();
    if !text(CWD, &format!("/proc/{parent}/cmdline"))?.contains(container) {
        return Err(Refused::Hidden.into());
    }
    Ok(Roots {
        own: openat(&own, "root", PATH, Mode::empty())?,
        of_host: openat(CWD, format!("/proc/{parent}/root"), PATH, Mode::empty())?,
    })
}

/// What is in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    /// Mount points, and the directories on the way to them.
    Mounts,
    /// Something else, such as an empty directory.
    Own,
}

fn content(dir: &OwnedFd, depth: u32) -> io::Result<Content> {
    let mut found = Content::Nothing;
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if content_of_entry(dir, name, depth)? != Content::Mounts {
            return Ok(Content::Own);
        }
        found = Content::Mounts;
    }
    Ok(found)
}

fn content_of_entry(dir: impl AsFd, name: &CStr, depth: u32) -> io::Result<Content> {
    match openat2(dir, name, DIR, Mode::empty(), ResolveFlags::NO_XDEV) {
        Err(Errno::XDEV) => Ok(Content::Mounts),
        Ok(below) if depth > 0 => content(&below, depth - 1),
        // It is no directory, or one that not even root may read.
        _ => Ok(Content::Own),
    }
}

/// The beginning of a file in `/proc`.
fn text(dir: impl AsFd, path: &str) -> io::Result<String> {
    let file = openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = [0; 4096];
    let count = read(&file, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, process, time::Duration};

    use super::*;

    /// This process, and the command of its parent: Cargo, or a shell.
    fn own_and_parent() -> (u64, String) {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let parent = lines.find_map(|line| line.strip_prefix("PPid:")).unwrap();
        let command = fs::read_to_string(format!("/proc/{}/cmdline", parent.trim())).unwrap();
        let command = command.split('\0').next().unwrap();
        (process::id().into(), command.to_owned())
    }

    #[test]
    fn b36_only_a_process_whose_parent_names_the_container_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let (own, parent) = own_and_parent();
        let parent = parent.as_str();
        assert!(!holds_files(own, parent, path).unwrap());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(holds_files(own, parent, path).unwrap());
        assert!(holds_files(own, &"0123".repeat(16), path).is_err());
        assert!(holds_files(own, parent, "/does/not/exist").is_err());
    }

    #[test]
    fn b36_a_replaced_file_is_another_one() {
        let (own, parent) = own_and_parent();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let [one, two] = ["one", "two"].map(path);
        fs::write(&one, "").unwrap();
        fs::write(&two, "").unwrap();
        let is_replaced = |source| is_replaced(own, &parent, &one, source);
        assert!(!is_replaced(&one).unwrap());
        assert!(is_replaced(&two).unwrap());
        assert!(is_replaced("/does/not/exist").is_err());
    }

    #[test]
    fn b36_mount_points_are_no_files() {
        let root = openat(CWD, "/", DIR, Mode::empty()).unwrap();
        let mount = content_of_entry(&root, c"proc", DEEPEST).unwrap();
        assert_eq!(mount, Content::Mounts);
        let folder = tempfile::tempdir().unwrap();
        let of = || content(&openat(CWD, folder.path(), DIR, Mode::empty()).unwrap(), 1).unwrap();
        assert_eq!(of(), Content::Nothing);
        fs::create_dir(folder.path().join("empty")).unwrap();
        assert_eq!(of(), Content::Own);
    }

    #[test]
    fn b43_a_container_that_does_not_respond_is_waited_for_once() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let hangs = move || receiver.recv().map_err(io::Error::other);
        let timed_out = |done: io::Result<()>| {
            let error = done.expect_err("no answer");
            assert_eq!(Refused::of(&error), Some(Refused::TimedOut));
        };
        timed_out(in_time_of(
            Duration::from_millis(10),
            Path::new("dead"),
            hangs,
        ));
        timed_out(in_time_of(DEADLINE, Path::new("dead"), || {
            panic!("it is asked again")
        }));
        in_time_of(DEADLINE, Path::new("alive"), || Ok(())).unwrap();
        drop(sender);
    }
}
