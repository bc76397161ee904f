//! Runs that did not end: they were killed, the power failed, or they are still in progress.

use std::{collections::BTreeSet, path::Path};

use super::{Place, requests::REQUEST, store, whole::runs_as_before};
use crate::model::Container;

/// A run that changed a stack and has not ended as intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// It is in progress.
    InProgress,
    /// The stack does not run as before: a restore brings it back.
    Restore,
    /// A run begins by finishing it: Portainer may still be working, or there is nothing to restore.
    RunAgain,
}

impl Place {
    /// Whether a run on the stack was interrupted, or is in progress, and the stack is not whole because of it. `now` are
    /// its containers. Reads only.
    pub fn interrupted<'c>(
        &self,
        engine: Option<&str>,
        now: impl IntoIterator<Item = &'c Container>,
        tool: &str,
    ) -> Option<Interrupted> {
        let store = self.open(engine);
        let is_unanswered = self.has_unanswered();
        let is_open = is_unanswered || store.is_unfinished();
        let is_not_deployed = store.is_not_deployed();
        if !is_open && !is_not_deployed {
            return None;
        }
        if self.is_locked() {
            return Some(Interrupted::InProgress);
        }
        let before = store.choose(None).ok().map(|saved| saved.snapshot);
        match runs_as_before(now, before.as_ref(), tool) {
            true if is_unanswered || is_not_deployed => Some(Interrupted::RunAgain),
            true => None,
            // Somebody deployed it since then.
            false if !is_open => None,
            false if before.is_some() => Some(Interrupted::Restore),
            false => Some(Interrupted::RunAgain),
        }
    }
}

/// The projects that a run has left marked below a state directory, on any engine.
pub fn marked(state: &Path) -> BTreeSet<String> {
    store::projects_with(state, |file| {
        file == store::UNFINISHED || file.ends_with(REQUEST)
    })
}
