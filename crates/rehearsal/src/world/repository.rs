//! Git repositories and clones of them (M24).

use std::collections::BTreeMap;

use serde::Deserialize;

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

/// The Git settings of a request, with the names that they have in a preview, and in a create.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GitSettings {
    /// The URL of the repository.
    #[serde(rename = "repository", alias = "repositoryURL")]
    pub url: String,
    /// The full name of a branch or tag; empty for the default branch.
    #[serde(alias = "repositoryReferenceName")]
    pub reference: String,
    /// The Compose file.
    #[serde(rename = "targetFile", alias = "composeFile")]
    pub entry: String,
    /// Further Compose files.
    #[serde(rename = "additionalFiles")]
    pub additional: Option<Vec<String>>,
    /// The user name of a private repository.
    #[serde(rename = "username", alias = "repositoryUsername")]
    pub user: String,
    /// Its password, which Portainer stores.
    #[serde(alias = "repositoryPassword")]
    pub password: String,
    /// Whether the certificate of the Git server is not checked.
    #[serde(rename = "tlsSkipVerify", alias = "tlsskipVerify")]
    pub skips_tls: bool,
}

/// A clone of a repository, in the folder of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitClone {
    /// What it was cloned with.
    pub git: GitSettings,
    /// All files.
    pub files: Files,
    /// Whether its deployment recreates every container.
    pub recreates: bool,
}
