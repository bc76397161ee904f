//! What `adopt` reports.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{model::Grant, plan::Plan, portainer::Repository};

use super::VERSION;

/// What `stacklift adopt --output json` prints.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift adopt --output json`")]
pub struct AdoptReport {
    /// The version of this format: 1.
    pub version: u32,
    pub stack: String,
    /// The ID of the environment in Portainer.
    pub environment: i64,
    pub outcome: Outcome,
    /// What was to be done; null if that could not be worked out.
    pub plan: Option<Plan>,
    /// The ID of the Portainer stack, if it exists.
    pub portainer_stack: Option<String>,
    /// The page of the stack in Portainer, if it is deployed and its containers run as before.
    pub url: Option<String>,
    /// The command that undoes it, if it succeeded and something was running.
    pub undo: Option<String>,
    /// The repository that Portainer deploys it from, if this run used `--git`.
    pub git: Option<Repository>,
    /// Who may use the stack besides administrators, as in `--access`, if this run set it.
    #[schemars(with = "Option<Vec<String>>")]
    pub access: Option<BTreeSet<Grant>>,
    /// The ID of the snapshot.
    pub snapshot: Option<String>,
    /// The services, as found.
    pub services: Vec<AdoptedService>,
    /// The containers outside the stack that must be restarted or recreated because of this run, and how.
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

impl AdoptReport {
    /// The report of a run that has sent nothing.
    pub fn new(stack: &str, environment: i64) -> Self {
        Self {
            version: VERSION,
            stack: stack.to_owned(),
            environment,
            ..Self::default()
        }
    }

    /// Whether the stack was not in Portainer before.
    pub fn creates(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::creates)
    }
}

/// How an adoption ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing was sent.
    #[default]
    NotSent,
    /// The Portainer stack has the text already, and every service runs.
    NothingToDo,
    /// It is deployed and verified.
    Adopted,
    /// It is deployed and runs, but not as the plan said, or its access rights could not be set.
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

/// A service, as found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AdoptedService {
    pub service: String,
    pub containers: Vec<AdoptedContainer>,
}

/// What happened to a container.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AdoptedContainer {
    pub name: String,
    pub change: Change,
    /// The full ID of the container that exists now.
    pub id: Option<String>,
    /// Whether it runs now.
    pub running: bool,
    /// Whether it restarts again and again.
    #[serde(skip)]
    pub restarting: bool,
    /// What differs from before: by name, never by value.
    pub differences: Vec<String>,
    /// How long it was down, in seconds, from the signal to stop to the start, by the clock of the engine; `null` if that is
    /// unknown. 0 if it was not touched.
    pub away: Option<f64>,
}

/// What happened to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Not touched: the same container since the same start.
    Kept,
    /// The same container, which did not run before.
    Started,
    /// The same container, which was stopped and started.
    Restarted,
    /// The same container: it ended by itself, and its restart policy restarted it.
    RestartedByPolicy,
    /// The same container, which ran before and does not now.
    Ended,
    /// Another container with its name.
    Recreated,
    /// There was no container with its name.
    New,
    /// It no longer exists.
    Missing,
    /// A new container under the temporary name that Compose gives it until the old one is removed (N06).
    Stray,
}
