//! The Portainer stack as a run sees it after a request whose response does not tell.

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::Run;
use crate::{
    model::{Deployment, Record, portainer_name},
    portainer::{Contents, Payload, Standing, persist},
    stack::StackName,
    text::printable,
};

/// How long a Portainer that restarts may take, while nothing else depends on it.
const RESTART: Duration = Duration::from_secs(10);

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
    /// The records of a stack on an environment, by its name or the name that Portainer gives it (M02).
    pub fn records(&self, stack: &str, endpoint: i64) -> Result<Vec<Record>> {
        let project = portainer_name(stack);
        let mut records = self.portainer.records(endpoint, stack, &project)?;
        records.retain(|record| record.endpoint_id == endpoint);
        Ok(records)
    }

    /// Looks for the record of a stack on an environment.
    pub fn seen(&self, name: &StackName, endpoint: i64) -> RecordSeen {
        match self.records(name.as_str(), endpoint) {
            Err(_) => RecordSeen::Unknown,
            Ok(records) => match records.into_iter().next() {
                Some(record) => RecordSeen::Exists(record.id, record.deployment),
                None => RecordSeen::Absent,
            },
        }
    }

    fn restarted_by(&self) -> Instant {
        Instant::now() + RESTART.min(self.setup.timeout / 4)
    }

    /// Reads a record after its deployment, for which Portainer may have to restart first.
    pub fn read_back(&self, id: &str) -> Result<(Contents, Standing)> {
        let deadline = self.restarted_by();
        persist(deadline, || self.portainer.read(id))
    }

    /// Whether Portainer lists the record `id`. Warns of others with its name, which a proxy that repeats a create leaves: if one
    /// of them is deleted or stopped, Portainer removes the containers of all (M04).
    fn warn_of_twins(&mut self, id: &str, name: &StackName, endpoint: i64) -> Result<bool> {
        let list = || self.records(name.as_str(), endpoint);
        let mut records = persist(self.restarted_by(), list)?;
        let count = records.len();
        records.retain(|record| record.id != id);
        for twin in &records {
            self.warn(format!(
                "Portainer stack {} has the same name as Portainer stack {id}, and the same containers: do not delete or stop either of them, because Portainer would remove these containers; edit only Portainer stack {id}",
                twin.id
            ));
        }
        Ok(records.len() < count)
    }

    /// What is wrong with the record `id` after Portainer reported its deployment: it is not there, or is not what was sent.
    /// Warns of others with its name.
    pub fn check_record(
        &mut self,
        id: &str,
        name: &StackName,
        endpoint: i64,
        sent: &Payload,
    ) -> Option<String> {
        let why = match self.warn_of_twins(id, name, endpoint) {
            Ok(true) => None,
            Ok(false) => Some(format!(
                ", but it was not found: {}",
                self.seen(name, endpoint)
            )),
            Err(_) => Some(", and cannot be asked about it again".to_owned()),
        };
        if let Some(why) = why {
            return Some(format!("Portainer reported stack {id}{why}"));
        }
        let (contents, standing) = match self.read_back(id) {
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
        match self {
            Self::Unknown => f.write_str("could not check whether Portainer has the stack"),
            Self::Absent => f.write_str("Portainer does not list the stack"),
            Self::Exists(id, Deployment::Failed(_)) => {
                write!(f, "Portainer stack {id} exists, but its deployment failed")
            }
            Self::Exists(id, Deployment::Deploying) => {
                write!(f, "Portainer stack {id} exists, and may still be deploying")
            }
            // The status alone does not show whether its containers run: after an update that failed, it stays active (M06).
            Self::Exists(id, deployment) => {
                write!(f, "Portainer stack {id} exists ({deployment})")
            }
        }
    }
}
