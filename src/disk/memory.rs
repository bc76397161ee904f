//! Looks into the mounts of a container, which only its own processes see.

use std::{io, path::Path, path::PathBuf};

use rustix::{
    fs::{CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2},
    io::{Errno, read},
};

use super::{DEADLINE, within};

/// Whether a directory of a container has anything in it (B36). `process` is the first one of the container, in the numbers of its
/// engine's host. Fails unless that is the process here, too: its parent, which containerd starts, names the container.
///
/// The path belongs to the users of the container: no link leads out of its root directory, and a file system that does not
/// respond is not waited for.
pub fn holds_files(process: u64, container: &str, path: &str) -> io::Result<bool> {
    let (container, path) = (container.to_owned(), PathBuf::from(path));
    within(DEADLINE, move || look(process, &container, &path))
}

fn look(process: u64, container: &str, path: &Path) -> io::Result<bool> {
    const PATH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    let own = openat(CWD, format!("/proc/{process}"), PATH, Mode::empty())?;
    let status = text(&own, "status")?;
    let mut lines = status.lines();
    let parent = lines.find_map(|line| line.strip_prefix("PPid:"));
    let parent = parent.unwrap_or_default().trim();
    if !text(CWD, &format!("/proc/{parent}/cmdline"))?.contains(container) {
        return Err(Errno::SRCH.into());
    }
    let root = openat(&own, "root", PATH, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let dir = openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    for entry in Dir::new(dir)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The beginning of a file in `/proc`.
fn text(dir: impl rustix::fd::AsFd, path: &str) -> io::Result<String> {
    let file = openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = [0; 4096];
    let count = read(&file, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, process};

    use super::*;

    #[test]
    fn b36_only_a_process_whose_parent_names_the_container_is_looked_at() {
        let own = u64::from(process::id());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        // Cargo, or a shell.
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let parent = status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:"))
            .unwrap();
        let parent = fs::read_to_string(format!("/proc/{}/cmdline", parent.trim())).unwrap();
        let parent = parent.split('\0').next().unwrap();
        assert!(!holds_files(own, parent, path).unwrap());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(holds_files(own, parent, path).unwrap());
        assert!(holds_files(own, &"0123".repeat(16), path).is_err());
        assert!(holds_files(own, parent, "/does/not/exist").is_err());
    }
}
