//! Why a run is refused (B02–B06).

use std::{fmt, slice::from_ref};

use crate::text::printable;

/// A reason to refuse a run, unless `--force` overrides it (B02–B06). Lists hold one fact per item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The literal rewrite damages the text (B02): where and how.
    Damage(Vec<String>),
    /// The stack's containers are on this engine, and Portainer would create them on another one (B03).
    OtherEngine {
        /// Portainer's environment.
        endpoint: i64,
        /// The environment whose engine is this host's, if it was found.
        here: Option<i64>,
    },
    /// Portainer's Compose does not use the socket of the environment, so it would create the containers on another engine
    /// (B03).
    OtherSocket(String),
    /// The stack runs Portainer itself (B04).
    RunsPortainer {
        /// The container's name.
        container: String,
        /// The evidence: its image, or the published port.
        because: String,
    },
    /// The containers cannot be listed, because no API version is shared (B06): who shares none, and what to do.
    NoSharedVersion { problem: String, hint: String },
    /// Another environment is this host, too, and has a Portainer stack of this name (M20).
    InPortainerAlready { id: String, endpoint: i64 },
    /// Portainer has no such environment (B06).
    NoEnvironment { endpoint: i64, here: Option<i64> },
    /// The API key may not use the environment (B06): the status, 401 or 403.
    ForbiddenEnvironment { endpoint: i64, status: u16 },
    /// The API key may not create, update or delete stacks on the environment (B24, M22).
    ForbiddenStacks { endpoint: i64 },
    /// The API key may not deploy these parts of the text (M22).
    AdminOnly(Vec<String>),
    /// The API key is not an administrator's: for these reasons, the create may fail after the containers were removed (B24).
    LimitedKey(Vec<String>),
    /// Portainer started these containers, and the API key may not see their Portainer stack (B24): their names and
    /// directories.
    HiddenStack(Vec<String>),
    /// Compose rejects the text as it is sent (B06).
    Rejected(Vec<String>),
    /// Compose cannot parse `stack.env` (B06, M08): the variable and the problem.
    UnreadableEnv { problem: String },
    /// Files that do not exist where Docker mounts them from (B06, M10, M13).
    MissingFiles(Vec<String>),
    /// Files that Portainer reads and cannot (B06, M11).
    UnreadableFiles(Vec<String>),
    /// Images that do not exist and cannot be pulled or built (B06).
    MissingImages(Vec<String>),
    /// External networks and volumes that do not exist (B06).
    MissingExternal(Vec<String>),
    /// Paused containers that Compose would try to start (B06, B10): their names.
    Paused(Vec<String>),
    /// Ports and names that containers outside the stack hold (B06).
    Held(Vec<String>),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage(_) => f.write_str("the literal rewrite damages the Compose file"),
            Self::OtherEngine { endpoint, .. } => write!(
                f,
                "environment {endpoint} is another host: Portainer would create the containers there"
            ),
            Self::OtherSocket(socket) => write!(
                f,
                "the environment is the socket {}, but Compose in Portainer uses /var/run/docker.sock",
                printable(socket)
            ),
            Self::RunsPortainer { container, because } => write!(
                f,
                "the stack runs Portainer itself: container {container} {because}"
            ),
            Self::NoSharedVersion { problem, .. } => f.write_str(problem),
            Self::InPortainerAlready { id, endpoint } => write!(
                f,
                "environment {endpoint} is this host, too, and Portainer stack {} there has this name",
                printable(id)
            ),
            Self::NoEnvironment { endpoint, .. } => {
                write!(f, "Portainer has no environment {endpoint}")
            }
            Self::ForbiddenEnvironment { endpoint, status } => write!(
                f,
                "the API key is not allowed to use environment {endpoint} ({status})"
            ),
            Self::ForbiddenStacks { endpoint } => write!(
                f,
                "the API key is not allowed to create, update or delete stacks on environment {endpoint}"
            ),
            Self::AdminOnly(_) => {
                f.write_str("only an administrator's API key may deploy parts of the Compose file")
            }
            Self::LimitedKey(_) => f.write_str(
                "the API key does not belong to an administrator, and the create may fail after the containers were removed",
            ),
            Self::HiddenStack(_) => f.write_str(
                "Portainer may have started these containers, and the API key may not see their Portainer stack",
            ),
            Self::Rejected(_) => {
                f.write_str("Compose would reject the file that is sent")
            }
            Self::UnreadableEnv { .. } => {
                f.write_str("Compose would reject .env as Portainer stores it")
            }
            Self::MissingFiles(_) => f.write_str("files do not exist"),
            Self::UnreadableFiles(_) => f.write_str("Portainer cannot read files"),
            Self::MissingImages(_) => f.write_str("images cannot be pulled or built"),
            Self::MissingExternal(_) => f.write_str("external networks or volumes do not exist"),
            Self::Paused(_) => f.write_str("Compose cannot start paused containers"),
            Self::Held(_) => f.write_str("ports or container names are in use"),
        }
    }
}

