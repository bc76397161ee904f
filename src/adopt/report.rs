//! The report of an adoption, as `--output json` prints it. Names, never values of variables.

use schemars::JsonSchema;
use serde::Serialize;

use super::compared::Change;
use crate::plan::{Blocker, Fate, Request};

/// The version of the format.
const VERSION: u32 = 1;

/// What `stacklift adopt --output json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift adopt --output json`")]
pub struct Report {
    /// The version of this format: 1.
    pub version: u32,
    pub stack: String,
    /// The environment of Portainer.
    pub endpoint: i64,
    pub outcome: Outcome,
    /// What was to be sent, once that is known.
    pub request: Option<Request>,
    /// The ID of the Portainer stack, if it exists.
    pub portainer_stack: Option<String>,
    /// The ID of the snapshot.
    pub snapshot: Option<String>,
    /// The services, as planned and as found.
    pub services: Vec<ServiceReport>,
    /// What to know before a later change or deployment.
    pub notices: Vec<String>,
    /// Everything that the plan said will be lost.
    pub losses: Vec<String>,
    /// Why the stack cannot be adopted.
    pub blockers: Vec<Blocker>,
    /// The containers outside the stack that must be restarted or recreated because of this run, and how.
    #[serde(default)]
    pub other_containers: Vec<String>,
    /// What the verification found wrong.
    pub problems: Vec<String>,
    /// Why the command failed, with the causes.
    pub error: Option<String>,
    /// More about the error: what Portainer responded, or a list of problems.
    pub details: Option<String>,
    /// The state of the stack, if the command failed.
    pub state: Option<String>,
}

/// How an adoption ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing was sent.
    NotSent,
    /// The Portainer stack has the text already, and every service runs.
    NothingToDo,
    /// It is deployed and verified.
    Adopted,
    /// It is deployed and runs as before, but not as the plan said.
    PlanWasWrong,
    /// It failed, and no container was changed.
    Unchanged,
    /// It failed, and the original containers were restored.
    Restored,
    /// It failed, and containers were changed and are not restored.
    Changed,
    /// The outcome is unknown.
    Unknown,
}

/// A service, as planned and as found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ServiceReport {
    pub service: String,
    /// What the plan said.
    pub planned: Option<Fate>,
    pub containers: Vec<ContainerReport>,
}

/// What happened to a container.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ContainerReport {
    pub name: String,
    pub change: Change,
    /// The full ID of the container that exists now.
    pub id: Option<String>,
    /// What differs from before: by name, never by value.
    pub differences: Vec<String>,
    /// How long it did not run, in seconds, by the clock of the engine; `null` if that is unknown. 0 if it was not
    /// touched.
    pub away: Option<f64>,
}

impl Report {
    /// The report of an adoption that has not begun.
    pub fn new(stack: &str, endpoint: i64) -> Self {
        Self {
            version: VERSION,
            stack: stack.to_owned(),
            endpoint,
            outcome: Outcome::NotSent,
            request: None,
            portainer_stack: None,
            snapshot: None,
            services: Vec::new(),
            notices: Vec::new(),
            losses: Vec::new(),
            blockers: Vec::new(),
            other_containers: Vec::new(),
            problems: Vec::new(),
            error: None,
            details: None,
            state: None,
        }
    }
}
