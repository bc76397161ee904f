//! Reads the objects of a project.

use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Api, in_parallel, label_filter, percent_encoded, wire};
use crate::{
    engine::{Archive, objects::ObjectKind},
    model::{Change, ChangeKind, Changes},
    text::{excerpt, printable},
};

impl Api {
    /// The inspect JSON of the objects with these names or IDs. Objects that do not exist are left out.
    pub(in crate::engine) fn inspect(
        &self,
        kind: ObjectKind,
        names: &[String],
    ) -> Result<Vec<Value>> {
        self.version()?;
        let failed = OnceLock::new();
        let found = in_parallel(names, |name| {
            if failed.get().is_some() {
                return None;
            }
            self.find::<Value>(&path_of(kind, name))
                .with_context(|| format!("{kind} {}", printable(name)))
                .unwrap_or_else(|error| {
                    // Only the first failure is reported.
                    failed.set(error).ok();
                    None
                })
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(found.into_iter().flatten().collect()),
        }
    }

    /// The IDs of the networks with the label of `project`, according to the engine's filter.
    pub(in crate::engine) fn networks(&self, project: &str) -> Result<Vec<String>> {
        let filter = label_filter(&self.label, project)?;
        let listed: Option<Vec<wire::Network>> = self.get(&format!("/networks?{filter}"))?;
        let listed = listed.unwrap_or_default().into_iter();
        Ok(listed.map(|found| found.id).collect())
    }

    /// The names of the volumes with the label of `project`, according to the engine's filter.
    pub(in crate::engine) fn volumes(&self, project: &str) -> Result<Vec<String>> {
        let filter = label_filter(&self.label, project)?;
        self.volumes_at(&format!("/volumes?{filter}"))
    }

    /// The names of all networks.
    pub(in crate::engine) fn network_names(&self) -> Result<Vec<String>> {
        let listed: Option<Vec<wire::Network>> = self.get("/networks")?;
        let listed = listed.unwrap_or_default().into_iter();
        Ok(listed.map(|found| found.name).collect())
    }

    /// The names of all volumes.
    pub(in crate::engine) fn volume_names(&self) -> Result<Vec<String>> {
        self.volumes_at("/volumes")
    }

    fn volumes_at(&self, path: &str) -> Result<Vec<String>> {
        let listed: wire::Volumes = self.get(path)?;
        if !listed.warnings.is_empty() {
            let warnings = listed.warnings.join("; ");
            bail!("the engine's list is incomplete: {}", excerpt(&warnings));
        }
        Ok(listed.volumes.into_iter().map(|found| found.name).collect())
    }

    /// The files that differ between the writable layer of `container` and its image.
    pub(in crate::engine) fn changes(&self, container: &str) -> Result<Changes> {
        let path = format!("/containers/{}/changes", percent_encoded(container));
        let listed: Option<Vec<wire::Change>> = self.get(&path)?;
        let mut changes = Changes::default();
        for wire::Change { path, kind } in listed.unwrap_or_default() {
            let kind = match kind {
                0 => ChangeKind::Modified,
                1 => ChangeKind::Added,
                2 => ChangeKind::Deleted,
                other => bail!("unknown kind of change: {other}"),
            };
            changes.add(Change { path, kind });
        }
        Ok(changes)
    }

    /// `path` of the container as a tar archive: at most `most` bytes of it.
    pub(in crate::engine) fn archive(
        &self,
        container: &str,
        path: &str,
        most: u64,
    ) -> Result<Archive> {
        let (container, path) = (percent_encoded(container), percent_encoded(path));
        let path = format!("/containers/{container}/archive?path={path}");
        self.get_up_to(&path, most)
    }
}

/// The path to inspect the object.
pub(super) fn path_of(kind: ObjectKind, name: &str) -> String {
    let name = percent_encoded(name);
    match kind {
        ObjectKind::Container | ObjectKind::Image => format!("/{kind}s/{name}/json"),
        ObjectKind::Network | ObjectKind::Volume => format!("/{kind}s/{name}"),
    }
}
