//! The `volumes`, `tmpfs`, `secrets` and `configs` of a service.

use composefile::path::clean;
use serde_json::{Map, Value, json};

use super::{
    context::Context,
    values::{many, text, texts},
};

/// A mount of a service.
pub(super) struct ServiceMount {
    pub source: MountSource,
    pub target: String,
    pub read_only: bool,
}

/// The source of a mount.
pub(super) enum MountSource {
    /// A path on the host. Short syntax creates a missing path (M13).
    Bind {
        path: String,
        create: bool,
    },
    /// A volume, by its name on the engine.
    Volume(String),
    Anonymous,
    /// A temporary file system. Only the key `tmpfs` takes options.
    Tmpfs(Option<String>),
}

/// All mounts of a canonical service.
pub(super) fn of(
    name: &str,
    service: &Map<String, Value>,
    context: &Context<'_>,
) -> Result<Vec<ServiceMount>, String> {
    let mut mounts = Vec::new();
    let undefined = |kind: &str, key: &str| {
        format!("service \"{name}\" refers to undefined {kind} {key}: invalid compose project")
    };
    for item in many(service.get("volumes")) {
        mounts.push(mount(item, context).map_err(|key| undefined("volume", &key))?);
    }
    for item in texts(service.get("tmpfs")) {
        let (target, options) = item.split_once(':').unwrap_or((&item, ""));
        mounts.push(ServiceMount {
            source: MountSource::Tmpfs(Some(options.to_owned())),
            target: target.to_owned(),
            read_only: false,
        });
    }
    for kind in ["secrets", "configs"] {
        for item in many(service.get(kind)) {
            let key = text(&item["source"]).unwrap_or_default();
            let found = context.root.get(kind).and_then(|all| all.get(&key));
            let declared = found.ok_or_else(|| undefined(kind.trim_end_matches('s'), &key))?;
            let Some(file) = declared.get("file").and_then(text) else {
                continue;
            };
            mounts.push(ServiceMount {
                source: MountSource::Bind {
                    path: clean(&context.deployment.absolute(&file)),
                    create: false,
                },
                target: text(&item["target"]).unwrap_or_else(|| format!("/{key}")),
                read_only: true,
            });
        }
    }
    Ok(mounts)
}

/// The error is the key of a volume that the file does not define.
fn mount(item: &Value, context: &Context<'_>) -> Result<ServiceMount, String> {
    let field = |key: &str| item.get(key).and_then(text);
    let source = match (field("type").as_deref(), field("source")) {
        (Some("tmpfs"), _) => MountSource::Tmpfs(None),
        (Some("bind"), Some(path)) => MountSource::Bind {
            path: clean(&path),
            create: item["bind"]["create_host_path"] == json!(true),
        },
        (_, Some(key)) => {
            let declared = context.volumes.get(&key).ok_or(key)?;
            MountSource::Volume(declared.name.clone())
        }
        (_, None) => MountSource::Anonymous,
    };
    Ok(ServiceMount {
        source,
        target: field("target").unwrap_or_default(),
        read_only: item["read_only"] == json!(true),
    })
}
