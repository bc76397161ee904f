//! The wire shapes that the Engine API and the container command share.

use serde::{Deserialize, Deserializer};

use crate::model::{self, MountKind};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Mount {
    #[serde(default, deserialize_with = "nullable")]
    r#type: String,
    #[serde(default, deserialize_with = "nullable")]
    name: String,
    #[serde(default, deserialize_with = "nullable")]
    source: String,
    #[serde(default, deserialize_with = "nullable")]
    destination: String,
}

impl From<Mount> for model::Mount {
    fn from(wire: Mount) -> Self {
        let kind = match wire.r#type.as_str() {
            "bind" => MountKind::Bind,
            "volume" => MountKind::Volume,
            _ => MountKind::Other,
        };
        Self {
            kind,
            name: Some(wire.name).filter(|name| kind == MountKind::Volume && !name.is_empty()),
            source: wire.source,
            target: wire.destination,
        }
    }
}

/// Reads `null` as the default value.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
