//! `compose up`: creates, recreates and removes the containers of a project until they match its file.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    container::Container,
    containers::AnonymousVolumes,
    context::Resource,
    create::Run,
    deployment::Deployment,
    entities::config_hash,
    errors::EngineError,
    mounts::MountSource,
    resolve::Project,
    service::{NAMESPACES, Service},
    state::World,
    values::{labels, many, pairs, text},
};

/// The exit code of a container that Compose stopped.
const STOPPED: i64 = 143;

/// The most containers of a service: a file may ask for billions.
const MOST_REPLICAS: usize = 1000;

/// The services with new containers, and whether they had older ones.
type Replaced = BTreeMap<String, bool>;

/// What happens to a container because of a service that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Follow {
    Restart,
    Recreate,
}

impl Run<'_> {
    /// What happens because of the services that were replaced so far, which are started first (N05).
    fn follows(&self, replaced: &Replaced) -> Option<Follow> {
        let dependencies = self.service.depends_on.iter();
        let follow = dependencies.filter_map(|(name, dependency)| {
            let is_recreated = *replaced.get(name)?;
            let all_follow = !self.deployment.by_library;
            if dependency.shares || (is_recreated && all_follow) {
                Some(Follow::Recreate)
            } else {
                (is_recreated && dependency.restart).then_some(Follow::Restart)
            }
        });
        follow.max()
    }
}

impl World {
    /// Runs `compose up -d`. A failure leaves everything created so far in place (N06).
    pub(super) fn up(&mut self, deployment: &Deployment) -> Result<(), String> {
        let created = self.create_all(deployment);
        self.started(created, false)
    }

    /// The first half of `up`: creates what is missing, and recreates what changed. Returns the IDs of the containers
    /// to start.
    pub(super) fn create_all(&mut self, deployment: &Deployment) -> Result<Vec<String>, String> {
        let project = self.resolve(deployment)?;
        let mut services = project.services.iter();
        if let Some(service) = services.find(|one| one.replicas() > MOST_REPLICAS) {
            let name = &service.name;
            return Err(format!("{name}: too many containers for a rehearsal"));
        }
        if !deployment.is_here {
            return Ok(Vec::new());
        }
        self.pull(deployment, &project)?;
        self.create_shared(deployment, &project)?;
        let prune = project.removes_orphans.or(deployment.prune);
        if deployment.by_library && prune == Some(true) {
            self.remove_orphans(deployment, &project);
        }
        let mut replaced = Replaced::new();
        let mut wanted = Vec::new();
        for service in &project.services {
            for number in 1..=service.replicas() {
                let run = Run {
                    deployment,
                    project: &project,
                    service,
                    number,
                };
                wanted.push(self.converge(&run, &mut replaced)?);
            }
            self.scale_down(deployment, service);
        }
        Ok(wanted)
    }

