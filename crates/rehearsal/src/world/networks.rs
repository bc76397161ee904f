//! Networks, and the containers that are attached to them.

use std::{collections::BTreeSet, net::Ipv4Addr};

use serde_json::{Value, json};

use super::{
    container::{Attachment, Container, Live},
    entities::{Network, PREDEFINED, SubnetOrigin, fingerprint, one_pool},
    errors::EngineError,
    settings::{pairs, text, texts},
    state::World,
};

impl World {
    /// Adds the networks that every engine has.
    pub(super) fn add_predefined_networks(&mut self, engine: &str) {
        for name in PREDEFINED {
            let bridge = name == "bridge";
            let ipam = if bridge {
                one_pool("172.17.0.0/16", "172.17.0.1")
            } else {
                json!({ "Driver": "default", "Options": null, "Config": [] })
            };
            let option = ("com.docker.network.bridge.default_bridge", "true");
            let options = [option].into_iter().filter(|_| bridge);
            let id = self.new_id();
            self.networks.push(Network {
                id,
                name: name.to_owned(),
                engine: engine.to_owned(),
                driver: if name == "none" { "null" } else { name }.to_owned(),
                options: options
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
                ipam,
                subnet_origin: SubnetOrigin::Engine,
                internal: false,
                attachable: false,
                ipv6: false,
                labels: std::collections::BTreeMap::new(),
                created: self.seconds(),
            });
        }
    }

    /// A network of an engine, by ID, name or ID prefix.
    pub(crate) fn network_on(&self, engine: &str, name: &str) -> Result<&Network, EngineError> {
        let here = || self.networks.iter().filter(|one| one.engine == engine);
        if let Some(network) = here().find(|one| one.id == name) {
            return Ok(network);
        }
        let named = here().filter(|one| one.name == name).collect::<Vec<_>>();
        match named.as_slice() {
            [network] => Ok(network),
            [] => here()
                .find(|one| !name.is_empty() && one.id.starts_with(name))
                .ok_or_else(|| EngineError::new(404, format!("network {name} not found"))),
            more => Err(EngineError::new(
                400,
                format!(
                    "network {name} is ambiguous ({} matches found on name)",
                    more.len()
                ),
            )),
        }
    }

    /// Creates a network from the body of `POST /networks/create` and returns its ID.
    pub(crate) fn create_network(
        &mut self,
        engine: &str,
        given: &Value,
    ) -> Result<String, EngineError> {
        let name = text(given, "Name");
        if name.trim().is_empty() {
            return Err(EngineError::new(500, format!("invalid name: {name}")));
        }
        if PREDEFINED.contains(&name) {
            let text = format!("operation is not permitted on predefined {name} network ");
            return Err(EngineError::new(403, text));
        }
        let mut here = self.networks.iter().filter(|one| one.engine == engine);
        // Without `CheckDuplicate` a second network gets the same name.
        if given["CheckDuplicate"] == true && here.any(|one| one.name == name) {
            let text = format!("network with name {name} already exists");
            return Err(EngineError::new(409, text));
        }
        let driver = match text(given, "Driver") {
            "" => "bridge",
            driver => driver,
        };
        if !["bridge", "macvlan", "ipvlan", "overlay"].contains(&driver) {
            return Err(EngineError::new(
                404,
                format!("plugin \"{driver}\" not found"),
            ));
        }
        let (ipam, subnet_origin) = self.new_ipam(engine, &given["IPAM"])?;
        let id = self.new_id();
        self.networks.push(Network {
            id: id.clone(),
            name: name.to_owned(),
            engine: engine.to_owned(),
            driver: driver.to_owned(),
            options: pairs(given.get("Options")).collect(),
            ipam,
            subnet_origin,
            internal: given["Internal"] == true,
            attachable: given["Attachable"] == true,
            ipv6: given["EnableIPv6"] == true,
            labels: pairs(given.get("Labels")).collect(),
            created: self.seconds(),
        });
        Ok(id)
    }

    /// Removes a network without running containers.
    pub(crate) fn remove_network(&mut self, engine: &str, name: &str) -> Result<(), EngineError> {
        let network = self.network_on(engine, name)?;
        let (id, name) = (network.id.clone(), network.name.clone());
        if network.is_predefined() {
            let text = format!("{name} is a pre-defined network and cannot be removed");
            return Err(EngineError::new(403, text));
        }
        if self.on_network(network).next().is_some() {
            let text = format!(
                "error while removing network: network {name} id {id} has active endpoints"
            );
            return Err(EngineError::new(403, text));
        }
        self.networks.retain(|one| one.id != id);
        Ok(())
    }

