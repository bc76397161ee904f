//! Typed views of a Compose file: its services, and what they name.
//!
//! Every view follows aliases and merges, accepts each form that Compose accepts, and leaves out values of the wrong
//! type. Values are as written: variables are not replaced.

mod mount;

pub use mount::{MountSpec, MountType, is_host_path, split_at_colons};

use super::document::{Document, Entry, Node};

/// A service of a file.
#[derive(Debug, Clone, Copy)]
pub struct Service<'d> {
    /// The key below `services`.
    pub name: &'d str,
    /// The value of the key.
    pub node: Node<'d>,
}

/// A file that `env_file` names.
#[derive(Debug, Clone, Copy)]
pub struct EnvFile<'d> {
    /// The node of its path.
    pub node: Node<'d>,
    /// As written.
    pub path: &'d str,
    /// Whether Compose fails if the file does not exist, as written. The default is `true`.
    pub required: Option<&'d str>,
    /// How Compose reads it, as written.
    pub format: Option<&'d str>,
}

/// The services of a file, in the order of the text.
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

/// The files that `include` names.
pub fn includes<'d>(document: &'d Document<'d>) -> Vec<&'d str> {
    let items = document.get("include").into_iter().flat_map(Node::items);
    items
        .map(|item| item.get("path").unwrap_or(item))
        .flat_map(one_or_many)
        .filter_map(Node::as_str)
        .collect()
}

impl<'d> Service<'d> {
    /// The files of `env_file`: one path, or a list of paths and mappings.
    pub fn env_files(&self) -> Vec<EnvFile<'d>> {
        let values = self.node.get("env_file").into_iter();
        values.flat_map(one_or_many).filter_map(env_file).collect()
    }

    /// The variables of `environment`, a mapping or a list of `NAME=value` and bare `NAME`: the name, and the value. A bare
    /// `NAME` has none: it takes its value from the shell or `.env`.
    pub fn environment(&self) -> Vec<(&'d str, Option<&'d str>)> {
        let Some(value) = self.node.get("environment") else {
            return Vec::new();
        };
        let listed = value.items().filter_map(|node| {
            let written = node.as_str()?;
            let pair = written.split_once('=');
            Some(pair.map_or((written, None), |(name, value)| (name, Some(value))))
        });
        let mapped = value.entries().into_iter();
        let mapped = mapped.filter_map(|entry| Some((entry.name()?, entry.value.as_str())));
        listed.chain(mapped).collect()
    }

    /// The value of `build`: a path or a mapping.
    pub fn build(&self) -> Option<Node<'d>> {
        self.node.get("build").filter(|build| !build.is_null())
    }

    /// The value of `extends.file`.
    pub fn extends_file(&self) -> Option<&'d str> {
        self.node.get("extends")?.get("file")?.as_str()
    }

    /// The files of `label_file`: one path or a list of paths.
    pub fn label_files(&self) -> Vec<&'d str> {
        let value = self.node.get("label_file");
        value
            .into_iter()
            .flat_map(one_or_many)
            .filter_map(Node::as_str)
            .collect()
    }
}

/// Whether a build context is not a directory of this host.
pub fn is_remote_context(context: &str) -> bool {
    const REMOTE: [&str; 3] = ["github.com/", "git@", "service:"];
    context.contains("://") || REMOTE.iter().any(|prefix| context.starts_with(prefix))
}

/// The items of a list; for any other node, the node itself.
pub fn one_or_many(node: Node<'_>) -> Vec<Node<'_>> {
    if node.is_sequence() {
        node.items().collect()
    } else {
        vec![node]
    }
}

fn env_file(node: Node<'_>) -> Option<EnvFile<'_>> {
    let path = node.get("path").unwrap_or(node);
    let word = |key| node.get(key).and_then(Node::as_str);
    Some(EnvFile {
        node: path,
        path: path.as_str()?,
        required: word("required"),
        format: word("format"),
    })
}

#[cfg(test)]
mod tests;
