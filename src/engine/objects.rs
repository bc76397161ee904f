//! The objects of a project: their raw inspect JSON, and the files changed in a container's writable layer. The container
//! command only inspects containers and images: the rest is an error that says so, and that is never absence.
//!
//! Invariant: an object is returned only for its name, its full ID or a prefix of the ID of at least 12 characters.
//! The engine itself also accepts shorter prefixes.

use std::{
    collections::HashSet,
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use serde_json::Value;

use super::{Client, EngineReader, api::timestamp};
use crate::{
    model::{Changes, Container, ListedObjects, compose_label},
    text::printable,
};

/// A kind of object that the engine can inspect by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Container,
    Network,
    Volume,
    Image,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Container => "container",
            Self::Network => "network",
            Self::Volume => "volume",
            Self::Image => "image",
        })
    }
}

/// A tar archive that the engine wrote.
pub struct Archive {
    pub bytes: Vec<u8>,
    /// Whether `bytes` is all of it, and not only the beginning.
    pub is_whole: bool,
}

impl EngineReader {
    /// The containers with these IDs, in the same order. Containers that no longer exist are left out.
    pub fn inspect_containers(
        &self,
        ids: impl IntoIterator<Item: Into<String>>,
    ) -> Result<Vec<Container>> {
        let found = self.inspect(ObjectKind::Container, ids)?;
        Ok(found.into_iter().map(Container).collect())
    }

    /// The inspect JSON of these networks, in the same order. Networks that no longer exist are left out.
    ///
    /// A name that several networks share is an error; engines before 25 allow such names.
    pub fn inspect_networks(
        &self,
        names_or_ids: impl IntoIterator<Item: Into<String>>,
    ) -> Result<Vec<Value>> {
        self.inspect(ObjectKind::Network, names_or_ids)
    }

    /// The inspect JSON of these volumes, in the same order. Volumes that no longer exist are left out.
    pub fn inspect_volumes(
        &self,
        names: impl IntoIterator<Item: Into<String>>,
    ) -> Result<Vec<Value>> {
        self.inspect(ObjectKind::Volume, names)
    }

    /// The inspect JSON of the images with these IDs (`sha256:…`), in the same order. Images that no longer exist are
    /// left out.
    pub fn inspect_images(&self, ids: impl IntoIterator<Item: Into<String>>) -> Result<Vec<Value>> {
        self.inspect(ObjectKind::Image, ids)
    }

    /// The inspect JSON of the networks with the label of `project`, sorted by name.
    pub fn networks(&self, project: &str) -> Result<Vec<Value>> {
        self.members(ObjectKind::Network, project)
    }

    /// The inspect JSON of the volumes with the label of `project`, sorted by name. Anonymous volumes have no label.
    ///
    /// An error if the engine reports that its list is incomplete, for example because a volume driver is unreachable.
    pub fn volumes(&self, project: &str) -> Result<Vec<Value>> {
        self.members(ObjectKind::Volume, project)
    }

    /// All networks of the engine, as it lists them: without their containers.
    pub fn all_networks(&self) -> Result<ListedObjects> {
        self.all(ObjectKind::Network)
    }

    /// All volumes of the engine. An error if the engine reports that its list is incomplete.
    pub fn all_volumes(&self) -> Result<ListedObjects> {
        self.all(ObjectKind::Volume)
    }

    fn all(&self, kind: ObjectKind) -> Result<ListedObjects> {
        let listed = self.api().and_then(|api| api.objects(kind, None));
        let listed = listed.map(Arc::new);
        listed.with_context(|| format!("failed to list all {kind}s"))
    }

    /// The files that differ between the writable layer of `container` and its image. They are lost with the container.
    ///
    /// A container that does not exist is an error. A large layer takes the engine a while.
    pub fn changes(&self, container: &str) -> Result<Changes> {
        check_name(container)
            .and_then(|()| self.api()?.changes(container))
            .with_context(|| {
                let container = printable(container);
                format!("failed to list the changed files of the container {container}")
            })
    }

    /// The number of bytes in the writable layer of `container`. A container that does not exist is an error.
    pub fn layer_size(&self, container: &str) -> Result<u64> {
        check_name(container)
            .and_then(|()| self.api()?.layer_size(container))
            .with_context(|| format!("failed to measure the container {}", printable(container)))
    }

