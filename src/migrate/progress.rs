//! How far a migration has come, and the state of the stack that follows from it.

use std::{fmt, path::PathBuf};

use crate::{
    model::Deployment,
    run::{RecordSeen, State},
    text::counted,
};

/// How far a migration has come. Its `Display` is the state of the stack, in one sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Whether this run pulled an image.
    pub(super) pulled: bool,
    /// The backup, if this run wrote it.
    pub(super) backup: Option<PathBuf>,
    pub(super) snapshot: Option<String>,
    /// The ID of the Portainer stack, once it is deleted with its containers.
    pub(super) deleted: Option<String>,
    /// The number of other containers, once all are removed.
    pub(super) removed: Option<usize>,
    pub(super) stage: Stage,
}

/// The step that a migration has come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was deleted, removed or sent.
    #[default]
    Untouched,
    /// The Portainer stack with this ID is being deleted.
    Deleting(String),
    /// Nothing was sent: what was removed besides the Portainer stack.
    Removing(String),
    Creating,
    /// The create was accepted, with the ID of the Portainer stack.
    Deploying(String),
    Created(String),
    Failed(Remains),
}

/// What exists of the stack after a create that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remains {
    pub(super) record: RecordSeen,
    /// The number of containers of the project; `None` if the engine cannot be asked.
    pub(super) containers: Option<usize>,
    pub(super) end: End,
}

/// Whether a create has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Portainer said so itself.
    Over,
    /// Portainer may still be working on it.
    MayContinue,
}

impl Progress {
    /// The state of the stack `name`. It can be rolled back if there is a snapshot and something was changed.
    pub(super) fn state(&self, name: &str) -> State {
        if self.stage == Stage::Untouched {
            return self.untouched();
        }
        let state = State::new(self.to_string());
        // As far as the key sees, and if Portainer is not creating it.
        let is_unlisted = match &self.stage {
            Stage::Removing(_) => true,
            Stage::Failed(found) => found.record == RecordSeen::Absent && found.end == End::Over,
            _ => false,
        };
        match &self.snapshot {
            Some(id) => state.with_snapshot(name, id, is_unlisted),
            None => state,
        }
    }

    fn untouched(&self) -> State {
        let backup = self.backup.as_ref();
        let backup = backup.map(|path| format!("the backup {}", path.display()));
        let state = State::unchanged(self.pulled).and_wrote(backup);
        state.and_snapshot(self.snapshot.as_deref())
    }

    fn fmt_found(&self, f: &mut fmt::Formatter<'_>, found: &Remains) -> fmt::Result {
        match (&found.record, found.end) {
            (RecordSeen::Exists(..), _) => write!(f, "{}", found.record)?,
            (RecordSeen::Absent, End::MayContinue) => {
                f.write_str("Portainer does not list the stack, but may still be deploying it")?;
            }
            (RecordSeen::Unknown, End::MayContinue) => f.write_str(
                "the stack was sent to Portainer once, and the outcome is unknown: the stack may exist or may still be deploying",
            )?,
            (_, End::Over) if found.containers == Some(0) => {
                return match self.removed() {
                    Some(removed) => write!(
                        f,
                        "the stack is down: {removed}, and Portainer did not create the stack"
                    ),
                    None => f.write_str("the stack is down: Portainer did not create it"),
                };
            }
            (_, End::Over) => f.write_str("Portainer did not create the stack")?,
        }
        match found.containers {
            None => f.write_str("; its containers could not be listed")?,
            Some(0) => {}
            Some(count) => write!(f, "; it has {} on this host", counted(count, "container"))?,
        }
        match self.removed() {
            Some(removed) => write!(f, "; {removed}"),
            None => Ok(()),
        }
    }

    /// What existed before and was removed, as a clause.
    fn removed(&self) -> Option<String> {
        if let Some(id) = &self.deleted {
            return Some(format!(
                "the old containers of Portainer stack {id} were removed"
            ));
        }
        self.removed.map(were_removed)
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stage {
            Stage::Untouched => self.untouched().fmt(f),
            Stage::Deleting(id) => write!(
                f,
                "Portainer stack {id} was being deleted, and the outcome is unknown: it and its containers may be gone"
            ),
            Stage::Removing(what) => {
                match (&self.deleted, self.removed) {
                    (Some(id), _) => {
                        write!(f, "Portainer stack {id} was deleted with its containers; ")?;
                    }
                    (None, Some(_)) => f.write_str("the stack is down: ")?,
                    (None, None) => {}
                }
                write!(f, "{what}; the stack was not sent to Portainer")
            }
            Stage::Creating => f.write_str(
                "the deployment was in progress, and its outcome is unknown: the stack may exist or may still be deploying",
            ),
            Stage::Created(id) => write!(f, "the stack was created as Portainer stack {id}"),
            Stage::Deploying(id) => RecordSeen::Exists(id.clone(), Deployment::Deploying).fmt(f),
            Stage::Failed(found) => self.fmt_found(f, found),
        }
    }
}

/// `1 old container was removed`, `2 old containers were removed`.
pub(super) fn were_removed(count: usize) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb} removed", counted(count, "old container"))
}