    /// Pulls every missing image, before anything else changes (N06, N10).
    fn pull(&mut self, deployment: &Deployment, project: &Project) -> Result<(), String> {
        for service in &project.services {
            let image = &service.image;
            let is_missing = self.image(image).is_none();
            // The program builds only a missing image, the library at each deployment (N22). The context must exist where
            // Compose runs (M11).
            if service.builds() {
                if !deployment.by_hand && (deployment.by_library || is_missing) {
                    let folder = &deployment.folder;
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

    fn create_shared(&mut self, deployment: &Deployment, project: &Project) -> Result<(), String> {
        let used = |key: &String| {
            let mut all = project.services.iter();
            all.any(|one| one.is_on(key))
        };
        for (key, network) in project.networks.iter().filter(|(key, _)| used(key)) {
            let name = &network.name;
            let found = self.network(name).ok();
            if found.is_none() && network.external {
                return Err(format!(
                    "network {name} declared as external, but could not be found"
                ));
            }
            let is_other = found.is_some_and(|found| {
                let label = found.labels.get(&self.label("config-hash"));
                let is_compared = deployment.by_library && !network.external;
                is_compared && label.is_some_and(|label| *label != network.hash())
            });
            let is_missing = found.is_none();
            let mut detached = Vec::new();
            if is_other {
                detached = self.detach(deployment, project, key, name)?;
            } else if !is_missing {
                continue;
            }
            let labels = self.shared_labels(deployment, network, "network", key);
            let wanted = wanted_network(network, &labels);
            self.create_network(&wanted).map_err(|error| {
                let reason = error.message;
                format!("failed to create network {name}: Error response from daemon: {reason}")
            })?;
            for id in detached {
                self.connect(name, &id, &Value::Null)
                    .map_err(|error| error.message)?;
            }
        }
        for (key, volume) in &project.volumes {
            let name = &volume.name;
            if self.volume(name).is_some() {
                continue;
            }
            if volume.external {
                return Err(format!("external volume {name:?} not found"));
            }
            let options = pairs(volume.written.get("driver_opts"));
            let wanted = json!({
                "Name": name,
                "Driver": volume.written.get("driver").and_then(text),
                "DriverOpts": options.into_iter().collect::<BTreeMap<_, _>>(),
                "Labels": self.shared_labels(deployment, volume, "volume", key),
            });
            self.create_volume(&wanted);
        }
        Ok(())
    }

    /// Stops the containers on a network and removes the network (N13). Returns the IDs of the containers.
    fn detach(
        &mut self,
        deployment: &Deployment,
        project: &Project,
        key: &str,
        name: &str,
    ) -> Result<Vec<String>, String> {
        let services = project.services.iter();
        let on_it = services.filter(|service| service.is_on(key));
        let names: Vec<_> = on_it.map(|service| service.name.as_str()).collect();
        let ids = self.ids(&deployment.project, |one| {
            let service = self.label_of(one, "service");
            one.networks.contains_key(name) && service.is_some_and(|of| names.contains(&of))
        });
        for id in &ids {
            self.stop_container(id, STOPPED)
                .map_err(|error| error.message)?;
            if let Some(container) = self.containers.get_mut(id) {
                container.networks.remove(name);
            }
        }
        self.remove_network(name).map_err(|error| error.message)?;
        Ok(ids)
    }

    fn shared_labels(
        &self,
        deployment: &Deployment,
        of: &Resource,
        kind: &str,
        key: &str,
    ) -> BTreeMap<String, String> {
        let mut labels = labels(of.written.get("labels"));
        labels.insert(self.label(kind), key.to_owned());
        if deployment.by_library {
            labels.insert(self.label("config-hash"), of.hash());
        }
        labels.insert(self.label("project"), deployment.project.clone());
        labels.insert(self.label("version"), deployment.version());
        labels
    }

    /// Creates a container, or recreates it if it changed (M05). Returns its ID.
    fn converge(&mut self, run: &Run<'_>, replaced: &mut Replaced) -> Result<String, String> {
        let config = Value::Object(self.hashed(run));
        let hash = config_hash(&config);
        self.configs.0.insert(hash.clone(), config);
        let old = self.existing(run.deployment, &run.service.name, run.number);
        let follow = run.follows(replaced);
        if let Some(old) = &old
            && follow != Some(Follow::Recreate)
            && !run.deployment.recreates_all
            && self.matches(run, &hash, old)
        {
            if follow == Some(Follow::Restart) {
                // The second half of `up` starts it.
                self.stop_container(&old.id, STOPPED)
                    .map_err(|error| error.message)?;
            }
            return Ok(old.id.clone());
        }
        replaced.insert(run.service.name.clone(), old.is_some());
        self.create_for_service(run, hash, old.as_ref())
    }

    /// What is hashed of a service, with the IDs of the containers whose namespaces and volumes it shares (N05).
    fn hashed(&self, run: &Run<'_>) -> Map<String, Value> {
        let mut service = run.service.hashed.clone();
        for key in NAMESPACES {
            if let Some(mode) = service.get_mut(key) {
                *mode = json!(self.mode(run.deployment, &text(mode).unwrap_or_default()));
            }
        }
        if let Some(Value::Array(sources)) = service.get_mut("volumes_from") {
            for source in sources {
                *source =
                    json!(self.volumes_from(run.deployment, &text(source).unwrap_or_default()));
            }
        }
        service
    }

    /// Whether the container matches the service, so that Compose keeps it (M05, N05).
    fn matches(&self, run: &Run<'_>, hash: &str, old: &Container) -> bool {
        let service = run.service;
        let label = |name: &str| self.label_of(old, name);
        let image = self.image_of(service);
        let has_other_image = label("image").is_some_and(|label| label != image);
        if label("config-hash") != Some(hash) || has_other_image {
            return false;
        }
        let on_all = service.networks().all(|(key, _)| {
            let name = run.project.networks.get(key).map_or(key, |one| &one.name);
            let network = self.network(name);
            let attachment = old.networks.get(name);
            attachment.is_some_and(|one| network.is_ok_and(|network| one.network_id == network.id))
        });
        let has_all = service.mounts.iter().all(|spec| match &spec.source {
            MountSource::Volume(name) => old
                .mounts
                .iter()
                .any(|mount| mount.target == spec.target && mount.is_volume(name)),
            _ => true,
        });
        !run.deployment.by_library || !old.is_running() || (on_all && has_all)
    }

    /// Removes the containers of services that the file does not define (N14). One-off containers stay while they run.
    fn remove_orphans(&mut self, deployment: &Deployment, project: &Project) {
        let orphans = self.ids(&deployment.project, |one| {
            if self.label_of(one, "oneoff") == Some("True") {
                return !one.is_running();
            }
            let service = self.label_of(one, "service");
            service.is_none_or(|service| !project.defined.contains(service))
        });
        self.remove_all(&orphans, AnonymousVolumes::Keep);
    }

    fn scale_down(&mut self, deployment: &Deployment, service: &Service) {
        let over = self.ids(&deployment.project, |one| {
            let number = self.label_of(one, "container-number");
            let number = number.and_then(|number| number.parse().ok());
            self.label_of(one, "service") == Some(&service.name)
                && number > Some(service.replicas())
        });
        self.remove_all(&over, AnonymousVolumes::Keep);
    }

    /// Waits for what a container depends on (M05), and starts it if it is not running (N08). Fails if it is paused.
    pub(super) fn start(&mut self, id: &str) -> Result<(), String> {
        if let Some(problem) = self.failed_dependency(id) {
            return Err(problem);
        }
        let container = self.containers.get(id);
        if container.is_some_and(|one| one.state == "running") {
            return Ok(());
        }
        let failed = |error: EngineError| format!("Error response from daemon: {}", error.message);
        self.start_container(id).map_err(failed)
    }

    /// The error of Compose about a container that never meets the condition for which this container waits.
    fn failed_dependency(&self, id: &str) -> Option<String> {
        let container = self.containers.get(id)?;
        let label = |name: &str| self.label_of(container, name);
        let project = self.project(label("project")?);
        label("depends_on")?.split(',').find_map(|one| {
            let (service, condition) = one.split_once(':')?;
            let mut there = project.iter();
            let dependency = there.find(|one| self.label_of(one, "service") == Some(service))?;
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

/// The request body that creates a network.
fn wanted_network(network: &Resource, labels: &BTreeMap<String, String>) -> Value {
    let written = &network.written;
    let flag = |key: &str| written.get(key) == Some(&json!(true));
    let options = pairs(written.get("driver_opts"));
    let ipam = written.get("ipam").unwrap_or(&Value::Null);
    let pools = many(ipam.get("config")).into_iter().map(|pool| {
        let fields = [
            ("subnet", "Subnet"),
            ("gateway", "Gateway"),
            ("ip_range", "IPRange"),
        ];
        let given = fields.into_iter().filter_map(|(key, name)| {
            Some((name.to_owned(), json!(pool.get(key).and_then(text)?)))
        });
        let mut shown = given.collect::<Map<_, _>>();
        if let Some(addresses) = pool.get("aux_addresses") {
            shown.insert("AuxiliaryAddresses".to_owned(), addresses.clone());
        }
        Value::Object(shown)
    });
    json!({
        "Name": network.name,
        "CheckDuplicate": true,
        "Driver": written.get("driver").and_then(text),
        "Options": options.into_iter().collect::<BTreeMap<_, _>>(),
        "IPAM": {
            "Driver": ipam.get("driver").and_then(text),
            "Config": pools.collect::<Vec<_>>(),
        },
        "Internal": flag("internal"),
        "Attachable": flag("attachable"),
        "EnableIPv6": flag("enable_ipv6"),
        "Labels": labels,
    })
}
