//! Git repositories and clones of them (M24).

use std::collections::BTreeMap;

/// The files of a branch: path and text.
pub type Files = BTreeMap<String, String>;

/// Clones a repository: its URL, a reference, a user name and a password. Returns the files and the commit.
pub type Fetch = fn(&str, &str, &str, &str) -> Result<(Files, String), CloneError>;

/// Why a repository cannot be cloned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloneError {
    /// The credentials are missing or wrong.
    Credential,
    /// Another reason.
    Failed(String),
}

/// A repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitRepository {
    /// The files of each branch, by its full name.
    pub branches: BTreeMap<String, Files>,
    /// The full name of the default branch.
    pub default: String,
    /// The password, if it is private. Every user name is right.
    pub password: Option<String>,
}

/// A clone of a repository, in the folder of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitClone {
    /// The Compose file.
    pub entry: String,
    /// Further Compose files.
    pub additional: Vec<String>,
    /// All files.
    pub files: Files,
    /// The password that Portainer stores.
    pub password: String,
    /// Whether its deployment recreates every container.
    pub recreates: bool,
}
