//! What `plan`, `list`, `adopt`, `export`, `restore --list` and `doctor` report: one set of types for their texts and their JSON.
//!
//! Invariant: names, never values of variables. Nothing here reads or writes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::{
    model::{Container, Deployment, PORTAINER_FOLDERS, Record},
    plan::{Plan, Readiness},
};

mod adopt;
mod all;
mod doctor;
mod export;
mod list;
mod planned;
mod snapshots;

pub use adopt::{AdoptReport, AdoptedContainer, AdoptedService, Change, Outcome};
pub use all::{AllEntry, AllReport, StackResult};
pub use doctor::{Check, DoctorReport, Status};
pub use export::{ExportReport, ExportedStack};
pub use list::{ListEntry, ListReport, StackState};
pub use planned::{PlanReport, PlansReport, Way};
pub use snapshots::{SnapshotEntry, SnapshotState, SnapshotsReport};

/// The version of every format.
pub const VERSION: u32 = 1;

/// Portainer, and the environment in which stacks are created.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PortainerReport {
    pub url: String,
    /// Its version; null if it is unknown.
    pub version: Option<String>,
    /// The ID of the environment.
    pub environment: i64,
}

/// The containers of a stack.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Containers {
    pub all: usize,
    pub running: usize,
    pub paused: usize,
    /// Those that Portainer started.
    pub started_by_portainer: usize,
}

impl Containers {
    pub fn of<'c>(all: impl IntoIterator<Item = &'c Container>, tool: &str) -> Self {
        let mut counts = Self::default();
        for container in all {
            let dir = container.compose_label(tool, "project.working_dir");
            counts.all += 1;
            match container.status() {
                "running" | "restarting" => counts.running += 1,
                "paused" => counts.paused += 1,
                _ => {}
            }
            counts.started_by_portainer +=
                usize::from(dir.is_some_and(|dir| dir.starts_with(PORTAINER_FOLDERS)));
        }
        counts
    }

    /// Whether none runs or is paused.
    pub fn are_stopped(&self) -> bool {
        self.running + self.paused == 0
    }
}

/// A Portainer stack.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PortainerStack {
    pub id: String,
    /// `active`, `inactive`, `still deploying` or `in error`.
    #[serde(serialize_with = "displayed")]
    #[schemars(with = "String")]
    pub state: Deployment,
}

fn displayed<S: Serializer>(state: &Deployment, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(state)
}

impl PortainerStack {
    pub fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            state: record.deployment.clone(),
        }
    }
}

/// A stack.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct StackReport {
    pub name: String,
    /// The stack's directory, absolute; null if there is none with a Compose file.
    pub dir: Option<String>,
    /// The Compose file in that directory.
    pub file: Option<String>,
    /// The containers of its project; null if they could not be listed.
    pub containers: Option<Containers>,
    /// The Portainer stack of this name in the environment.
    pub portainer_stack: Option<PortainerStack>,
    /// The run on it that was interrupted or is in progress; null if there is none.
    pub interrupted_run: Option<InterruptedRun>,
}

impl StackReport {
    /// Whether every container is stopped, as far as that is known.
    pub fn is_stopped(&self) -> bool {
        self.containers
            .as_ref()
            .is_some_and(Containers::are_stopped)
    }
}

/// A run that changed the stack and has not ended as intended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "command", rename_all = "kebab-case")]
pub enum InterruptedRun {
    /// It is in progress.
    InProgress,
    /// The stack is incomplete, and this command brings back what ran before.
    Restore(String),
    /// The stack is incomplete, and this command, the interrupted one, continues.
    Continue(String),
    /// It failed: the earlier containers run, and Portainer has what the run sent. This command gives Portainer back what it had.
    NotDeployed(String),
    /// It was interrupted: the same command, run again, finishes it.
    RunAgain,
}

impl InterruptedRun {
    /// The command to run before the stack is adopted. What a failed adoption sent is undone only if this `adopt` would send
    /// the same.
    pub fn heals(&self, adopt: Option<&Plan>) -> Option<&str> {
        let is_edited = adopt.is_some_and(|way| way.readiness == Readiness::Edited);
        match self {
            // It would be refused.
            Self::Continue(_) if is_edited => None,
            Self::Restore(command) | Self::Continue(command) => Some(command),
            Self::NotDeployed(command) => adopt?.failed_before().then_some(command),
            Self::InProgress | Self::RunAgain => None,
        }
    }
}

/// What to do about it.
impl fmt::Display for InterruptedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InProgress => "wait until it has ended",
            Self::Restore(command) | Self::Continue(command) | Self::NotDeployed(command) => {
                command
            }
            Self::RunAgain => "run it again",
        })
    }
}
