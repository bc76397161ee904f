//! What a service refers to while it is resolved: the surroundings of the file, and its top-level sections.

use std::collections::BTreeMap;

use composefile::dotenv;
use serde_json::Value;

/// What a Compose file depends on besides its own text.
pub(super) struct Context<'c> {
    pub project: &'c str,
    /// The variables for interpolation.
    pub variables: &'c BTreeMap<String, String>,
    /// The directory that relative paths start from.
    pub folder: &'c str,
    /// The directory that `~` stands for.
    pub home: &'c str,
    /// The path of the Compose file, for error messages.
    pub file: &'c str,
    /// Reads a file where Compose runs; `None` if it does not exist.
    pub read: &'c dyn Fn(&str) -> Option<String>,
}

/// A top-level network or volume.
pub(super) struct Shared {
    /// The key in the file.
    pub key: String,
    /// The name on the engine.
    pub name: String,
    pub external: bool,
    pub labels: BTreeMap<String, String>,
    /// The mapping below the key.
    pub written: Value,
}

/// The top-level sections that a service refers to.
pub(super) struct Sections<'s> {
    pub networks: &'s BTreeMap<String, Shared>,
    pub volumes: &'s BTreeMap<String, Shared>,
    pub secrets: &'s Value,
    pub configs: &'s Value,
}

impl Context<'_> {
    /// Makes a path absolute by the rules of Compose: `~` is the home directory.
    pub fn absolute(&self, path: &str) -> String {
        let joined = if path.starts_with('/') {
            path.to_owned()
        } else if path == "~" || path.starts_with("~/") {
            format!("{}{}", self.home, &path[1..])
        } else {
            format!("{}/{path}", self.folder)
        };
        let mut parts = Vec::new();
        for part in joined.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
        format!("/{}", parts.join("/"))
    }
}

/// Reads the variables of an env file by the rules of Compose (M08).
pub(super) fn variables(
    text: &str,
    path: &str,
    known: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let lookup = |name: &str| known.get(name).cloned();
    let read = dotenv::parse(text, &lookup);
    let read = read.map_err(|error| {
        format!(
            "failed to read {path}: line {}: {}",
            error.line, error.problem
        )
    })?;
    Ok(read.into_iter().collect())
}
