//! What a stack loses by the literal rewrite, as far as its text tells (B01).
//!
//! By owner and name or path as written, never by value. What the containers and the record lose is found
//! by others and stands beside a [`TextLoss`]; whether the text itself is damaged is [`super::damage`]'s.
#![deny(clippy::disallowed_methods)]

mod path;
mod strings;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use serde::Serialize;

use super::{
    document::{Document, Entry, Node},
    env_files::DeletedLines,
    interpolate::Lookup,
    services::{
        EnvFile, MountKind, NamedPath, Service, Syntax, files_of, includes, is_remote_context,
        services,
    },
};
use path::Places;

/// Something that holds before the rewrite and not after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextLoss {
    /// Who loses it.
    pub owner: Owner,
    /// The line of the compose file that says it, counted from 1.
    pub line: usize,
    /// What is lost.
    #[serde(flatten)]
    pub kind: TextLossKind,
}

/// The part of a compose file that something belongs to, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// Below `services`.
    Service(String),
    /// Below the top-level `volumes`.
    Volume(String),
    /// Below the top-level `secrets`.
    Secret(String),
    /// Below the top-level `configs`.
    Config(String),
    /// The file as a whole.
    File,
}

/// What the literal rewrite can take from a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TextLossKind {
    /// A variable that came in through a removed `env_file` (M09).
    Variable {
        /// Its name.
        name: String,
        /// The file it came from, as written.
        file: String,
    },
    /// A removed `env_file` that cannot be read here, so that nobody knows what it brought in.
    UnknownVariables {
        /// The file, as written.
        file: String,
    },
    /// A path of this host that the manager looks for elsewhere (M12).
    Path {
        /// As written.
        path: String,
        /// As the manager reads it; the same where nothing is replaced in it.
        becomes: String,
    },
    /// A file or folder of this host that the manager must be able to read, and may not (M11).
    Unreadable {
        /// As written.
        path: String,
        /// What names it.
        named_by: FileUse,
    },
    /// A text that is no path of this host, but has its `./` replaced all the same (C32).
    Replaced {
        /// Where it stands: `services.web.command[0]`.
        place: String,
    },
}

/// What a compose file can name a file for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileUse {
    /// `include`
    Include,
    /// `extends.file`
    Extends,
    /// `build`
    Build,
    /// `label_file`
    LabelFile,
    /// An `env_file` that the rewrite leaves in the text.
    EnvFile,
}

/// What the caller found at the path of an `env_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvFileNames {
    /// The names that it sets, read as compose does.
    Names(Vec<String>),
    /// No file is there.
    Absent,
    /// It is there but cannot be read.
    Unreadable,
}

/// What has to be known besides the text.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The stack's directory, absolute.
    pub stack_dir: &'a str,
    /// The names in each of [`env_file_paths`], by path as written.
    pub env_files: &'a BTreeMap<String, EnvFileNames>,
    /// What the stack's own `.env` sets, for `${…}` in paths.
    pub variables: Lookup<'a>,
}

/// An env file that a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvFilePath {
    /// As written, `${…}` included; relative to the stack's directory.
    pub path: String,
    /// Whether compose fails where it is not there.
    pub required: bool,
    /// `raw`, or compose's own where there is none.
    pub format: Option<String>,
}

/// The env files that the services of a text name, each path once, so that the caller can read them.
pub fn env_file_paths(document: &Document<'_>) -> Vec<EnvFilePath> {
    let mut seen = HashSet::new();
    let named = services(document)
        .into_iter()
        .flat_map(|service| service.env_files());
    named
        .filter(|file| seen.insert(file.path))
        .map(|file| EnvFilePath {
            path: file.path.to_owned(),
            required: file.required,
            format: file.format.map(str::to_owned),
        })
        .collect()
}

/// What a stack loses if its text is rewritten as the contract says (C30–C32): services first, in their
/// order, then the rest of the file.
pub fn losses(document: &Document<'_>, around: &Surroundings<'_>) -> Vec<TextLoss> {
    let mut finder = Finder {
        places: Places {
            stack_dir: around.stack_dir,
            variables: around.variables,
        },
        deleted: DeletedLines::of(document.text()),
        env_files: around.env_files,
        found: Vec::new(),
    };
    for service in services(document) {
        finder.service(&service);
    }
    finder.rest(document);
    finder.found
}

