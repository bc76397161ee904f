//! What an engine does with containers: create, start, stop, …

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    container::Container,
    errors::Refused,
    images::tagged,
    networks::attachment,
    settings::{self, text},
    state::World,
    values::{entries, labels, many, texts},
};

/// The host name of containers that use the host's network.
const HOST: &str = "docker-host";

impl World {
    /// Creates a container from the body of `POST /containers/create` and returns its ID.
    ///
    /// A failed create may leave new volumes behind.
    pub(crate) fn create_container(&mut self, name: &str, body: &Value) -> Result<String, Refused> {
        let image = text(body, "Image");
        let missing = || Refused::new(404, format!("No such image: {}", tagged(image)));
        let image = self.image(image).ok_or_else(missing)?;
        let image_id = text(image, "Id").to_owned();
        let mut config = settings::config(body, image);
        let host_config = settings::host_config(&body["HostConfig"]);
        self.check_name(name)?;
        let (mounts, own_volumes) = self.mounts_of(&config, &host_config)?;
        let id = self.new_id();
        let mode = text(&host_config, "NetworkMode").to_owned();
        if text(&config, "Hostname").is_empty() {
            config["Hostname"] = json!(if mode == "host" { HOST } else { &id[..12] });
        }
        let labels = labels(&config["Labels"].take());
        let mut command = texts(&config["Entrypoint"]);
        command.extend(texts(&config["Cmd"]));
        let container = Container {
            id: id.clone(),
            name: name.to_owned(),
            image: text(&config, "Image").to_owned(),
            image_id,
            state: "created".to_owned(),
            created: self.seconds(),
            healthy_at: Some(0),
            labels,
            command,
            mounts,
            own_volumes,
            ports: json!({}),
            networks: first_network(&mode, &body["NetworkingConfig"]),
            config,
            host_config,
            ..Container::default()
        };
        self.happened("create", &container);
        self.containers.insert(id.clone(), container);
        Ok(id)
    }

    /// Starts a container. A failure changes only the error in its state.
    pub(crate) fn start_container(&mut self, name: &str) -> Result<(), Refused> {
        let mut container = self.find(name)?.clone();
        match container.state.as_str() {
            "paused" => {
                let text = "cannot start a paused container, try unpause instead";
                return Err(Refused::new(409, text));
            }
            "running" | "restarting" => return Ok(()),
            _ => {}
        }
        if let Err(error) = self.join_all(&mut container) {
            self.find_mut(name)?.error.clone_from(&error.message);
            return Err(error);
        }
        container.ports = self.bound_ports(&container);
        container.start(self.seconds());
        self.write_first(&container);
        let service = self.service_of(&container);
        let health = self.health.get(&service).copied();
        container.healthy_at = health.map_or(Some(0), |after| Some(self.now + after?));
        self.happened("start", &container);
        let code = self.exits.get(&service).copied();
        if let Some(code) = code {
            container.exit(code, self.seconds());
            self.happened("die", &container);
            if container.is_restarted_after(code) {
                "restarting".clone_into(&mut container.state);
            }
        }
        self.containers.insert(container.id.clone(), container);
        Ok(())
    }

    /// Removes a container, and its anonymous volumes if that is said.
    ///
    /// An anonymous volume stays if another container mounts it.
    pub(crate) fn remove_container(&mut self, id: &str, with_volumes: bool) {
        let Some(container) = self.containers.remove(id) else {
            return;
        };
        if container.is_running() {
            self.happened("kill", &container);
            self.happened("die", &container);
        }
        self.happened("destroy", &container);
        if with_volumes {
            for name in &container.own_volumes {
                if self.users(name).next().is_none() {
                    self.volumes.retain(|volume| volume["Name"] != *name);
                }
            }
        }
    }

    pub(super) fn remove_all(&mut self, ids: &[String], with_volumes: bool) {
        for id in ids {
            self.remove_container(id, with_volumes);
        }
    }