impl Refusal {
    /// Whether it follows from what exists on the engine of this host.
    pub fn is_about_this_engine(&self) -> bool {
        matches!(
            self,
            Self::MissingImages(_) | Self::MissingExternal(_) | Self::Held(_) | Self::Paused(_)
        )
    }

    /// The details, one per item.
    pub fn details(&self) -> &[String] {
        match self {
            Self::Damage(items)
            | Self::AdminOnly(items)
            | Self::LimitedKey(items)
            | Self::HiddenStack(items)
            | Self::Rejected(items)
            | Self::MissingFiles(items)
            | Self::UnreadableFiles(items)
            | Self::MissingImages(items)
            | Self::MissingExternal(items)
            | Self::Held(items)
            | Self::Paused(items) => items,
            Self::UnreadableEnv { problem } => from_ref(problem),
            _ => &[],
        }
    }

    /// Whether each of its details is a problem of its own.
    pub fn lists_problems(&self) -> bool {
        matches!(
            self,
            Self::MissingFiles(_)
                | Self::UnreadableFiles(_)
                | Self::MissingImages(_)
                | Self::MissingExternal(_)
                | Self::Held(_)
        )
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::Damage(_) => "change these lines",
            Self::OtherEngine { here, .. } | Self::NoEnvironment { here, .. } => {
                return match here {
                    Some(id) => format!(
                        "environment {id} is this host: pass --endpoint {id}, or --endpoint auto"
                    ),
                    None => "pass the ID of this host's environment with --endpoint".to_owned(),
                };
            }
            Self::InPortainerAlready { endpoint, .. } => {
                return format!("to update that one, pass --endpoint {endpoint}");
            }
            Self::OtherSocket(_) => MOUNT_SOCKET,
            Self::RunsPortainer { .. } => {
                "manage this stack by hand: recreating it would cut you off from Portainer"
            }
            Self::NoSharedVersion { hint, .. } => hint,
            Self::ForbiddenEnvironment { .. } => {
                "use an administrator's API key, or give the user of this key access to the environment in Portainer"
            }
            Self::ForbiddenStacks { .. } => {
                "use an administrator's API key, or turn off \"Disable the use of Stacks for non-administrators\" in the environment's Docker settings in Portainer"
            }
            Self::AdminOnly(_) => {
                "use an administrator's API key, or allow this in the environment's Docker settings in Portainer"
            }
            Self::LimitedKey(_) => {
                "use an administrator's API key, or adopt the stack: that removes nothing first"
            }
            Self::HiddenStack(_) => "use an administrator's API key",
            Self::Rejected(_) => "fix these lines: `docker compose config` must accept the file",
            Self::UnreadableEnv { .. } => {
                "write the variable on one line, with matching quotes and a name without spaces"
            }
            Self::MissingFiles(_) => "create them, or correct their paths in the Compose file",
            Self::UnreadableFiles(_) => "put its content into the Compose file",
            Self::MissingImages(_) => "pull or build it first, without `pull_policy: build`",
            Self::MissingExternal(_) => "create it first, or correct its name",
            Self::Paused(_) => "unpause them first",
            Self::Held(_) => "stop that container, or change the Compose file",
        };
        hint.to_owned()
    }

    /// What to do about one of its details, in the Compose file `file`.
    pub fn hint_in(&self, file: &str) -> String {
        match self {
            Self::MissingFiles(_) => format!("create it, or correct the path in {file}"),
            _ => self.hint(),
        }
    }

    /// The problem in two or three words, for a table.
    pub fn short(&self) -> Option<&'static str> {
        match self {
            Self::MissingFiles(_) => Some("file or folder missing"),
            Self::MissingImages(_) => Some("image missing"),
            Self::Held(_) => Some("port or name in use"),
            _ => None,
        }
    }

    /// What `--force` does about it.
    pub fn with_force(&self) -> &'static str {
        match self {
            Self::Damage(_) => "--force sends the damaged file",
            _ => "--force overrides this check",
        }
    }
}

/// What to do if the environment is a socket that Portainer's Compose does not use.
pub const MOUNT_SOCKET: &str = "mount the socket of this host at /var/run/docker.sock in Portainer's container, or connect the environment with an agent";
