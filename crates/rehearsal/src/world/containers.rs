//! What an engine does with containers: create, start, stop, …

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    container::{Attachment, Container, Port},
    errors::EngineError,
    events::{Action, Event},
    settings::{self, Given, pairs, text, texts},
    state::{Health, World},
    volumes::is_name,
};

/// Whether a call changed the state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Changed,
    Unchanged,
}

/// What happens to the anonymous volumes of a removed container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnonymousVolumes {
    Keep,
    Remove,
}

/// The host name of containers that use the host's network.
const HOST: &str = "docker-host";

impl World {
    /// Creates a container from the body of `POST /containers/create` and returns its ID.
    ///
    /// A failed create may leave new volumes behind.
    pub(crate) fn create_container(
        &mut self,
        engine: &str,
        name: Option<&str>,
        body: &Value,
    ) -> Result<String, EngineError> {
        let given = Given::read(body)?;
        let image = self.wanted_image(text(&given.config, "Image"))?.clone();
        let mut config = settings::config(&given.config, &image)?;
        let host_config = settings::host_config(&given.host_config);
        let made_up;
        let name = match name.map(|name| name.trim_start_matches('/')) {
            Some(name) if !name.is_empty() => name,
            _ => {
                made_up = format!("nameless_{}", self.containers.len());
                &made_up
            }
        };
        self.check_name(engine, name, None)?;
        for key in ["PidMode", "IpcMode"] {
            if let Some(other) = text(&host_config, key).strip_prefix("container:") {
                self.find_on(engine, other)
                    .map_err(|error| EngineError::new(400, error.message))?;
            }
        }
        let mounts = self.mounts_of(engine, &config, &host_config)?;
        let id = self.new_id();
        let mode = text(&host_config, "NetworkMode").to_owned();
        if text(&config, "Hostname").is_empty() {
            config["Hostname"] = json!(if mode == "host" { HOST } else { &id[..12] });
        }
        let taken = |key: &str, config: &mut Value| {
            let map = config.as_object_mut();
            map.and_then(|map| map.insert(key.to_owned(), Value::Null))
        };
        let env = texts(taken("Env", &mut config).as_ref());
        let labels = pairs(taken("Labels", &mut config).as_ref()).collect();
        let mut command = texts(config.get("Entrypoint"));
        command.extend(texts(config.get("Cmd")));
        let container = Container {
            id: id.clone(),
            engine: engine.to_owned(),
            name: name.to_owned(),
            image: text(&config, "Image").to_owned(),
            image_id: image.id,
            state: "created".to_owned(),
            exit_code: 0,
            error: String::new(),
            created: self.seconds(),
            started: 0,
            finished: 0,
            healthy_at: Some(0),
            labels,
            env,
            command,
            mounts,
            ports: ports_of(&config, &host_config),
            networks: first_network(&mode, &given),
            network_mode: mode,
            config,
            host_config,
            changes: Vec::new(),
        };
        self.happened(Action::Create, &container);
        self.containers.insert(id.clone(), container);
        Ok(id)
    }

    /// Starts a container. A failure changes only the error in its state.
    pub(crate) fn start_container(&mut self, id: &str) -> Result<Effect, EngineError> {
        let before = self.containers.get(id);
        let mut container = before.ok_or_else(|| EngineError::no_container(id))?.clone();
        match container.state.as_str() {
            "paused" => {
                let text = "cannot start a paused container, try unpause instead";
                return Err(EngineError::new(409, text));
            }
            "running" => return Ok(Effect::Unchanged),
            _ => {}
        }
        let outcome = self
            .join_all(&mut container)
            .and_then(|()| self.bind_ports(&mut container));
        if let Err(error) = outcome {
            if let Some(container) = self.containers.get_mut(id) {
                container.error.clone_from(&error.message);
                if container.state == "created" {
                    container.exit_code = 128;
                }
            }
            return Err(error);
        }
        container.start(self.seconds());
        if container.host_config.get("Runtime").is_none() {
            container.host_config["Runtime"] = json!("runc");
        }
        self.write_first(&container);
        let service = self.service_of(&container);
        container.healthy_at = match self.health.get(&service) {
            Some(Health::After(millis)) => Some(self.now + millis),
            Some(Health::Never) => None,
            None => Some(0),
        };
        self.happened(Action::Start, &container);
        let code = self.exits.get(&service).copied();
        if let Some(code) = code {
            container.exit(code, self.seconds());
            self.happened(Action::Die, &container);
        }
        self.containers.insert(id.to_owned(), container);
        Ok(Effect::Changed)
    }

