//! Networks, and the containers that are attached to them.

use serde_json::{Value, json};

use super::{
    container::Container,
    entities::{PREDEFINED, fingerprint},
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
            let given =
                json!({ "Name": name, "Driver": if name == "none" { "null" } else { name } });
            self.add_network(&given, &pools);
        }
    }

    /// A network by ID or name.
    pub(crate) fn network(&self, name: &str) -> Result<&Value, Refused> {
        let find = |key: &str| self.networks.iter().find(|network| network[key] == name);
        let found = find("Id").or_else(|| find("Name"));
        found.ok_or_else(|| Refused::new(404, format!("network {name} not found")))
    }

    /// Creates a network from the body of `POST /networks/create` and returns its ID.
    pub(crate) fn create_network(&mut self, given: &Value) -> Result<String, Refused> {
        let name = text(given, "Name");
        // Without `CheckDuplicate` a second network gets the same name.
        if given["CheckDuplicate"] == true
            && self.networks.iter().any(|network| network["Name"] == name)
        {
            let text = format!("network with name {name} already exists");
            return Err(Refused::new(409, text));
        }
        let pools = match &given["IPAM"]["Config"] {
            given if given[0]["Subnet"].is_string() => given.clone(),
            _ => self.free_pool(),
        };
        Ok(self.add_network(given, &pools))
    }

    fn add_network(&mut self, given: &Value, pools: &Value) -> String {
        let id = self.new_id();
        let driver = Some(text(given, "Driver")).filter(|driver| !driver.is_empty());
        self.networks.push(json!({
            "Id": id,
            "Name": given["Name"],
            "Driver": driver.unwrap_or("bridge"),
            "Options": labels(&given["Options"]),
            "IPAM": {
                "Driver": given["IPAM"]["Driver"].as_str().unwrap_or("default"),
                "Options": given["IPAM"]["Options"],
                "Config": pools,
            },
            "Internal": given["Internal"] == true,
            "Attachable": given["Attachable"] == true,
            "EnableIPv6": given["EnableIPv6"] == true,
            "Labels": labels(&given["Labels"]),
        }));
        id
    }

    /// Removes a network without running containers.
    pub(crate) fn remove_network(&mut self, name: &str) -> Result<(), Refused> {
        let network = self.network(name)?;
        let (id, name) = (text(network, "Id").to_owned(), text(network, "Name"));
        if self.on_network(&id).next().is_some() {
            let text = format!(
                "error while removing network: network {name} id {id} has active endpoints"
            );
            return Err(Refused::new(403, text));
        }
        self.networks.retain(|network| network["Id"] != id);
        Ok(())
    }

    /// The running containers on a network, with their endpoints.
    pub(crate) fn on_network(&self, id: &str) -> impl Iterator<Item = (&Container, &Value)> {
        self.containers.values().filter_map(move |container| {
            let mut all = container.networks.values();
            let found =
                all.find(|endpoint| endpoint["NetworkID"] == id && endpoint["EndpointID"] != "")?;
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
        let mut attachment = attachment(given);
        complete(&mut attachment, network, &container);
        if container.is_running() {
            self.join(&container, network, &mut attachment);
        }
        let name = text(network, "Name").to_owned();
        container.networks.insert(name, attachment);
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
            let network = match text(attachment, "NetworkID") {
                id if !id.is_empty() && !PREDEFINED.contains(&name.as_str()) => self.network(id)?,
                _ => self.network(name)?,
            };
            complete(attachment, network, container);
            self.join(container, network, attachment);
        }
        container.networks = networks;
        Ok(())
    }

    fn join(&self, container: &Container, network: &Value, attachment: &mut Value) {
        let is_first = container.host_config["NetworkMode"] == network["Name"];
        let own = Some(text(&container.config, "MacAddress")).filter(|_| is_first);
        let endpoint = format!(
            "endpoint {} {} {}",
            container.id,
            text(network, "Id"),
            self.now
        );
        let address = text(&attachment["IPAMConfig"], "IPv4Address").to_owned();
        attachment["NetworkID"] = network["Id"].clone();
        attachment["EndpointID"] = json!(fingerprint(&endpoint));
        attachment["IPAddress"] = json!(address);
        attachment["MacAddress"] = json!(own.unwrap_or_default());
    }

    /// The pool of a network whose request has none, as the engine chooses it: one that no other network has.
    fn free_pool(&self) -> Value {
        let used = |base: &String| {
            let subnet = format!("{base}.0/16");
            let mut networks = self.networks.iter();
            networks.any(|network| network["IPAM"]["Config"][0]["Subnet"] == subnet)
        };
        let mut all = (18..=255).map(|second| format!("172.{second}.0"));
        let base = all.find(|base| !used(base)).unwrap_or_default();
        json!([{ "Subnet": format!("{base}.0/16"), "Gateway": format!("{base}.1") }])
    }
}

/// The endpoint of a container on a network, of an `EndpointConfig`.
pub(super) fn attachment(given: &Value) -> Value {
    json!({
        "Aliases": texts(&given["Aliases"]),
        "IPAMConfig": given["IPAMConfig"],
        "Links": given["Links"],
        "DriverOpts": given["DriverOpts"],
        "NetworkID": "",
        "EndpointID": "",
        "IPAddress": "",
        "MacAddress": "",
    })
}

/// Adds the aliases of the engine: the short ID and the host name.
fn complete(attachment: &mut Value, network: &Value, container: &Container) {
    if PREDEFINED.contains(&text(network, "Name")) {
        return;
    }
    let mut aliases = texts(&attachment["Aliases"]);
    for alias in [container.short_id(), text(&container.config, "Hostname")] {
        let is_known = aliases.iter().any(|known| known == alias);
        if !is_known && !alias.is_empty() && alias != container.name {
            aliases.push(alias.to_owned());
        }
    }
    attachment["Aliases"] = json!(aliases);
}
