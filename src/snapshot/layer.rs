//! The files of a container's own layer that a snapshot keeps (B18). Compose copied them into the container, or something
//! inside it wrote them.
//!
//! Invariant: pure; reads tar archives.
#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read as _},
};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tar::{Builder, EntryType, Header};

use crate::model::Container;
use crate::model::{Change, ChangeKind, Changes};

/// The most bytes that are kept of one container.
pub const MOST_BYTES: u64 = 1 << 20;

/// The most bytes of an archive to read for the headers of its first entry.
const HEADERS: u64 = 8 << 10;

/// The most paths that are read of one container. Each read takes the engine about 0.1 seconds.
const MOST_READS: usize = 50;

/// Where Compose copies secrets to.
const SECRETS: &str = "/run/secrets";

/// The directories of locks that belong to a process.
const OF_PROCESSES: [&str; 5] = ["/run/", "/tmp/", "/var/lock/", "/var/run/", "/var/tmp/"];

/// What a snapshot keeps of a container's own layer.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// A tar archive to unpack into the root directory. Empty if it would contain nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "as_base64")]
    pub archive: Vec<u8>,
    /// The changed paths that hold data and are not in the archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<String>,
    /// Why a path could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A file in the archive, without its times.
#[derive(PartialEq, Eq)]
pub struct LayerFile {
    kind: EntryType,
    mode: u32,
    owner: (u64, u64),
    link: Option<Vec<u8>>,
    data: Vec<u8>,
}

/// An entry of a tar archive.
struct Entry {
    path: Vec<u8>,
    link: Option<Vec<u8>>,
    /// Extended attributes and everything else that the header cannot hold.
    extensions: Vec<(String, Vec<u8>)>,
    header: Header,
    data: Vec<u8>,
}

impl Entry {
    /// `below` is the directory that the archive is of.
    fn read(mut entry: tar::Entry<'_, &[u8]>, below: &str) -> io::Result<Self> {
        let below = below.trim_start_matches('/');
        let named = |name: &[u8]| {
            let name = name.strip_suffix(b"/").unwrap_or(name);
            let mut path = below.as_bytes().to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            path
        };
        let mut extensions = Vec::new();
        for extension in entry.pax_extensions()?.into_iter().flatten() {
            let extension = extension?;
            if let Ok(key) = extension.key()
                && !matches!(key, "path" | "linkpath")
            {
                extensions.push((key.to_owned(), extension.value_bytes().to_vec()));
            }
        }
        let is_hard_link = entry.header().entry_type() == EntryType::Link;
        let link = entry.link_name_bytes().map(|link| {
            if is_hard_link {
                named(&link)
            } else {
                link.into_owned()
            }
        });
        let (path, header) = (named(&entry.path_bytes()), entry.header().clone());
        let mut data = Vec::new();
        entry.read_to_end(&mut data)?;
        Ok(Self {
            path,
            link,
            extensions,
            header,
            data,
        })
    }
}

impl Layer {
    /// Reads what is small enough. `read` returns a path as a tar archive of at most that many bytes, and whether it is
    /// complete. What is larger is [`Self::unsaved`]. Of the directories of the image, only the owner and the mode are kept,
    /// if `keeps_directories`.
    ///
    /// Files that name a process are left out, because they would make a program refuse to start. So are sockets, which
    /// no archive can contain.
    pub fn read(
        container: &Container,
        changes: &Changes,
        keeps_directories: bool,
        read: impl Fn(&str, u64) -> Result<(Vec<u8>, bool)>,
    ) -> Self {
        let mut layer = Self::default();
        // Nothing can be copied into a file system that is read-only.
        let keeps_directories = keeps_directories && !container.has_read_only_root();
        let paths: Vec<&str> = changes
            .listed
            .iter()
            .map(|change| change.path.as_str())
            .collect();
        let leaves: BTreeSet<&str> = container.own_files(&paths, &[]).into_iter().collect();
        let mut left = MOST_BYTES;
        let mut done = BTreeSet::new();
        let (mut entries, mut directories) = (Vec::new(), Vec::new());
        for change in roots(container, changes, &leaves)
            .into_iter()
            .take(MOST_READS)
        {
            let root = change.path.as_str();
            let (archive, is_whole) = match read(root, left) {
                Ok(archive) => archive,
                // The engine replaces what is not UTF-8 in a name, and does not find the file by that name.
                Err(_) if root.contains(char::REPLACEMENT_CHARACTER) => continue,
                Err(error) => {
                    layer.failure = Some(format!("{error:#}"));
                    // The engine may not respond: each read would wait for it.
                    break;
                }
            };
            if change.kind == ChangeKind::Modified
                && let Some(directory) = directory(&archive, root)
            {
                // No file of it changed: something inside it came and went, or its owner or mode changed.
                directories.extend(keeps_directories.then_some(directory));
                done.insert(root);
            } else if is_whole && let Ok(read) = entries_in(&archive, parent(root)) {
                left = left.saturating_sub(archive.len() as u64);
                entries.extend(read);
                done.insert(root);
            }
        }
        if keeps_directories {
            let above = directories_above(changes, &leaves).into_iter();
            let read = |root| directory(&read(root, HEADERS).ok()?.0, root);
            directories.extend(above.take(MOST_READS).filter_map(read));
        }
        directories.sort_by(|one, other| one.path.cmp(&other.path));
        entries.retain(|entry: &Entry| {
            let is_directory = entry.header.entry_type() == EntryType::Directory;
            is_directory || !names_a_process(&absolute(&entry.path))
        });
        let is_done = |path: &str| ancestors(path).any(|one| done.contains(one));
        let deleted: BTreeSet<&str> = changes.deleted().collect();
        let unsaved = leaves
            .into_iter()
            .filter(|leaf| !names_a_process(leaf) && !deleted.contains(leaf) && !is_done(leaf));
        layer.unsaved = unsaved.map(str::to_owned).collect();
        directories.extend(entries);
        match packed(directories) {
            Ok(archive) => layer.archive = archive,
            // Writing to memory does not fail; if it does, nothing was saved.
            Err(error) => layer.failure = Some(error.to_string()),
        }
        layer
    }