    /// Removes a container.
    ///
    /// An anonymous volume stays if another container mounts it.
    pub(crate) fn remove_container(
        &mut self,
        id: &str,
        volumes: AnonymousVolumes,
    ) -> Option<Container> {
        let container = self.containers.remove(id)?;
        if container.is_running() {
            self.happened(Action::Die, &container);
        }
        self.happened(Action::Destroy, &container);
        if volumes == AnonymousVolumes::Remove {
            for mount in container.mounts.iter().filter(|mount| mount.own) {
                let name = mount.name.as_deref().unwrap_or_default();
                // Fails if another container mounts the volume.
                let _ = self.remove_volume(&container.engine, name);
            }
        }
        Some(container)
    }

    /// Stops a container with that exit code.
    pub(crate) fn stop_container(&mut self, id: &str, code: i64) -> Result<Effect, EngineError> {
        let now = self.seconds();
        let container = self.containers.get_mut(id);
        let container = container.ok_or_else(|| EngineError::no_container(id))?;
        if !container.is_running() {
            return Ok(Effect::Unchanged);
        }
        container.exit(code, now);
        let container = container.clone();
        self.happened(Action::Die, &container);
        Ok(Effect::Changed)
    }

    fn happened(&mut self, action: Action, container: &Container) {
        self.events.push(Event::new(action, container, self.now));
    }

    /// Pauses or unpauses a container.
    pub(crate) fn pause_container(&mut self, id: &str, pause: bool) -> Result<(), EngineError> {
        let container = self.containers.get_mut(id);
        let container = container.ok_or_else(|| EngineError::no_container(id))?;
        let (status, what) = match (container.state.as_str(), pause) {
            ("running", true) | ("paused", false) => {
                let state = if pause { "paused" } else { "running" };
                state.clone_into(&mut container.state);
                return Ok(());
            }
            ("paused", true) => (409, "already paused"),
            (_, true) => (409, "not running"),
            (_, false) => (500, "not paused"),
        };
        let text = format!("Container {} is {what}", container.id);
        Err(EngineError::new(status, text))
    }

    /// Renames a container.
    pub(crate) fn rename_container(&mut self, id: &str, name: &str) -> Result<(), EngineError> {
        let container = self.containers.get(id);
        let container = container.ok_or_else(|| EngineError::no_container(id))?;
        let name = name.trim_start_matches('/');
        if name.is_empty() {
            return Err(EngineError::new(
                400,
                "Neither old nor new names may be empty",
            ));
        }
        if name == container.name {
            let text = "Renaming a container with the same name as its current name";
            return Err(EngineError::new(400, text));
        }
        let engine = container.engine.clone();
        self.check_name(&engine, name, Some(id)).map_err(|error| {
            let text = format!("Error when allocating new name: {}", error.message);
            EngineError::new(error.status, text)
        })?;
        if let Some(container) = self.containers.get_mut(id) {
            name.clone_into(&mut container.name);
        }
        Ok(())
    }

