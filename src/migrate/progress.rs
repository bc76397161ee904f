//! How far a run has come, and so what state the stack is in: said truthfully wherever it stops.

use std::{fmt, path::PathBuf};

use crate::model::Deployment;

/// How far a run has come. Its `Display` is the state of the stack, in one sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    pub(super) backup: Option<PathBuf>,
    pub(super) snapshot: Option<String>,
    pub(super) record: Step<String>,
    pub(super) containers: Step<usize>,
    pub(super) create: Sent,
}

/// Where one destructive step stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Step<T> {
    #[default]
    NotBegun,
    Begun(T),
    /// It failed, and so many were seen to be gone.
    Partly {
        gone: usize,
        all: usize,
    },
    Done(T),
}

/// Where the create stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Sent {
    #[default]
    No,
    Unanswered,
    Created(String),
    Deploying(String),
    /// It did not succeed, and this is there.
    Failed(Found),
}

/// What is there of the stack after a create that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The record.
    pub(super) record: Seen,
    /// How many containers the project has; `None` where the engine cannot be asked.
    pub(super) containers: Option<usize>,
    /// Whether it can still become something.
    pub(super) end: End,
}

/// What the manager says of the stack's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// It cannot be asked.
    Unknown,
    /// It has none.
    Absent,
    /// The record's id, and where its deployment stands.
    There(String, Deployment),
}

/// Whether a create has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The manager said so itself.
    Over,
    /// It may be at it at this moment.
    MayGoOn,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.create {
            Sent::No => self.fmt_before_create(f),
            Sent::Unanswered => f.write_str(
                "the create was under way and its answer was not seen: the stack may be there, or be deployed at this moment",
            ),
            Sent::Created(id) => write!(f, "the stack is created as record {id}"),
            Sent::Deploying(id) => fmt_record(f, id, &Deployment::Deploying),
            Sent::Failed(found) => self.fmt_found(f, found),
        }
    }
}

fn fmt_record(f: &mut fmt::Formatter<'_>, id: &str, deployment: &Deployment) -> fmt::Result {
    write!(f, "the stack is at the manager as record {id}, ")?;
    match deployment {
        Deployment::Active => f.write_str("deployed"),
        Deployment::Inactive => f.write_str("stopped"),
        Deployment::Deploying => f.write_str("and its deployment has not been seen to end"),
        Deployment::Failed(_) => f.write_str("but its deployment failed"),
    }
}

impl Progress {
    /// The id of the snapshot from which what ran before can be brought back; `None` where everything is
    /// as it was.
    pub fn way_back(&self) -> Option<&str> {
        let untouched = (&self.record, &self.containers, &self.create)
            == (&Step::NotBegun, &Step::NotBegun, &Sent::No);
        self.snapshot.as_deref().filter(|_| !untouched)
    }

    fn fmt_found(&self, f: &mut fmt::Formatter<'_>, found: &Found) -> fmt::Result {
        match (&found.record, found.end) {
            (Seen::There(id, deployment), _) => fmt_record(f, id, deployment)?,
            (Seen::Absent, End::MayGoOn) => f.write_str(
                "the manager has no record of the stack, and may be deploying it at this moment",
            )?,
            (Seen::Unknown, End::MayGoOn) => f.write_str(
                "the create was sent once and its answer was not seen: the stack may be there, or be deployed at this moment",
            )?,
            (_, End::Over) if found.containers == Some(0) => {
                f.write_str("the stack is absent: the manager did not create it")?;
            }
            (_, End::Over) => f.write_str("the manager did not create the stack")?,
        }
        match found.containers {
            None => f.write_str("; whether containers of it are here is not known")?,
            Some(0) => {}
            Some(1) => f.write_str("; 1 container of it is here")?,
            Some(count) => write!(f, "; {count} containers of it are here")?,
        }
        self.fmt_removed(f)
    }

    /// What ran before and does not any more.
    fn fmt_removed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.record, &self.containers) {
            (Step::Done(id), _) => write!(f, "; what record {id} ran before is removed"),
            (_, Step::Done(count)) => {
                write!(f, "; what ran before is removed ({})", count_of(*count))
            }
            _ => Ok(()),
        }
    }

    fn fmt_before_create(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.record, &self.containers) {
            (Step::NotBegun, Step::NotBegun) => {
                f.write_str("the stack is as it was: no record and no container was touched")?;
                match &self.backup {
                    Some(path) => write!(f, "; the backup is {}", path.display()),
                    None => Ok(()),
                }
            }
            (Step::Begun(id), _) => write!(
                f,
                "the delete of record {id} was sent and its end was not seen: the record and its containers may be gone"
            ),
            (record, containers) => {
                match record {
                    Step::Done(id) => {
                        write!(f, "record {id} is deleted, with the containers it ran; ")?;
                    }
                    Step::NotBegun | Step::Begun(_) | Step::Partly { .. } => {}
                }
                match containers {
                    Step::NotBegun => f.write_str("no container was removed here; ")?,
                    Step::Begun(count) => {
                        write!(f, "some of {} may be removed; ", count_of(*count))?;
                    }
                    Step::Partly { gone, all } => {
                        write!(f, "{gone} of {} removed; ", count_of(*all))?;
                    }
                    Step::Done(count) => {
                        write!(f, "what ran before is removed ({}); ", count_of(*count))?;
                    }
                }
                f.write_str("the stack is not created")
            }
        }
    }
}

fn count_of(count: usize) -> String {
    format!("{count} container{}", if count == 1 { "" } else { "s" })
}
