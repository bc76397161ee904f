//! The inputs of a deployment.

use std::collections::BTreeMap;

use composefile::{dotenv, path::Base};

/// The version of the Compose program, which also starts stacks by hand.
pub const COMPOSE_VERSION: &str = "2.26.1";
/// The version of the library in the newer Portainer. The two differ in how they hash a service and when they recreate a
/// container (N04, N05).
const LIBRARY: &str = "2.40.3";

/// The inputs of `compose up`.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent")]
pub(super) struct Deployment {
    pub project: String,
    pub text: String,
    /// The texts of further Compose files, in order.
    pub more: Vec<String>,
    /// The content of `.env`, or of the file that `--env-file` names.
    pub env_text: Option<String>,
    pub env_path: String,
    pub folder: String,
    /// Further files that Compose can read, by their absolute paths.
    pub files: BTreeMap<String, String>,
    pub file: String,
    pub home: String,
    /// Whether the library of the newer Portainer runs it.
    pub by_library: bool,
    pub by_hand: bool,
    /// Whether every container is recreated, and not only those that changed.
    pub recreates_all: bool,
    /// Whether the library removes the containers of services that the text does not define, if a request said so. A
    /// variable outranks it (N14, N19).
    pub prune: Option<bool>,
    /// Whether it is for the engine of this host. The containers of others are not simulated.
    pub is_here: bool,
}

impl Deployment {
    /// A deployment by the program, in a directory of Portainer without variables.
    pub fn new(project: &str, text: &str, folder: &str) -> Self {
        Self {
            project: project.to_owned(),
            text: text.to_owned(),
            env_path: format!("{folder}/stack.env"),
            folder: folder.to_owned(),
            file: format!("{folder}/docker-compose.yml"),
            home: "/root".to_owned(),
            is_here: true,
            ..Self::default()
        }
    }

    /// The value of the label `version`.
    pub fn version(&self) -> String {
        let version = if self.by_library {
            LIBRARY
        } else {
            COMPOSE_VERSION
        };
        version.to_owned()
    }

    /// Makes a path absolute by the rules of Compose: `~` is the home directory. An absolute path stays as it is written.
    pub fn absolute(&self, path: &str) -> String {
        // As on Windows: Compose leaves it as it is.
        if path.get(1..2) == Some(":") {
            return path.to_owned();
        }
        let base = Base {
            dir: &self.folder,
            home: Some(&self.home),
        };
        base.host(path)
    }
}

/// Reads the variables of an env file by the rules of Compose (M08).
pub(super) fn variables(
    text: &str,
    path: &str,
    known: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    dotenv::parse(text, &|name: &str| known.get(name).cloned())
        .map(|read| read.into_iter().collect())
        .map_err(|error| format!("failed to read {path}: {error}"))
}
