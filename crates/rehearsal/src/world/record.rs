//! Portainer's entry of a stack.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The files of a directory: path and text.
pub type Files = BTreeMap<String, String>;

/// Portainer's entry of a stack. Without `Debug`, which could show secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Record {
    /// The stack's ID.
    pub id: u64,
    /// The normalized name (M02).
    pub name: String,
    /// The ID of its environment.
    pub endpoint: u64,
    /// The text of the Compose file.
    pub text: String,
    /// The variables; `None` if the create request left them out.
    pub env: Option<Vec<Variable>>,
    /// The state of the deployment.
    pub status: Status,
    /// Seconds since 1970.
    pub created: i64,
    /// The name of the user who created it.
    pub created_by: String,
    /// Seconds since 1970; 0 is never.
    pub updated: i64,
    /// The name of the user who updated it; empty if nobody did.
    pub updated_by: String,
    /// Who may see it.
    pub control: ResourceControl,
    /// `AutoUpdate` in the response.
    pub auto_update: Option<Value>,
    /// `GitConfig` in the response.
    pub git: Option<Value>,
    /// The other files in its directory.
    pub files: Files,
    /// The names of its Compose files. The first has the text.
    pub entries: Vec<String>,
    /// Whether its deployment recreates every container.
    pub recreates: bool,
    /// `DeploymentStatus` in the response: the states of the last deployment, oldest first (N01).
    pub deployments: Vec<Value>,
    /// `Option.Prune` in the response: what the last update said, in [`Era::Async`](super::Era::Async) (N19).
    pub prune: Option<bool>,
    /// The text before the update that is being deployed. A failure brings it back (N15).
    pub before: Option<String>,
    /// Whether it was in error before the deployment in progress.
    pub was_in_error: bool,
    /// How many `GET /api/stacks/<id>` see the deployment in progress; `None` if it ends without them.
    pub polls: Option<u32>,
}

/// A variable of a stack.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The state of a stack, with its number in Portainer's JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Status {
    /// It is deployed.
    #[default]
    Active = 1,
    /// It is stopped.
    Inactive = 2,
    /// A deployment is in progress.
    Deploying = 3,
    /// The last deployment failed.
    Error = 4,
}

/// Who may use a stack or a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceControl {
    /// The resource control's ID.
    pub id: u64,
    /// IDs of users.
    pub users: Vec<u64>,
    /// IDs of teams.
    pub teams: Vec<u64>,
    /// Whether everyone may see it.
    pub public: bool,
}

/// The change that a request makes.
#[derive(Clone, PartialEq)]
pub struct Work {
    /// What is done.
    pub kind: Kind,
    /// The stack as it will be, or the stack that is deleted. Its environment is the one of the request.
    pub record: Record,
}

/// What a request does to a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Creates it.
    Create,
    /// Changes and deploys it.
    Update,
    /// Removes it.
    Delete,
}
