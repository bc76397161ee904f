//! The wire shape that the Engine API and the container command share.

use serde::Deserialize;

use crate::model::{Mount, MountKind};

/// An entry of `Mounts`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedMount {
    r#type: Option<String>,
    name: Option<String>,
    source: Option<String>,
    destination: Option<String>,
}

impl From<ListedMount> for Mount {
    fn from(listed: ListedMount) -> Self {
        let kind = match listed.r#type.as_deref() {
            Some("bind") => MountKind::Bind,
            Some("volume") => MountKind::Volume,
            _ => MountKind::Other,
        };
        let is_named = |name: &String| kind == MountKind::Volume && !name.is_empty();
        Self {
            kind,
            name: listed.name.filter(is_named),
            source: listed.source.unwrap_or_default(),
            target: listed.destination.unwrap_or_default(),
        }
    }
}
