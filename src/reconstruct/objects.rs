//! The networks and volumes of containers, as definitions of a Compose file.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::model::{compose_label, is_empty, is_id, is_unset};

const OF_OBJECT: &str =
    "Options=driver_opts Internal=internal Attachable=attachable EnableIPv6=enable_ipv6";

/// The fields of an object that are not at their default, with other names: `Old=new`.
pub(super) fn renamed(object: &Value, names: &str) -> Map<String, Value> {
    let pairs = names.split_whitespace();
    let names = pairs.filter_map(|pair| pair.split_once('='));
    let present = names.filter(|(name, _)| !is_unset(&object[name]));
    let renamed = present.map(|(name, new)| (new.to_owned(), object[name].clone()));
    renamed.collect()
}

/// The fields of an object that have a value.
pub(super) fn known(value: Value) -> Map<String, Value> {
    let Value::Object(mut fields) = value else {
        return Map::new();
    };
    fields.retain(|_, value| !is_empty(value));
    fields
}

/// Networks, volumes and the names of containers.
#[derive(Default)]
pub(super) struct Objects {
    networks: BTreeMap<String, Object>,
    volumes: BTreeMap<String, Object>,
    containers: BTreeMap<String, String>,
}

#[derive(Default)]
struct Object {
    /// The keys that it may have in the file.
    keys: Vec<String>,
    /// Definitions of which the engine makes the same object. The most likely one is the first and the last.
    definitions: Vec<Map<String, Value>>,
    /// The one that is tried.
    at: usize,
    /// The label with the hash of the definition (N13).
    hash: Option<String>,
    is_anonymous: bool,
}

/// What is known of the objects of a project.
pub(super) struct Known<'a> {
    pub tool: &'a str,
    pub project: &'a str,
    /// Inspect JSON.
    pub networks: &'a [Value],
    pub volumes: &'a [Value],
    /// The services of all containers by their names, empty for those of other projects.
    pub containers: BTreeMap<String, String>,
    /// The networks in which a container has a fixed address.
    pub fixed: Vec<String>,
}

impl Objects {
    pub(super) fn new(known: Known) -> Self {
        let read = |objects: &[Value], kind: &str| {
            let read = objects.iter().filter_map(|object| {
                let name = object["Name"].as_str()?;
                Some((name.to_owned(), known.object(object, name, kind)))
            });
            let mut read = read.collect();
            separate(&mut read);
            read
        };
        Self {
            networks: read(known.networks, "network"),
            volumes: read(known.volumes, "volume"),
            containers: known.containers,
        }
    }

    /// The keys that the network may have in the file.
    pub(super) fn network_keys(&self, name: &str) -> &[String] {
        self.networks.get(name).map_or(&[], |network| &network.keys)
    }

    pub(super) fn volume_keys(&self, name: &str) -> &[String] {
        self.volumes.get(name).map_or(&[], |volume| &volume.keys)
    }

    /// Whether the volume has no name of its own.
    pub(super) fn is_anonymous(&self, name: &str) -> bool {
        let volume = self.volumes.get(name);
        volume.is_some_and(|volume| volume.is_anonymous)
    }

    /// The service of a container, empty for one of another project. `None` if there is no such container.
    pub(super) fn service_of(&self, container: &str) -> Option<&str> {
        self.containers.get(container).map(String::as_str)
    }

    /// Tries another definition of each network whose hash is not the one of its label, at last the most likely one again.
    /// Returns whether there is one.
    pub(super) fn try_others(&mut self, hashes: &BTreeMap<String, String>) -> bool {
        let mut tried = false;
        for (name, network) in &mut self.networks {
            let hash = hashes.get(name).filter(|_| network.hash.is_some());
            let is_wrong = hash.is_some_and(|hash| Some(hash) != network.hash.as_ref());
            if is_wrong && network.at + 1 < network.definitions.len() {
                network.at += 1;
                tried = true;
            }
        }
        tried
    }

    /// Whether no definition of the network has the hash of its label.
    pub(super) fn is_unlike(&self, network: &str) -> bool {
        let network = self.networks.get(network);
        network.is_some_and(|object| object.at > 0 && object.at + 1 == object.definitions.len())
    }

