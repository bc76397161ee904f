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
    /// Whether Portainer listed the stack before.
    pub(super) was_listed: bool,
    pub(super) record: Step<String>,
    pub(super) containers: Step<usize>,
    pub(super) create: Creation,
}

/// The progress of one destructive step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Step<T> {
    #[default]
    NotBegun,
    Begun(T),
    /// It failed after some containers were removed.
    Partly {
        gone: usize,
        all: usize,
    },
    Done(T),
}

/// The progress of the create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Creation {
    #[default]
    No,
    Unanswered,
    /// Done, with the ID of the record.
    Created(String),
    /// Accepted, with the ID of the record.
    Deploying(String),
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
        let state = State::new(self.to_string());
        let untouched = self.record == Step::NotBegun
            && self.containers == Step::NotBegun
            && self.create == Creation::No;
        match &self.snapshot {
            Some(id) if !untouched => state.with_snapshot(name, id, self.is_unlisted()),
            _ => state,
        }
    }

    /// Whether Portainer has no stack, as far as the key sees, and is not creating one.
    fn is_unlisted(&self) -> bool {
        match &self.create {
            Creation::No => match self.record {
                Step::NotBegun => !self.was_listed,
                Step::Done(_) => true,
                Step::Begun(_) | Step::Partly { .. } => false,
            },
            Creation::Failed(found) => found.record == RecordSeen::Absent && found.end == End::Over,
            Creation::Unanswered | Creation::Created(_) | Creation::Deploying(_) => false,
        }
    }

    fn fmt_before_create(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.record, &self.containers) {
            (Step::NotBegun, Step::NotBegun) => {
                f.write_str(if self.pulled {
                    "this run pulled images and changed nothing else"
                } else {
                    "nothing was changed"
                })?;
                match (&self.backup, &self.snapshot) {
                    (None, None) => Ok(()),
                    (Some(path), None) => {
                        write!(f, "; only the backup {} was written", path.display())
                    }
                    (None, Some(id)) => write!(f, "; only the snapshot {id} was taken"),
                    (Some(path), Some(id)) => write!(
                        f,
                        "; only the backup {} and the snapshot {id} were written",
                        path.display()
                    ),
                }
            }
            (Step::Begun(id), _) => write!(
                f,
                "Portainer stack {id} was being deleted, and the outcome is unknown: it and its containers may be gone"
            ),
            (record, containers) => {
                match record {
                    Step::Done(id) => {
                        write!(f, "Portainer stack {id} was deleted with its containers; ")?;
                    }
                    _ if matches!(containers, Step::Done(_)) => {
                        f.write_str("the stack is down: ")?;
                    }
                    _ => {}
                }
                match containers {
                    Step::NotBegun => f.write_str("no other container was removed; ")?,
                    Step::Begun(count) => write!(f, "{} have been removed; ", some_of(*count))?,
                    Step::Partly { gone, all } => {
                        let all_counted = counted(*all, "container");
                        let verb = if *gone == 1 || *all == 1 {
                            "was"
                        } else {
                            "were"
                        };
                        write!(f, "{gone} of {all_counted} {verb} removed; ")?;
                    }
                    Step::Done(count) => {
                        write!(f, "{} removed; ", were(*count, "old container"))?;
                    }
                }
                f.write_str("the stack was not sent to Portainer")
            }
        }
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
        match (&self.record, &self.containers) {
            (Step::Done(id), _) => Some(format!(
                "the old containers of Portainer stack {id} were removed"
            )),
            (_, Step::Done(count)) => Some(format!("{} removed", were(*count, "old container"))),
            _ => None,
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.create {
            Creation::No => self.fmt_before_create(f),
            Creation::Unanswered => f.write_str(
                "the deployment was in progress, and its outcome is unknown: the stack may exist or may still be deploying",
            ),
            Creation::Created(id) => write!(f, "the stack was created as Portainer stack {id}"),
            Creation::Deploying(id) => RecordSeen::Exists(id.clone(), Deployment::Deploying).fmt(f),
            Creation::Failed(found) => self.fmt_found(f, found),
        }
    }
}

/// `1 container was`, `2 containers were`.
fn were(count: usize, noun: &str) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb}", counted(count, noun))
}

/// `1 container may`, `some of the 2 containers may`.
fn some_of(count: usize) -> String {
    match count {
        1 => "1 container may".to_owned(),
        _ => format!("some of the {} may", counted(count, "container")),
    }
}
