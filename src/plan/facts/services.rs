//! The text and variables that are sent, as Portainer's Compose reads them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    slice::from_ref,
};

use composefile::{
    document::{Document, Node, ScalarType},
    dotenv::{self, DotenvError},
    reader::{Context, Reader},
    services::{EnvFile, MountSpec, MountType, Service},
};

use crate::{
    model::{Pull, Variable},
    plan::Sent,
    rewrite::{env::stack_env, portainer},
};

/// Marks values and paths that are unknown outside Portainer. No real one contains it.
const UNKNOWN: char = '\0';
/// Portainer's directory of the stack. Its number is unknown before the create.
const FOLDER: &str = "/\0/stack";
/// Portainer's home directory.
const HOME: &str = "/\0/home";
/// The variables that Portainer's container sets: they override `stack.env`. Two are paths.
const SET_BY_PORTAINER: [(&str, &str); 3] =
    [("HOME", HOME), ("HOSTNAME", "\0"), ("PATH", "/\0/bin")];

/// A value of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// The text does not set it.
    No,
    /// It depends on something that is unknown outside Portainer.
    Unknown,
    Is(String),
}

impl Given {
    fn of(value: Cow<'_, str>) -> Self {
        if value.contains(UNKNOWN) {
            Self::Unknown
        } else {
            Self::Is(value.into_owned())
        }
    }

    pub fn known(self) -> Option<String> {
        match self {
            Self::Is(value) => Some(value),
            Self::No | Self::Unknown => None,
        }
    }
}

/// Where a path of the text leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A path of a file system: of the host or of Portainer's container.
    Absolute(String),
    /// A path below Portainer's directory of the stack, relative to it; empty for that directory.
    Folder(String),
    Unknown,
}

/// Reads `sent` for the project `project`. `then` gets no stack if the text is not YAML.
pub fn with_sent<T>(
    sent: Sent,
    project: &str,
    then: impl FnOnce(&SentText, Option<&SentStack>) -> T,
) -> T {
    let shell = |name: &str| {
        let found = SET_BY_PORTAINER.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let context = portainer::context(FOLDER, HOME, &shell, project);
    let env = stack_env(sent.env);
    let read = dotenv::parse(&env, &shell);
    let env_error = read.as_ref().err().copied();
    // The other findings do not depend on the variables that cannot be parsed.
    let env = if env_error.is_some() {
        let is_read = |one: &&Variable| dotenv::parse(&stack_env(from_ref(*one)), &shell).is_ok();
        let kept: Vec<Variable> = sent.env.iter().filter(is_read).cloned().collect();
        stack_env(&kept)
    } else {
        env
    };
    let variables = read
        .or_else(|_| dotenv::parse(&env, &shell))
        .unwrap_or_default();
    let text = SentText {
        text: sent.text,
        env: &env,
        env_error,
        context: &context,
    };
    let Ok(document) = Document::parse(sent.text) else {
        return then(&text, None);
    };
    let reader = Reader::new(&document, Some(&env), &variables, &context);
    let stack = SentStack {
        reader: &reader,
        project,
    };
    then(&text, Some(&stack))
}

/// Calls `then` with the services of `sent`. There are none if it is not YAML.
pub fn with_services<T>(sent: Sent, project: &str, then: impl FnOnce(&[SentService]) -> T) -> T {
    with_sent(sent, project, |_, stack| {
        then(&stack.map(SentStack::services).unwrap_or_default())
    })
}

/// The texts, and the context in which Portainer reads them.
pub struct SentText<'a> {
    pub text: &'a str,
    /// `stack.env` (M07), without variables that Compose cannot parse.
    pub env: &'a str,
    /// Why Compose cannot parse `stack.env` with all variables.
    pub env_error: Option<DotenvError>,
    pub context: &'a Context<'a>,
}

/// The stack that the text describes.
pub struct SentStack<'r, 'd, 'a> {
    pub reader: &'r Reader<'d, 'a>,
    pub project: &'r str,
}

/// A service with what it inherits by `extends` in the same file.
pub struct SentService<'r, 'd, 'a> {
    pub stack: &'r SentStack<'r, 'd, 'a>,
    pub name: &'d str,
    /// The outermost base first.
    chain: Vec<Service<'d>>,
}

