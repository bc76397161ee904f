//! Runs that did not end: they were killed, the power failed, or they are still in progress.

use std::{collections::BTreeSet, path::Path};

use chrono::Utc;

use super::{
    Place,
    requests::REQUEST,
    store,
    whole::{is_same_deployment, runs_as_before},
};
use crate::model::Container;

/// A run that changed a stack and has not ended as intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// It is in progress.
    InProgress,
    /// The stack does not run as before: a restore brings it back.
    Restore,
    /// The same, and this command was cut off: run again, it continues.
    Continue(&'static str),
    /// As many containers run as before, and a restore did not finish: whether they are as before is unknown until it is
    /// run again.
    RestoreAgain,
    /// What ran before runs, and Portainer has what an adoption sent that failed.
    NotDeployed,
    /// A run begins by finishing it: Portainer may still be working, the result was not verified, or there is nothing to
    /// restore.
    RunAgain,
}

/// A run that has not ended as intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    pub left: Interrupted,
    /// The flags that named the repository of a Git stack, if that is known.
    pub flags: Vec<String>,
    /// The flags that chose what a restore restores.
    pub restore_flags: Vec<String>,
    /// Whether it ended with an error, and was not cut off.
    pub has_failed: bool,
}

impl Unfinished {
    /// Whether the stack does not run as before.
    pub fn is_incomplete(&self) -> bool {
        matches!(self.left, Interrupted::Restore | Interrupted::Continue(_))
    }
}

impl Place {
    /// Whether a run on the stack was interrupted, or is in progress, and the stack is not whole because of it. `now` are
    /// its containers as inspected: in a list, a container in a restart loop may look like one that runs. `None` also if
    /// they are unknown. Reads only.
    pub fn interrupted(
        &self,
        engine: Option<&str>,
        now: impl FnOnce() -> Option<Vec<Container>>,
        tool: &str,
    ) -> Option<Unfinished> {
        let store = self.open(engine);
        let is_unanswered = self.has_unanswered();
        let is_open = is_unanswered || store.is_unfinished();
        let is_not_deployed = store.is_not_deployed();
        if !is_open && !is_not_deployed {
            return None;
        }
        let restore_flags = store.restore_flags();
        let last = store.last().filter(|_| restore_flags.is_none());
        let unfinished = |left| Unfinished {
            left,
            flags: last
                .as_ref()
                .map_or_else(Vec::new, |last| last.flags.clone()),
            restore_flags: {
                let mut flags = restore_flags.clone().unwrap_or_default();
                // Only Portainer tells how the request ended.
                flags.retain(|flag| !is_unanswered || flag != "--engine-only");
                flags
            },
            has_failed: store.has_failed(),
        };
        if self.is_locked() {
            return Some(unfinished(Interrupted::InProgress));
        }
        let before = store.default_of_restore().ok().flatten();
        let before = before.map(|saved| saved.snapshot);
        let now = now()?;
        let is_same = before
            .as_ref()
            .is_some_and(|before| is_same_deployment(&now, before));
        let how = match runs_as_before(&now, Utc::now(), before.as_ref(), tool) {
            // Somebody deployed it since then.
            runs if !(is_open || runs && is_same) => return None,
            _ if before.is_none() => Interrupted::RunAgain,
            true if is_unanswered && !store.was_restored() => Interrupted::RunAgain,
            true if is_not_deployed => Interrupted::NotDeployed,
            true if store.was_restored() => Interrupted::RestoreAgain,
            true => Interrupted::RunAgain,
            // Its error would come again.
            false if store.has_failed() => Interrupted::Restore,
            false => match last.as_ref().map(|last| last.command.as_str()) {
                Some("adopt") => Interrupted::Continue("adopt"),
                Some("migrate") => Interrupted::Continue("migrate"),
                _ => Interrupted::Restore,
            },
        };
        Some(unfinished(how))
    }
}

/// The projects that a run has left marked below a state directory, on any engine.
pub fn marked(state: &Path) -> BTreeSet<String> {
    store::projects_with(state, |file| {
        [store::UNFINISHED, store::NOT_DEPLOYED].contains(&file) || file.ends_with(REQUEST)
    })
}
