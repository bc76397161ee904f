//! Networks and volumes whose definition changed since they were created (B26, N13).
//!
//! Compose from 2.31 on keeps the hash of the definition in a label. Where it differs, `up` stops the containers on the
//! network, removes the network and creates it again. It connects the containers to the new one without their aliases and
//! fixed addresses, and starts them. A volume stays as it is.

use std::collections::BTreeMap;

use crate::{
    model::{Labeled, compose_label},
    plan::{AdoptionFacts, Blocker, Fate, PortainerCompose},
    snapshot::Inspected,
};

/// The networks and volumes whose definition changed, by the engine's names.
#[derive(Default)]
pub struct Redefined {
    networks: Vec<String>,
    volumes: Vec<String>,
    /// Whether Portainer's Compose certainly compares definitions.
    is_certain: bool,
}

impl Redefined {
    /// Those that Portainer's Compose finds, or may find. One without a label is left alone.
    pub fn new(input: &AdoptionFacts, portainer: Option<PortainerCompose>) -> Self {
        let compares = portainer.and_then(PortainerCompose::compares_definitions);
        let (Ok(hashes), None | Some(true)) = (input.hashes, compares) else {
            return Self::default();
        };
        let label = compose_label(input.facts.tool, "config-hash");
        let changed = |now: &Option<Labeled>, sent: &BTreeMap<String, String>| {
            let sent = sent.iter().filter(|(name, hash)| {
                let label = now.as_ref().and_then(|now| now.get(*name)?.get(&label));
                label.is_some_and(|label| label != *hash)
            });
            sent.map(|(name, _)| name.clone()).collect()
        };
        Self {
            networks: changed(&input.facts.details.networks, &hashes.sent.networks),
            volumes: changed(&input.facts.details.volumes, &hashes.sent.volumes),
            is_certain: compares == Some(true),
        }
    }

    /// What happens to a service of this fate because of the networks of its containers.
    pub fn fate(&self, containers: &[Inspected], fate: Fate) -> Fate {
        let running = containers.iter().filter(|one| one.is_running());
        let mut on = running.flat_map(|one| one.networks());
        let Some((network, _)) = on.find(|(network, _)| self.networks.contains(network)) else {
            return fate;
        };
        match fate {
            Fate::Unchanged | Fate::Started(_) if self.is_certain => Fate::Restarted(format!(
                "network {network} differs from the Compose file and is recreated"
            )),
            Fate::Unchanged | Fate::Started(_) => Fate::Unknown(format!(
                "network {network} differs from the Compose file, and Portainer may recreate it"
            )),
            fate => fate,
        }
    }

    /// Why nothing is sent: the containers would not run as before, and a volume would not be what the text says.
    pub fn blockers(&self) -> impl Iterator<Item = Blocker> {
        let recreates = if self.is_certain {
            "would recreate"
        } else {
            "may recreate"
        };
        let networks = self.networks.iter().map(move |network| {
            Blocker::new(
                format!(
                    "network {network} differs from the Compose file: Portainer {recreates} it, and its containers could no longer be reached by the names of their services"
                ),
                "undo the change in the Compose file, or run `docker compose down` and `docker compose up -d` first, which interrupts every service",
            )
        });
        let volumes = self.volumes.iter().map(|volume| {
            Blocker::new(
                format!("volume {volume} differs from the Compose file, and Docker cannot change a volume"),
                "undo the change in the Compose file, or copy the data to a volume with another name",
            )
        });
        networks.chain(volumes)
    }
}