    /// The files in the archive by their absolute path, without directories.
    pub fn files(&self) -> BTreeMap<String, LayerFile> {
        let entries = entries_in(&self.archive, "").unwrap_or_default();
        let files = entries.into_iter().map(|entry| {
            let header = &entry.header;
            let file = LayerFile {
                kind: header.entry_type(),
                mode: header.mode().unwrap_or_default(),
                owner: (
                    header.uid().unwrap_or_default(),
                    header.gid().unwrap_or_default(),
                ),
                link: entry.link,
                data: entry.data,
            };
            (absolute(&entry.path), file)
        });
        files
            .filter(|(_, file)| file.kind != EntryType::Directory)
            .collect()
    }
}

/// The paths to read: those that are changed, without what is below another one, and without the directories of mounts,
/// which the engine creates. Secrets come first, then the paths closest to the root directory.
fn roots<'c>(
    container: &Container,
    changes: &'c Changes,
    leaves: &BTreeSet<&str>,
) -> Vec<&'c Change> {
    let targets = container.own_targets(&[]);
    let above = targets.iter().flat_map(|target| ancestors(target));
    let made: BTreeSet<&str> = above.collect();
    let mut existing: Vec<&Change> = changes
        .listed
        .iter()
        .filter(|change| match change.kind {
            ChangeKind::Added => !made.contains(change.path.as_str()),
            ChangeKind::Modified => leaves.contains(change.path.as_str()),
            ChangeKind::Deleted => false,
        })
        .filter(|change| !names_a_process(&change.path) && !container.hides(&change.path))
        .collect();
    let found: BTreeSet<&str> = existing.iter().map(|one| one.path.as_str()).collect();
    existing.retain(|change| !ancestors(parent(&change.path)).any(|one| found.contains(one)));
    let depth = |path: &str| path.matches('/').count();
    existing.sort_by_key(|change| {
        let path = change.path.as_str();
        (!path.starts_with(SECRETS), depth(path), path)
    });
    existing
}

/// The directories of the image in which something of the container's own changed.
fn directories_above<'c>(changes: &'c Changes, leaves: &BTreeSet<&str>) -> Vec<&'c str> {
    let above: BTreeSet<&str> = leaves
        .iter()
        .flat_map(|leaf| ancestors(parent(leaf)))
        .collect();
    let listed = changes.listed.iter();
    let modified = listed.filter(|change| change.kind == ChangeKind::Modified);
    let modified = modified.map(|change| change.path.as_str());
    modified.filter(|path| above.contains(path)).collect()
}

/// The entry of the directory at `path`, the first of the archive of it. `None` if it is no directory.
fn directory(archive: &[u8], path: &str) -> Option<Entry> {
    let mut archive = tar::Archive::new(archive);
    let first = archive.entries().ok()?.next()?.ok()?;
    let first = Entry::read(first, parent(path)).ok()?;
    (first.header.entry_type() == EntryType::Directory).then_some(first)
}

/// The path itself and all directories above it, without the root directory.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let is_below_root = |path: &&str| !path.is_empty();
    std::iter::successors(Some(path).filter(is_below_root), move |path| {
        Some(parent(path)).filter(is_below_root)
    })
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Whether a file belongs to a process that no longer runs: a PID file, or a lock in a directory for such files.
fn names_a_process(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    let name = last.to_ascii_lowercase();
    let ends_with = |word: &str| {
        let before = name.strip_suffix(word);
        before.is_some_and(|before| !before.ends_with(|c: char| c.is_ascii_alphanumeric()))
    };
    let is_temporary = || OF_PROCESSES.iter().any(|dir| path.starts_with(dir));
    ends_with("pid") || (ends_with("lock") && is_temporary())
}

fn absolute(path: &[u8]) -> String {
    format!("/{}", String::from_utf8_lossy(path))
}

/// The entries of an archive, with names relative to the root directory. `below` is the directory that they are in.
fn entries_in(archive: &[u8], below: &str) -> io::Result<Vec<Entry>> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries()?;
    entries.map(|entry| Entry::read(entry?, below)).collect()
}

/// A tar archive of `entries`; empty if there are none.
fn packed(entries: Vec<Entry>) -> io::Result<Vec<u8>> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let mut archive = Builder::new(Vec::new());
    for entry in entries {
        // An extension overrides the name in the header, whatever its length.
        let path = [("path", entry.path.as_slice())];
        let link = entry.link.iter().map(|link| ("linkpath", link.as_slice()));
        let extensions = entry.extensions.iter();
        let others = extensions.map(|(key, value)| (key.as_str(), value.as_slice()));
        archive.append_pax_extensions(path.into_iter().chain(link).chain(others))?;
        archive.append(&entry.header, entry.data.as_slice())?;
    }
    archive.into_inner()
}

mod as_base64 {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