impl<'r, 'd, 'a> SentStack<'r, 'd, 'a> {
    /// The services that Compose starts: those without a profile or with an active one (M14).
    pub fn active(&'r self) -> Vec<SentService<'r, 'd, 'a>> {
        let mut services = self.services();
        services.retain(SentService::is_active);
        services
    }

    pub fn services(&'r self) -> Vec<SentService<'r, 'd, 'a>> {
        let services = self.reader.services.iter();
        services
            .map(|&service| SentService {
                stack: self,
                name: service.name,
                chain: self.reader.chain(service),
            })
            .collect()
    }

    /// The value of a scalar.
    pub fn read(&self, node: Node<'_>) -> Given {
        let Some(text) = node.as_str() else {
            return Given::No;
        };
        self.reader.read(text).map_or(Given::Unknown, Given::of)
    }

    /// The value of a key of a mapping.
    pub fn read_in(&self, mapping: Node<'_>, key: &str) -> Given {
        mapping.get(key).map_or(Given::No, |node| self.read(node))
    }

    /// The value of a scalar, as text. A number such as 1e3 or 0x10 has another text in the container.
    pub fn text(&self, node: Node<'_>) -> Given {
        let is_text = node.scalar_type() == Some(ScalarType::Text);
        match node.as_str() {
            Some(value) if !is_text && !is_plain(value) => Given::Unknown,
            _ => self.read(node),
        }
    }

    /// The place of a path that Compose (`local`) or the engine reads.
    pub fn place(&self, path: &str, local: bool) -> Place {
        let base = self.reader.base();
        let path = if local {
            base.local(path)
        } else {
            base.host(path)
        };
        let path = composefile::path::clean(&path);
        match path.strip_prefix(FOLDER) {
            Some(below) if below.is_empty() || below.starts_with('/') => {
                Place::Folder(below.trim_start_matches('/').to_owned())
            }
            _ if path.contains(UNKNOWN) => Place::Unknown,
            _ => Place::Absolute(path),
        }
    }

    /// The engine's name of a network or volume, and whether it is external.
    pub fn resource(&self, section: &str, key: &str) -> (Given, bool) {
        let section = self.reader.document.get(section);
        let node = section.and_then(|all| all.get(key));
        let external = node.and_then(|node| node.get("external"));
        let is_external = external.is_some_and(|external| {
            external.is_mapping() || external.as_str().is_some_and(|text| text == "true")
        });
        let name = external
            .and_then(|external| external.get("name"))
            .or_else(|| node.and_then(|node| node.get("name")));
        let name = match name.map(|name| self.read(name)) {
            Some(Given::Is(name)) if !name.is_empty() => Given::Is(name),
            Some(Given::Unknown) => Given::Unknown,
            _ if is_external => Given::Is(key.to_owned()),
            _ => Given::Is(format!("{}_{key}", self.project)),
        };
        (name, is_external)
    }
}

/// A mount of a service.
pub struct SentMount {
    pub is_short: bool,
    pub kind: MountType,
    pub source: Option<String>,
    pub target: String,
}

impl<'d> SentService<'_, 'd, '_> {
    /// The node at a path of keys, of this service or else of the nearest that it extends.
    pub fn node(&self, path: &[&str]) -> Option<Node<'d>> {
        self.chain.iter().rev().find_map(|service| {
            let node = path
                .iter()
                .try_fold(service.node, |node, key| node.get(key))?;
            (!node.is_null()).then_some(node)
        })
    }

    /// All nodes of a key, the outermost base first.
    pub fn nodes(&self, key: &str) -> impl Iterator<Item = Node<'d>> {
        let all = self.chain.iter().map(|service| service.node.get(key));
        let nodes = all.flatten().filter(|node| !node.is_null());
        nodes.collect::<Vec<_>>().into_iter()
    }

