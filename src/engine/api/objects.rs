//! The questions about what a project consists of.

use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::{Api, at_once, label_filter, percent_encoded, wire};
use crate::{
    engine::{
        objects::{Kind, wire_changes},
        printable,
    },
    model::Changes,
};

impl Api {
    /// What the engine says of `names`; those that are not there are left out.
    pub(in crate::engine) fn inspect(&self, kind: Kind, names: &[String]) -> Result<Vec<Value>> {
        self.version()?;
        let failed = OnceLock::new();
        let found = at_once(names, |name| {
            if failed.get().is_some() {
                return None;
            }
            self.find::<Value>(&path_of(kind, name))
                .with_context(|| format!("{kind} {}", printable(name)))
                .unwrap_or_else(|error| {
                    // Only the first counts.
                    failed.set(error).ok();
                    None
                })
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(found.into_iter().flatten().collect()),
        }
    }

    /// The ids of the networks with the label of `project`, as far as the engine's filter tells.
    pub(in crate::engine) fn networks(&self, project: &str) -> Result<Vec<String>> {
        let filter = label_filter(&self.label, project)?;
        let listed: Option<Vec<wire::Network>> = self.get(&format!("/networks?{filter}"))?;
        let listed = listed.unwrap_or_default().into_iter();
        Ok(listed.map(|found| found.id).collect())
    }

    /// The names of the volumes with the label of `project`, as far as the engine's filter tells.
    pub(in crate::engine) fn volumes(&self, project: &str) -> Result<Vec<String>> {
        let filter = label_filter(&self.label, project)?;
        let listed: wire::Volumes = self.get(&format!("/volumes?{filter}"))?;
        if !listed.warnings.is_empty() {
            let warnings = listed.warnings.join("; ");
            bail!("the engine does not see all: {}", printable(&warnings));
        }
        Ok(listed.volumes.into_iter().map(|found| found.name).collect())
    }

    /// What differs between the layer of `container` and its image.
    pub(in crate::engine) fn changes(&self, container: &str) -> Result<Changes> {
        #[derive(Deserialize)]
        struct Listed(#[serde(deserialize_with = "wire_changes")] Changes);

        let path = format!("/containers/{}/changes", percent_encoded(container));
        let Listed(changes) = self.get(&path)?;
        Ok(changes)
    }
}

/// Where the engine tells of it.
pub(super) fn path_of(kind: Kind, name: &str) -> String {
    let name = percent_encoded(name);
    match kind {
        Kind::Container | Kind::Image => format!("/{kind}s/{name}/json"),
        Kind::Network | Kind::Volume => format!("/{kind}s/{name}"),
    }
}