    /// The running containers on a network, with their endpoints.
    pub(crate) fn on_network(
        &self,
        network: &Network,
    ) -> impl Iterator<Item = (&Container, &Live)> {
        let (engine, id) = (network.engine.clone(), network.id.clone());
        self.containers.values().filter_map(move |container| {
            let mut on_it = container.networks.values();
            let on_it = on_it.find(|one| container.engine == engine && one.network_id == id)?;
            on_it.live.as_ref().map(|live| (container, live))
        })
    }

    /// Connects a container to a network.
    pub(crate) fn connect(
        &mut self,
        engine: &str,
        network: &str,
        container: &str,
        given: &Value,
    ) -> Result<(), EngineError> {
        let network = self.network_on(engine, network)?.clone();
        if container.is_empty() {
            return Err(EngineError::new(400, "invalid name or ID supplied: \"\""));
        }
        let mut container = self.find_on(engine, container)?.clone();
        let mode = &container.network_mode;
        if mode.starts_with("container:") || mode == "host" {
            let text = "container sharing network namespace with another container or host cannot be \
                        connected to any other network";
            return Err(EngineError::new(400, text));
        }
        if container.networks.contains_key("none") && container.is_running() {
            let text = "container cannot be connected to multiple networks with one of the networks in \
                        private (none) mode";
            return Err(EngineError::new(400, text));
        }
        if container.networks.contains_key(&network.name) && container.is_running() {
            let text = format!(
                "endpoint with name {} already exists in network {}",
                container.name, network.name
            );
            return Err(EngineError::new(403, text));
        }
        let mut attachment = Attachment::given(given);
        check(&network, &attachment)?;
        attachment.complete(&network, &container);
        if container.is_running() {
            self.join(&container, &network, &mut attachment)?;
        }
        container.networks.insert(network.name, attachment);
        self.containers.insert(container.id.clone(), container);
        Ok(())
    }

    /// Disconnects a container from a network.
    pub(crate) fn disconnect(
        &mut self,
        engine: &str,
        network: &str,
        container: &str,
    ) -> Result<(), EngineError> {
        let name = self.network_on(engine, network)?.name.clone();
        let id = self.find_on(engine, container)?.id.clone();
        let there = self.containers.get_mut(&id);
        match there.and_then(|one| one.networks.remove(&name)) {
            Some(_) => Ok(()),
            None => Err(EngineError::new(
                500,
                format!("container {id} is not connected to the network {name}"),
            )),
        }
    }

