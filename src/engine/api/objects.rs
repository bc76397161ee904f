//! Reads the objects of a project.

use std::{io::Read as _, sync::OnceLock};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use ureq::http::Method;

use super::{Api, in_parallel, percent_encoded};
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

    /// All networks or volumes, or those with the label of `project` according to the engine's filter.
    pub(in crate::engine) fn objects(
        &self,
        kind: ObjectKind,
        project: Option<&str>,
    ) -> Result<Vec<Value>> {
        let filter = project.map(|project| format!("?{}", self.label_filter(project)));
        let path = format!("/{kind}s{}", filter.unwrap_or_default());
        if kind == ObjectKind::Network {
            return Ok(self.get::<Option<_>>(&path)?.unwrap_or_default());
        }
        let listed: Value = self.get(&path)?;
        let warnings: Option<Vec<String>> = Deserialize::deserialize(&listed["Warnings"])?;
        let warnings = warnings.unwrap_or_default().join("; ");
        if !warnings.is_empty() {
            bail!("Docker's list is incomplete: {}", excerpt(&warnings));
        }
        let volumes: Option<_> = Deserialize::deserialize(&listed["Volumes"])?;
        Ok(volumes.unwrap_or_default())
    }

    /// The files that differ between the writable layer of `container` and its image.
    pub(in crate::engine) fn changes(&self, container: &str) -> Result<Changes> {
        let path = format!("/containers/{}/changes", percent_encoded(container));
        let listed: Option<Vec<Value>> = self.get(&path)?;
        let mut changes = Changes::default();
        for change in listed.iter().flatten() {
            let kind = match change["Kind"].as_u64() {
                Some(0) => ChangeKind::Modified,
                Some(1) => ChangeKind::Added,
                Some(2) => ChangeKind::Deleted,
                _ => bail!("unknown kind of change: {}", change["Kind"]),
            };
            let path = String::deserialize(&change["Path"])?;
            changes.add(Change { path, kind });
        }
        Ok(changes)
    }

    /// The number of bytes in the container's writable layer.
    pub(in crate::engine) fn layer_size(&self, container: &str) -> Result<u64> {
        let path = format!("/containers/{}/json?size=1", percent_encoded(container));
        let found: Value = self.get(&path)?;
        Ok(u64::deserialize(&found["SizeRw"])?)
    }

    /// `path` of the container as a tar archive: at most `most` bytes of it.
    pub(in crate::engine) fn archive(
        &self,
        container: &str,
        path: &str,
        most: u64,
    ) -> Result<Archive> {
        let (version, limit) = (self.version()?, self.options.read_timeout);
        let (container, path) = (percent_encoded(container), percent_encoded(path));
        let path = format!("/v{version}/containers/{container}/archive?path={path}");
        let response = self.exchange((&Method::GET, &path, "", &[]), limit)?;
        if response.status() != 200 {
            let response = self.whole(&Method::GET, &path, response, limit)?;
            return Err(self.refused(&response));
        }
        let mut bytes = Vec::new();
        let mut body = response.into_body().into_reader().take(most + 1);
        if let Err(error) = body.read_to_end(&mut bytes) {
            return Err(self.unreachable(error.into(), limit));
        }
        Ok(Archive {
            is_whole: bytes.len() as u64 <= most,
            bytes,
        })
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
