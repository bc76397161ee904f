//! What a compose file says, in compose's words: services and what is written about them.
//!
//! Every view reads through aliases and merges, takes each form compose takes, and leaves out what has
//! the wrong type. Values are as written, `${VAR}` not yet replaced.

mod mount;

use std::fmt;

pub use mount::split_at_colons;
pub use mount::{MountSpec, MountType, is_host_path};

use super::document::{Document, Entry, Node};

/// A service of the file.
#[derive(Debug, Clone, Copy)]
pub struct Service<'d> {
    /// Its key below `services`.
    pub name: &'d str,
    /// What is written about it.
    pub node: Node<'d>,
}

/// One file named by `env_file`.
#[derive(Debug, Clone, Copy)]
pub struct EnvFile<'d> {
    /// As written.
    pub path: &'d str,
    /// Whether compose fails where the file is not there; `true` unless the file says otherwise.
    pub required: bool,
    /// `raw`, where the values are not interpolated; `None` is compose's own format.
    pub format: Option<&'d str>,
    /// The node of the path.
    pub node: Node<'d>,
}

/// One entry of a service's `environment`; `Debug` leaves the value out.
#[derive(Clone, Copy)]
pub struct EnvironmentEntry<'d> {
    /// The variable.
    pub name: &'d str,
    /// What it is set to; `None` for a bare `NAME`, which takes its value from where compose runs.
    pub value: Option<&'d str>,
    /// The node of the entry: the item in list form, the key in map form.
    pub node: Node<'d>,
}

/// One entry of a service's `volumes`.
#[derive(Debug, Clone, Copy)]
pub struct ServiceMount<'d> {
    /// What it says.
    pub spec: MountSpec<'d>,
    /// The node of the source in long syntax, of the whole item in short syntax.
    pub node: Node<'d>,
    /// The node of the whole item.
    pub item: Node<'d>,
    /// In which syntax it is written.
    pub syntax: Syntax,
}

/// The two ways to write a port or a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// `source:target:options`
    Short,
    /// A mapping.
    Long,
}

/// A file or folder that the text names by path.
#[derive(Debug, Clone, Copy)]
pub struct NamedPath<'d> {
    /// As written.
    pub path: &'d str,
    /// Where it is written.
    pub node: Node<'d>,
}

impl fmt::Debug for EnvironmentEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "EnvironmentEntry({} at {:?})",
            self.name,
            self.node.span()
        )
    }
}

impl<'d> NamedPath<'d> {
    fn of(node: Node<'d>) -> Option<Self> {
        Some(Self {
            path: node.as_str()?,
            node,
        })
    }
}

/// The services of a file, in its order.
pub fn services<'d>(document: &'d Document<'d>) -> Vec<Service<'d>> {
    let entries = document.get("services").map(Node::entries);
    let service = |entry: Entry<'d>| {
        Some(Service {
            name: entry.name()?,
            node: entry.value,
        })
    };
    entries.into_iter().flatten().filter_map(service).collect()
}

/// The files that `include` names, each path of a list for itself.
pub fn includes<'d>(document: &'d Document<'d>) -> Vec<NamedPath<'d>> {
    let items = document.get("include").into_iter().flat_map(Node::items);
    items
        .map(|item| item.get("path").unwrap_or(item))
        .flat_map(one_or_many)
        .filter_map(NamedPath::of)
        .collect()
}

/// The `file` of each entry below the top-level `secrets` or `configs`.
pub fn files_of<'d>(document: &'d Document<'d>, section: &str) -> Vec<(&'d str, NamedPath<'d>)> {
    let entries = document.get(section).map(Node::entries);
    let file = |entry: Entry<'d>| Some((entry.name()?, NamedPath::of(entry.value.get("file")?)?));
    entries.into_iter().flatten().filter_map(file).collect()
}

