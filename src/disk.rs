//! Opens the files of stacks, and writes files for users. No other module does (B25, B29, B30).
//!
//! A stack's directory may belong to a user who must not read what root may read. Root therefore opens its files with the
//! rights of that user: the kernel then checks the file and every directory on the path, at the time of the opening.

use std::{
    cell::Cell,
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileTypeExt as _, MetadataExt as _},
    },
    path::{Component, Path, PathBuf},
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, FileType, Gid, Mode, OFlags, Stat, Uid, makedev, openat},
    io::Errno,
    process::{DumpableBehavior, geteuid, set_dumpable_behavior},
    thread::{
        CapabilitySet, capabilities, set_capabilities, set_thread_groups, set_thread_res_gid,
        set_thread_res_uid,
    },
};

use crate::parallel::lock;

mod memory;
mod walk;
mod write;

pub use memory::{holds_files, is_replaced};
pub use walk::check_path;
pub use write::{Dir, Existing, INCOMPLETE, Rights};

/// The most bytes of a file.
pub const MOST: u64 = 16 << 20;

/// How long a file system may take to respond. A disk that has to spin up takes about ten seconds, and a network file system
/// whose server is gone never responds.
const DEADLINE: Duration = Duration::from_secs(20);

/// The group that owns nothing.
const NO_GROUP: u32 = 65_534;

/// A file, read from one descriptor.
#[derive(Debug, Clone)]
pub struct Contents {
    pub bytes: Vec<u8>,
    pub access: FileAccess,
}

/// Who may access a file, according to its descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileAccess {
    /// The permission bits.
    pub mode: u32,
    pub gid: u32,
}

/// Why a file or directory that exists is not read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is larger than {} MiB", MOST >> 20)]
    TooLarge,
    /// The user who owns the stack's directory, or a link or directory on the way to it, cannot read it.
    #[error("the owner of its directory, or of a link to it (user {0}) cannot read it")]
    NotReadableBy(u32),
    /// A link would mean another file where it was written.
    #[error("a link or `..` is on the path to it")]
    Link,
    /// It contains secrets and is not only for root and the caller.
    #[error("it must be a file that is owned by you or root and not accessible to others")]
    Exposed,
    /// Its path has a link of this user, who does not own the directory.
    #[error("a link of the user {0} leads there, and the directory does not belong to that user")]
    LinkOf(u32),
    /// This user owns the file that would be replaced.
    #[error("it belongs to the user {0}")]
    OwnedBy(u32),
    #[error("the file system did not respond within {DEADLINE:?}")]
    TimedOut,
    /// The processes of containers are not there for this user.
    #[error("only root on the host of Docker can look into the containers")]
    Hidden,
}

impl Refused {
    /// The refusal in the chain of causes of an error.
    pub fn in_chain(error: &anyhow::Error) -> Option<Self> {
        let mut causes = error.chain();
        causes.find_map(|cause| Self::of(cause.downcast_ref()?))
    }

    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        Self::other(refused)
    }
}

/// Opens a regular file without waiting. Fails for anything else: a pipe would be waited for.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let (file, metadata) = open_at(CWD, path)?;
    if is_null(&metadata) {
        return Err(Refused::NotRegular.into());
    }
    Ok((file, metadata))
}

/// The same for a file of this program's user, with secrets. Fails with [`Refused::Exposed`] if it belongs neither to root nor
/// to the caller, or gives others any right (B31). A private group may read it.
pub fn open_secret(path: &Path) -> io::Result<(File, Metadata)> {
    let (file, metadata) = open(path)?;
    let is_private = walk::is_private(metadata.gid());
    let others = if is_private { 0o037 } else { 0o077 };
    if is_ours(&metadata) && metadata.mode() & others == 0 {
        Ok((file, metadata))
    } else {
        Err(Refused::Exposed.into())
    }
}

/// Whether a file belongs to root or the caller.
pub fn is_ours(metadata: &Metadata) -> bool {
    [0, geteuid().as_raw()].contains(&metadata.uid())
}

/// What is in a directory, as paths.
pub fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    in_time(dir, |dir| {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
    })
}

/// Reads a file of the stack in the directory `dir`. `path` is absolute or relative to `dir`. It fails with [`Refused`] for
/// anything but a regular file of at most [`MOST`] bytes. If root runs, and the directory, or a link or a directory on the way
/// from it to the file, belongs to another user, it also does for a file that the first such user cannot read (B44).
pub fn read(dir: &Path, path: &Path) -> io::Result<Contents> {
    read_with(dir, path, Links::Followed)
}

