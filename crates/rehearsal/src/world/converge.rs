//! `compose up`: creates, recreates and removes the containers of a project until they match its file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    body::{Run, mounts},
    container::Container,
    entities::config_hash,
    errors::Refused,
    resolve::{Project, hash_of},
    service::{NAMESPACES, Service},
    state::World,
    values::{entries, labels, many, text},
};

/// The exit code of a container that Compose stopped.
const STOPPED: i64 = 143;

/// The most containers of a service: a file may ask for billions.
const MOST_REPLICAS: usize = 1000;

/// The services with new containers, and whether they had older ones.
type Replaced = BTreeMap<String, bool>;

impl World {
    /// Runs `compose up -d`. A failure leaves everything created so far in place (N06).
    pub(super) fn up(&mut self, project: &Project) -> Result<(), String> {
        let created = self.create_all(project)?;
        self.start_all(&created)
    }

    /// The second half of `up`. Fails if a container was removed in the meantime.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn start_all(&mut self, created: &[String]) -> Result<(), String> {
        created.iter().try_for_each(|id| self.start(id))
    }

    /// The first half of `up`: creates what is missing, and recreates what changed. Returns the IDs of the containers
    /// to start.
    pub(super) fn create_all(&mut self, project: &Project) -> Result<Vec<String>, String> {
        let mut services = project.services.iter();
        if let Some(service) = services.find(|service| service.replicas() > MOST_REPLICAS) {
            let name = &service.name;
            return Err(format!("{name}: too many containers for a rehearsal"));
        }
        self.pull(project)?;
        self.create_shared(project)?;
        if project.by_library && project.removes_orphans == Some(true) {
            self.remove_orphans(project);
        }
        let mut replaced = Replaced::new();
        let mut wanted = Vec::new();
        for service in &project.services {
            for number in 1..=service.replicas() {
                let run = Run {
                    project,
                    service,
                    number,
                };
                wanted.push(self.converge(&run, &mut replaced)?);
            }
            self.scale_down(project, service);
        }
        Ok(wanted)
    }

    /// Pulls every missing image, before anything else changes (N06, N10).
    fn pull(&mut self, project: &Project) -> Result<(), String> {
        for service in &project.services {
            let image = &service.image(&project.name);
            let is_missing = self.image(image).is_none();
            // The program builds only a missing image, the library at each deployment (N22). The context must exist where
            // Compose runs (M11).
            if service.config.get("build").is_some() {
                if !project.by_hand && (project.by_library || is_missing) {
                    let folder = &project.folder;
                    return Err(format!(
                        "unable to prepare context: path {folder:?} not found"
                    ));
                }
            } else if is_missing && self.unpullable.contains(image) {
                let name = &service.name;
                return Err(format!(
                    " {name} Pulling \n {name} Error \nError response from daemon: pull access denied for {image}, \
                     repository does not exist or may require 'docker login': denied: requested access to \
                     the resource is denied"
                ));
            }
            self.add_image(image);
        }
        Ok(())
    }

    fn create_shared(&mut self, project: &Project) -> Result<(), String> {
        for (key, network) in entries(&project.config["networks"]) {
            let name = project.name_of("networks", key);
            if !project.services.iter().any(|service| service.is_on(key)) {
                continue;
            }
            let found = self.network(name).ok();
            let is_external = network["external"] == true;
            if found.is_none() && is_external {
                return Err(format!(
                    "network {name} declared as external, but could not be found"
                ));
            }
            let mut detached = Vec::new();
            if let Some(found) = found {
                let label = found["Labels"].get(self.label("config-hash"));
                let is_compared = project.by_library && !is_external;
                let hash = hash_of("networks", network);
                if !is_compared || label.is_none_or(|label| *label == hash) {
                    continue;
                }
                detached = self.detach(project, key, name)?;
            }
            let pools = many(&network["ipam"]["config"]).iter().map(pool);
            let wanted = json!({
                "Name": name,
                "CheckDuplicate": true,
                "Driver": network["driver"],
                "Options": network["driver_opts"],
                "IPAM": { "Driver": network["ipam"]["driver"], "Config": pools.collect::<Value>() },
                "Internal": network["internal"],
                "Attachable": network["attachable"],
                "EnableIPv6": network["enable_ipv6"],
                "Labels": self.shared_labels(project, network, "network", key),
            });
            self.create_network(&wanted).map_err(|error| {
                let reason = error.message;
                format!("failed to create network {name}: Error response from daemon: {reason}")
            })?;
            for id in detached {
                self.connect(name, &id, &Value::Null)?;
            }
        }
        for (key, volume) in entries(&project.config["volumes"]) {
            let name = project.name_of("volumes", key);
            if self.volume(name).is_some() {
                continue;
            }
            if volume["external"] == true {
                return Err(format!("external volume {name:?} not found"));
            }
            let wanted = json!({
                "Name": name,
                "Driver": volume["driver"],
                "DriverOpts": volume["driver_opts"],
                "Labels": self.shared_labels(project, volume, "volume", key),
            });
            self.create_volume(&wanted);
        }
        Ok(())
    }

    /// Stops the containers on a network and removes the network (N13). Returns the IDs of the containers.
    fn detach(&mut self, project: &Project, key: &str, name: &str) -> Result<Vec<String>, String> {
        let services = project.services.iter();
        let on_it = services.filter(|service| service.is_on(key));
        let names: Vec<_> = on_it.map(|service| service.name.as_str()).collect();
        let ids = self.ids(&project.name, |container| {
            let service = self.label_of(container, "service");
            container.networks.contains_key(name) && service.is_some_and(|of| names.contains(&of))
        });
        for id in &ids {
            self.stop_container(id, STOPPED)?;
            if let Some(container) = self.containers.get_mut(id) {
                container.networks.remove(name);
            }
        }
        self.remove_network(name)?;
        Ok(ids)
    }

    fn shared_labels(
        &self,
        project: &Project,
        of: &Value,
        kind: &str,
        key: &str,
    ) -> BTreeMap<String, String> {
        let mut labels = labels(&of["labels"]);
        labels.insert(self.label(kind), key.to_owned());
        if project.by_library {
            let hash = hash_of(&format!("{kind}s"), of);
            labels.insert(self.label("config-hash"), hash);
        }
        labels.insert(self.label("project"), project.name.clone());
        labels.insert(self.label("version"), project.version().to_owned());
        labels
    }

    /// Creates a container, or recreates it if it changed (M05). Returns its ID.
    fn converge(&mut self, run: &Run<'_>, replaced: &mut Replaced) -> Result<String, String> {
        let hash = config_hash(&self.hashed(run));
        let old = self.existing(&run.project.name, &run.service.name, run.number);
        // The services that it depends on and that were replaced so far, which are started first (N05).
        let followed = run.service.depends_on();
        let followed = followed.filter_map(|(name, how)| Some((name, how, *replaced.get(name)?)));
        let followed = followed.collect::<Vec<_>>();
        let recreates = followed.iter().any(|(name, _, is_recreated)| {
            run.service.shares(name) || (*is_recreated && !run.project.by_library)
        });
        if let Some(old) = &old
            && !recreates
            && !run.project.recreates_all
            && self.matches(run, &hash, old)
        {
            let mut followed = followed.iter();
            if followed.any(|(_, how, is_recreated)| *is_recreated && how["restart"] == true) {
                // The second half of `up` starts it.
                self.stop_container(&old.id, STOPPED)?;
            }
            return Ok(old.id.clone());
        }
        replaced.insert(run.service.name.clone(), old.is_some());
        self.create_for_service(run, hash, old.as_ref())
    }

    /// What is hashed of a service, with the IDs of the containers whose namespaces and volumes it shares (N05).
    fn hashed(&self, run: &Run<'_>) -> Value {
        let mut service = run.service.hashed.clone();
        for key in NAMESPACES {
            if let Some(mode) = service.get_mut(key) {
                *mode = json!(self.mode(&run.project.name, &text(mode).unwrap_or_default()));
            }
        }
        if let Some(Value::Array(sources)) = service.get_mut("volumes_from") {
            for source in sources {
                *source =
                    json!(self.volumes_from(&run.project.name, &text(source).unwrap_or_default()));
            }
        }
        service
    }

    /// Whether the container matches the service, so that Compose keeps it (M05, N05).
    fn matches(&self, run: &Run<'_>, hash: &str, old: &Container) -> bool {
        let service = run.service;
        let label = |name: &str| self.label_of(old, name);
        let image = self.image_of(run);
        let has_other_image = label("image").is_some_and(|label| label != image);
        if label("config-hash") != Some(hash) || has_other_image {
            return false;
        }
        let on_all = service.networks().all(|(key, _)| {
            let network = self.network(run.project.name_of("networks", key));
            let mut attachments = old.networks.values();
            network.is_ok_and(|network| attachments.any(|on| on["NetworkID"] == network["Id"]))
        });
        let has_all = mounts(service, run.project).iter().all(|wanted| {
            let name = wanted["Source"].as_str().unwrap_or_default();
            let mut mounts = old.mounts.iter();
            wanted["Type"] != "volume"
                || name.is_empty()
                || mounts
                    .any(|mount| wanted["Target"] == mount["Destination"] && mount["Name"] == name)
        });
        !run.project.by_library || !old.is_running() || (on_all && has_all)
    }

    /// Removes the containers of services that the file does not define (N14). One-off containers stay while they run.
    fn remove_orphans(&mut self, project: &Project) {
        let orphans = self.ids(&project.name, |container| {
            if self.label_of(container, "oneoff") == Some("True") {
                return !container.is_running();
            }
            let service = self.label_of(container, "service");
            service.is_none_or(|service| !project.defined.contains(service))
        });
        self.remove_all(&orphans, false);
    }

    fn scale_down(&mut self, project: &Project, service: &Service) {
        let over = self.ids(&project.name, |one| {
            let number = self.label_of(one, "container-number");
            let number = number.and_then(|number| number.parse().ok());
            self.label_of(one, "service") == Some(&service.name)
                && number > Some(service.replicas())
        });
        self.remove_all(&over, false);
    }

    /// Waits for what a container depends on (M05), and starts it if it is not running (N08). Fails if it is paused.
    pub(super) fn start(&mut self, id: &str) -> Result<(), String> {
        if let Some(problem) = self.failed_dependency(id) {
            return Err(problem);
        }
        let container = self.containers.get(id);
        if container.is_some_and(|container| container.state == "running") {
            return Ok(());
        }
        let failed = |error: Refused| format!("Error response from daemon: {}", error.message);
        self.start_container(id).map_err(failed)
    }

    /// The error of Compose about a container that never meets the condition for which this container waits.
    fn failed_dependency(&self, id: &str) -> Option<String> {
        let container = self.containers.get(id)?;
        let label = |name: &str| self.label_of(container, name);
        let project = self.project(label("project")?);
        label("depends_on")?.split(',').find_map(|item| {
            let (service, condition) = item.split_once(':')?;
            let mut there = project.iter();
            let dependency =
                there.find(|container| self.label_of(container, "service") == Some(service))?;
            let (name, code) = (&dependency.name, dependency.exit_code);
            let health = dependency.health(self.now);
            match condition.split(':').next()? {
                "service_healthy" if health.is_none() => Some(format!(
                    "dependency failed to start: container {name} has no healthcheck configured"
                )),
                "service_healthy" if health == Some("unhealthy") => Some(format!(
                    "dependency failed to start: container {name} is unhealthy"
                )),
                "service_completed_successfully" if dependency.state == "exited" && code != 0 => {
                    Some(format!(
                        "service {service:?} didn't complete successfully: exit {code}"
                    ))
                }
                _ => None,
            }
        })
    }
}

/// An address pool of a network in the form of the engine.
fn pool(pool: &Value) -> Value {
    let fields = [
        ("Subnet", "subnet"),
        ("Gateway", "gateway"),
        ("IPRange", "ip_range"),
        ("AuxiliaryAddresses", "aux_addresses"),
    ];
    let given = fields
        .into_iter()
        .filter_map(|(field, key)| Some((field, pool.get(key)?)));
    given
        .map(|(field, value)| (field.to_owned(), value.clone()))
        .collect()
}
