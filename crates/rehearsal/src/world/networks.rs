//! Networks, and the containers that are attached to them.

use serde_json::{Value, json};

use super::{
    container::{Attachment, Container},
    entities::{Network, PREDEFINED, fingerprint},
    errors::Refused,
    settings::text,
    state::World,
    values::{labels, texts},
};

impl World {
    /// Adds the networks that every engine has.
    pub(super) fn add_predefined_networks(&mut self) {
        for name in PREDEFINED {
            let pools = match name {
                "bridge" => json!([{ "Subnet": "172.17.0.0/16", "Gateway": "172.17.0.1" }]),
                _ => json!([]),
            };
            let id = self.new_id();
            self.networks.push(Network {
                id,
                name: name.to_owned(),
                driver: if name == "none" { "null" } else { name }.to_owned(),
                ipam: json!({ "Driver": "default", "Options": null, "Config": pools }),
                ..Network::default()
            });
        }
    }

    /// A network by ID or name.
    pub(crate) fn network(&self, name: &str) -> Result<&Network, Refused> {
        let by_id = self.networks.iter().find(|one| one.id == name);
        let found = by_id.or_else(|| self.networks.iter().find(|one| one.name == name));
        found.ok_or_else(|| Refused::new(404, format!("network {name} not found")))
    }

    /// Creates a network from the body of `POST /networks/create` and returns its ID.
    pub(crate) fn create_network(&mut self, given: &Value) -> Result<String, Refused> {
        let name = text(given, "Name");
        // Without `CheckDuplicate` a second network gets the same name.
        if given["CheckDuplicate"] == true && self.networks.iter().any(|one| one.name == name) {
            let text = format!("network with name {name} already exists");
            return Err(Refused::new(409, text));
        }
        let driver = match text(given, "Driver") {
            "" => "bridge",
            driver => driver,
        };
        let pools = match &given["IPAM"]["Config"] {
            given if given[0]["Subnet"].is_string() => given.clone(),
            _ => self.free_pool(),
        };
        let id = self.new_id();
        self.networks.push(Network {
            id: id.clone(),
            name: name.to_owned(),
            driver: driver.to_owned(),
            options: labels(&given["Options"]),
            ipam: json!({
                "Driver": given["IPAM"]["Driver"].as_str().unwrap_or("default"),
                "Options": given["IPAM"]["Options"],
                "Config": pools,
            }),
            internal: given["Internal"] == true,
            attachable: given["Attachable"] == true,
            ipv6: given["EnableIPv6"] == true,
            labels: labels(&given["Labels"]),
        });
        Ok(id)
    }

    /// Removes a network without running containers.
    pub(crate) fn remove_network(&mut self, name: &str) -> Result<(), Refused> {
        let network = self.network(name)?;
        let (id, name) = (network.id.clone(), &network.name);
        if self.on_network(&id).next().is_some() {
            let text = format!(
                "error while removing network: network {name} id {id} has active endpoints"
            );
            return Err(Refused::new(403, text));
        }
        self.networks.retain(|one| one.id != id);
        Ok(())
    }

    /// The running containers on a network, with their endpoints.
    pub(crate) fn on_network(&self, id: &str) -> impl Iterator<Item = (&Container, &Attachment)> {
        self.containers.values().filter_map(move |container| {
            let mut all = container.networks.values();
            let found = all.find(|one| one.network_id == id && !one.endpoint_id.is_empty())?;
            Some((container, found))
        })
    }

    /// Connects a container to a network.
    pub(crate) fn connect(
        &mut self,
        network: &str,
        container: &str,
        given: &Value,
    ) -> Result<(), Refused> {
        let network = self.network(network)?;
        let mut container = self.find(container)?.clone();
        let mut attachment = Attachment::given(given);
        attachment.complete(network, &container);
        if container.is_running() {
            self.join(&container, network, &mut attachment);
        }
        container.networks.insert(network.name.clone(), attachment);
        self.containers.insert(container.id.clone(), container);
        Ok(())
    }

    /// Joins a starting container to all its networks.
    pub(super) fn join_all(&self, container: &mut Container) -> Result<(), Refused> {
        let mode = text(&container.host_config, "NetworkMode");
        if let Some(other) = mode.strip_prefix("container:") {
            let other = self.find(other)?;
            if !other.is_running() {
                let text = "cannot join network of a non running container:";
                return Err(Refused::new(409, format!("{text} {}", other.id)));
            }
            container.config["Hostname"] = other.config["Hostname"].clone();
        }
        let mut networks = std::mem::take(&mut container.networks);
        for (name, attachment) in &mut networks {
            // By ID if known: a recreated network with the same name is a different network.
            let network = match attachment.network_id.as_str() {
                id if !id.is_empty() && !PREDEFINED.contains(&name.as_str()) => self.network(id)?,
                _ => self.network(name)?,
            };
            attachment.complete(network, container);
            self.join(container, network, attachment);
        }
        container.networks = networks;
        Ok(())
    }

    fn join(&self, container: &Container, network: &Network, attachment: &mut Attachment) {
        attachment.ip_address = text(&attachment.ipam, "IPv4Address").to_owned();
        let own = text(&container.config, "MacAddress");
        let is_first = container.host_config["NetworkMode"] == network.name;
        let own = if is_first { own } else { "" };
        own.clone_into(&mut attachment.mac_address);
        let endpoint = format!("endpoint {} {} {}", container.id, network.id, self.now);
        attachment.endpoint_id = fingerprint(&endpoint);
        attachment.network_id.clone_from(&network.id);
    }

    /// The pool of a network whose request has none, as the engine chooses it: one that no other network has.
    fn free_pool(&self) -> Value {
        let used = |base: &String| {
            let subnet = format!("{base}.0/16");
            let mut networks = self.networks.iter();
            networks.any(|network| network.ipam["Config"][0]["Subnet"] == subnet)
        };
        let mut all = (18..=255).map(|second| format!("172.{second}.0"));
        let base = all.find(|base| !used(base)).unwrap_or_default();
        json!([{ "Subnet": format!("{base}.0/16"), "Gateway": format!("{base}.1") }])
    }
}

impl Attachment {
    /// Reads an `EndpointConfig`.
    pub(super) fn given(given: &Value) -> Self {
        Self {
            aliases: texts(&given["Aliases"]),
            ipam: given["IPAMConfig"].clone(),
            links: given["Links"].clone(),
            driver_opts: given["DriverOpts"].clone(),
            ..Self::default()
        }
    }

    /// Adds the aliases of the engine: the short ID and the host name.
    fn complete(&mut self, network: &Network, container: &Container) {
        if PREDEFINED.contains(&network.name.as_str()) {
            return;
        }
        let host = text(&container.config, "Hostname");
        for alias in [container.short_id(), host] {
            let known = self.aliases.iter().any(|one| one == alias);
            if !known && !alias.is_empty() && alias != container.name {
                self.aliases.push(alias.to_owned());
            }
        }
    }
}
