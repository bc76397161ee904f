//! What `list` reports.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::Plan;

use super::{PortainerReport, StackReport};

/// What `stacklift list --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift list --output json`")]
pub struct ListReport {
    /// The version of this format: 1.
    pub version: u32,
    /// The directory that contains the stack directories, absolute.
    pub stacks_root: String,
    /// Portainer and the environment; null if Portainer could not be read.
    pub portainer: Option<PortainerReport>,
    /// Whether the containers could be listed.
    pub containers_known: bool,
    /// Every stack, sorted by name.
    pub stacks: Vec<ListEntry>,
    /// What could not be read.
    pub warnings: Vec<String>,
}

/// A stack, and its plan.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ListEntry {
    #[serde(flatten)]
    pub stack: StackReport,
    /// Whether its directory is not in the stacks root: `adopt --all` leaves it out.
    pub outside_stacks_root: bool,
    pub state: StackState,
    /// What `stacklift adopt` would do.
    pub adopt: Plan,
    /// The command to run next; null if there is nothing to do, or if no command helps.
    pub next_command: Option<String>,
}

/// The state of a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackState {
    /// Containers run, some of them were started by hand, and the stack is not in Portainer.
    ByHand,
    /// Containers run, and there is a Portainer stack.
    InPortainer,
    /// The same, and Portainer takes the Compose file from a Git repository.
    FromGit,
    /// Containers run, and the Portainer stack has another text or other variables than an adoption would send.
    Both,
    /// Containers run, and there is a Portainer stack. Some containers have another configuration than the last adoption left.
    Redeployed,
    /// Containers run, and the Portainer stack was edited in Portainer since the last adoption: its text or its variables
    /// are neither what was last sent nor what `adopt` would send.
    Edited,
    /// The same, and containers were created outside of Portainer since Portainer last deployed the stack.
    EditedRedeployed,
    /// A run was interrupted: the stack is incomplete, unverified, or different from what Portainer has.
    Interrupted,
    /// The same, and the run ended with an error.
    Failed,
    /// A run changes it now.
    InProgress,
    /// There is no Portainer stack, and no container runs.
    Stopped,
    /// There is a Portainer stack, and no container runs.
    StoppedInPortainer,
    /// There is a Compose file, no container and no Portainer stack.
    NotStarted,
    /// The same, and an adoption had sent it to Portainer: it may have been deleted there.
    NoLongerInPortainer,
    /// There is a Portainer stack that is not stopped, and it has no containers.
    WithoutContainers,
    /// There are containers without a Compose file and without a Portainer stack.
    Orphaned,
    /// Portainer started the containers, and this Portainer has no stack for them.
    PortainerGone,
    /// A Portainer stack of a swarm.
    Swarm,
    /// A Portainer stack of Kubernetes.
    Kubernetes,
    /// What would decide it could not be read.
    #[default]
    Unknown,
}
