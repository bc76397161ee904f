//! What a project consists of, as the engine tells it: raw inspect JSON, and the files changed in a
//! container's own layer.
//!
//! Invariant: an engine also finds by the beginning of an id; what answers to another name is left out.

use std::{collections::HashSet, fmt};

use anyhow::{Context as _, Result, bail};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::Value;

use super::{Engine, Reach, printable, project_label};
use crate::model::{Change, ChangeKind, Changes, MOST_CHANGES};

/// What the engine can be asked about by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Container,
    Network,
    Volume,
    Image,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Container => "container",
            Self::Network => "network",
            Self::Volume => "volume",
            Self::Image => "image",
        })
    }
}

impl Engine {
    /// What the engine says of the containers with these ids, in their order; those that are gone are
    /// left out.
    pub fn inspect_containers(&self, ids: &[String]) -> Result<Vec<Value>> {
        self.inspect(Kind::Container, ids)
    }

    /// What the engine says of these networks, in their order; those that are gone are left out.
    ///
    /// A name that several networks have (engines before 25 allow it) is an error.
    pub fn inspect_networks(&self, names_or_ids: &[String]) -> Result<Vec<Value>> {
        self.inspect(Kind::Network, names_or_ids)
    }

    /// What the engine says of these volumes, in their order; those that are gone are left out.
    pub fn inspect_volumes(&self, names: &[String]) -> Result<Vec<Value>> {
        self.inspect(Kind::Volume, names)
    }

    /// What the engine says of the images with these ids (`sha256:…`), in their order; those that are
    /// gone are left out.
    pub fn inspect_images(&self, ids: &[String]) -> Result<Vec<Value>> {
        self.inspect(Kind::Image, ids)
    }

    /// What the engine says of the networks with the label of `project`, by name.
    pub fn networks(&self, project: &str) -> Result<Vec<Value>> {
        let ids = match &self.reach {
            Reach::Api(api) => api.networks(project),
            Reach::Command(command) => command.networks(project),
            Reach::Nowhere => Err(self.nowhere()),
        };
        self.members(Kind::Network, project, ids)
    }

    /// What the engine says of the volumes with the label of `project`, by name. Anonymous ones have none.
    ///
    /// An error where the engine knows that its list is not whole, as with a volume driver that is away.
    pub fn volumes(&self, project: &str) -> Result<Vec<Value>> {
        let names = match &self.reach {
            Reach::Api(api) => api.volumes(project),
            Reach::Command(command) => command.volumes(project),
            Reach::Nowhere => Err(self.nowhere()),
        };
        self.members(Kind::Volume, project, names)
    }

    /// What differs between the layer of `container` and its image: what is lost with the container.
    ///
    /// A container that is gone is an error. The engine may take long over a large layer.
    pub fn changes(&self, container: &str) -> Result<Changes> {
        check_name(container)
            .and_then(|()| match &self.reach {
                Reach::Api(api) => api.changes(container),
                Reach::Command(command) => command.changes(container),
                Reach::Nowhere => Err(self.nowhere()),
            })
            .with_context(|| {
                let container = printable(container);
                format!("failed to ask which files of the container {container} have changed")
            })
    }

    fn members(&self, kind: Kind, project: &str, names: Result<Vec<String>>) -> Result<Vec<Value>> {
        let mut found = names
            .and_then(|names| self.inspect(kind, &names))
            .with_context(|| format!("failed to list the {kind}s of {project}"))?;
        let label = project_label(&self.adapter.tool);
        found.retain(|object| label_of(object, &label) == Some(project));
        found.sort_by(|a, b| name_of(a).cmp(name_of(b)));
        Ok(found)
    }

    fn inspect(&self, kind: Kind, names: &[String]) -> Result<Vec<Value>> {
        let mut seen = HashSet::new();
        let names: Vec<String> = names
            .iter()
            .filter(|name| seen.insert(*name))
            .cloned()
            .collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let found = names
            .iter()
            .try_for_each(|name| check_name(name))
            .and_then(|()| match &self.reach {
                Reach::Api(api) => api.inspect(kind, &names),
                Reach::Command(command) => command.inspect(kind, &names),
                Reach::Nowhere => Err(self.nowhere()),
            });
        let mut found = found.with_context(|| format!("failed to inspect the {kind}s"))?;
        if kind != Kind::Image {
            found.retain(|object| {
                let (id, own) = (id_of(object), name_of(object));
                names.iter().any(|name| stands_for(name, id) || name == own)
            });
        }
        Ok(found)
    }
}

/// Refuses what is the name of nothing, and would be another path or an option.
pub(super) fn check_name(name: &str) -> Result<()> {
    if matches!(name, "" | "." | "..") || name.starts_with('-') {
        bail!("`{}` is no name", printable(name));
    }
    Ok(())
}

/// Whether `asked` is `id` or a beginning of it that is long enough to mean no other.
pub(super) fn stands_for(asked: &str, id: &str) -> bool {
    const SHORT: usize = 12;
    let bare = |id: &str| id.trim_start_matches("sha256:").to_owned();
    let (asked, id) = (bare(asked), bare(id));
    asked == id || (asked.len() >= SHORT && id.starts_with(&asked))
}

/// Podman writes some of its keys small.
fn text_of<'a>(object: &'a Value, keys: [&str; 2]) -> &'a str {
    let found = keys.iter().find_map(|key| object.get(key)?.as_str());
    found.unwrap_or_default()
}

fn id_of(object: &Value) -> &str {
    text_of(object, ["Id", "id"])
}

/// Without the slash that containers' names begin with.
pub(super) fn name_of(object: &Value) -> &str {
    text_of(object, ["Name", "name"]).trim_start_matches('/')
}

fn label_of<'a>(object: &'a Value, label: &str) -> Option<&'a str> {
    let labels = object.get("Labels").or_else(|| object.get("labels"))?;
    labels.get(label)?.as_str()
}

/// As the Engine API writes it: a list, or `null` for none. Read without holding more than is kept.
pub(super) fn wire_changes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Changes, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Wire {
        path: String,
        kind: u8,
    }

    struct Kept;

    impl<'de> Visitor<'de> for Kept {
        type Value = Changes;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of changes")
        }

        fn visit_unit<E>(self) -> Result<Changes, E> {
            Ok(Changes::default())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Changes, A::Error> {
            let mut changes = Changes::default();
            while changes.total < MOST_CHANGES {
                let Some(Wire { path, kind }) = list.next_element()? else {
                    return Ok(changes);
                };
                let kind = match kind {
                    0 => ChangeKind::Modified,
                    1 => ChangeKind::Added,
                    2 => ChangeKind::Deleted,
                    other => {
                        let what = format!("{other} is no kind of change");
                        return Err(serde::de::Error::custom(what));
                    }
                };
                changes.add(Change { path, kind });
            }
            while list.next_element::<IgnoredAny>()?.is_some() {
                changes.total += 1;
            }
            Ok(changes)
        }
    }

    deserializer.deserialize_any(Kept)
}