/// The same for a file below a directory. Fails with [`Refused::Link`] for a path with a link or `..` in it.
pub fn read_below(dir: &Path, path: &Path) -> io::Result<Contents> {
    read_with(dir, path, Links::Refused)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    Followed,
    Refused,
}

fn read_with(dir: &Path, path: &Path, links: Links) -> io::Result<Contents> {
    let whole = dir.join(path);
    let path = path.strip_prefix(dir).unwrap_or(path).to_owned();
    let dir = dir.to_owned();
    if links == Links::Refused
        && !path
            .components()
            .all(|component| matches!(component, Component::Normal(_)))
    {
        return Err(Refused::Link.into());
    }
    in_time(&whole, move |_| {
        let is_root = geteuid().is_root();
        let (folder, seen) = opened(&dir)?;
        let giver = Cell::new(giver(&seen));
        let walk = || {
            walk::walk_below(&folder, &path, &mut |_, stat| {
                let kind = FileType::from_raw_mode(stat.st_mode);
                if kind == FileType::Symlink && links == Links::Refused {
                    return Err(Refused::Link.into());
                }
                if [FileType::Symlink, FileType::Directory].contains(&kind) {
                    giver.set(giver.get().or_else(|| other_user(stat)));
                }
                Ok(())
            })
        };
        let found = walk();
        let user = giver.get();
        let found = match (found, user) {
            (Err(error), _) if user.is_none() || Refused::of(&error).is_some() => {
                return Err(error);
            }
            (_, Some(user)) => {
                take_rights_of(user)?;
                // The kernel would follow links such as /proc/self/cwd to where only this process gets.
                walk()
            }
            (found, None) => found,
        };
        let opened = if is_root {
            // What is on the way may be another file now.
            found.and_then(|found| {
                let path = format!("/proc/self/fd/{}", found.as_raw_fd());
                open_at(CWD, Path::new(&path))
            })
        } else {
            open_at(&folder, &path)
        };
        read_opened(opened.map_err(|error| match user {
            Some(user) if error.kind() == io::ErrorKind::PermissionDenied => {
                Refused::NotReadableBy(user).into()
            }
            _ => error,
        })?)
    })
}

/// The user with whose rights a program runs in a directory; `None` for those of this process, also if the user cannot reach
/// the directory and only root decides that: a user could hide a directory and still replace its files.
pub fn user_of(dir: &Path) -> io::Result<Option<u32>> {
    in_time(dir, |path| {
        let seen = opened(&path)?.1;
        let Some(user) = giver(&seen) else {
            return Ok(None);
        };
        take_rights_of(user)?;
        let reached = fs::metadata(path.join("."));
        let is_hidden = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let is_hidden = reached.is_err_and(|error| is_hidden(&error));
        let above = seen.split_last().map_or(&[][..], |(_, above)| above);
        Ok((!is_hidden || above.iter().any(|stat| stat.st_uid != 0)).then_some(user))
    })
}

/// Gives this process, which has one thread, the groups of a user, so that `Command::uid` gives a program all IDs of that user.
pub fn take_groups_of(user: u32) -> io::Result<()> {
    let (group, groups) = groups_of(user);
    set_thread_groups(&groups)?;
    set_thread_res_gid(group, group, group)?;
    // `Command` drops the groups of root's programs, if it can.
    let mut rights = capabilities(None)?;
    rights.effective.remove(CapabilitySet::SETGID);
    rights.permitted.remove(CapabilitySet::SETGID);
    Ok(set_capabilities(None, rights)?)
}

/// What is at a path, following links.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    in_time(path, fs::metadata)
}

/// The path without links.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    in_time(path, fs::canonicalize)
}

/// Whether an error says that nothing is at a path.
pub fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Whether something is at a path, following links.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

pub fn is_link(path: &Path) -> bool {
    in_time(path, fs::symlink_metadata).is_ok_and(|metadata| metadata.is_symlink())
}

pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|metadata| metadata.is_file())
}

pub fn is_dir(path: &Path) -> bool {
    metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Runs a task that looks at a path. Nobody waits twice for a file system that does not respond.
fn in_time<T: Send + 'static>(
    path: &Path,
    task: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let own = path.to_owned();
    in_time_of(DEADLINE, path, || task(own))
}

