//! The steps of a restore that create networks, and replace those that differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::Duration,
};

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    Restoration,
    compare::{network_differences, network_settings},
    plan::{is_stranger, own},
    text,
};
use crate::{
    backoff::Backoff,
    engine::EngineReader,
    model::{Container, overlap, projects_of},
};

impl Restoration<'_, '_, '_> {
    /// See [`existing_networks`].
    pub(super) fn existing_networks(&self) -> Result<BTreeMap<String, Value>> {
        existing_networks(self.run.engine, self.snapshot().networks.items())
    }

    /// The networks that differ from the saved ones and can be replaced: no other container uses them, and the saved
    /// addresses are free.
    pub(super) fn networks_to_replace(&self, existing: &[Container]) -> Result<BTreeSet<String>> {
        let snapshot = self.snapshot();
        let now = self.existing_networks()?;
        let own = own(snapshot, existing);
        let label = snapshot.label("project");
        let projects = projects_of(&snapshot.stack);
        let mut replaced = BTreeSet::new();
        let mut all = None;
        for wanted in snapshot.networks.items() {
            let name = text(wanted, "Name");
            let Some(now) = now.get(name) else { continue };
            let is_own = |project: &str| projects.iter().any(|other| other == project);
            // Somebody may have created it again by hand.
            let of_stack = now["Labels"][&label].as_str().is_none_or(is_own);
            let mut users = now["Containers"].as_object().into_iter().flatten();
            let is_shared = users.any(|(id, _)| own.iter().all(|container| container.id() != id));
            if network_differences(wanted, now).is_empty() || !of_stack || is_shared {
                continue;
            }
            let all = match &all {
                Some(all) => all,
                None => all.insert(self.run.engine.all_networks()?),
            };
            if are_free(wanted, all) {
                replaced.insert(name.to_owned());
            }
        }
        Ok(replaced)
    }

    /// Removes networks. Their containers were removed before.
    pub(super) fn remove_networks(&mut self, networks: &BTreeSet<String>) -> Result<()> {
        for network in networks {
            self.touch();
            self.run.detail("remove", format!("network {network}"));
            let removed = self.run.engine.remove_network(network);
            self.tolerate(removed)?;
        }
        Ok(())
    }

    /// Creates the networks that are missing.
    pub(super) fn restore_networks(&mut self) -> Result<()> {
        let now = self.existing_networks()?;
        let snapshot = self.snapshot();
        for network in snapshot.networks.items() {
            let name = text(network, "Name");
            if now.contains_key(name) {
                continue;
            }
            self.touch();
            self.run.detail("create", format!("network {name}"));
            let body = Value::Object(network_settings(network));
            let created = self.create_network(network, body);
            self.tolerate(created)?;
        }
        self.reconnect()
    }

    /// Connects the stopped containers of other stacks to the networks that were created again: they name the network by its
    /// ID, and could not start.
    fn reconnect(&mut self) -> Result<()> {
        let engine = self.run.engine;
        let networks = self.existing_networks()?;
        let mut stopped = engine.list_all()?;
        stopped.retain(|container| !container.is_running());
        let ids = stopped.iter().map(Container::id);
        for container in &engine.inspect_containers(ids)? {
            if !is_stranger(self.snapshot(), container) {
                continue;
            }
            for (name, endpoint) in container.networks() {
                let of = text(endpoint, "NetworkID");
                let network = networks.get(name).filter(|now| text(now, "Id") != of);
                if network.is_some() && !of.is_empty() {
                    self.touch();
                    let what = format!("container {} to network {name}", container.name());
                    self.run.detail("reconnect", what);
                    let settings = Value::Object(Container::endpoint_settings(endpoint));
                    let connected = engine.connect(name, container.id(), &settings);
                    self.tolerate(connected)?;
                }
            }
        }
        Ok(())
    }

    /// Creates a network. If the engine refuses its addresses because another network uses them, it gets different ones,
    /// unless a container has a fixed address in it.
    fn create_network(&mut self, wanted: &Value, mut body: Value) -> Result<()> {
        let name = text(wanted, "Name");
        let engine = self.run.engine;
        let Err(refused) = engine.create_network(&body) else {
            return Ok(());
        };
        // If no listed network explains the refusal, the engine may be busy and need longer than usual.
        let is_explained = engine
            .all_networks()
            .is_ok_and(|all| !are_free(wanted, &all));
        let tries = if is_explained { 9 } else { 27 };
        if self.network_appears(name, tries) {
            return Ok(());
        }
        let saved = self.snapshot().containers.items().iter();
        let mut fixed = saved.flat_map(Container::fixed_addresses);
        let is_fixed = fixed.any(|(network, _)| network == name);
        let has_addresses = body["IPAM"]["Config"].as_array();
        if is_fixed || has_addresses.is_none_or(Vec::is_empty) {
            return Err(refused);
        }
        body["IPAM"]["Config"] = json!([]);
        if engine.create_network(&body).is_err() {
            return Err(refused);
        }
        self.trouble.push(format!(
            "network {name} has different addresses than before: {refused:#}"
        ));
        Ok(())
    }

    /// Whether the network exists, or appears within 3 (9 tries) or 10 seconds (27 tries): the engine may still be
    /// processing a request of a killed run.
    fn network_appears(&self, name: &str, tries: usize) -> bool {
        let exists = || {
            let found = self.run.engine.inspect_networks([name]);
            found.is_ok_and(|found| !found.is_empty())
        };
        let mut pauses =
            Backoff::new(Duration::from_millis(50), Duration::from_millis(400)).take(tries);
        exists()
            || pauses.any(|pause| {
                thread::sleep(pause);
                exists()
            })
    }
}

/// The existing networks with the names of the saved ones, by name.
pub(super) fn existing_networks(
    engine: &EngineReader,
    saved: &[Value],
) -> Result<BTreeMap<String, Value>> {
    let names = saved.iter().map(|network| text(network, "Name"));
    let found = engine.inspect_networks(names)?.into_iter();
    Ok(found
        .map(|network| (text(&network, "Name").to_owned(), network))
        .collect())
}

/// Whether no other network of `all` uses the subnets of `wanted`.
pub(super) fn are_free(wanted: &Value, all: &[Value]) -> bool {
    let others = all
        .iter()
        .filter(|other| text(other, "Name") != text(wanted, "Name"));
    let taken: Vec<&str> = others.flat_map(subnets).collect();
    subnets(wanted).all(|subnet| !taken.iter().any(|other| overlap(subnet, other)))
}

pub(super) fn subnets(network: &Value) -> impl Iterator<Item = &str> {
    let pools = network["IPAM"]["Config"].as_array().into_iter().flatten();
    pools.filter_map(|pool| pool["Subnet"].as_str())
}
