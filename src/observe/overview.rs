//! What tells which stacks a host has.

use anyhow::Result;

use super::{
    environment::{Evidence, environment},
    warning,
};
use crate::{
    engine::EngineReader,
    finding::Finding,
    model::{Container, Rights},
    parallel::side_by_side,
    plan::Environment,
    portainer::{ListedRecord, PortainerReader},
};

/// The whole host, as it was when it was read.
pub struct Overview {
    /// The Portainer stacks of all environments; `None` if they could not be listed.
    pub records: Option<Vec<ListedRecord>>,
    /// Why its stacks could not be listed; `None` if they were, or if it was not asked.
    pub unlisted: Option<anyhow::Error>,
    /// All containers; `None` if they could not be listed.
    pub containers: Option<Vec<Container>>,
    pub environment: Environment,
    pub portainer_version: Option<String>,
    /// What the user of the API key sees and may do on the environment.
    pub rights: Rights,
    /// What could not be read.
    pub warnings: Vec<Finding>,
}

impl Overview {
    /// Reads from Portainer and of one of its environments, if there is a client for it, and from the engine, side by side.
    pub fn read(portainer: Option<(&PortainerReader, i64)>, engine: &EngineReader) -> Self {
        let mut warnings = Vec::new();
        let of_portainer = |(portainer, endpoint): (&PortainerReader, i64)| {
            let records = portainer.all_records(endpoint);
            // A Portainer that does not respond is asked only once.
            let others = records
                .is_ok()
                .then(|| (portainer.version(), portainer.rights(endpoint)));
            (records, others)
        };
        let (containers, of_portainer) =
            side_by_side(|| engine.list_all(), || portainer.map(of_portainer));
        let doubt = portainer.and_then(|(portainer, _)| portainer.doubt());
        warnings.extend(doubt.map(Finding::as_told));
        let (records, others) = of_portainer.unzip();
        let others = others.flatten();
        let is_read = others.is_some();
        let unread = || "Portainer could not be read".to_owned();
        let (version, rights) = others.unwrap_or_else(|| (Ok(None), Rights::Unknown(unread())));
        let portainer_version = known(version, &mut warnings).flatten();
        let containers = known(containers, &mut warnings);
        let environment = match portainer.filter(|_| is_read) {
            Some((portainer, endpoint)) => {
                let others = containers.as_deref().unwrap_or_default();
                let evidence = Evidence { own: &[], others };
                environment(portainer, Some(engine), endpoint, evidence)
            }
            None => Environment::Unknown(unread()),
        };
        let (records, unlisted) = match records.transpose() {
            Ok(records) => (records, None),
            Err(error) => (None, Some(error)),
        };
        Self {
            records,
            unlisted,
            containers,
            environment,
            portainer_version,
            rights,
            warnings,
        }
    }
}

pub(super) fn known<T>(read: Result<T>, warnings: &mut Vec<Finding>) -> Option<T> {
    read.map_err(|error| warnings.push(warning(&error))).ok()
}