fn in_time_of<T: Send + 'static>(
    limit: Duration,
    path: &Path,
    task: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    static DEAD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let dead = || lock(&DEAD);
    if dead().iter().any(|dir| path.starts_with(dir)) {
        return Err(Refused::TimedOut.into());
    }
    let done = within(limit, task);
    if done.as_ref().err().and_then(Refused::of) == Some(Refused::TimedOut) {
        dead().push(mount_of(path, &mounts()).unwrap_or(path).to_owned());
    }
    done
}

/// Whether a path is in a file system that is mounted below the root directory.
pub fn is_in_mount(path: &Path) -> bool {
    mount_of(path, &mounts()).is_some()
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mounts").unwrap_or_default()
}

/// Where the file system of a path is mounted; `None` if that is the root directory.
fn mount_of<'p>(path: &'p Path, mounts: &str) -> Option<&'p Path> {
    // device directory type options 0 0
    let escaped = |dir: &Path| dir.to_string_lossy().replace(' ', r"\040");
    let is_mounted = |dir: &&Path| {
        let (dir, mut lines) = (escaped(dir), mounts.lines());
        lines.any(|line| line.split(' ').nth(1) == Some(&dir))
    };
    let mut below_root = path.ancestors().filter(|dir| dir.parent().is_some());
    below_root.find(is_mounted)
}

/// Runs a task on its own thread. A thread that does not end in time is left behind: nothing ends a system call that waits
/// for a file system.
fn within<T: Send + 'static>(
    limit: Duration,
    task: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || sender.send(task()).ok())?;
    receiver
        .recv_timeout(limit)
        .unwrap_or_else(|_| Err(Refused::TimedOut.into()))
}

fn open_at(dir: impl rustix::fd::AsFd, path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(dir, path, flags, Mode::empty()) {
        // A socket, and a device without a driver.
        Err(Errno::NXIO | Errno::NODEV) => return Err(Refused::NotRegular.into()),
        file => File::from(file?),
    };
    let metadata = file.metadata()?;
    if metadata.is_file() || is_null(&metadata) {
        Ok((file, metadata))
    } else {
        Err(Refused::NotRegular.into())
    }
}

/// Whether it is `/dev/null`, with which a stack has no env file.
fn is_null(metadata: &Metadata) -> bool {
    metadata.file_type().is_char_device() && metadata.rdev() == makedev(1, 3)
}

fn read_opened((file, metadata): (File, Metadata)) -> io::Result<Contents> {
    let mut bytes = Vec::new();
    // The size of a file that is being written, or of a file in /proc, is not what can be read.
    if metadata.len() <= MOST {
        file.take(MOST + 1).read_to_end(&mut bytes)?;
    }
    if metadata.len().max(bytes.len() as u64) > MOST {
        return Err(Refused::TooLarge.into());
    }
    let access = FileAccess {
        mode: if is_null(&metadata) {
            0o600
        } else {
            metadata.mode() & 0o7777
        },
        gid: metadata.gid(),
    };
    Ok(Contents { bytes, access })
}

/// Opens a directory. Returns also what is on the path to it: each directory and link, and the directory itself last.
fn opened(dir: &Path) -> io::Result<(OwnedFd, Vec<Stat>)> {
    let mut seen = Vec::new();
    let opened = walk::walk(dir, &mut |_, stat| {
        seen.push(*stat);
        Ok(())
    })?;
    Ok((opened, seen))
}

/// If this is root: the user besides root who owns the directory at the end of a path, or a link on it.
fn giver(seen: &[Stat]) -> Option<u32> {
    let is_link = |one: &&Stat| FileType::from_raw_mode(one.st_mode) == FileType::Symlink;
    let (links, dirs): (Vec<&Stat>, Vec<&Stat>) = seen.iter().partition(is_link);
    let mut owners = dirs.last().into_iter().chain(&links);
    owners.find_map(|stat| other_user(stat))
}

/// If this is root: the owner, unless that is root.
fn other_user(stat: &Stat) -> Option<u32> {
    Some(stat.st_uid).filter(|&uid| uid != 0 && geteuid().is_root())
}

