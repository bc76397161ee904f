//! What runs and matters to the text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// What the containers of a stack have that its text does not say, by service. Empty if nothing is known to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// By the name of the service.
    pub services: BTreeMap<String, ServiceRuns>,
    /// The names of those of their volumes that an adoption creates, so that no new container has an anonymous one.
    pub created: BTreeSet<String>,
    /// The services that an adoption starts with anonymous volumes, because the text cannot name them.
    pub unnamed: BTreeSet<String>,
    /// The services whose anonymous volumes are to stay without a name.
    pub left_anonymous: BTreeSet<String>,
    /// The services whose bind mounts are to be written in the long syntax (B39).
    pub long_binds: BTreeSet<String>,
}

/// What the containers of a service have that the text does not say.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServiceRuns {
    /// The number of its containers.
    pub containers: usize,
    /// The anonymous volumes to name in the text: the path in the container, without a slash at the end, and the
    /// name of the volume.
    pub volumes: BTreeMap<String, String>,
    /// The variables to write into the text, with their values.
    pub variables: BTreeMap<String, String>,
    /// The digest of what the text says instead of each of these variables.
    pub instead_of: BTreeMap<String, String>,
}

impl Runs {
    /// Nothing.
    pub const NONE: &'static Self = &Self {
        services: BTreeMap::new(),
        created: BTreeSet::new(),
        unnamed: BTreeSet::new(),
        left_anonymous: BTreeSet::new(),
        long_binds: BTreeSet::new(),
    };

    /// Whether the text need not say more.
    pub fn is_empty(&self) -> bool {
        let mut services = self.services.values();
        services.all(|service| service.volumes.is_empty() && service.variables.is_empty())
    }

    /// The same, with these services' bind mounts in the long syntax.
    #[must_use]
    pub fn with_long_binds(self, long_binds: BTreeSet<String>) -> Self {
        Self { long_binds, ..self }
    }

    /// The same, except that these services do not name these volumes.
    #[must_use]
    pub fn without(&self, services: &BTreeSet<String>, volumes: &BTreeSet<String>) -> Self {
        let mut runs = self.clone();
        for (service, own) in &mut runs.services {
            let before = own.volumes.len();
            own.volumes
                .retain(|_, name| !services.contains(service) || !volumes.contains(name));
            if own.volumes.len() < before {
                runs.unnamed.insert(service.clone());
            }
        }
        runs
    }

    /// The anonymous volumes to name in the text, by service.
    pub fn named_volumes(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let services = self.services.iter();
        let named = services.filter(|(_, runs)| !runs.volumes.is_empty());
        let volumes = named.map(|(service, runs)| (service.clone(), runs.volumes.clone()));
        volumes.collect()
    }

    /// The names of the variables to write into the text, by service, with the digests of what it says instead.
    pub fn variables(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let services = self.services.iter();
        let named = services.filter(|(_, runs)| !runs.variables.is_empty());
        let digests = named.map(|(service, runs)| (service.clone(), runs.instead_of.clone()));
        digests.collect()
    }

    /// The names of all volumes to name.
    pub(super) fn volumes(&self) -> BTreeSet<&str> {
        let services = self.services.values();
        let volumes = services.flat_map(|service| service.volumes.values());
        volumes.map(String::as_str).collect()
    }
}

/// Without the values of variables.
impl fmt::Debug for ServiceRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceRuns")
            .field("containers", &self.containers)
            .field("volumes", &self.volumes)
            .field("variables", &self.variables.keys())
            .finish_non_exhaustive()
    }
}
