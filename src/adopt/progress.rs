//! How far an adoption has come, and the state of the stack that follows from it.

use crate::{
    model::Deployment,
    run::{RecordSeen, State},
};

/// How far an adoption has come. The texts are the state of the stack, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing was sent.
    NotSent,
    /// Images were pulled, and nothing was sent.
    Pulled,
    /// This run restored what an earlier run left, or ran jobs. Nothing was sent, so no snapshot is needed to roll back.
    Began(String),
    /// The request is on its way, its outcome is unknown, or Portainer accepted it.
    Sent(String),
    /// The deployment failed, and the containers match the snapshot: none was changed, or they were restored.
    Whole(String),
    /// The deployment failed, or the stack does not run as before, and containers are not restored: what happened to them.
    Changed(RecordSeen, String),
}

impl Progress {
    /// The state of the stack `name`. It can be rolled back if there is a snapshot and containers may have changed.
    pub(super) fn state(&self, name: &str, snapshot: Option<&str>) -> State {
        let (state, is_unlisted) = match (self, snapshot) {
            (Self::NotSent | Self::Pulled, _) => {
                return State::unchanged(*self == Self::Pulled).and_snapshot(snapshot);
            }
            (Self::Began(what), _) => return State::new(what),
            (Self::Whole(what), _) => return State::told(what),
            (Self::Sent(what), _) => (State::new(what), false),
            (Self::Changed(seen, what), _) => {
                let state = State::told(format!("{what}; {}", clause(seen)));
                (state, *seen == RecordSeen::Absent)
            }
        };
        match snapshot {
            Some(id) => state.with_snapshot(name, id, is_unlisted),
            None => state,
        }
    }

    /// Portainer says that the Portainer stack with this ID is deployed.
    pub(super) fn deployed(id: &str, containers: &str) -> Self {
        Self::Sent(format!(
            "the stack exists as Portainer stack {id} and is deployed; its containers {containers}"
        ))
    }

    /// The deployment failed, and the engine does not list the containers.
    pub(super) fn unlisted(seen: RecordSeen) -> Self {
        let what = "the containers could not be listed, so nothing was restored";
        Self::Changed(seen, what.to_owned())
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