/// Gives the rights of a user to this thread only. The thread does not get back those of root.
///
/// Only the effective IDs change: the user may not send a signal to the thread.
fn take_rights_of(user: u32) -> io::Result<()> {
    let (group, groups) = groups_of(user);
    set_thread_groups(&groups)?;
    set_thread_res_gid(None, group, None)?;
    set_thread_res_uid(None, Uid::from_raw(user), None)?;
    // The kernel resets it when a user changes.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// The primary group of a user, and all others. A user whom this host does not know has none.
fn groups_of(user: u32) -> (Gid, Vec<Gid>) {
    let [users, groups] =
        ["/etc/passwd", "/etc/group"].map(|file| fs::read_to_string(file).unwrap_or_default());
    let (group, others) = groups_in(user, &users, &groups);
    let others = others.into_iter().map(Gid::from_raw).collect();
    (Gid::from_raw(group), others)
}

/// The name of a user, if the user has an account.
pub fn name_of(user: u32) -> Option<String> {
    field_of(user, 0)
}

/// The home of a user, if the user has an account.
pub fn home_of(user: u32) -> Option<String> {
    field_of(user, 5)
}

fn field_of(user: u32, at: usize) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    account(user, &users)?
        .get(at)
        .map(|&field| field.to_owned())
}

/// The fields of an account: `name:password:uid:gid:comment:home:shell`.
fn account(user: u32, users: &str) -> Option<Vec<&str>> {
    let mut all = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    all.find(|fields| fields.get(2) == Some(&user.to_string().as_str()))
}

fn groups_in(user: u32, users: &str, groups: &str) -> (u32, Vec<u32>) {
    let found = account(user, users);
    let Some([name, _, _, group, ..]) = found.as_deref() else {
        return (NO_GROUP, Vec::new());
    };
    // name:password:gid:member,…
    let groups = groups.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let group = fields.nth(2)?.parse().ok()?;
        let mut members = fields.next()?.split(',');
        members.any(|member| member == *name).then_some(group)
    });
    (group.parse().unwrap_or(NO_GROUP), groups.collect())
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::{fs::PermissionsExt as _, net::UnixListener},
        time::Instant,
    };

    use super::*;

    fn refused(dir: &Path, path: &str) -> Option<Refused> {
        Refused::of(&read(dir, Path::new(path)).expect_err("refused"))
    }

    #[test]
    fn b29_only_a_regular_file_of_limited_size_is_read() {
        let root = tempfile::tempdir().expect("a folder");
        let dir = root.path();
        rustix::fs::mkfifoat(CWD, dir.join("pipe"), Mode::RUSR).expect("a pipe");
        drop(UnixListener::bind(dir.join("socket")).expect("a socket"));
        for path in ["pipe", "socket", "/dev/zero", "."] {
            assert_eq!(refused(dir, path), Some(Refused::NotRegular), "{path}");
        }
        let null = read(dir, Path::new("/dev/null")).expect("read");
        assert_eq!((null.bytes.len(), null.access.mode), (0, 0o600));
        let sparse = File::create(dir.join("sparse")).expect("a file");
        sparse.set_len(MOST + 1).expect("a size");
        assert_eq!(refused(dir, "sparse"), Some(Refused::TooLarge));
        sparse.set_len(MOST).expect("a size");
        sparse
            .set_permissions(fs::Permissions::from_mode(0o640))
            .expect("a mode");
        let read = read(dir, &dir.join("sparse")).expect("read");
        assert_eq!(read.bytes.len() as u64, MOST);
        assert_eq!(read.access.mode, 0o640);
        assert_eq!(refused(dir, "none"), None, "it does not exist");
    }

    #[test]
    fn b25_a_file_system_that_does_not_respond_is_waited_for_once() {
        let look = |path: &str| {
            let began = Instant::now();
            let asleep = || {
                thread::sleep(Duration::from_secs(1));
                Ok(())
            };
            let looked = in_time_of(Duration::from_millis(50), Path::new(path), asleep);
            let waited = began.elapsed() >= Duration::from_millis(50);
            (Refused::of(&looked.expect_err("no answer")), waited)
        };
        let dead = Some(Refused::TimedOut);
        assert_eq!(look("/dead/web"), (dead, true));
        assert_eq!(look("/dead/web/.env"), (dead, false));
        assert_eq!(look("/dead/website"), (dead, true));
        let mounts = "a / ext4 rw 0 0\nb /a\\040b nfs rw 0 0\n";
        assert_eq!(
            mount_of(Path::new("/a b/c"), mounts),
            Some(Path::new("/a b"))
        );
        assert_eq!(mount_of(Path::new("/c/d"), mounts), None);
    }

    #[test]
    fn b29_the_groups_of_a_user() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbob:x:1000:100::/home/bob:/bin/sh\n";
        let groups = "users:x:100:\ndocker:x:998:alice,bob\nbobs:x:7:bobby\n";
        assert_eq!(groups_in(1000, users, groups), (100, vec![998]));
        assert_eq!(groups_in(1001, users, groups), (NO_GROUP, Vec::new()));
    }
}
