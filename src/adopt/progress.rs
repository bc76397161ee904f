//! How far an adoption has come, and the state of the stack that follows from it.

use std::fmt;

use crate::{
    model::Deployment,
    run::{RecordSeen, State},
};

/// How far an adoption has come. Its `Display` is the state of the stack, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// What an earlier run left was restored from this snapshot, and the request was not sent.
    Completed(String),
    /// Nothing was sent.
    NotSent,
    /// Images were pulled, and nothing was sent.
    Pulled,
    /// A job that another service waits for was started and had not ended when it was last looked at. Nothing was sent.
    RunsJob(String),
    /// Such jobs have ended, and nothing was sent.
    RanJobs,
    /// The request is on its way, or its outcome is unknown.
    Sent,
    /// Portainer accepted the request: the ID of the Portainer stack.
    Deploying(String),
    /// Portainer says that the Portainer stack with this ID is deployed.
    Deployed(String),
    /// The same, and its containers run.
    AsBefore(String),
    /// Portainer says that it deployed the stack: what is wrong, although no container has to be restored.
    Flawed(String),
    /// The deployment failed, and no container was changed.
    Unchanged(RecordSeen),
    /// The deployment failed, or the stack does not run as before, and containers are not restored: what happened to them.
    Changed(RecordSeen, String),
    /// The deployment failed, and the engine does not list the containers.
    Unlisted(RecordSeen),
    /// The original containers are being restored.
    Restoring,
    /// The containers match the snapshot again: what happened to them meanwhile, and what Portainer has.
    Restored(String),
}

impl Progress {
    /// The state of the stack `name`. It can be rolled back if there is a snapshot and containers may have changed.
    pub(super) fn state(&self, name: &str, snapshot: Option<&str>) -> State {
        let state = match self {
            Self::Unchanged(_) | Self::Changed(..) | Self::Unlisted(_) | Self::Restored(_) => {
                State::told(self.to_string())
            }
            _ => State::new(self.to_string()),
        };
        let Some(id) = snapshot else {
            return state;
        };
        match self {
            Self::NotSent => State::new(format!("{self}; only the snapshot {id} was taken")),
            Self::Pulled => State::new(format!(
                "this run pulled images and took the snapshot {id}, and changed nothing else"
            )),
            Self::Completed(_)
            | Self::RunsJob(_)
            | Self::RanJobs
            | Self::Unchanged(_)
            | Self::Restored(_) => state,
            Self::Changed(seen, _) | Self::Unlisted(seen) => {
                state.with_snapshot(name, id, *seen == RecordSeen::Absent)
            }
            _ => state.with_snapshot(name, id, false),
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed(id) => write!(
                f,
                "this run restored what an earlier run had left: the containers match snapshot {id}"
            ),
            Self::Pulled => f.write_str("this run pulled images and changed nothing else"),
            Self::RunsJob(name) => write!(
                f,
                "this run started the job {name}, which is still running, and sent nothing to Portainer"
            ),
            Self::RanJobs => f.write_str("this run ran jobs of the stack, and sent nothing to Portainer"),
            Self::NotSent => f.write_str("nothing was changed"),
            Self::Sent => f.write_str(
                "the outcome is unknown: Portainer may be deploying the stack, and may have recreated its containers",
            ),
            Self::Deploying(id) => write!(
                f,
                "the stack exists as Portainer stack {id}; it may still be deploying, and its containers may have been recreated"
            ),
            Self::Deployed(id) => write!(
                f,
                "the stack exists as Portainer stack {id} and is deployed; its containers were not verified"
            ),
            Self::AsBefore(id) => write!(
                f,
                "the stack exists as Portainer stack {id} and is deployed; its containers run"
            ),
            Self::Flawed(what) | Self::Restored(what) => f.write_str(what),
            Self::Unchanged(record) => write!(f, "no container was changed; {}", clause(record)),
            Self::Unlisted(record) => write!(
                f,
                "the containers could not be listed, so nothing was restored; {}",
                clause(record)
            ),
            Self::Restoring => f.write_str(
                "the containers are being restored; the stack may be partly restored",
            ),
            Self::Changed(record, what) => write!(f, "{what}; {}", clause(record)),
        }
    }
}

/// The Portainer stack. Its status alone does not show whether its containers run: after an update that failed, it stays
/// active (M06).
pub(super) fn clause(record: &RecordSeen) -> String {
    match record {
        RecordSeen::Unknown => "could not check whether Portainer has the stack".to_owned(),
        RecordSeen::Absent => "Portainer does not list the stack".to_owned(),
        RecordSeen::Exists(id, Deployment::Failed(_)) => {
            format!("Portainer stack {id} exists, but its deployment failed")
        }
        RecordSeen::Exists(id, deployment) => format!("Portainer stack {id} exists ({deployment})"),
    }
}