    /// `path` of `container` as a tar archive whose names begin with the last part of `path`. Reads at most `most` bytes.
    ///
    /// A path or a container that does not exist is an error.
    pub fn archive(&self, container: &str, path: &str, most: u64) -> Result<Archive> {
        check_name(container)
            .and_then(|()| self.api()?.archive(container, path, most))
            .with_context(|| {
                let (container, path) = (printable(container), printable(path));
                format!("failed to read {path} of the container {container}")
            })
    }

    /// The birth time of a local volume's directory, in seconds since 1970: it tells a volume from one that was deleted
    /// and recreated with the same name (B18). `CreatedAt` does not: on Engine 20.10 it changes with the data.
    ///
    /// `None` if this process cannot read the directory, or the file system has no birth times. `volume` is the inspect
    /// JSON.
    pub fn volume_birth(&self, volume: &Value) -> Option<String> {
        let Client::Api(_) = &self.client else {
            // The command may reach another host.
            return None;
        };
        let data = Path::new(volume["Mountpoint"].as_str()?);
        // Another file system may be mounted on `_data`.
        let directory = if data.ends_with("_data") {
            data.parent()?
        } else {
            data
        };
        // The standard library does not read it on musl, with which releases are built.
        let found = statx(CWD, directory, AtFlags::empty(), StatxFlags::BTIME).ok()?;
        let born = Duration::new(
            found.stx_btime.tv_sec.try_into().ok()?,
            found.stx_btime.tv_nsec,
        );
        // Some file systems show 0 for unknown.
        (!born.is_zero()).then(|| timestamp(UNIX_EPOCH + born))
    }

    fn members(&self, kind: ObjectKind, project: &str) -> Result<Vec<Value>> {
        let inspect = || {
            let listed = self.api()?.objects(kind, Some(project))?.into_iter();
            // Several networks may have one name.
            let id = |one: &Value| one["Id"].as_str().unwrap_or(name_of(one)).to_owned();
            let names: Vec<String> = listed.map(|container| id(&container)).collect();
            self.inspect(kind, names)
        };
        let mut found =
            inspect().with_context(|| format!("failed to list the {kind}s of {project}"))?;
        let label = compose_label(&self.adapter.tool, "project");
        found.retain(|object| object["Labels"][&label].as_str() == Some(project));
        found.sort_by(|a, b| name_of(a).cmp(name_of(b)));
        Ok(found)
    }

    fn inspect(
        &self,
        kind: ObjectKind,
        names: impl IntoIterator<Item: Into<String>>,
    ) -> Result<Vec<Value>> {
        let mut seen = HashSet::new();
        let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
        names.retain(|name| seen.insert(name.clone()));
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = names
            .iter()
            .try_for_each(|name| check_name(name))
            .and_then(|()| match (&self.client, kind) {
                (Client::Command(command), ObjectKind::Container) => {
                    command.inspect_containers(&names)
                }
                (Client::Command(command), ObjectKind::Image) => command.inspect_images(&names),
                _ => self.api()?.inspect(kind, &names),
            })
            .with_context(|| format!("failed to inspect the {kind}s"))?;
        if kind != ObjectKind::Image {
            found.retain(|object| {
                let id = object["Id"].as_str().unwrap_or_default();
                names
                    .iter()
                    .any(|name| identifies(name, id) || name == name_of(object))
            });
        }
        Ok(found)
    }
}

/// Rejects a name that would change the path of a request or be read as an option.
pub(super) fn check_name(name: &str) -> Result<()> {
    if matches!(name, "" | "." | "..") || name.starts_with('-') {
        bail!("`{}` is not a valid name", printable(name));
    }
    Ok(())
}

/// Whether `asked` is `id` or a prefix of it that is at least as long as the engine's short IDs.
pub(super) fn identifies(asked: &str, id: &str) -> bool {
    const SHORT_ID: usize = 12;
    let bare = |id: &str| id.trim_start_matches("sha256:").to_owned();
    let (asked, id) = (bare(asked), bare(id));
    asked == id || (asked.len() >= SHORT_ID && id.starts_with(&asked))
}

/// The name, without the leading slash of a container's name.
pub(super) fn name_of(object: &Value) -> &str {
    let name = object["Name"].as_str().unwrap_or_default();
    name.trim_start_matches('/')
}
