//! A service, as Compose resolved it.

use std::collections::{BTreeMap, BTreeSet};

use composefile::{path::clean, services::MountType};
use serde_json::Value;

use super::{Fields, HOME};
use crate::{
    compose::folder::STACK,
    model::{Condition, Pull, WrittenService, is_empty, is_shared, shared_modes},
};

/// Where a path of a text leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A path of the host.
    Absolute(String),
    /// A path below Portainer's directory of the stack, relative to it; empty for that directory.
    Folder(String),
    /// A path inside Portainer's container.
    Unknown,
}

impl Place {
    /// The place of a path that is relative to this one, or absolute.
    pub fn join(&self, path: &str) -> Self {
        let join = |base: &str| clean(&format!("/{base}/{path}"));
        match self {
            _ if path.starts_with('/') => Self::Absolute(clean(path)),
            Self::Absolute(base) => Self::Absolute(join(base)),
            Self::Folder(base) => Self::Folder(join(base).trim_start_matches('/').to_owned()),
            Self::Unknown => Self::Unknown,
        }
    }
}

/// The directories of the text that Compose read, if it read a text and not files on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Folders {
    /// The directory that stands for Portainer's directory of the stack.
    pub(super) stack: Option<String>,
    /// The directories that stand for others inside Portainer's container.
    pub(super) unknown: Vec<String>,
}

impl Folders {
    /// Those of a text that was read in `folder`.
    pub(super) fn of(folder: Option<&str>) -> Self {
        let Some(folder) = folder else {
            return Self::default();
        };
        let root = folder.strip_suffix(STACK).unwrap_or(folder);
        Self {
            stack: Some(folder.to_owned()),
            unknown: vec![root.trim_end_matches('/').to_owned(), HOME.to_owned()],
        }
    }

    pub(super) fn place(&self, path: &str) -> Place {
        // A path of Windows stays as it is.
        if !path.starts_with('/') {
            return Place::Absolute(path.to_owned());
        }
        let path = clean(path);
        let below = |folder: &str| {
            let below = path.strip_prefix(folder)?;
            (below.is_empty() || below.starts_with('/'))
                .then(|| below.trim_start_matches('/').to_owned())
        };
        if let Some(below) = self.stack.as_deref().and_then(below) {
            Place::Folder(below)
        } else if self.unknown.iter().any(|folder| below(folder).is_some()) {
            Place::Unknown
        } else {
            Place::Absolute(path)
        }
    }
}

/// A service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Service {
    /// The name of its project.
    pub project: String,
    pub name: String,
    /// The reference of its image, given or built.
    pub image: Option<String>,
    /// Its variables, without those that are unset.
    pub environment: BTreeMap<String, String>,
    pub mounts: Vec<Mount>,
    /// Its networks, by the engine's name.
    pub networks: BTreeMap<String, Endpoint>,
    pub depends_on: BTreeMap<String, Dependency>,
    /// The secrets and configs that Compose puts into its containers.
    pub files: Vec<PlacedFile>,
    /// The context of its build, if it is built.
    pub context: Option<Place>,
    /// Every key, as Compose printed it.
    pub fields: Fields,
}

/// A mount of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub kind: MountType,
    pub is_tmpfs: bool,
    /// The source of a bind mount.
    pub place: Option<Place>,
    /// The volume, unless it is anonymous.
    pub volume: Option<Resource>,
    /// As it is printed.
    pub target: String,
    pub is_read_only: bool,
    /// Whether Docker creates a missing source.
    pub creates: bool,
}

/// A network or a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    pub key: String,
    /// The engine's name.
    pub name: String,
    pub is_external: bool,
    /// Whether it has options for its driver.
    pub has_options: bool,
    /// The directory of the host that it stands for.
    pub device: Option<Place>,
}

/// How a service is connected to a network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `None` for a network of the engine itself.
    pub network: Option<Resource>,
    pub options: Fields,
}

/// What a service needs of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub condition: Condition,
    /// Whether the deployment fails if the condition is not met. Compose waits for an optional one as well.
    pub required: bool,
    /// Whether Compose restarts the dependent with it.
    pub restarts: bool,
    /// Whether the dependent uses a namespace or the volumes of its container.
    pub shares: bool,
}

/// A secret or config of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedFile {
    /// `secrets` or `configs`.
    pub section: &'static str,
    pub key: String,
    /// The path in the container.
    pub target: String,
    pub content: Content,
}

/// Where the content of a secret or config is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    File(Place),
    /// The text has it.
    Text(String),
    /// A variable of this name has it.
    Variable(String),
    External,
}

