//! Networks, and the containers that are attached to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use serde_json::{Value, json};

use super::{
    container::{Attachment, Container},
    entities::{Network, PREDEFINED, SubnetOrigin, fingerprint},
    errors::EngineError,
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
                options: BTreeMap::new(),
                ipam: json!({ "Driver": "default", "Options": null, "Config": pools }),
                subnet_origin: SubnetOrigin::Engine,
                internal: false,
                attachable: false,
                ipv6: false,
                labels: BTreeMap::new(),
            });
        }
    }

    /// A network by ID or name.
    pub(crate) fn network(&self, name: &str) -> Result<&Network, EngineError> {
        let mut all = self.networks.iter();
        let by_id = all.find(|one| one.id == name);
        let found = by_id.or_else(|| self.networks.iter().find(|one| one.name == name));
        found.ok_or_else(|| EngineError::new(404, format!("network {name} not found")))
    }

    /// Creates a network from the body of `POST /networks/create` and returns its ID.
    pub(crate) fn create_network(&mut self, given: &Value) -> Result<String, EngineError> {
        let name = text(given, "Name");
        // Without `CheckDuplicate` a second network gets the same name.
        if given["CheckDuplicate"] == true && self.networks.iter().any(|one| one.name == name) {
            let text = format!("network with name {name} already exists");
            return Err(EngineError::new(409, text));
        }
        let driver = match text(given, "Driver") {
            "" => "bridge",
            driver => driver,
        };
        let (pools, subnet_origin) = self.new_pools(&given["IPAM"]["Config"])?;
        let id = self.new_id();
        self.networks.push(Network {
            id: id.clone(),
            name: name.to_owned(),
            driver: driver.to_owned(),
            options: labels(given.get("Options")),
            ipam: json!({
                "Driver": given["IPAM"]["Driver"].as_str().unwrap_or("default"),
                "Options": given["IPAM"]["Options"],
                "Config": pools,
            }),
            subnet_origin,
            internal: given["Internal"] == true,
            attachable: given["Attachable"] == true,
            ipv6: given["EnableIPv6"] == true,
            labels: labels(given.get("Labels")),
        });
        Ok(id)
    }

    /// Removes a network without running containers.
    pub(crate) fn remove_network(&mut self, name: &str) -> Result<(), EngineError> {
        let network = self.network(name)?;
        let (id, name) = (network.id.clone(), &network.name);
        if self.on_network(&id).next().is_some() {
            let text = format!(
                "error while removing network: network {name} id {id} has active endpoints"
            );
            return Err(EngineError::new(403, text));
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
    ) -> Result<(), EngineError> {
        let network = self.network(network)?;
        let mut container = self.find(container)?.clone();
        if container.networks.contains_key(&network.name) && container.is_running() {
            let (name, network) = (&container.name, &network.name);
            let text = format!("endpoint with name {name} already exists in network {network}");
            return Err(EngineError::new(403, text));
        }
        let mut attachment = Attachment::given(given);
        check(network, &attachment)?;
        attachment.complete(network, &container);
        if container.is_running() {
            self.join(&container, network, &mut attachment)?;
        }
        container.networks.insert(network.name.clone(), attachment);
        self.containers.insert(container.id.clone(), container);
        Ok(())
    }

    /// Joins a starting container to all its networks.
    pub(super) fn join_all(&self, container: &mut Container) -> Result<(), EngineError> {
        if let Some(other) = container.network_mode.strip_prefix("container:") {
            let other = self.find(other)?;
            if !other.is_running() {
                let text = "cannot join network of a non running container:";
                return Err(EngineError::new(409, format!("{text} {}", other.id)));
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
            check(network, attachment)?;
            attachment.complete(network, container);
            self.join(container, network, attachment)?;
        }
        container.networks = networks;
        Ok(())
    }

    fn join(
        &self,
        container: &Container,
        network: &Network,
        attachment: &mut Attachment,
    ) -> Result<(), EngineError> {
        if let Some(address) = self.address(network, attachment.fixed_address())? {
            let [a, b, c, d] = address.octets();
            attachment.ip_address = address.to_string();
            attachment.mac_address = match text(&container.config, "MacAddress") {
                own if !own.is_empty() && container.network_mode == network.name => own.to_owned(),
                _ => format!("02:42:{a:02x}:{b:02x}:{c:02x}:{d:02x}"),
            };
        }
        let endpoint = format!("endpoint {} {} {}", container.id, network.id, self.now);
        attachment.endpoint_id = fingerprint(&endpoint);
        attachment.network_id.clone_from(&network.id);
        Ok(())
    }

    /// The fixed address if it is free, or the first free one.
    fn address(&self, network: &Network, fixed: &str) -> Result<Option<Ipv4Addr>, EngineError> {
        let Some(subnet) = Subnet::read(network.pool("Subnet")) else {
            return Ok(None);
        };
        let on_it = self.on_network(&network.id);
        let used = on_it.filter_map(|(_, one)| one.ip_address.parse().ok());
        let gateway = network.pool("Gateway").parse().ok();
        let taken = used.chain(gateway).collect::<BTreeSet<Ipv4Addr>>();
        let found = match fixed.parse() {
            Ok(fixed) => Some(fixed),
            Err(_) => subnet.hosts().find(|address| !taken.contains(address)),
        };
        match found.filter(|address| !taken.contains(address)) {
            Some(address) => Ok(Some(address)),
            None => Err(EngineError::new(403, "Address already in use")),
        }
    }

    /// The pools of a new network: those of the request, or one that is free.
    fn new_pools(&self, given: &Value) -> Result<(Value, SubnetOrigin), EngineError> {
        let is_free = |one: &Subnet| {
            let mut used = self.networks.iter();
            let overlaps = |used: Subnet| one.overlaps(used);
            !used.any(|other| Subnet::read(other.pool("Subnet")).is_some_and(overlaps))
        };
        if let Some(first) = given[0]["Subnet"].as_str() {
            if Subnet::read(first).is_some_and(|subnet| !is_free(&subnet)) {
                let text = "Pool overlaps with other one on this address space";
                return Err(EngineError::new(403, text));
            }
            return Ok((given.clone(), SubnetOrigin::Request));
        }
        let free = Subnet::defaults().find(is_free).ok_or_else(|| {
            let text = "could not find an available, non-overlapping IPv4 address pool";
            EngineError::new(500, text)
        })?;
        let base = Ipv4Addr::from(free.base);
        let (subnet, gateway) = (format!("{base}/{}", free.bits), free.hosts().next());
        let pools = json!([{ "Subnet": subnet, "Gateway": gateway }]);
        Ok((pools, SubnetOrigin::Engine))
    }
}

/// Rejects options that the network does not support.
fn check(network: &Network, attachment: &Attachment) -> Result<(), EngineError> {
    let has_address = !attachment.fixed_address().is_empty();
    let text = if network.is_predefined() && (has_address || !attachment.aliases.is_empty()) {
        "network-scoped alias is supported only for containers in user defined networks"
    } else if network.subnet_origin == SubnetOrigin::Engine && has_address {
        "user specified IP address is supported only when connecting to networks with user configured \
         subnets"
    } else {
        return Ok(());
    };
    Err(EngineError::new(400, text))
}

impl Attachment {
    /// Reads an `EndpointConfig`.
    pub(super) fn given(given: &Value) -> Self {
        Self {
            aliases: texts(given.get("Aliases")),
            ipam: given["IPAMConfig"].clone(),
            links: given["Links"].clone(),
            driver_opts: given["DriverOpts"].clone(),
            ..Self::default()
        }
    }

    /// Adds the aliases of the engine: the short ID and the host name.
    fn complete(&mut self, network: &Network, container: &Container) {
        if network.is_predefined() {
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

/// An IPv4 subnet.
#[derive(Clone, Copy)]
struct Subnet {
    base: u32,
    bits: u32,
}

impl Subnet {
    fn read(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let base = u32::from(address.parse::<Ipv4Addr>().ok()?);
        let bits = bits.parse().ok().filter(|bits| (1..=32).contains(bits))?;
        Some(Self { base, bits })
    }

    /// The default address pools of the engine, then smaller ones.
    fn defaults() -> impl Iterator<Item = Self> {
        let large = (18..32).map(|b| (Ipv4Addr::new(172, b, 0, 0), 16));
        let small =
            (0..=255).flat_map(|b| (0..=255).map(move |c| (Ipv4Addr::new(10, b, c, 0), 24)));
        large.chain(small).map(|(base, bits)| Self {
            base: u32::from(base),
            bits,
        })
    }

    fn overlaps(self, other: Self) -> bool {
        let mask = u32::MAX << (32 - self.bits.min(other.bits));
        self.base & mask == other.base & mask
    }

    fn hosts(self) -> impl Iterator<Item = Ipv4Addr> {
        let last = self.base | !(u32::MAX << (32 - self.bits));
        (self.base + 1..last).map(Ipv4Addr::from)
    }
}
