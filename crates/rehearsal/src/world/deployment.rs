//! The inputs of a deployment.

use std::collections::BTreeMap;

use super::{compose_files::ComposeFiles, record::Files, resolve::Project, state::World};

/// The version of the Compose program, which also starts stacks by hand.
pub const COMPOSE_VERSION: &str = "2.26.1";
/// The version of the library in the newer Portainer. The two differ in how they hash a service and when they recreate a
/// container (N04, N05).
const LIBRARY: &str = "2.40.3";

/// The inputs of `compose up`.
#[derive(Clone, Default)]
pub(super) struct Deployment {
    pub project: String,
    pub folder: String,
    /// The Compose files, in order. If empty, Compose finds one by itself.
    pub files: Vec<String>,
    /// The env files. If empty, Compose reads `.env`.
    pub env_files: Vec<String>,
    pub home: String,
    /// The files that exist where Compose runs, by their absolute paths; `None` if a person runs it on the host.
    pub there: Option<Files>,
    /// Whether the library of the newer Portainer runs it.
    pub by_library: bool,
    /// Whether every container is recreated, and not only those that changed.
    pub recreates_all: bool,
    /// Whether the library removes the containers of services that the text does not define, if a request said so. A
    /// variable outranks it (N14, N19).
    pub prune: Option<bool>,
    /// Whether it is for the engine of this host. The containers of others are not simulated.
    pub is_here: bool,
}

impl Deployment {
    /// Whether a person runs Compose on the host.
    pub fn by_hand(&self) -> bool {
        self.there.is_none()
    }

    /// The value of the label `version`.
    pub fn version(&self) -> &str {
        if self.by_library {
            LIBRARY
        } else {
            COMPOSE_VERSION
        }
    }
}

impl World {
    pub(super) fn resolve(&self, deployment: &Deployment) -> Result<Project, String> {
        let read = |path: &str| match &deployment.there {
            Some(files) => files.get(path).cloned(),
            None => self.read_host(path).map(str::to_owned),
        };
        let files = ComposeFiles {
            project: Some(&deployment.project),
            folder: &deployment.folder,
            files: &deployment.files,
            env_files: &deployment.env_files,
            shell: &BTreeMap::new(),
            interpolates: true,
            home: &deployment.home,
            read: &read,
        };
        Project::resolve(&files, deployment.by_library)
    }
}
