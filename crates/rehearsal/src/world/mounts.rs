//! The `volumes`, `tmpfs`, `secrets` and `configs` of a service.

use composefile::services::{MountSpec, MountType};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    context::Context,
    values::{many, text, texts},
    volumes::is_read_only,
};

/// A mount of a service.
#[derive(Serialize)]
pub(super) struct ServiceMount {
    pub source: MountSource,
    pub target: String,
    pub read_only: bool,
}

/// The source of a mount.
#[derive(Serialize)]
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

/// All mounts of a service.
pub(super) fn of(
    name: &str,
    written: &Map<String, Value>,
    context: &Context<'_>,
) -> Result<Vec<ServiceMount>, String> {
    let mut mounts = Vec::new();
    let undefined = |kind: &str, key: &str| {
        format!("service \"{name}\" refers to undefined {kind} {key}: invalid compose project")
    };
    for item in many(written.get("volumes")) {
        let spec = match text(item) {
            Some(short) => short_mount(&short, context),
            None => long_mount(item, context),
        };
        mounts.push(spec.map_err(|key| undefined("volume", &key))?);
    }
    for item in texts(written.get("tmpfs")) {
        let (target, options) = item.split_once(':').unwrap_or((&item, ""));
        mounts.push(ServiceMount {
            source: MountSource::Tmpfs(Some(options.to_owned())),
            target: target.to_owned(),
            read_only: false,
        });
    }
    for (kind, folder) in [("secrets", "/run/secrets/"), ("configs", "/")] {
        for item in many(written.get(kind)) {
            let key = text(item.get("source").unwrap_or(item)).unwrap_or_default();
            let found = context.root.get(kind).and_then(|all| all.get(&key));
            let declared = found.ok_or_else(|| undefined(kind.trim_end_matches('s'), &key))?;
            let Some(file) = declared.get("file").and_then(text) else {
                continue;
            };
            let target = item.get("target").and_then(text);
            mounts.push(ServiceMount {
                source: MountSource::Bind {
                    path: context.deployment.absolute(&file),
                    create: false,
                },
                target: target.unwrap_or_else(|| format!("{folder}{key}")),
                read_only: true,
            });
        }
    }
    Ok(mounts)
}

/// The error is the key of a volume that the file does not define.
fn short_mount(item: &str, context: &Context<'_>) -> Result<ServiceMount, String> {
    let spec = MountSpec::parse(item).ok_or_else(|| item.to_owned())?;
    let source = match spec.source {
        None => MountSource::Anonymous,
        Some(path) if spec.kind == MountType::Bind => MountSource::Bind {
            path: context.deployment.absolute(path),
            create: true,
        },
        Some(key) => volume(key, context)?,
    };
    Ok(ServiceMount {
        source,
        target: spec.target.to_owned(),
        read_only: is_read_only(spec.options.unwrap_or_default()),
    })
}

fn long_mount(item: &Value, context: &Context<'_>) -> Result<ServiceMount, String> {
    let field = |key: &str| item.get(key).and_then(text);
    let source = match (field("type").as_deref(), field("source")) {
        (Some("tmpfs"), _) => MountSource::Tmpfs(None),
        (Some("bind"), Some(path)) => MountSource::Bind {
            path: context.deployment.absolute(&path),
            create: item["bind"]["create_host_path"] == json!(true),
        },
        (_, Some(key)) => volume(&key, context)?,
        (_, None) => MountSource::Anonymous,
    };
    Ok(ServiceMount {
        source,
        target: field("target").unwrap_or_default(),
        read_only: item["read_only"] == json!(true),
    })
}

fn volume(key: &str, context: &Context<'_>) -> Result<MountSource, String> {
    let declared = context.volumes.get(key).ok_or_else(|| key.to_owned())?;
    Ok(MountSource::Volume(declared.name.clone()))
}
