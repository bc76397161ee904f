//! The environments of Portainer (M22).

use std::fmt;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

use super::{Reader, failed_to, wire};
use crate::text::printable;

/// The types of environments without a Docker engine: Azure, and Kubernetes in three forms (M22).
const WITHOUT_ENGINE: [i64; 4] = [3, 5, 6, 7];

/// An environment. Prints as `3 (nas)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedEnvironment {
    /// The ID, for `--endpoint`.
    pub id: i64,
    /// The name that users see in Portainer.
    pub name: String,
}

impl fmt::Display for NamedEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, printable(&self.name))
    }
}

impl Reader {
    /// The environments with a container engine that the API key may see, in Portainer's order. An environment of an
    /// unknown type may have one.
    pub fn environments(&self) -> Result<Vec<NamedEnvironment>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Wire {
            id: i64,
            name: String,
            #[serde(default)]
            r#type: Value,
        }
        let action = "list Portainer's environments";
        // The snapshots are most of the response. A version that does not know the parameter ignores it.
        let list = self
            .client
            .get("/api/endpoints?excludeSnapshots=true", action)?;
        let list: Option<Vec<Wire>> = wire::read(list).map_err(failed_to(action))?;
        let has_engine = |one: &Wire| {
            let kind = one.r#type.as_i64();
            !kind.is_some_and(|kind| WITHOUT_ENGINE.contains(&kind))
        };
        let listed = list.into_iter().flatten().filter(has_engine);
        Ok(listed
            .map(|Wire { id, name, .. }| NamedEnvironment { id, name })
            .collect())
    }
}
