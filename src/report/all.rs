//! What `adopt --all` reports.

use schemars::JsonSchema;
use serde::Serialize;

use super::{AdoptReport, ListEntry};

/// What `stacklift adopt --output json` prints with `--all` or several stacks.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift adopt --all --output json`")]
pub struct AllReport {
    /// The version of this format: 1.
    pub version: u32,
    /// The ID of the environment in Portainer.
    pub environment: i64,
    /// Whether this was a `--dry-run`, which adopts nothing.
    pub dry_run: bool,
    /// Every stack of the host, sorted by name, or the stacks that were named, in that order.
    pub stacks: Vec<AllEntry>,
    /// What could not be read.
    pub warnings: Vec<String>,
    /// Why no stack was adopted, if the run ended before the first one.
    pub error: Option<String>,
    /// The command that undoes an adoption, with `STACK` in place of the name.
    #[serde(skip)]
    pub undo: Option<String>,
}

/// A stack.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct AllEntry {
    /// As it was, and was planned, before the first stack was adopted.
    #[serde(flatten)]
    pub before: ListEntry,
    pub result: StackResult,
    /// Whether what an interrupted run left is restored first. What follows is planned then.
    pub restored_first: bool,
    /// What `stacklift adopt <STACK> --output json` prints; null if the adoption was not started.
    pub report: Option<AdoptReport>,
}

/// The result for a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackResult {
    /// It will be adopted, or would be without `--dry-run`. At the end of a run: the run ended before this stack.
    #[default]
    Planned,
    /// It is in Portainer and runs as the plan said.
    Adopted,
    /// The Portainer stack already had this text and these variables.
    NothingToDo,
    /// It was edited in Portainer since the last adoption, and `--all` does not overwrite that.
    Edited,
    /// Its plan says that it cannot be adopted, or that its last adoption failed. The second is tried again if it is named.
    Blocked,
    /// An earlier run was interrupted or is in progress, and `--all` does not begin with a restore.
    Unfinished,
    /// It is never adopted: it runs Portainer itself, or is part of the management plane.
    Refused,
    /// No Compose file was found.
    NoFile,
    /// `--exclude` names it; it is outside the stacks root, and `--everywhere` was not given; all of its containers are
    /// stopped, and the adoption would start them; or it would be interrupted, and `--uninterrupted` was given. Only the last two
    /// were planned.
    LeftOut,
    /// Its adoption failed, was refused, or was not confirmed.
    Failed,
    /// The run was interrupted during its adoption.
    Interrupted,
}

impl AllEntry {
    pub fn name(&self) -> &str {
        &self.before.stack.name
    }

    /// Whether its plan says why it is not adopted.
    pub fn is_left(&self) -> bool {
        use StackResult as R;
        matches!(self.result, R::Blocked | R::Edited | R::Refused | R::NoFile)
    }
}

impl AllReport {
    /// The stacks that are adopted.
    pub fn to_adopt(&self) -> impl Iterator<Item = &AllEntry> {
        let stacks = self.stacks.iter();
        stacks.filter(|stack| stack.result == StackResult::Planned)
    }

    /// Whether a stack that was named, or that could be in Portainer, is not.
    pub fn has_failed(&self, all: bool) -> bool {
        use StackResult as R;
        let is_missing = |one: &AllEntry| match one.result {
            R::Planned | R::Blocked | R::Unfinished | R::Failed | R::Interrupted => true,
            _ => !all && one.is_left(),
        };
        self.stacks.iter().any(is_missing)
    }

    /// That of a plan, for all stacks together: 1 if one is blocked, 3 if one loses something.
    pub fn exit_code(&self) -> u8 {
        let mut stacks = self.stacks.iter();
        if stacks.any(|stack| stack.result == StackResult::Blocked) {
            return 1;
        }
        if self.to_adopt().any(|stack| stack.before.adopt.loses()) {
            return 3;
        }
        0
    }
}