struct Finder<'a> {
    places: Places<'a>,
    deleted: DeletedLines,
    env_files: &'a BTreeMap<String, EnvFileNames>,
    found: Vec<TextLoss>,
}

impl Finder<'_> {
    fn service(&mut self, service: &Service<'_>) {
        let owner = Owner::Service(service.name.to_owned());
        self.env_files(service, &owner);
        self.mounts(service, &owner);
        if let Some(file) = service.extends_file() {
            self.unreadable(&owner, file, FileUse::Extends);
        }
        for context in service.build_contexts() {
            self.unreadable(&owner, context, FileUse::Build);
        }
        for file in service.label_files() {
            self.unreadable(&owner, file, FileUse::LabelFile);
        }
        for node in strings::of_service(service) {
            let below = node.path_below(service.node);
            let place = below.map_or_else(
                || node.path(),
                |below| format!("services.{}.{below}", service.name),
            );
            self.add(&owner, node, TextLossKind::Replaced { place });
        }
    }

    fn rest(&mut self, document: &Document<'_>) {
        for file in includes(document) {
            self.unreadable(&Owner::File, file, FileUse::Include);
        }
        for (name, file) in files_of(document, "secrets") {
            self.path(&Owner::Secret(name.to_owned()), file);
        }
        for (name, file) in files_of(document, "configs") {
            self.path(&Owner::Config(name.to_owned()), file);
        }
        for (name, device) in bound_volumes(document) {
            self.path(&Owner::Volume(name.to_owned()), device);
        }
        for node in strings::outside_services(document) {
            let place = node.path();
            self.add(&Owner::File, node, TextLossKind::Replaced { place });
        }
    }

    fn add(&mut self, owner: &Owner, node: Node<'_>, kind: TextLossKind) {
        self.found.push(TextLoss {
            owner: owner.clone(),
            line: node.line(),
            kind,
        });
    }

    fn env_files(&mut self, service: &Service<'_>, owner: &Owner) {
        let is_env_file = |entry: &Entry<'_>| entry.name() == Some("env_file");
        let Some(entry) = service.node.entries().into_iter().find(is_env_file) else {
            return;
        };
        let key_goes = self.deleted.hold(entry.key.span().start);
        let (removed, left): (Vec<_>, Vec<_>) = service
            .env_files()
            .into_iter()
            .partition(|file| key_goes || self.deleted.hold(file.node.span().start));
        self.variables(service, owner, &removed);
        for file in left {
            let path = NamedPath {
                path: file.path,
                node: file.node,
            };
            self.unreadable(owner, path, FileUse::EnvFile);
        }
    }

    /// A variable that `environment` names still arrives: with its value, or, bare, with the value from the
    /// stack's `.env`, which goes before an env file's.
    fn variables(&mut self, service: &Service<'_>, owner: &Owner, removed: &[EnvFile<'_>]) {
        let environment = service.environment();
        let mut settled: HashSet<&str> = environment.iter().map(|entry| entry.name).collect();
        let known = self.env_files;
        // The last file that sets a variable is the one it came from.
        let mut kinds: Vec<_> = removed
            .iter()
            .rev()
            .map(|file| {
                (
                    file.node,
                    lost_with(file, known.get(file.path), &mut settled),
                )
            })
            .collect();
        kinds.reverse();
        for (node, kinds) in kinds {
            for kind in kinds {
                self.add(owner, node, kind);
            }
        }
    }

    fn mounts(&mut self, service: &Service<'_>, owner: &Owner) {
        for mount in service.mounts() {
            let source = mount.spec.source;
            let written = match (mount.syntax, mount.node.as_str()) {
                (Syntax::Short, Some(spec)) if self.places.mount_moves(spec) => {
                    source.unwrap_or(spec)
                }
                (Syntax::Long, Some(path))
                    if mount.spec.kind == MountKind::Bind && self.places.path_moves(path) =>
                {
                    path
                }
                _ => continue,
            };
            self.moved(owner, mount.node, written);
        }
    }

    fn path(&mut self, owner: &Owner, named: NamedPath<'_>) {
        if self.places.path_moves(named.path) {
            self.moved(owner, named.node, named.path);
        }
    }

    fn moved(&mut self, owner: &Owner, node: Node<'_>, path: &str) {
        let kind = TextLossKind::Path {
            path: path.to_owned(),
            becomes: self.places.replaced(path),
        };
        self.add(owner, node, kind);
    }

    fn unreadable(&mut self, owner: &Owner, named: NamedPath<'_>, named_by: FileUse) {
        let is_remote = self
            .places
            .before(named.path)
            .is_some_and(|path| is_remote_context(&path));
        if !is_remote {
            let path = named.path.to_owned();
            self.add(
                owner,
                named.node,
                TextLossKind::Unreadable { path, named_by },
            );
        }
    }
}