impl Content {
    /// Whether Compose copies it into containers (N17).
    pub fn is_copied(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Variable(_))
    }
}

/// What the services of a project refer to.
pub(super) struct Sections<'c> {
    pub(super) config: &'c Value,
    pub(super) project: &'c str,
    pub(super) folders: &'c Folders,
}

impl Sections<'_> {
    /// A network or a volume.
    pub(super) fn resource(&self, section: &str, key: &str) -> Resource {
        let of = &self.config[section][key];
        let options = &of["driver_opts"];
        let is_bind = options["o"].as_str().is_some_and(|how| {
            how.split(',')
                .any(|option| matches!(option, "bind" | "rbind"))
        });
        let is_local = of["driver"].as_str().is_none_or(|driver| driver == "local");
        let device = options["device"].as_str().filter(|_| is_bind && is_local);
        let name = of["name"].as_str().filter(|name| !name.is_empty());
        Resource {
            key: key.to_owned(),
            name: name.map_or_else(|| format!("{}_{key}", self.project), str::to_owned),
            is_external: of["external"] == true,
            has_options: options.is_object(),
            device: device.map(|path| self.folders.place(path)),
        }
    }

    /// The service with these fields. `written` is how the text writes it, if that is known.
    pub(super) fn service(
        &self,
        name: &str,
        fields: &Fields,
        written: Option<&WrittenService>,
    ) -> Service {
        let given = fields.get("image").and_then(Value::as_str);
        let by_name = || format!("{}-{name}", self.project).to_lowercase();
        let build = fields.get("build").filter(|build| !build.is_null());
        let environment = entries(fields.get("environment"));
        Service {
            project: self.project.to_owned(),
            name: name.to_owned(),
            image: given
                .filter(|image| !image.is_empty())
                .map(str::to_owned)
                .or_else(|| build.map(|_| by_name())),
            environment: environment
                .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
                .collect(),
            mounts: self.mounts(fields, written),
            networks: self.networks(fields),
            depends_on: dependencies(fields),
            files: ["secrets", "configs"]
                .into_iter()
                .flat_map(|section| self.files(section, fields))
                .collect(),
            context: build.and_then(|build| Some(self.folders.place(build["context"].as_str()?))),
            fields: fields.clone(),
        }
    }

    fn mounts(&self, fields: &Fields, written: Option<&WrittenService>) -> Vec<Mount> {
        let mount = |item: &Value| {
            let named = item["type"].as_str()?;
            let kind = MountType::named(named);
            let source = item["source"].as_str().filter(|source| !source.is_empty());
            let target = item["target"].as_str()?;
            let written = written.and_then(|own| own.mounts.get(&clean(target)));
            let creates = written.map_or(item["bind"]["create_host_path"] == true, |mount| {
                mount.creates == Some(true)
            });
            let is_bind = kind == MountType::Bind;
            let is_volume = kind == MountType::Volume;
            Some(Mount {
                place: source
                    .filter(|_| is_bind)
                    .map(|path| self.folders.place(path)),
                volume: source
                    .filter(|_| is_volume)
                    .map(|key| self.resource("volumes", key)),
                kind,
                is_tmpfs: named == "tmpfs",
                target: target.to_owned(),
                is_read_only: item["read_only"] == true,
                creates,
            })
        };
        items(fields.get("volumes")).filter_map(mount).collect()
    }

    fn networks(&self, fields: &Fields) -> BTreeMap<String, Endpoint> {
        match fields.get("network_mode").and_then(Value::as_str) {
            Some(mode) if is_shared(mode) => return BTreeMap::new(),
            Some(mode) => {
                let name = if mode == "default" { "bridge" } else { mode };
                return BTreeMap::from([(name.to_owned(), Endpoint::default())]);
            }
            None => {}
        }
        let found = entries(fields.get("networks")).map(|(key, options)| {
            let network = self.resource("networks", key);
            let endpoint = Endpoint {
                options: options.as_object().cloned().unwrap_or_default(),
                network: Some(network.clone()),
            };
            (network.name, endpoint)
        });
        let found: BTreeMap<String, Endpoint> = found.collect();
        if !found.is_empty() {
            return found;
        }
        let default = self.resource("networks", "default");
        let endpoint = Endpoint {
            network: Some(default.clone()),
            ..Endpoint::default()
        };
        BTreeMap::from([(default.name, endpoint)])
    }

    fn files(&self, section: &'static str, fields: &Fields) -> Vec<PlacedFile> {
        let dir = if section == "secrets" {
            "/run/secrets"
        } else {
            ""
        };
        let file = |item: &Value| {
            let key = item["source"].as_str()?;
            let target = item["target"].as_str().unwrap_or(key);
            let target = if target.starts_with('/') {
                target.to_owned()
            } else {
                format!("{dir}/{target}")
            };
            let of = &self.config[section][key];
            let [path, content, variable] =
                ["file", "content", "environment"].map(|key| of[key].as_str());
            let content = match (path, content, variable) {
                (Some(path), ..) => Content::File(self.folders.place(path)),
                (_, Some(content), _) => Content::Text(content.to_owned()),
                (.., Some(variable)) => Content::Variable(variable.to_owned()),
                _ => Content::External,
            };
            Some(PlacedFile {
                section,
                key: key.to_owned(),
                target,
                content,
            })
        };
        items(fields.get(section)).filter_map(file).collect()
    }
}

