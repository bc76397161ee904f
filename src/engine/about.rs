//! What the engine says about itself, and how it is reached.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::{EngineReader, choice::Route};
use crate::text::without_credentials;

/// What the engine says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The ID that Portainer reports for its environment (M17).
    pub id: String,
    /// The version of the engine, such as `26.1.5`.
    pub version: Option<String>,
    /// The API version that requests use; `None` if the container command chooses it.
    pub api: Option<String>,
    /// The log driver of containers that name none.
    pub log_driver: Option<String>,
    /// The OCI runtimes that it knows by name.
    pub runtimes: BTreeSet<String>,
}

/// The fields of `GET /info`, and of what `info` prints as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Info {
    #[serde(rename = "ID")]
    id: Option<String>,
    server_version: Option<String>,
    logging_driver: Option<String>,
    #[serde(default)]
    runtimes: serde_json::Map<String, Value>,
    /// Why the command could not read the rest.
    pub(super) server_errors: Option<Vec<String>>,
}

impl Info {
    /// `None` without an ID.
    pub(super) fn about(&self, api: Option<String>) -> Option<About> {
        let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Some(About {
            id: set(&self.id)?,
            version: set(&self.server_version),
            api,
            log_driver: set(&self.logging_driver),
            runtimes: self.runtimes.keys().cloned().collect(),
        })
    }
}

impl EngineReader {
    /// The adapter that was chosen, and why.
    pub fn adapter(&self) -> String {
        let (tool, route) = (&self.adapter.tool, &self.adapter.route);
        let reason = without_credentials(&self.adapter.reason);
        match route {
            Route::Api(socket) => format!("the Engine API on {} ({reason})", socket.display()),
            Route::Command => format!("the command `{tool}` ({reason})"),
            Route::Unavailable => format!("unavailable ({reason})"),
        }
    }
}
