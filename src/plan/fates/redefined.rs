//! Networks and volumes whose definition changed since they were created (B26, N13).
//!
//! Compose from 2.31 on keeps the hash of the definition in a label. Where it differs, `up` stops the containers on the
//! network, removes the network and creates it again. It connects the containers to the new one without their aliases and
//! fixed addresses, and starts them. A volume stays as it is. So does everything if the label is missing, or if Portainer's
//! Compose is older.

use serde_json::Value;

use crate::{
    finding::Finding,
    model::{Container, compose_label, is_unset, named, overlap},
    plan::{Facts, Fate, PortainerCompose},
    text::listed,
};

/// The keys of definitions that are compared, and the engine's fields for them.
const KEYS: [(&str, &str); 5] = [
    ("driver", "Driver"),
    ("internal", "Internal"),
    ("enable_ipv6", "EnableIPv6"),
    ("driver_opts", "Options"),
    ("labels", "Labels"),
];

/// The networks and volumes whose definition changed.
#[derive(Default)]
pub struct Redefined {
    /// Those that Portainer's Compose finds, or may find: `network` or `volume`, and the engine's name.
    found: Vec<(&'static str, String)>,
    /// Whether Portainer's Compose certainly compares definitions.
    is_certain: bool,
    /// What to say of those that stay as they are.
    pub ignored: Vec<String>,
}

impl Redefined {
    pub fn new(facts: &Facts) -> Self {
        let Ok(project) = &facts.projects.sent else {
            return Self::default();
        };
        let portainer = facts.portainer;
        let compares = portainer.and_then(PortainerCompose::compares_definitions);
        let label = compose_label(facts.tool, "config-hash");
        let (host, sent) = (&facts.host, &project.resources);
        let (mut found, mut ignored) = (Vec::new(), Vec::new());
        for (kind, listed, sent_hashes) in [
            ("network", &host.networks, &sent.networks),
            ("volume", &host.volumes, &sent.volumes),
        ] {
            for (name, hash) in sent_hashes {
                let Some(now) = listed.as_ref().and_then(|all| named(all, name)) else {
                    continue;
                };
                let definition = sent.definitions.get(hash);
                let keys = definition.map_or_else(Vec::new, |key| differing(key, now));
                match now["Labels"][&label].as_str() {
                    Some(labeled) if labeled == hash => {}
                    Some(_) if compares != Some(false) => found.push((kind, name.clone())),
                    None if keys.is_empty() => {}
                    _ => ignored.push(stays(kind, name, &keys)),
                }
            }
        }
        Self {
            found,
            is_certain: compares == Some(true),
            ignored,
        }
    }

    /// What happens to a service of this fate because of the networks of its containers.
    pub fn fate(&self, containers: &[&Container], fate: Fate) -> Fate {
        let running = containers.iter().filter(|container| container.is_running());
        let mut on = running.flat_map(|container| container.networks().map(|(name, _)| name));
        let is_found = |name: &&String| self.found.contains(&("network", (*name).clone()));
        match (on.find(is_found), fate) {
            (Some(network), Fate::Unchanged | Fate::Started(_)) if self.is_certain => {
                Fate::Restarted(format!(
                    "network {network} differs from the Compose file and is recreated"
                ))
            }
            (Some(network), Fate::Unchanged | Fate::Started(_)) => Fate::Unknown(format!(
                "network {network} differs from the Compose file, and Portainer may recreate it"
            )),
            (_, fate) => fate,
        }
    }

    /// Why nothing is sent: the containers would not run as before, and a volume would not be what the text says.
    pub fn blockers(&self) -> impl Iterator<Item = Finding> {
        let may = if self.is_certain { "would" } else { "may" };
        self.found.iter().map(move |(kind, name)| {
            let why = match *kind {
                "network" => format!(
                    "Portainer {may} recreate it, and its containers could no longer be reached by the names of their services"
                ),
                _ => "Docker cannot change a volume".to_owned(),
            };
            let what = format!("{kind} {name} differs from the Compose file: {why}");
            Finding::new(what, hint(kind))
        })
    }
}

/// How a network is created again.
pub const DOWN: &str = "run `docker compose down`, which interrupts every service and loses files inside the containers and anonymous volumes, and then adopt the stack";

/// What to do about the definition of a network or volume.
fn hint(kind: &str) -> String {
    match kind {
        "network" => format!("undo the change, or {DOWN}"),
        _ => "undo the change, or copy the data to a volume with another name".to_owned(),
    }
}

/// What to say of a network or volume that stays as it is, with the keys that are known to differ.
fn stays(kind: &str, name: &str, keys: &[&str]) -> String {
    let place = keys.first().map(|_| format!(" in {}", listed(keys)));
    let (place, hint) = (place.unwrap_or_default(), hint(kind));
    format!(
        "{kind} {name} differs from the Compose file{place}, and a deployment does not change it: {hint}"
    )
}

/// The keys whose values the engine's object does not have. The engine may choose most that are not set.
fn differing(definition: &Value, now: &Value) -> Vec<&'static str> {
    let has = |(key, field): &(&str, &str)| match (&definition[key], &now[field]) {
        (Value::Null, now) => *key != "internal" || is_unset(now),
        (Value::Object(wanted), now) => wanted.iter().all(|(name, value)| now[name] == *value),
        // The engine adds `:latest` to the name of a plugin.
        (Value::String(driver), Value::String(now)) => now.starts_with(driver),
        (wanted, now) => wanted == now,
    };
    let differing = KEYS.iter().filter(|key| !has(key)).map(|(key, _)| *key);
    let now = subnets(&now["IPAM"]["Config"], "Subnet");
    let mut wanted = subnets(&definition["ipam"]["config"], "subnet").into_iter();
    let has_all = wanted.all(|wanted| now.iter().any(|now| overlap(now, wanted)));
    differing.chain((!has_all).then_some("ipam")).collect()
}

fn subnets<'v>(pools: &'v Value, key: &str) -> Vec<&'v str> {
    let pools = pools.as_array().into_iter().flatten();
    pools.filter_map(|pool| pool[key].as_str()).collect()
}
