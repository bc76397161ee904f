//! What `plan` and `--dry-run` report.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{Plan, Readiness};

use super::{InterruptedRun, PortainerReport, StackReport};

/// What `stacklift plan --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift plan --output json`")]
pub struct PlanReport {
    /// The version of this format: 1.
    pub version: u32,
    pub stack: StackReport,
    pub portainer: PortainerReport,
    /// Whether it was in Portainer before. `None` if that is unknown: a stack was sent that may not have been deployed.
    #[serde(skip)]
    pub was_in_portainer: Option<bool>,
    /// The command that brings back what ran before its adoption, if nothing of the stack exists.
    #[serde(skip)]
    pub restore_command: Option<String>,
    /// The command that writes what Portainer has over the files.
    #[serde(skip)]
    pub export_command: Option<String>,
    /// The command that shows what overwriting an edit in Portainer would do.
    #[serde(skip)]
    pub overwrite_command: String,
    /// Whether a Portainer stack may exist that the API key does not see (B24).
    #[serde(skip)]
    pub may_be_unseen: bool,
    /// The requests of earlier runs whose end is unknown. Every run first waits until Portainer has finished them.
    pub unanswered: Vec<String>,
    /// What `stacklift adopt` would do; null if only `migrate` was asked for.
    pub adopt: Option<Plan>,
    /// What `stacklift migrate` would do; null unless it was asked for, or the stack cannot be adopted.
    pub migrate: Option<Plan>,
    /// The command to run next; null if there is nothing to do, or if no command helps.
    pub next_command: Option<String>,
}

/// What `stacklift plan --output json` prints for several stacks.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift plan --output json` for several stacks")]
pub struct PlansReport {
    /// The version of this format: 1.
    pub version: u32,
    /// A stack that cannot be planned is missing here, and makes the exit code 1.
    pub plans: Vec<PlanReport>,
}

/// A way into Portainer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    /// As `stacklift adopt`: keeps the meaning of the Compose file
    Adopt,
    /// As `stacklift migrate`: the literal rewrite
    #[value(alias = "literal")]
    Migrate,
}

impl PlanReport {
    /// Whether the stack was edited in Portainer since the last adoption (B22).
    pub fn is_edited(&self) -> bool {
        self.adopts(Readiness::Edited)
    }

    fn adopts(&self, readiness: Readiness) -> bool {
        let adopt = self.adopt.as_ref();
        adopt.is_some_and(|way| way.readiness == readiness)
    }

    /// Whether both ways are planned.
    pub fn is_comparison(&self) -> bool {
        self.adopt.is_some() && self.migrate.is_some()
    }

    /// The ways that are planned.
    pub fn ways(&self) -> impl Iterator<Item = (Way, &Plan)> {
        let adopt = self.adopt.iter().map(|way| (Way::Adopt, way));
        adopt.chain(self.migrate.iter().map(|way| (Way::Migrate, way)))
    }

    /// The ways to show: none before an interrupted run is restored, or while Portainer may still be working.
    pub fn shown(&self) -> impl Iterator<Item = (Way, &Plan)> {
        let is_shown = self.is_shown() || self.is_comparison();
        self.ways().filter(move |_| is_shown)
    }

    /// The way to go. A migration only if no adoption was asked for: what blocks one, such as a file that Compose rejects, may
    /// also make the other fail.
    pub fn recommended(&self) -> Option<(Way, &Plan)> {
        let is_in_progress = self.stack.interrupted_run == Some(InterruptedRun::InProgress);
        let is_broken = is_in_progress || self.heals().is_some();
        let first = self.ways().next().filter(|_| !is_broken);
        first.filter(|(_, way)| way.readiness == Readiness::Ready)
    }

    /// Whether the same command finishes an interrupted run.
    pub fn runs_again(&self) -> bool {
        let is_open = |way: &Plan| {
            !matches!(way.readiness, Readiness::Blocked | Readiness::Edited) && way.git.is_none()
        };
        self.stack.interrupted_run == Some(InterruptedRun::RunAgain)
            && self.shown().all(|(_, way)| is_open(way))
    }

    /// The command to run before the stack is adopted.
    pub fn heals(&self) -> Option<&str> {
        let run = self.stack.interrupted_run.as_ref()?;
        run.heals(self.adopt.as_ref())
    }

    /// Whether it is known what adopting it would do: not before the stack is whole, unless it was edited in Portainer, and not
    /// while Portainer may still be working.
    fn is_shown(&self) -> bool {
        let run = self.stack.interrupted_run.as_ref();
        let is_whole = run.is_none_or(|run| run.heals(None).is_none());
        (is_whole || self.heals().is_none()) && self.unanswered.is_empty()
    }

    /// Whether Portainer has the stack as it would be adopted, and all of it runs.
    pub fn has_nothing_to_do(&self) -> bool {
        self.adopts(Readiness::NothingToDo)
    }

    /// Whether the command that was asked about, `adopt` if both were, would be refused.
    pub fn is_refused(&self) -> bool {
        let is_passing = match self.stack.interrupted_run {
            Some(InterruptedRun::InProgress) => true,
            Some(_) => !(self.is_shown() && self.adopts(Readiness::Blocked)),
            None => false,
        };
        let waits = self.has_nothing_to_do() || self.is_edited() || is_passing;
        self.recommended().is_none() && !waits
    }

    /// 0 if nothing is lost, 3 if something is, 1 if no way is recommended.
    pub fn exit_code(&self) -> u8 {
        match self.recommended() {
            Some((_, way)) if way.loses() => 3,
            Some(_) => 0,
            None if self.has_nothing_to_do() => 0,
            None => 1,
        }
    }
}