    /// The items of all lists of a key.
    pub fn items(&self, key: &str) -> impl Iterator<Item = Node<'d>> {
        self.nodes(key).flat_map(Node::items)
    }

    /// The scalar at a path of keys.
    pub fn given(&self, path: &[&str]) -> Given {
        self.node(path)
            .map_or(Given::No, |node| self.stack.read(node))
    }

    pub fn is_active(&self) -> bool {
        let service = self.chain.last();
        service.is_none_or(|service| self.stack.reader.is_active(*service))
    }

    /// The number of containers; `None` if it is unknown.
    pub fn replicas(&self) -> Option<usize> {
        let count = match self.given(&["scale"]) {
            Given::No => self.given(&["deploy", "replicas"]),
            scale => scale,
        };
        match count {
            Given::No => Some(1),
            Given::Unknown => None,
            Given::Is(count) => count.parse().ok(),
        }
    }

    /// The reference of its image, given or built.
    pub fn image(&self) -> Option<String> {
        match self.given(&["image"]) {
            Given::Is(image) if !image.is_empty() => Some(image),
            Given::Unknown => None,
            _ => {
                let name = format!("{}-{}", self.stack.project, self.name);
                self.node(&["build"]).map(|_| name.to_lowercase())
            }
        }
    }

    /// Its image, to be pulled for the platform that the text names.
    pub fn pull(&self, image: String) -> Pull {
        Pull {
            image,
            platform: self.given(&["platform"]).known(),
        }
    }

    /// The variables of `environment` and of `stack.env` as an env file. `None` if an unknown env file adds
    /// others.
    pub fn environment(&self) -> Option<BTreeMap<String, Given>> {
        let mut found = BTreeMap::new();
        for service in &self.chain {
            for file in service.env_files() {
                let path = self.stack.reader.read(file.path).ok()?;
                if self.stack.place(&path, true) != Place::Folder("stack.env".to_owned()) {
                    return None;
                }
                let variables = self.stack.reader.env.iter();
                found
                    .extend(variables.map(|(name, value)| (name.clone(), Given::of(value.into()))));
            }
        }
        // A bare name takes its value from where Compose runs.
        let here = |name: &str| {
            let here = self.stack.reader.here(name);
            here.map_or(Given::No, |value| Given::of(value.into()))
        };
        for node in self.nodes("environment") {
            for item in node.items() {
                let Some(text) = item.as_str() else { continue };
                let (name, value) = match text.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (text, None),
                };
                // Compose replaces variables in the whole item.
                let name = self.stack.reader.read(name).ok()?.into_owned();
                let value = match value.map(|value| self.stack.reader.read(value)) {
                    None => here(&name),
                    Some(Ok(value)) => Given::of(value),
                    Some(Err(_)) => Given::Unknown,
                };
                found.insert(name, value);
            }
            for entry in node.entries() {
                let Some(name) = entry.name() else { continue };
                let value = match entry.value.as_str() {
                    None => here(name),
                    Some(_) => self.stack.text(entry.value),
                };
                found.insert(name.to_owned(), value);
            }
        }
        found.retain(|_, value| *value != Given::No);
        Some(found)
    }

    /// The networks by the engine's name, with what the text says of each, the outermost base first; `None` if they are unknown.
    pub fn networks(&self) -> Option<BTreeMap<String, Vec<Node<'d>>>> {
        match self.given(&["network_mode"]) {
            Given::Is(mode) if mode.starts_with("service:") || mode.starts_with("container:") => {
                return Some(BTreeMap::new());
            }
            Given::Is(mode) => {
                let name = if mode == "default" { "bridge" } else { &mode };
                return Some(BTreeMap::from([(name.to_owned(), Vec::new())]));
            }
            Given::Unknown => return None,
            Given::No => {}
        }
        let mut found: BTreeMap<String, Vec<Node>> = BTreeMap::new();
        for node in self.nodes("networks") {
            for item in node.items() {
                let key = self.stack.read(item).known()?;
                found.entry(self.network(&key)?).or_default();
            }
            for entry in node.entries() {
                let nodes = found.entry(self.network(entry.name()?)?).or_default();
                nodes.push(entry.value);
            }
        }
        if found.is_empty() {
            found.insert(self.network("default")?, Vec::new());
        }
        Some(found)
    }

    /// Its fixed addresses, IPv4 and IPv6, with the engine's name of the network of each.
    pub fn fixed_addresses(&self) -> Vec<(String, String)> {
        let entries = self.nodes("networks").flat_map(Node::entries);
        let all = entries.flat_map(|entry| {
            ["ipv4_address", "ipv6_address"].map(|key| {
                let address = self.stack.read(entry.value.get(key)?).known()?;
                Some((self.network(entry.name()?)?, address))
            })
        });
        all.flatten().collect()
    }

    fn network(&self, key: &str) -> Option<String> {
        self.stack.resource("networks", key).0.known()
    }

    /// The keys of the networks that it uses.
    pub fn network_keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for node in self.nodes("networks") {
            keys.extend(
                node.items()
                    .filter_map(|item| self.stack.read(item).known()),
            );
            let entries = node.entries().into_iter();
            keys.extend(entries.filter_map(|entry| Some(entry.name()?.to_owned())));
        }
        if keys.is_empty() && self.given(&["network_mode"]) == Given::No {
            keys.push("default".to_owned());
        }
        keys
    }

    /// Its mounts, without those that are unknown.
    pub fn mounts(&self) -> Vec<SentMount> {
        let read = |node: Node<'d>| self.stack.read(node).known();
        let mount = |item: Node<'d>| {
            if item.is_mapping() {
                let text = |key| item.get(key).and_then(read);
                return Some(SentMount {
                    is_short: false,
                    kind: MountType::named(&text("type")?),
                    source: text("source"),
                    target: text("target")?,
                });
            }
            let text = read(item)?;
            let spec = MountSpec::parse(&text)?;
            Some(SentMount {
                is_short: true,
                kind: spec.kind,
                source: spec.source.map(str::to_owned),
                target: spec.target.to_owned(),
            })
        };
        self.items("volumes").filter_map(mount).collect()
    }

    /// Its mounts of volumes, each with the engine's name of the volume, and whether that is external. Without those whose
    /// names are unknown.
    pub fn volumes(&self) -> impl Iterator<Item = (SentMount, String, bool)> {
        let mounts = self.mounts().into_iter();
        let volumes = mounts.filter(|mount| mount.kind == MountType::Volume);
        volumes.filter_map(|mount| {
            let (name, is_external) = self.stack.resource("volumes", mount.source.as_deref()?);
            Some((mount, name.known()?, is_external))
        })
    }

    /// The names of the external volumes that it mounts, as far as they are known.
    pub fn external_volumes(&self) -> impl Iterator<Item = String> {
        let external = self.volumes().filter(|(.., is_external)| *is_external);
        external.map(|(_, name, _)| name)
    }

    /// Its env files, as written.
    pub fn env_files(&self) -> impl Iterator<Item = EnvFile<'d>> {
        self.chain.iter().flat_map(Service::env_files)
    }

    /// The paths of its label files, as written.
    pub fn label_files(&self) -> impl Iterator<Item = &'d str> {
        self.chain.iter().flat_map(Service::label_files)
    }

    /// The place of a node in messages, as the losses of the text name it.
    pub fn path_of(&self, node: Node<'d>) -> String {
        let own = self.chain.last().map(|service| service.node);
        let below = own.and_then(|own| node.path_below(own));
        below.map_or_else(
            || node.path(),
            |below| format!("services.{}.{below}", self.name),
        )
    }

    /// Whether a part of the service is in another file, which is not read.
    pub fn is_partial(&self) -> bool {
        let mut files = self.chain.iter().map(Service::extends_file);
        files.any(|file| file.is_some())
    }
}

/// Whether a scalar that is not text reaches the container as written.
fn is_plain(value: &str) -> bool {
    matches!(value, "true" | "false")
        || (value.bytes().all(|byte| byte.is_ascii_digit()) && !value.starts_with('0'))
        || value == "0"
}

/// The names of the external volumes that the active services mount, as far as they are known.
pub fn external_volumes(sent: Sent, project: &str) -> BTreeSet<String> {
    with_services(sent, project, |services| {
        let active = services.iter().filter(|one| one.is_active());
        active.flat_map(SentService::external_volumes).collect()
    })
}

/// The images that the services of `sent` name or build, for the engine to inspect.
pub fn image_references(sent: Sent, project: &str) -> BTreeSet<String> {
    with_services(sent, project, |services| {
        let active = services.iter().filter(|one| one.is_active());
        active.filter_map(SentService::image).collect()
    })
}