    /// Joins a starting container to all its networks.
    pub(super) fn join_all(&self, container: &mut Container) -> Result<(), EngineError> {
        if let Some(other) = container.network_mode.strip_prefix("container:") {
            let other = self.find_on(&container.engine, other)?;
            if !other.is_running() {
                let text = "cannot join network of a non running container:";
                return Err(EngineError::new(409, format!("{text} {}", other.id)));
            }
            container.config["Hostname"] = other.config["Hostname"].clone();
        }
        let mut networks = std::mem::take(&mut container.networks);
        for (name, attachment) in &mut networks {
            // By ID if known: a recreated network with the same name is a different network.
            let wanted = match attachment.network_id.as_str() {
                id if !id.is_empty() && !PREDEFINED.contains(&name.as_str()) => id,
                _ => name,
            };
            let network = self.network_on(&container.engine, wanted)?;
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
        let endpoint = fingerprint(&format!(
            "endpoint {} {} {}",
            container.id, network.id, self.now
        ));
        let address = self.address(network, attachment.address())?;
        let own = text(&container.config, "MacAddress");
        let mac = match (address, own) {
            (None, _) => String::new(),
            (Some(_), own) if !own.is_empty() && container.network_mode == network.name => {
                own.to_owned()
            }
            (Some(address), _) => {
                let [a, b, c, d] = address.octets();
                format!("02:42:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
            }
        };
        attachment.network_id.clone_from(&network.id);
        attachment.live = Some(Live {
            endpoint,
            address: address.map_or_else(String::new, |address| address.to_string()),
            mac,
        });
        Ok(())
    }

    /// The fixed address if it is free, or the first free one.
    fn address(&self, network: &Network, fixed: &str) -> Result<Option<Ipv4Addr>, EngineError> {
        let Some(subnet) = Subnet::read(network.pool("Subnet")) else {
            return Ok(None);
        };
        let mut taken = self
            .on_network(network)
            .filter_map(|(_, live)| live.address.parse().ok())
            .collect::<BTreeSet<Ipv4Addr>>();
        taken.extend(network.pool("Gateway").parse::<Ipv4Addr>());
        let in_use = || EngineError::new(403, "Address already in use");
        if fixed.is_empty() {
            let free = subnet.hosts().find(|address| !taken.contains(address));
            let none = || {
                EngineError::new(
                    403,
                    "no available IPv4 addresses on this network's address pools",
                )
            };
            return free.map(Some).ok_or_else(none);
        }
        match fixed.parse::<Ipv4Addr>() {
            Ok(address) if !subnet.contains(address) => Err(EngineError::new(
                500,
                format!(
                    "Invalid address {fixed}: It does not belong to any of this network's subnets"
                ),
            )),
            Ok(address) if taken.contains(&address) => Err(in_use()),
            Ok(address) => Ok(Some(address)),
            Err(_) => Err(EngineError::new(
                400,
                format!("invalid IPv4 address: {fixed}"),
            )),
        }
    }

    fn new_ipam(&self, engine: &str, given: &Value) -> Result<(Value, SubnetOrigin), EngineError> {
        let used = self.networks.iter().filter(|one| one.engine == engine);
        let used = used
            .filter_map(|one| Subnet::read(one.pool("Subnet")))
            .collect::<Vec<_>>();
        let pools = given["Config"].as_array().cloned().unwrap_or_default();
        let first = pools.first().map_or("", |pool| text(pool, "Subnet"));
        if first.is_empty() {
            let free =
                Subnet::defaults().find(|one| used.iter().all(|other| !one.overlaps(*other)));
            let subnet = free.ok_or_else(|| {
                let text = "could not find an available, non-overlapping IPv4 address pool among the \
                            defaults to assign to the network";
                EngineError::new(500, text)
            })?;
            let gateway = Ipv4Addr::from(subnet.base + 1).to_string();
            return Ok((
                one_pool(&subnet.to_string(), &gateway),
                SubnetOrigin::Engine,
            ));
        }
        let v6 = first.contains(':');
        match Subnet::read(first) {
            Some(subnet) if used.iter().any(|other| subnet.overlaps(*other)) => {
                let text = "Pool overlaps with other one on this address space";
                return Err(EngineError::new(403, text));
            }
            None if !v6 => {
                let text = format!("Invalid subnet {first} : invalid CIDR address: {first}");
                return Err(EngineError::new(500, text));
            }
            _ => {}
        }
        let driver = match text(given, "Driver") {
            "" => "default",
            driver => driver,
        };
        let ipam = json!({ "Driver": driver, "Options": given["Options"], "Config": pools });
        Ok((ipam, SubnetOrigin::Request))
    }
}

/// Rejects options that the network does not support.
fn check(network: &Network, attachment: &Attachment) -> Result<(), EngineError> {
    let text = if network.is_predefined() && !attachment.address().is_empty() {
        "user specified IP address is supported on user defined networks only"
    } else if network.is_predefined() && !attachment.aliases.is_empty() {
        "network-scoped alias is supported only for containers in user defined networks"
    } else if network.subnet_origin == SubnetOrigin::Engine && !attachment.address().is_empty() {
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
            network_id: String::new(),
            live: None,
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
        let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
        let bits = bits.parse().ok().filter(|bits| (1..=32).contains(bits))?;
        let subnet = Self { base: 0, bits };
        Some(Self {
            base: address & subnet.mask(),
            ..subnet
        })
    }

    /// The default address pools of the engine, then smaller ones.
    fn defaults() -> impl Iterator<Item = Self> {
        let large = (18..32).map(|b| (Ipv4Addr::new(172, b, 0, 0), 16));
        let middle = (0..=240)
            .step_by(16)
            .map(|c| (Ipv4Addr::new(192, 168, c, 0), 20));
        let small =
            (0..=255).flat_map(|b| (0..=255).map(move |c| (Ipv4Addr::new(10, b, c, 0), 24)));
        large
            .chain(middle)
            .chain(small)
            .map(|(address, bits)| Self {
                base: u32::from(address),
                bits,
            })
    }

    fn mask(self) -> u32 {
        u32::MAX << (32 - self.bits)
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask() == self.base
    }

    fn overlaps(self, other: Self) -> bool {
        let mask = self.mask() & other.mask();
        self.base & mask == other.base & mask
    }

    fn hosts(self) -> impl Iterator<Item = Ipv4Addr> {
        let last = self.base | !self.mask();
        (self.base + 1..last).map(Ipv4Addr::from)
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.base), self.bits)
    }
}