    fn check_name(&self, engine: &str, name: &str, own: Option<&str>) -> Result<(), EngineError> {
        if !is_name(name) {
            let allowed = "only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed";
            let text = format!("Invalid container name ({name}), {allowed}");
            return Err(EngineError::new(400, text));
        }
        let mut here = self.containers.values().filter(|one| one.engine == engine);
        match here.find(|one| one.name == name && own != Some(&one.id)) {
            None => Ok(()),
            Some(other) => Err(EngineError::new(
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
        let label = |name: &str| {
            let value = container.labels.get(&self.label(name));
            value.map_or("", String::as_str)
        };
        format!("{}/{}", label("project"), label("service"))
    }

    fn bind_ports(&mut self, container: &mut Container) -> Result<(), EngineError> {
        for port in &mut container.ports {
            port.bound = match port.published {
                Some(0) => {
                    self.next.host_port += 1;
                    Some(self.next.host_port - 1)
                }
                published => published,
            };
        }
        let here = self.containers.values();
        let others = here.filter(|one| one.id != container.id && one.engine == container.engine);
        let taken = others.flat_map(|other| &other.ports).find_map(|theirs| {
            let any = |address: &str| matches!(address, "" | "0.0.0.0" | "::");
            container.ports.iter().find(|ours| {
                theirs.bound.is_some()
                    && ours.bound == theirs.bound
                    && ours.protocol == theirs.protocol
                    && (ours.address == theirs.address
                        || any(&ours.address)
                        || any(&theirs.address))
            })
        });
        let Some(port) = taken else {
            return Ok(());
        };
        let address = if port.address.is_empty() {
            "0.0.0.0"
        } else {
            &port.address
        };
        Err(EngineError::new(
            500,
            format!(
                "driver failed programming external connectivity on endpoint {} ({}): Bind for {address}:{} \
                 failed: port is already allocated",
                container.name,
                container.id,
                port.bound.unwrap_or_default()
            ),
        ))
    }

    /// Writes to the container's empty volumes, as its first start would.
    fn write_first(&mut self, container: &Container) {
        for name in container.mounts.iter().filter_map(|one| one.name.as_ref()) {
            let mut volumes = self.volumes.iter_mut();
            let volume = volumes.find(|one| one.engine == container.engine && one.name == *name);
            if let Some(volume) = volume.filter(|volume| volume.content.is_empty()) {
                volume.content = format!("written by {} {}", container.name, container.short_id());
            }
        }
    }
}

/// The network that a container is created on.
fn first_network(mode: &str, given: &Given) -> BTreeMap<String, Attachment> {
    if mode.starts_with("container:") {
        return BTreeMap::new();
    }
    let of_mode = if mode == "default" { "bridge" } else { mode };
    let (name, endpoint) = match given.endpoints.iter().next() {
        Some((name, endpoint)) if name != "default" => (name.as_str(), endpoint),
        Some((_, endpoint)) => (of_mode, endpoint),
        None => (of_mode, &Value::Null),
    };
    let attachment = Attachment::given(endpoint);
    BTreeMap::from([(name.to_owned(), attachment)])
}

/// `PortBindings`, and the ports that are only exposed.
fn ports_of(config: &Value, host: &Value) -> Vec<Port> {
    let mut ports = Vec::new();
    let split = |key: &str| {
        let (target, protocol) = key.split_once('/').unwrap_or((key, "tcp"));
        Some((target.parse::<u16>().ok()?, protocol.to_owned()))
    };
    let bindings = host["PortBindings"].as_object().into_iter().flatten();
    for (key, given) in bindings {
        let Some((target, protocol)) = split(key) else {
            continue;
        };
        for one in given.as_array().into_iter().flatten() {
            let number = text(one, "HostPort").split('-').next().unwrap_or_default();
            ports.push(Port {
                address: text(one, "HostIp").to_owned(),
                published: Some(number.parse().unwrap_or(0)),
                bound: None,
                target,
                protocol: protocol.clone(),
            });
        }
    }
    let exposed = config.get("ExposedPorts").and_then(Value::as_object);
    for (target, protocol) in exposed
        .into_iter()
        .flatten()
        .filter_map(|(key, _)| split(key))
    {
        let known = |port: &Port| port.target == target && port.protocol == protocol;
        if !ports.iter().any(known) {
            let all = host["PublishAllPorts"] == true;
            ports.push(Port {
                address: String::new(),
                published: all.then_some(0),
                bound: None,
                target,
                protocol,
            });
        }
    }
    ports
}
