//! The `volumes`, `tmpfs`, `secrets` and `configs` of a service.

use serde_json::{Value, json};

use super::{
    context::{Context, Sections},
    values::{many, text},
};

/// A mount of a service.
#[derive(Clone)]
pub(super) struct MountSpec {
    pub source: Source,
    pub target: String,
    pub read_only: bool,
}

/// The source of a mount.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A path on the host. Short syntax creates a missing path (M13).
    Bind {
        path: String,
        create: bool,
        short: bool,
    },
    /// A volume, by its name on the engine.
    Volume {
        name: String,
    },
    Anonymous,
    /// A temporary file system. Only the key `tmpfs` takes options.
    Tmpfs {
        options: Option<String>,
    },
}

impl MountSpec {
    pub fn configuration(&self) -> Value {
        let source = match &self.source {
            Source::Bind { path, create, .. } => json!({ "bind": path, "create": create }),
            Source::Volume { name } => json!({ "volume": name }),
            Source::Anonymous => json!("anonymous"),
            Source::Tmpfs { .. } => json!("tmpfs"),
        };
        json!({ "source": source, "target": self.target, "read_only": self.read_only })
    }
}

/// All mounts of a service.
pub(super) fn of(
    name: &str,
    value: &Value,
    context: &Context<'_>,
    sections: &Sections<'_>,
) -> Result<Vec<MountSpec>, String> {
    let mut mounts = Vec::new();
    for item in many(value.get("volumes")) {
        let spec = match text(item) {
            Some(short) => short_mount(&short, context, sections),
            None => long_mount(item, context, sections),
        };
        mounts.push(spec.map_err(|what| {
            format!("service \"{name}\" refers to undefined volume {what}: invalid compose project")
        })?);
    }
    for item in many(value.get("tmpfs")) {
        let item = text(item).unwrap_or_default();
        let (target, options) = item.split_once(':').unwrap_or((&item, ""));
        mounts.push(MountSpec {
            source: Source::Tmpfs {
                options: Some(options.to_owned()),
            },
            target: target.to_owned(),
            read_only: false,
        });
    }
    for (kind, section, folder) in [
        ("secrets", sections.secrets, "/run/secrets/"),
        ("configs", sections.configs, "/"),
    ] {
        for item in many(value.get(kind)) {
            let key = text(item)
                .or_else(|| item.get("source").and_then(text))
                .unwrap_or_default();
            let declared = section.get(&key).ok_or_else(|| {
                format!(
                    "service \"{name}\" refers to undefined {} {key}: invalid compose project",
                    kind.trim_end_matches('s')
                )
            })?;
            let Some(file) = declared.get("file").and_then(text) else {
                continue;
            };
            let path = context.absolute(&file);
            let target = item
                .get("target")
                .and_then(text)
                .unwrap_or_else(|| format!("{folder}{key}"));
            let source = Source::Bind {
                path,
                create: false,
                short: false,
            };
            mounts.push(MountSpec {
                source,
                target,
                read_only: true,
            });
        }
    }
    Ok(mounts)
}

fn short_mount(
    item: &str,
    context: &Context<'_>,
    sections: &Sections<'_>,
) -> Result<MountSpec, String> {
    let parts = item.split(':').collect::<Vec<_>>();
    let (source, target, options) = match parts.as_slice() {
        [target] => (None, *target, ""),
        [source, target] => (Some(*source), *target, ""),
        [source, target, options, ..] => (Some(*source), *target, *options),
        [] => (None, "", ""),
    };
    let source = match source {
        None => Source::Anonymous,
        Some(path) if path.starts_with(['/', '.', '~']) => Source::Bind {
            path: context.absolute(path),
            create: true,
            short: true,
        },
        Some(key) => Source::Volume {
            name: volume(key, sections)?,
        },
    };
    let read_only = options.split(',').any(|option| option == "ro");
    let target = target.to_owned();
    Ok(MountSpec {
        source,
        target,
        read_only,
    })
}

fn long_mount(
    item: &Value,
    context: &Context<'_>,
    sections: &Sections<'_>,
) -> Result<MountSpec, String> {
    let field = |key: &str| item.get(key).and_then(text);
    let source = match (field("type").as_deref(), field("source")) {
        (Some("tmpfs"), _) => Source::Tmpfs { options: None },
        (Some("bind"), Some(path)) => {
            let option = item
                .get("bind")
                .and_then(|bind| bind.get("create_host_path"));
            Source::Bind {
                path: context.absolute(&path),
                create: option.and_then(Value::as_bool).unwrap_or(false),
                short: false,
            }
        }
        (_, Some(key)) => Source::Volume {
            name: volume(&key, sections)?,
        },
        (_, None) => Source::Anonymous,
    };
    Ok(MountSpec {
        source,
        target: field("target").unwrap_or_default(),
        read_only: item
            .get("read_only")
            .and_then(Value::as_bool)
            .unwrap_or(false),
    })
}

fn volume(key: &str, sections: &Sections<'_>) -> Result<String, String> {
    let declared = sections.volumes.get(key).ok_or_else(|| key.to_owned())?;
    Ok(declared.name.clone())
}
