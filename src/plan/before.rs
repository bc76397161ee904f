//! What is read before a run: of this host, of Portainer, and of earlier runs. Nothing here reads.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{
    finding::Finding,
    model::{Changes, Container, ListedObjects, Record, Rights, Uses, named},
    portainer::{Contents, Standing},
    snapshot::{Known, LastSent, SavedRecord},
};

/// What a stack is before the first destructive act.
#[derive(Default)]
pub struct Before {
    /// The project's name in Portainer.
    pub project: String,
    pub host: Host,
    pub remote: Remote,
    /// What could not be read, and what may go wrong.
    pub warnings: Vec<Finding>,
    /// What was last sent to Portainer (B22).
    pub last_sent: LastSent,
    /// The same of the last adoption, if it failed, and how.
    pub failed: (LastSent, String),
    /// The Portainer stack as it was deployed, if Portainer has had another text since then.
    pub deployed: Option<SavedRecord>,
    /// The names of the volumes in the last snapshot.
    pub last_volumes: BTreeSet<String>,
}

/// What the engine has of a stack and around it. Only its containers are read if there is nothing to destroy.
#[derive(Default)]
pub struct Host {
    /// The containers that a migration removes: those of [`Self::listed`] under the stack's own name.
    pub own: Option<Vec<Container>>,
    /// The stack's containers, under its name and under its name in Portainer (B10); `None` if they could not be
    /// listed, which a migration tolerates (C52).
    pub listed: Option<Vec<Container>>,
    /// Why they could not be listed.
    pub unread: Option<Finding>,
    /// The refusal that follows if they can only be listed after an upgrade (B06).
    pub unlistable: Option<Finding>,
    /// All other containers of the engine, running or not; `None` if they could not be listed.
    pub others: Option<Vec<Container>>,
    /// The inspect objects of [`Self::listed`]; `None` if they could not be inspected.
    pub containers: Option<Vec<Container>>,
    /// When they were inspected.
    pub at: DateTime<Utc>,
    /// The changed files in each container's own layer, by the container's ID.
    pub changes: BTreeMap<String, Known<Changes>>,
    /// The inspect objects of images, by the ID (`sha256:…`) that a container names and by the references of a text; `None` for
    /// one that does not exist. An image that the engine was not asked for is missing.
    pub images: BTreeMap<String, Option<Value>>,
    /// All networks of the engine; `None` if they could not be listed.
    pub networks: Option<ListedObjects>,
    /// All volumes of the engine; `None` if they could not be listed.
    pub volumes: Option<ListedObjects>,
    /// The version of the engine, such as `20.10.24`.
    pub engine_version: Option<String>,
    /// The OCI runtimes that it knows by name; empty if they are unknown.
    pub runtimes: BTreeSet<String>,
    /// The variables of Portainer's container; `None` if they are unknown.
    pub portainer_env: Option<BTreeMap<String, String>>,
}

/// What Portainer has of a stack and around it.
#[derive(Default)]
pub struct Remote {
    /// The Portainer stack that will be deleted (C51).
    pub record: Option<Record>,
    /// Its text and variables, and its standing, if they could be read.
    pub contents: Option<(Contents, Standing)>,
    /// The other Portainer stacks with the stack's name, on this environment and on others (M20).
    pub namesakes: Vec<Namesake>,
    /// The Portainer stack that has the directory in which Portainer started the containers of this one, which it does not
    /// have.
    pub successor: Option<String>,
    /// The environment, if it was asked for.
    pub environment: Environment,
    /// What the user of the API key sees and may do there (B24), if it was asked for.
    pub rights: Rights,
    /// Who may use the stack and its containers (B23).
    pub uses: Uses,
    /// Portainer's version, if it is known. Read only if what is lost depends on it, or for a whole plan.
    pub version: Option<String>,
}

impl Before {
    /// Whether something will be destroyed, as far as that is known.
    pub fn destroys(&self) -> bool {
        self.remote.record.is_some() || self.host.may_have_containers()
    }

    /// Whether the last adoption failed: the containers that it kept or restored were started before it.
    pub fn has_failed(&self) -> bool {
        !self.failed.1.is_empty()
    }
}

impl Host {
    /// The listed containers; empty if they are unknown.
    pub fn listed(&self) -> &[Container] {
        self.listed.as_deref().unwrap_or_default()
    }

    /// Whether the stack has containers, as far as that is known.
    pub fn may_have_containers(&self) -> bool {
        self.listed.as_ref().is_none_or(|all| !all.is_empty())
    }

    /// Whether the containers are known with all they could lose.
    pub fn is_known(&self) -> bool {
        let listed = self.listed.as_ref();
        listed.is_some_and(|all| all.is_empty() || self.containers.is_some())
    }

    /// The listed containers, as far as they could be inspected.
    pub fn inspected(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().flatten()
    }

    /// The containers outside the stack, as far as they could be listed.
    pub fn others(&self) -> impl Iterator<Item = &Container> {
        self.others.iter().flatten()
    }

    /// Whether an image is known not to be on the engine.
    pub fn lacks_image(&self, name: &str) -> bool {
        matches!(self.images.get(name), Some(None))
    }

    /// The inspect object of an image, by a name that is a key of [`Self::images`].
    pub fn image(&self, name: &str) -> Option<&Value> {
        self.images.get(name)?.as_ref()
    }

    /// Whether the engine is known to have a volume.
    pub fn has_volume(&self, name: &str) -> bool {
        let known = self.volumes.as_ref();
        known.is_some_and(|all| named(all, name).is_some())
    }
}

impl Remote {
    /// Whether a Portainer stack may exist that the API key does not see (B24).
    pub fn may_be_unseen(&self) -> bool {
        self.record.is_none() && !self.rights.see_every_stack()
    }
}

/// The environment on which the stack will be created (B03, B06).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Environment {
    /// Its engine is the engine of this host, and lists the containers that run here.
    #[default]
    SameEngine,
    /// Its engine is another one. The ID of the one environment whose engine is this host's, if it was found.
    OtherEngine { here: Option<i64> },
    /// Its engine has the ID of this host's, and does not list this container, which runs here: a cloned machine (B37). The
    /// same ID of an environment.
    Clone {
        container: String,
        here: Option<i64>,
    },
    /// The same, with an API key that may not see every container.
    Hidden(String),
    /// Its address is this socket. Portainer's Compose does not use it, but `/var/run/docker.sock` (M17).
    OtherSocket(String),
    /// Portainer has no such environment (404). The same ID.
    NotFound { here: Option<i64> },
    /// The API key may not use it: the status, 401 or 403.
    Forbidden(u16),
    /// Which engine it has is unknown, with the reason.
    Unknown(String),
}

/// Another Portainer stack with the stack's name (M20).
#[derive(Debug, Clone)]
pub struct Namesake {
    pub record: Record,
    /// Whether the engine of its environment is that of this host; `None` if that is unknown.
    pub is_on_this_host: Option<bool>,
}

impl Environment {
    /// Whether its engine is certainly not that of this host.
    pub fn is_other_engine(&self) -> bool {
        matches!(self, Self::OtherEngine { .. } | Self::Clone { .. })
    }

    /// Whether nothing of it can be read.
    pub fn is_unusable(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Forbidden(_))
    }
}
