//! How to recreate a container from its inspect object.
//!
//! Invariant: pure; reads and writes JSON.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::model::Container;

/// The new IDs of recreated containers, by the old ones.
pub(super) type NewIds = BTreeMap<String, String>;

/// How to recreate a container.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recipe {
    /// The body of the create.
    pub body: Value,
    /// The networks to connect before the start: name and endpoint settings.
    pub connect: Vec<(String, Value)>,
    /// The network to disconnect after that: its network mode connects it, and it was disconnected by hand.
    pub disconnect: Option<String>,
}

impl Recipe {
    /// The same, with every network in the body of the create: for API 1.44 and later. Connecting a network afterwards
    /// loses its MAC address and its priority as a gateway.
    #[must_use]
    pub(super) fn at_once(mut self) -> Self {
        let endpoints = &mut self.body["NetworkingConfig"]["EndpointsConfig"];
        if let Some(endpoints) = endpoints.as_object_mut().filter(|first| !first.is_empty()) {
            endpoints.extend(self.connect.drain(..));
        }
        self
    }
}

impl Container {
    /// How to recreate it from `image`, with the IDs of other containers replaced by their new ones.
    ///
    /// Mounts every volume by name, anonymous ones too, so that their data is kept.
    pub(super) fn recipe(&self, image: &str, new_ids: &NewIds) -> Recipe {
        let owned = |(key, value): (&String, &Value)| (key.clone(), value.clone());
        let mut config: Map<String, Value> = self.fields("/Config").map(owned).collect();
        let mut host: Map<String, Value> = self.fields("/HostConfig").map(owned).collect();
        config.insert("Image".to_owned(), image.into());
        let mode = self.network_mode();
        if self.hostname().is_none() || self.text("/HostConfig/UTSMode") == "host" {
            config.remove("Hostname");
        }
        if mode.starts_with("container:") {
            // The engine copies the domain name from the other container.
            config.remove("Domainname");
            // The other container publishes the ports. The engine refuses those that the image exposes.
            config.remove("ExposedPorts");
        }
        if host.contains_key("NetworkMode") {
            host.insert("NetworkMode".to_owned(), mode.into());
        }
        replace_ids(&mut host, new_ids);
        host.remove("ContainerIDFile");
        self.mount_by_name(&mut host);
        let (first, connect, disconnect) = self.endpoints(mode);
        config.insert("HostConfig".to_owned(), Value::Object(host));
        config.insert(
            "NetworkingConfig".to_owned(),
            json!({ "EndpointsConfig": first }),
        );
        Recipe {
            body: Value::Object(config),
            connect,
            disconnect,
        }
    }

    /// Adds the name of each mounted volume that the configuration does not name.
    fn mount_by_name(&self, host: &mut Map<String, Value>) {
        let binds = self.items("/HostConfig/Binds");
        let targets = binds.filter_map(|bind| bind.as_str()?.split(':').nth(1));
        let mut named: BTreeSet<String> = targets.map(str::to_owned).collect();
        let mut mounts: Vec<Value> = self.items("/HostConfig/Mounts").cloned().collect();
        let volumes = self.volumes();
        for mount in &mut mounts {
            let target = mount["Target"].as_str().unwrap_or_default().to_owned();
            let nameless = mount["Source"].as_str().unwrap_or_default().is_empty();
            if mount["Type"] == "volume"
                && nameless
                && let Some((name, _)) = volumes.iter().find(|(_, place)| *place == target)
            {
                mount["Source"] = (*name).into();
            }
            named.insert(target);
        }
        // Includes volumes of `volumes_from`, which look the same as its own.
        for mount in self.mounts().filter(|mount| mount["Type"] == "volume") {
            let (name, target) = (mount["Name"].as_str(), mount["Destination"].as_str());
            if let (Some(name), Some(target)) = (name, target)
                && named.insert(target.to_owned())
            {
                mounts.push(json!({
                    "Type": "volume",
                    "Source": name,
                    "Target": target,
                    "ReadOnly": mount["RW"] == false,
                }));
            }
        }
        host.insert("Mounts".to_owned(), Value::Array(mounts));
    }

    /// The endpoint to create it with, and those to connect afterwards: before API 1.44, a create takes only one. Also the
    /// network to disconnect.
    fn endpoints(&self, mode: &str) -> (Value, Vec<(String, Value)>, Option<String>) {
        let mut endpoints: Vec<(String, Value)> = self
            .networks()
            .map(|(name, endpoint)| (name.clone(), self.endpoint(name, endpoint)))
            .collect();
        if mode.starts_with("container:") || mode == "host" || mode == "none" {
            return (json!({}), Vec::new(), None);
        }
        let own = endpoints.iter().position(|(name, _)| name == mode);
        let first = own
            .map(|own| endpoints.remove(own))
            .map_or_else(|| json!({}), |(name, endpoint)| json!({ name: endpoint }));
        // The default bridge supports neither aliases nor fixed addresses.
        if mode == "default" || mode == "bridge" {
            endpoints.retain(|(name, _)| name != "bridge");
            return (json!({}), endpoints, None);
        }
        (first, endpoints, own.is_none().then(|| mode.to_owned()))
    }

    /// Keeps a MAC address that may be a chosen one: a generated one that stays does no harm.
    fn endpoint(&self, name: &str, endpoint: &Value) -> Value {
        let mut settings = Container::endpoint_settings(endpoint);
        settings.insert("Aliases".to_owned(), json!(self.aliases(endpoint)));
        if let Some(mac) = self.further_mac_addresses().get(name) {
            settings.insert("MacAddress".to_owned(), json!(mac));
        }
        Value::Object(settings)
    }
}

/// Replaces the IDs of other containers in a configuration.
fn replace_ids(host: &mut Map<String, Value>, new_ids: &NewIds) {
    for mode in ["NetworkMode", "PidMode", "IpcMode"] {
        let old = host.get(mode).and_then(Value::as_str);
        let new = old.and_then(|old| new_ids.get(old.strip_prefix("container:")?));
        if let Some(new) = new {
            host.insert(mode.to_owned(), format!("container:{new}").into());
        }
    }
    let from = host.get_mut("VolumesFrom").and_then(Value::as_array_mut);
    for from in from.into_iter().flatten() {
        let Some(text) = from.as_str() else { continue };
        let (id, rest) = text
            .split_once(':')
            .map_or((text, String::new()), |(id, rest)| (id, format!(":{rest}")));
        if let Some(new) = new_ids.get(id) {
            *from = format!("{new}{rest}").into();
        }
    }
}
