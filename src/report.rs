//! What `plan`, `list`, `adopt` and `doctor` report: one set of types for their texts and their JSON.
//!
//! Invariant: names, never values of variables. Nothing here reads or writes.

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    failure::Failure,
    model::{Container, Grant, PORTAINER_FOLDERS, Record},
    plan::{Blocker, InPortainer, Loss, Request, ServicePlan},
    portainer::Repository,
};

mod adopt;
mod all;
mod doctor;
mod list;
mod planned;

pub use adopt::{AdoptReport, AdoptedContainer, AdoptedService, Change, Outcome};
pub use all::{AllEntry, AllReport, StackResult};
pub use doctor::{Check, DoctorReport, Status, Subject};
pub use list::{ListEntry, ListReport, StackState};
pub use planned::{PlanReport, Recommended, StackReport, Way};

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
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Containers {
    pub all: usize,
    pub running: usize,
    /// Those that Portainer started.
    pub started_by_portainer: usize,
}

impl Containers {
    pub fn of<'c>(all: impl IntoIterator<Item = &'c Container>, tool: &str) -> Self {
        let mut counts = Self::default();
        for container in all {
            let dir = container.compose_label(tool, "project.working_dir");
            counts.all += 1;
            counts.running += usize::from(matches!(&*container.state, "running" | "restarting"));
            counts.started_by_portainer +=
                usize::from(dir.is_some_and(|dir| dir.starts_with(PORTAINER_FOLDERS)));
        }
        counts
    }
}

/// A Portainer stack.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PortainerStack {
    pub id: String,
    /// `active`, `inactive`, `still deploying` or `in error`.
    pub state: String,
}

impl PortainerStack {
    pub fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            state: record.deployment.to_string(),
        }
    }
}

/// What a way into Portainer would do to a stack.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct WayReport {
    pub readiness: Readiness,
    /// What Portainer would be asked to do; null if that cannot be worked out.
    pub request: Option<Request>,
    /// What would happen to each service; empty if that cannot be worked out.
    pub services: Vec<ServicePlan>,
    /// Everything that would be lost, as far as it is known.
    pub losses: Vec<Loss>,
    /// What would change because it was changed in the files, and what would run again. Not what a fate says.
    pub changes: Vec<Loss>,
    /// Whether the containers could be inspected and the Compose file could be parsed. Otherwise it is unknown what the
    /// stack loses.
    pub losses_known: bool,
    /// Every reason why it would be refused.
    pub blockers: Vec<Blocker>,
    /// With `--git`, if the repository would change a container: the patch that leaves every container untouched. Values are
    /// hidden, unless `--reveal` was given.
    pub patch: Option<String>,
    /// The missing images that are pulled first, because of `--pull`. The stack is planned again then.
    pub pulls: Vec<String>,
    /// What may go wrong, or could not be checked.
    pub warnings: Vec<String>,
    /// The repository that Portainer deploys the stack from now, if it is a Git stack.
    pub git: Option<Repository>,
    /// Who may use the stack afterwards besides administrators, as in `--access`, if that flag changes it.
    #[schemars(with = "Option<Vec<String>>")]
    pub access: Option<BTreeSet<Grant>>,
    /// What to know before a later change or deployment.
    pub notices: Vec<String>,
    /// How many lines change: of the Compose file, or of the text that Portainer has if the Portainer stack is updated or
    /// deployed again from Git. Null if the Compose file cannot be rewritten, or if `combined_files` is not empty.
    pub changed_lines: Option<usize>,
    /// The Compose files that Compose resolved into one text; empty if the Compose file is edited in place.
    pub combined_files: Vec<String>,
    /// Whether the last adoption of the same failed. A warning says how.
    #[serde(skip)]
    pub failed_before: bool,
    /// What Portainer has, compared with what would be sent and with what was last sent (B22).
    #[serde(skip)]
    pub in_portainer: InPortainer,
    /// What of it was edited there: its text, and variables by name.
    #[serde(skip)]
    pub edited: Vec<String>,
    /// The containers that were created outside of Portainer since.
    #[serde(skip)]
    pub by_hand: Vec<String>,
    /// Whether the files were edited, too.
    #[serde(skip)]
    pub files_differ: bool,
    /// The variables of the Portainer stack that an update changes, by name.
    #[serde(skip)]
    pub changed_variables: Vec<String>,
    /// The command that shows these lines; null in a list.
    pub diff_command: Option<String>,
}

/// Whether a stack can be moved this way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// Nothing is known that prevents it.
    Ready,
    /// The Portainer stack has the same text and variables already.
    NothingToDo,
    /// It was edited in Portainer since the last adoption: it would be refused without `--overwrite`.
    Edited,
    /// It would be refused.
    Blocked,
    /// There is no Compose file on this host.
    NoFile,
    /// Portainer could not be read.
    #[default]
    Unknown,
}

impl WayReport {
    /// A way that is not planned.
    pub fn unplanned(readiness: Readiness) -> Self {
        Self {
            readiness,
            ..Self::default()
        }
    }

    pub fn blocked(blocker: Blocker) -> Self {
        Self {
            blockers: vec![blocker],
            ..Self::unplanned(Readiness::Blocked)
        }
    }

    /// A way that cannot be planned.
    pub fn failed(error: &anyhow::Error) -> Self {
        let hint = Failure::hint_of(error).unwrap_or_default();
        let details = Failure::details_of(error).unwrap_or_default();
        let details = details.lines().map(str::to_owned);
        Self::blocked(Blocker::new(format!("{error:#}"), hint).details(details))
    }

    /// Whether something would be lost, or it is unknown what.
    pub fn loses(&self) -> bool {
        !self.losses_known || !self.losses.is_empty()
    }

    /// The names of some services.
    pub fn services_with(&self, is: impl Fn(&ServicePlan) -> bool) -> Vec<&str> {
        let services = self.services.iter().filter(|one| is(one));
        services.map(|one| one.service.as_str()).collect()
    }

    /// `word`, the first blocker in short, and how many others there are.
    pub fn told(&self, word: &str) -> String {
        let first = self.blockers.first();
        let first = first.map_or("", |blocker| {
            blocker.short.as_ref().unwrap_or(&blocker.message)
        });
        match self.blockers.len().saturating_sub(1) {
            0 => format!("{word}: {first}"),
            more => format!("{word}: {first} (+{more})"),
        }
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
    pub fn heals(&self, adopt: Option<&WayReport>) -> Option<&str> {
        let is_edited = adopt.is_some_and(|way| way.readiness == Readiness::Edited);
        match self {
            // It would be refused.
            Self::Continue(_) if is_edited => None,
            Self::Restore(command) | Self::Continue(command) => Some(command),
            Self::NotDeployed(command) => adopt?.failed_before.then_some(command),
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