impl Service {
    /// The value of a key, if it is set.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !is_empty(value))
    }

    /// The scalar at a path of keys, as text.
    pub fn text(&self, path: &[&str]) -> Option<String> {
        let (first, rest) = path.split_first()?;
        let first = self.fields.get(*first)?;
        let found = rest.iter().try_fold(first, |value, key| value.get(key))?;
        text(found)
    }

    /// The items of a list of texts.
    pub fn texts(&self, key: &str) -> Vec<String> {
        items(self.fields.get(key)).filter_map(text).collect()
    }

    /// The number of containers.
    pub fn replicas(&self) -> usize {
        let count = self.text(&["scale"]);
        let count = count.or_else(|| self.text(&["deploy", "replicas"]));
        count.and_then(|count| count.parse().ok()).unwrap_or(1)
    }

    /// How the names of its containers start, if the text gives them none: `web-db-`.
    pub fn name_of_containers(&self) -> String {
        format!("{}-{}-", self.project, self.name)
    }

    /// Whether the text names its image.
    pub fn names_image(&self) -> bool {
        self.get("image").is_some()
    }

    pub fn is_built(&self) -> bool {
        self.fields
            .get("build")
            .is_some_and(|build| !build.is_null())
    }

    /// Its image, to be pulled for the platform that the text names.
    pub fn pull(&self, image: String) -> Pull {
        Pull {
            shown: None,
            image,
            platform: self.text(&["platform"]),
        }
    }

    /// Its mounts of volumes that have a name.
    pub fn volumes(&self) -> impl Iterator<Item = (&Mount, &Resource)> {
        let mounts = self.mounts.iter();
        mounts.filter_map(|mount| Some((mount, mount.volume.as_ref()?)))
    }

    /// Its fixed addresses, IPv4 and IPv6, with the engine's name of the network of each.
    pub fn fixed_addresses(&self) -> Vec<(String, String)> {
        let all = self.networks.iter().flat_map(|(name, endpoint)| {
            ["ipv4_address", "ipv6_address"].map(|key| {
                let address = endpoint.options.get(key)?.as_str()?;
                Some((name.clone(), address.to_owned()))
            })
        });
        all.flatten().collect()
    }

    /// The namespaces that it shares: the field of Docker's `HostConfig`, and `service:…` or `container:…`.
    pub fn namespaces(&self) -> impl Iterator<Item = (&'static str, &str)> {
        namespaces(&self.fields)
    }

    /// Whether it shares a namespace or volumes with another container.
    pub fn shares(&self) -> bool {
        self.namespaces().next().is_some() || self.get("volumes_from").is_some()
    }
}

/// The namespaces that a service with these fields shares.
fn namespaces(fields: &Fields) -> impl Iterator<Item = (&'static str, &str)> {
    shared_modes(|key| fields.get(key)?.as_str())
}

/// What a service needs, by `depends_on` or by what implies it, which Compose writes there.
fn dependencies(fields: &Fields) -> BTreeMap<String, Dependency> {
    let modes = namespaces(fields);
    let shared = modes.filter_map(|(_, mode)| Some(mode.strip_prefix("service:")?.to_owned()));
    let sources = items(fields.get("volumes_from")).filter_map(Value::as_str);
    let sources = sources.filter(|source| !source.starts_with("container:"));
    let sources = sources.filter_map(|source| Some(source.split(':').next()?.to_owned()));
    let shared: BTreeSet<String> = shared.chain(sources).collect();
    let needs = entries(fields.get("depends_on")).map(|(name, how)| {
        let condition = how["condition"].as_str().unwrap_or_default();
        let dependency = Dependency {
            condition: Condition::named(condition),
            required: how["required"] != false,
            restarts: how["restart"] == true,
            shares: shared.contains(name),
        };
        (name.clone(), dependency)
    });
    needs.collect()
}

/// A scalar as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_set) => Some(is_set.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn entries(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}
