//! A stack's name: which names are valid (C11), and what Portainer makes of them (M02).

use std::{env, ffi::OsStr, fmt};

use anyhow::Result;

use crate::{
    failure::Failure,
    model::{portainer_name, projects_of},
};

/// The management plane: recreating it would cut you off from Portainer (C05).
const REFUSED: [&str; 2] = ["traefik", "portainer"];

/// A stack's name that is safe as a path component (C11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackName(String);

impl StackName {
    /// Checks `name` by the rules of C11, without touching the file system.
    pub fn new(name: &OsStr) -> Result<Self> {
        let Some(text) = name.to_str() else {
            return Err(refused(&name.to_string_lossy(), "it is not UTF-8"));
        };
        let rules = [
            (text.is_empty(), "it is empty"),
            (text.starts_with('-'), "it starts with a hyphen"),
            (text.starts_with('.'), "it starts with a dot"),
            (text.contains(['/', '\\']), "it contains a path separator"),
            (
                text.contains(char::is_control),
                "it contains a control character",
            ),
            (text.contains(".."), "it contains `..`"),
        ];
        match rules.into_iter().find(|(is_broken, _)| *is_broken) {
            Some((_, reason)) => Err(refused(text, reason)),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The name as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that Portainer gives the stack (M02).
    pub fn portainer_name(&self) -> String {
        portainer_name(&self.0)
    }

    /// The names that the project's containers may have: the name as given, and the one that Portainer gives it (B10).
    pub fn projects(&self) -> Vec<String> {
        projects_of(&self.0)
    }

    /// Refuses the management plane, compared by the name that Portainer would give it (C05).
    pub fn refuse_management_plane(&self) -> Result<()> {
        if !REFUSED.contains(&self.portainer_name().as_str()) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "refusing to move {self}: recreating it would cut you off from Portainer"
        ))
        .hint("manage this stack by hand")
        .into())
    }
}

impl fmt::Display for StackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refused(name: &str, reason: &str) -> anyhow::Error {
    // The last part of a path, of which nothing has to exist.
    let path = env::current_dir().unwrap_or_default().join(name);
    let last = path.file_name();
    let last = last.filter(|last| !name.is_empty() && *last != name);
    let hint = match last.and_then(|last| StackName::new(last).ok()) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "pass the name of the stack's directory under the stacks root, without a path"
            .to_owned(),
    };
    Failure::new(format!("{name:?} is not a stack name: {reason}"))
        .hint(hint)
        .into()
}
