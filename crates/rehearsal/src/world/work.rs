//! The work of a request: what it changes, and the phases that it goes through.

use super::{errors::Refused, record::Record};

/// When and how a create, update or delete ends. The default is an immediate success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Milliseconds from the start of its Compose process to its end.
    pub after: i64,
    /// Whether it fails then.
    pub fails: bool,
    /// Whether nobody waits for it.
    pub is_unattended: bool,
}

/// The change that a request makes.
#[derive(Clone, PartialEq)]
pub(crate) struct Work {
    pub kind: Kind,
    /// The stack as it will be, or the stack that is deleted. Its environment is the one of the request.
    pub record: Record,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Create,
    Update,
    Delete,
}

/// A request that Portainer is working on. It ends even if its client disconnects (M21).
#[derive(Clone, PartialEq)]
pub(super) struct InFlight {
    pub ticket: u64,
    pub work: Work,
    pub ending: Ending,
    pub phase: Phase,
    /// When the phase ends, in milliseconds since 1970.
    pub until: i64,
}

/// How far a request has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// The deployment of another stack comes first: Portainer deploys one at a time.
    Waiting,
    /// It is answered, and deploys at its end (N01): after so many polls, if it is not due before. If the stack was in
    /// error, `compose down` comes first (N07).
    Background { polls: u32, is_after_error: bool },
    /// `compose up` runs: the containers that it starts at its end, or the reason why it fails then.
    Up(Result<Vec<String>, String>),
    /// `compose up` failed for this reason, and `compose down` follows.
    Gap(String),
    /// `compose down` runs; after a failed `up`, with its reason.
    Down(Option<String>),
    /// The ID of the stack, or the error response.
    Ended(Result<u64, Refused>),
}

impl InFlight {
    /// Whether its phase ends by itself.
    pub fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Waiting | Phase::Ended(_))
    }

    /// The command line of its process in Portainer's container, while there is one (M21).
    pub fn process(&self) -> Option<String> {
        let Record { id, name, env, .. } = &self.work.record;
        match self.phase {
            Phase::Up(_) => {
                let env = match env.as_deref() {
                    None | Some([]) => "",
                    Some(_) => " --env-file stack.env",
                };
                Some(format!(
                    "docker-compose -f /data/compose/{id}/docker-compose.yml --project-name {name}{env} up -d"
                ))
            }
            Phase::Down(_) => Some(format!(
                "docker-compose --project-name {name} down --remove-orphans"
            )),
            _ => None,
        }
    }
}
