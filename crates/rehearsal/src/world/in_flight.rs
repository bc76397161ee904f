//! The requests that Portainer is working on.

use std::fmt;

use serde::Serialize;

use super::{
    errors::PortainerError,
    record::{Record, Update, Variable},
};

/// When and how a create, update or delete ends. The default is an immediate success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Ending {
    /// Milliseconds from the start of its Compose process to its end.
    pub after: i64,
    /// Whether it fails then.
    pub fails: bool,
}

/// A request that was accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Accepted {
    /// Portainer works on it; its ticket.
    InFlight(u64),
    /// It has ended, because its deployment runs in the background (N01); the ID of its stack.
    Ended(u64),
}

/// A request that Portainer is working on. It ends even if its client disconnects (M21).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct InFlight {
    pub ticket: u64,
    pub work: Work,
    pub ending: Ending,
    pub phase: Phase,
    /// When the phase ends, in milliseconds since 1970.
    pub until: i64,
}

/// The change that a request makes.
#[derive(Clone, PartialEq, Serialize)]
pub(crate) enum Work {
    Create(Box<Record>),
    Update {
        id: u64,
        name: String,
        endpoint: u64,
        update: Update,
        user: String,
    },
    Delete {
        id: u64,
        name: String,
        endpoint: u64,
        volumes: NamedVolumes,
    },
}

/// What a delete does to the named volumes of the stack (N02).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum NamedVolumes {
    Keep,
    Remove,
}

/// How far a request has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) enum Phase {
    /// The deployment of another stack comes first: Portainer deploys one at a time.
    Waiting,
    /// `compose up` runs: the containers that it starts at its end, or the reason why it fails then.
    Up(Result<Vec<String>, String>),
    /// `compose up` failed for this reason, and `compose down` follows.
    Gap(String),
    /// `compose down` runs; after a failed `up`, with its reason.
    Down(Option<String>),
    /// The ID of the stack, or the error response.
    Ended(Result<u64, PortainerError>),
}

impl Work {
    pub fn id(&self) -> u64 {
        match self {
            Self::Create(record) => record.id,
            Self::Update { id, .. } | Self::Delete { id, .. } => *id,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Create(record) => &record.name,
            Self::Update { name, .. } | Self::Delete { name, .. } => name,
        }
    }

    /// The text and the variables of its deployment; `None` for a delete.
    pub fn contents(&self) -> Option<(&str, &[Variable])> {
        let (text, env) = match self {
            Self::Create(record) => (&record.text, &record.env),
            Self::Update { update, .. } => (&update.text, &update.env),
            Self::Delete { .. } => return None,
        };
        Some((text, env.as_deref().unwrap_or_default()))
    }

    /// Whether its deployment has a `stack.env` (M07).
    fn has_env(&self) -> bool {
        self.contents().is_some_and(|(_, env)| !env.is_empty())
    }

    pub fn endpoint(&self) -> u64 {
        match self {
            Self::Create(record) => record.endpoint,
            Self::Update { endpoint, .. } | Self::Delete { endpoint, .. } => *endpoint,
        }
    }
}

impl fmt::Debug for Work {
    // Leaves out text and env, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self {
            Self::Create(_) => "create",
            Self::Update { .. } => "update",
            Self::Delete { .. } => "delete",
        };
        write!(f, "{verb} {} {}", self.id(), self.name())
    }
}

impl InFlight {
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Whether it holds Portainer's lock, which only deployments take.
    pub fn is_deploying(&self) -> bool {
        !matches!(self.work, Work::Delete { .. })
            && !matches!(self.phase, Phase::Waiting | Phase::Ended(_))
    }

    /// The command line of its process in Portainer's container, while there is one (M21).
    pub fn process(&self) -> Option<String> {
        let (id, name) = (self.work.id(), self.work.name());
        match self.phase {
            Phase::Up(_) => {
                let env = if self.work.has_env() {
                    " --env-file stack.env"
                } else {
                    ""
                };
                Some(format!(
                    "docker-compose -f /data/compose/{id}/docker-compose.yml --project-name {name}{env} up -d"
                ))
            }
            Phase::Down(_) => Some(format!(
                "docker-compose --project-name {name} down --remove-orphans"
            )),
            Phase::Waiting | Phase::Gap(_) | Phase::Ended(_) => None,
        }
    }
}
