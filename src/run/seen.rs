//! The Portainer stack as a run sees it after a request whose response does not tell.

use std::fmt;

use super::Run;
use crate::{
    model::{Deployment, Record},
    portainer::Payload,
    stack::StackName,
    text::printable,
};

/// The stack's record, as Portainer lists it. Its `Display` is a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordSeen {
    /// Portainer cannot be asked.
    Unknown,
    Absent,
    /// It exists, with this ID.
    Exists(String, Deployment),
}

impl Run<'_> {
    /// Looks for the record of a stack on an environment.
    pub fn seen(&self, name: &StackName, endpoint: i64) -> RecordSeen {
        let here = |record: &Record| record.endpoint_id == endpoint;
        let project = name.portainer_name();
        let Ok(records) = self.portainer.records(endpoint, name.as_str(), &project) else {
            return RecordSeen::Unknown;
        };
        match records.into_iter().find(here) {
            Some(record) => RecordSeen::Exists(record.id, record.deployment),
            None => RecordSeen::Absent,
        }
    }

    /// What is wrong with the record `id` after Portainer reported its deployment: it is not there, or is not what was sent.
    pub fn check_record(
        &self,
        id: &str,
        name: &StackName,
        endpoint: i64,
        sent: &Payload,
    ) -> Option<String> {
        let why = match self.seen(name, endpoint) {
            RecordSeen::Exists(found, _) if found == id => None,
            RecordSeen::Unknown => Some(", and cannot be asked about it again".to_owned()),
            seen => Some(format!(", but it was not found: {seen}")),
        };
        if let Some(why) = why {
            return Some(format!("Portainer reported stack {id}{why}"));
        }
        let (contents, standing) = match self.portainer.read(id) {
            Ok(read) => read,
            Err(error) => return Some(format!("failed to read it back: {error:#}")),
        };
        if let Some(wanted) = sent.git {
            let Some(git) = standing.git.filter(|git| git.is_of(wanted)) else {
                return Some(format!("Portainer stack {id} is not linked to {wanted}"));
            };
            if contents.text != sent.text {
                return Some(format!(
                    "the branch got a new commit while Portainer deployed it: Portainer stack {id} has commit {}, and its {} was not compared",
                    printable(&git.commit),
                    wanted.path
                ));
            }
        }
        let what = match (contents.text == sent.text, contents.env == sent.env) {
            (true, true) => return None,
            (false, true) => "Compose file",
            (true, false) => "variables",
            (false, false) => "Compose file and the variables",
        };
        Some(format!(
            "Portainer stack {id} does not have the {what} that were sent"
        ))
    }
}

impl fmt::Display for RecordSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, deployment) = match self {
            Self::Unknown => return f.write_str("whether Portainer has the stack is unknown"),
            Self::Absent => return f.write_str("Portainer does not list the stack"),
            Self::Exists(id, deployment) => (id, deployment),
        };
        write!(f, "the stack exists as Portainer stack {id}")?;
        f.write_str(match deployment {
            Deployment::Active => " and is deployed",
            Deployment::Inactive => " and is stopped",
            Deployment::Deploying => "; it may still be deploying",
            Deployment::Failed(_) => ", but its deployment failed",
        })
    }
}