impl<'d> Service<'d> {
    /// The text of a key of the service.
    pub fn text(&self, key: &str) -> Option<&'d str> {
        self.node.get(key)?.as_str()
    }

    /// `image`
    pub fn image(&self) -> Option<&'d str> {
        self.text("image")
    }

    /// `env_file`: one path, a list of paths, or a list of mappings.
    pub fn env_files(&self) -> Vec<EnvFile<'d>> {
        let value = self.node.get("env_file");
        value
            .into_iter()
            .flat_map(one_or_many)
            .filter_map(env_file)
            .collect()
    }

    /// `environment`: a mapping, or a list of `NAME=value` and bare `NAME`.
    pub fn environment(&self) -> Vec<EnvironmentEntry<'d>> {
        let Some(value) = self.node.get("environment") else {
            return Vec::new();
        };
        let listed = value.items().filter_map(listed_variable);
        let mapped = value.entries().into_iter().filter_map(mapped_variable);
        listed.chain(mapped).collect()
    }

    /// `volumes`, in both syntaxes.
    pub fn mounts(&self) -> Vec<ServiceMount<'d>> {
        let items = self.node.get("volumes").into_iter().flat_map(Node::items);
        items.filter_map(mount).collect()
    }

    /// `ports`, as written.
    pub fn ports(&self) -> Vec<Node<'d>> {
        let items = self.node.get("ports").into_iter().flat_map(Node::items);
        items.collect()
    }

    /// `build`, in either form.
    pub fn build(&self) -> Option<Node<'d>> {
        self.node.get("build").filter(|build| !build.is_null())
    }

    /// The folders that `build` reads: its context (`.` where none is written) and the additional ones.
    pub fn build_contexts(&self) -> Vec<NamedPath<'d>> {
        let Some(build) = self.build() else {
            return Vec::new();
        };
        let context = build.get("context").or(Some(build));
        let main = match context.and_then(NamedPath::of) {
            None => NamedPath {
                path: ".",
                node: build,
            },
            Some(named) => named,
        };
        let additional = build.get("additional_contexts");
        std::iter::once(main)
            .chain(additional.into_iter().flat_map(additional_contexts))
            .collect()
    }

    /// `extends.file`
    pub fn extends_file(&self) -> Option<NamedPath<'d>> {
        NamedPath::of(self.node.get("extends")?.get("file")?)
    }

    /// `label_file`: one path or a list of paths.
    pub fn label_files(&self) -> Vec<NamedPath<'d>> {
        let value = self.node.get("label_file");
        value
            .into_iter()
            .flat_map(one_or_many)
            .filter_map(NamedPath::of)
            .collect()
    }
}

/// Whether a build context lies elsewhere than on a disk of this host.
pub fn is_remote_context(context: &str) -> bool {
    const REMOTE: [&str; 3] = ["github.com/", "git@", "service:"];
    context.contains("://") || REMOTE.iter().any(|prefix| context.starts_with(prefix))
}

/// The items of a list, or the one node that stands for a list of one.
pub fn one_or_many(node: Node<'_>) -> Vec<Node<'_>> {
    if node.is_sequence() {
        node.items().collect()
    } else {
        vec![node]
    }
}

fn env_file(node: Node<'_>) -> Option<EnvFile<'_>> {
    let path = node.get("path").unwrap_or(node);
    Some(EnvFile {
        path: path.as_str()?,
        required: node.get("required").and_then(Node::as_bool).unwrap_or(true),
        format: node.get("format").and_then(Node::as_str),
        node: path,
    })
}

fn listed_variable(node: Node<'_>) -> Option<EnvironmentEntry<'_>> {
    let text = node.as_str()?;
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    Some(EnvironmentEntry { name, value, node })
}

fn mapped_variable(entry: Entry<'_>) -> Option<EnvironmentEntry<'_>> {
    Some(EnvironmentEntry {
        name: entry.name()?,
        value: entry.value.as_str(),
        node: entry.key,
    })
}

fn additional_contexts(node: Node<'_>) -> Vec<NamedPath<'_>> {
    let listed = node.items().filter_map(|item| {
        let (_, path) = item.as_str()?.split_once('=')?;
        Some(NamedPath { path, node: item })
    });
    let mapped = node
        .entries()
        .into_iter()
        .filter_map(|entry| NamedPath::of(entry.value));
    listed.chain(mapped).collect()
}

fn mount(item: Node<'_>) -> Option<ServiceMount<'_>> {
    if let Some(spec) = item.as_str() {
        return Some(ServiceMount {
            spec: MountSpec::parse(spec)?,
            node: item,
            item,
            syntax: Syntax::Short,
        });
    }
    if !item.is_mapping() {
        return None;
    }
    let source = item.get("source");
    Some(ServiceMount {
        spec: MountSpec {
            kind: MountType::named(item.get("type")?.as_str()?),
            source: source.and_then(Node::as_str),
            target: item.get("target")?.as_str()?,
            options: None,
        },
        node: source.unwrap_or(item),
        item,
        syntax: Syntax::Long,
    })
}

#[cfg(test)]
mod tests;