    /// The definitions with keys that `uses` accepts.
    pub(super) fn definitions(
        &self,
        uses: &dyn Fn(&str, &str) -> bool,
    ) -> [(&'static str, Map<String, Value>); 2] {
        [("networks", &self.networks), ("volumes", &self.volumes)].map(|(kind, objects)| {
            let all = objects.values().flat_map(|object| {
                let keys = object.keys.iter().filter(|key| uses(kind, key));
                keys.map(|key| (key.clone(), object.definitions[object.at].clone().into()))
            });
            (kind, all.collect())
        })
    }
}

/// Leaves each key to one object: to one of this project, otherwise to the one of this name.
fn separate(objects: &mut BTreeMap<String, Object>) {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    let is_own = |one: &Object| {
        let mut definitions = one.definitions.iter();
        definitions.all(|one| !one.contains_key("external"))
    };
    for (own, first) in [(true, true), (false, true), (false, false)] {
        for (name, object) in objects.iter().filter(|(_, object)| is_own(object) == own) {
            for key in object.keys.iter().take(if first { 1 } else { usize::MAX }) {
                owners.entry(key.clone()).or_insert_with(|| name.clone());
            }
        }
    }
    for (name, object) in objects.iter_mut().filter(|(_, one)| !one.is_anonymous) {
        object.keys.retain(|key| owners.get(key) == Some(name));
        if object.keys.is_empty() {
            object.keys.push(format!("{name}-external"));
        }
    }
}

impl Known<'_> {
    fn object(&self, object: &Value, name: &str, kind: &str) -> Object {
        let Self { tool, project, .. } = *self;
        let label = |what: &str| object["Labels"][compose_label(tool, what)].as_str();
        let own = label(kind).filter(|_| label("project") == Some(project));
        let Some(key) = own else {
            let is_anonymous = kind == "volume"
                && (is_id(name) || !object["Labels"]["com.docker.volume.anonymous"].is_null());
            let mut keys = vec![name.to_owned()];
            if kind == "network" {
                keys.push("default".to_owned());
            }
            // Other projects call it otherwise than the engine.
            let halves = name.split_once('_').into_iter();
            let parts = halves.flat_map(|(project, rest)| [rest, project]);
            keys.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
            keys.dedup();
            return Object {
                keys: if is_anonymous { Vec::new() } else { keys },
                definitions: vec![known(json!({ "name": name, "external": true }))],
                is_anonymous,
                ..Object::default()
            };
        };
        let driver = object["Driver"].as_str().unwrap_or_default();
        let mut definition = known(json!({
            "name": (name != format!("{project}_{key}")).then_some(name),
            "driver": (!matches!(driver, "bridge" | "local")).then_some(driver),
        }));
        definition.extend(renamed(object, OF_OBJECT));
        let mut labels = object["Labels"].as_object().cloned().unwrap_or_default();
        let compose = compose_label(tool, "");
        labels.retain(|name, _| !name.starts_with(&compose));
        definition.extend(known(json!({ "labels": labels })));
        let (ipam, is_chosen) = self.ipam(object, name);
        let mut likely = vec![definition.clone()];
        if !is_unset(&ipam["config"]) {
            definition.insert("ipam".to_owned(), ipam);
            likely.insert(usize::from(!is_chosen), definition);
        }
        let with_driver = likely.clone().into_iter().map(|mut one| {
            one.entry("driver").or_insert(driver.into());
            one
        });
        let mut all: Vec<_> = likely.iter().cloned().chain(with_driver).collect();
        let with_addresses = all.iter().filter(|one| one.contains_key("ipam")).cloned();
        let with_ipam_driver = with_addresses.map(|mut one| {
            one["ipam"]["driver"] = object["IPAM"]["Driver"].clone();
            one
        });
        let with_ipam_driver: Vec<_> = with_ipam_driver.collect();
        all.extend(with_ipam_driver);
        all.push(likely[0].clone());
        Object {
            keys: vec![key.to_owned()],
            definitions: all,
            hash: label("config-hash").map(str::to_owned),
            ..Object::default()
        }
    }

    /// The addresses, and whether the file has them: the engine shows those that it chose, too, with a gateway.
    fn ipam(&self, object: &Value, name: &str) -> (Value, bool) {
        let pools = object["IPAM"]["Config"].as_array().into_iter().flatten();
        let pools: Vec<&Value> = pools.collect();
        let is_chosen = |pool: &&Value| {
            pool["Gateway"].is_null()
                || !is_unset(&pool["IPRange"])
                || !is_unset(&pool["AuxiliaryAddresses"])
        };
        let is_chosen = pools.iter().any(is_chosen) || self.fixed.iter().any(|fixed| fixed == name);
        let names =
            "Subnet=subnet Gateway=gateway IPRange=ip_range AuxiliaryAddresses=aux_addresses";
        let config = pools.iter().map(|pool| renamed(pool, names));
        (json!({ "config": config.collect::<Vec<_>>() }), is_chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_one_network() {
        let own = |key: &str, name: &str| {
            json!({ "Name": name, "Driver": "bridge", "Labels": {
                "com.docker.compose.project": "shop", "com.docker.compose.network": key,
            } })
        };
        let networks = [
            own("default", "shop_default"),
            own("proxy", "shop_proxy"),
            json!({ "Name": "a_b" }),
            json!({ "Name": "b" }),
            json!({ "Name": "proxy" }),
        ];
        let objects = Objects::new(Known {
            tool: "docker",
            project: "shop",
            networks: &networks,
            volumes: &[],
            containers: BTreeMap::new(),
            fixed: Vec::new(),
        });
        for (name, keys) in [
            ("shop_default", &["default"][..]),
            ("shop_proxy", &["proxy"]),
            ("a_b", &["a_b", "a"]),
            ("b", &["b"]),
            ("proxy", &["proxy-external"]),
        ] {
            assert_eq!(objects.network_keys(name), keys, "{name}");
        }
    }
}