    /// Stops a container with that exit code.
    pub fn stop_container(&mut self, name: &str, code: i64) -> Result<(), Refused> {
        let now = self.seconds();
        let container = self.find_mut(name)?;
        if container.is_running() {
            container.exit(code, now);
            let ended = container.clone();
            self.happened("kill", &ended);
            self.happened("die", &ended);
        }
        Ok(())
    }

    fn happened(&mut self, action: &str, container: &Container) {
        let mut attributes = container.labels.clone();
        attributes.insert("name".to_owned(), container.name.clone());
        self.events.push(json!({
            "Type": "container",
            "Action": action,
            "Actor": { "ID": container.id, "Attributes": attributes },
            "time": self.seconds(),
            "timeNano": self.now * 1_000_000,
        }));
    }

    pub(super) fn check_name(&self, name: &str) -> Result<(), Refused> {
        match self.container(name) {
            None => Ok(()),
            Some(other) => Err(Refused::new(
                409,
                format!(
                    "Conflict. The container name \"/{name}\" is already in use by container \"{}\". You \
                     have to remove (or rename) that container to be able to reuse that name.",
                    other.id
                ),
            )),
        }
    }

    /// `project/service`: the key of [`World::exits`] and [`World::health`].
    fn service_of(&self, container: &Container) -> String {
        let label = |name: &str| self.label_of(container, name).unwrap_or_default();
        format!("{}/{}", label("project"), label("service"))
    }

    /// The ports of a starting container, as the engine shows them: `null`, or the host ports that they are bound to. An
    /// empty address means IPv4 and IPv6. The engine chooses the host port for 0.
    fn bound_ports(&mut self, container: &Container) -> Value {
        let exposed = entries(&container.config["ExposedPorts"]);
        let exposed = exposed.map(|(port, _)| (port, &Value::Null));
        let mut ports = BTreeMap::new();
        for (port, bindings) in exposed.chain(entries(&container.host_config["PortBindings"])) {
            let protocol = if port.contains('/') { "" } else { "/tcp" };
            let bound = ports.entry(format!("{port}{protocol}")).or_insert(None);
            for binding in many(bindings) {
                let first = text(binding, "HostPort").split('-').next();
                let published = first.and_then(|first| first.parse().ok());
                let number = published.filter(|number| *number != 0).unwrap_or_else(|| {
                    self.next_port += 1;
                    self.next_port - 1
                });
                let addresses = match text(binding, "HostIp") {
                    "" => vec!["0.0.0.0", "::"],
                    address => vec![address],
                };
                bound.get_or_insert_with(Vec::new).extend(
                    addresses.into_iter().map(
                        |address| json!({ "HostIp": address, "HostPort": number.to_string() }),
                    ),
                );
            }
        }
        json!(ports)
    }

    /// Writes to the container's empty volumes, as its first start would.
    fn write_first(&mut self, container: &Container) {
        for mount in &container.mounts {
            let mut all = self.volumes.iter_mut();
            let volume = all.find(|volume| volume["Name"] == mount["Name"]);
            if let Some(volume) = volume.filter(|volume| volume["Content"] == "") {
                let writer = format!("written by {} {}", container.name, container.short_id());
                volume["Content"] = json!(writer);
            }
        }
    }
}

/// The network that a container is created on.
fn first_network(mode: &str, networking: &Value) -> BTreeMap<String, Value> {
    if mode.starts_with("container:") {
        return BTreeMap::new();
    }
    let of_mode = if mode == "default" { "bridge" } else { mode };
    let (name, endpoint) = match entries(&networking["EndpointsConfig"]).next() {
        Some((name, endpoint)) if name != "default" => (name.as_str(), endpoint),
        Some((_, endpoint)) => (of_mode, endpoint),
        None => (of_mode, &Value::Null),
    };
    BTreeMap::from([(name.to_owned(), attachment(endpoint))])
}