/// What goes with an env file; `settled` are the variables that come from elsewhere.
fn lost_with<'n>(
    file: &EnvFile<'_>,
    names: Option<&'n EnvFileNames>,
    settled: &mut HashSet<&'n str>,
) -> Vec<TextLossKind> {
    let from = || file.path.to_owned();
    match names {
        Some(EnvFileNames::Names(names)) => {
            let lost = names.iter().filter(|name| settled.insert(name.as_str()));
            lost.map(|name| TextLossKind::Variable {
                name: name.clone(),
                file: from(),
            })
            .collect()
        }
        Some(EnvFileNames::Absent) if !file.required => Vec::new(),
        _ => vec![TextLossKind::UnknownVariables { file: from() }],
    }
}

/// The volumes that bind a path of the host, where compose resolves it.
fn bound_volumes<'d>(document: &'d Document<'d>) -> Vec<(&'d str, NamedPath<'d>)> {
    let entries = document.get("volumes").map(Node::entries);
    let device = |entry: Entry<'d>| {
        let options = bind_options(entry.value)?;
        let node = options.get("device")?;
        Some((
            entry.name()?,
            NamedPath {
                path: node.as_str()?,
                node,
            },
        ))
    };
    entries.into_iter().flatten().filter_map(device).collect()
}

/// `driver_opts` of a top-level volume that is a bind mount.
fn bind_options(volume: Node<'_>) -> Option<Node<'_>> {
    let options = volume.get("driver_opts")?;
    let is = |node: Node<'_>, key, value| node.get(key).and_then(Node::as_str) == Some(value);
    (is(volume, "driver", "local") && is(options, "o", "bind")).then_some(options)
}

impl fmt::Display for TextLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.owner)?;
        match &self.kind {
            TextLossKind::Variable { name, file } => {
                write!(f, "{name} no longer arrives (from {file})")
            }
            TextLossKind::UnknownVariables { file } => {
                write!(
                    f,
                    "what {file} sets no longer arrives; it cannot be read here"
                )
            }
            TextLossKind::Path { path, becomes } if path == becomes => {
                write!(f, "the manager looks for {path} in a folder of its own")
            }
            TextLossKind::Path { path, becomes } => {
                write!(f, "{path} becomes {becomes}, which is another place")
            }
            TextLossKind::Unreadable { path, named_by } => {
                write!(f, "the manager must be able to read {path} ({named_by})")
            }
            TextLossKind::Replaced { place } => {
                write!(
                    f,
                    "`./` is replaced in {place}, which is no path of this host"
                )
            }
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(name) => write!(f, "service {name}"),
            Self::Volume(name) => write!(f, "volume {name}"),
            Self::Secret(name) => write!(f, "secret {name}"),
            Self::Config(name) => write!(f, "config {name}"),
            Self::File => f.write_str("compose file"),
        }
    }
}

impl fmt::Display for FileUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Include => "include",
            Self::Extends => "extends",
            Self::Build => "build",
            Self::LabelFile => "label_file",
            Self::EnvFile => "env_file",
        })
    }
}

#[cfg(test)]
mod tests;
