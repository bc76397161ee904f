//! Portainer's entry of a stack.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Portainer's entry of a stack.
#[derive(Clone, PartialEq, Serialize)]
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
    /// `Webhook` in the response.
    pub webhook: Option<String>,
    /// The states of the last deployment, oldest first (N01).
    pub deployments: Vec<DeploymentNote>,
    pub(super) pending: Option<Pending>,
}

impl fmt::Debug for Record {
    // Leaves out text and env, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("endpoint", &self.endpoint)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A deployment in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Pending {
    /// The number of polls until it finishes; `u32::MAX` is never.
    pub polls: u32,
    /// When it finishes without being polled, in milliseconds since 1970.
    pub due: Option<i64>,
    /// Whether `down` runs first (N07).
    pub down_first: bool,
    /// Whether it fails, whatever it deploys.
    pub fails: bool,
}

/// A variable of a stack.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

/// The state of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Status {
    /// 1
    Active,
    /// 2
    Inactive,
    /// 3
    Deploying,
    /// 4
    Error,
}

impl Status {
    /// The number in the response.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Active => 1,
            Self::Inactive => 2,
            Self::Deploying => 3,
            Self::Error => 4,
        }
    }
}

/// A state of a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeploymentNote {
    /// The state.
    pub status: Status,
    /// Seconds since 1970.
    pub time: i64,
    /// The error message.
    pub message: String,
}

/// Who may see a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

impl Record {
    /// Applies a PUT.
    pub(super) fn change(&mut self, endpoint: u64, update: Update, user: String, now: i64) {
        self.endpoint = endpoint;
        self.text = update.text;
        self.env = update.env;
        self.updated = now;
        self.updated_by = user;
    }

    /// Moves the end of the deployment in time.
    pub(super) fn shift_due(&mut self, millis: i64) {
        if let Some(due) = self
            .pending
            .as_mut()
            .and_then(|pending| pending.due.as_mut())
        {
            *due += millis;
        }
    }
}

/// The changes of a PUT.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Update {
    /// The new text.
    pub text: String,
    /// The new variables.
    pub env: Option<Vec<Variable>>,
}
