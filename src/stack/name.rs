//! A stack's name: what may be one (C11), and what the manager makes of it (M02).

use std::{ffi::OsStr, fmt};

use anyhow::Result;

use crate::failure::Failure;

/// The example stacks, lowest impact first (C01).
pub const EXAMPLES: [&str; 6] = [
    "proxy-chain",
    "imgproxy",
    "minio",
    "mongo",
    "books-db",
    "elasticsearch",
];

/// The management plane: recreating it would cut off access to the manager (C05).
const REFUSED: [&str; 2] = ["traefik", "portainer"];

/// A stack's name that is safe as a path component (C11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackName(String);

impl StackName {
    /// Accepts `name` by C11, before the file system is touched.
    pub fn new(name: &OsStr) -> Result<Self> {
        let Some(text) = name.to_str() else {
            return Err(refused(&name.to_string_lossy(), "it is not UTF-8"));
        };
        let reason = if text.is_empty() {
            "it is empty"
        } else if text.starts_with('-') {
            "it starts with a hyphen"
        } else if text.starts_with('.') {
            "it starts with a dot"
        } else if text.contains(['/', '\\']) {
            "it holds a path separator"
        } else if text.contains(char::is_control) {
            "it holds a control character"
        } else if text.contains("..") {
            "it holds `..`"
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(refused(text, reason))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as the manager normalises it: lower-case, every character outside `[-_a-z0-9]`
    /// removed (M02).
    pub fn normalised(&self) -> String {
        normalised(&self.0)
    }

    /// Refuses the management plane, compared on the normalised name (C05).
    pub fn refuse_management_plane(&self) -> Result<()> {
        if !REFUSED.contains(&self.normalised().as_str()) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "refusing to migrate {self}: it is the management plane, and recreating it would cut off access to the manager"
        ))
        .hint("manage this stack by hand")
        .into())
    }
}

/// A name as the manager normalises it (M02).
pub fn normalised(name: &str) -> String {
    name.chars()
        .flat_map(char::to_lowercase)
        .filter(|c| matches!(c, '-' | '_' | 'a'..='z' | '0'..='9'))
        .collect()
}

impl fmt::Display for StackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refused(name: &str, reason: &str) -> anyhow::Error {
    Failure::new(format!("{name:?} is not a stack name: {reason}"))
        .hint("name the stack's directory under the stacks root, without a path")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> StackName {
        StackName::new(OsStr::new(text)).expect("a stack name")
    }

    #[test]
    fn normalised_is_what_the_manager_makes_of_it() {
        assert_eq!(name("Rec.Two_x-1").normalised(), "rectwo_x-1");
        assert_eq!(name("web").normalised(), "web");
        assert_eq!(name("ÄÖ").normalised(), "");
        // The Kelvin sign lower-cases to an ASCII k in Go and in Rust.
        assert_eq!(name("\u{212a}").normalised(), "k");
    }
}
