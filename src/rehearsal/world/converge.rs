//! `compose up`: makes the containers of a project what a text says.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::json;

use crate::compose::dotenv::compose_dotenv;

use super::{
    Container, Era, Mount, MountKind, Network, Volume, Volumes, World,
    entities::fingerprint,
    records::Variable,
    resolve::{Context, Project, Shared},
    service::{MountSpec, Service, Source},
};

/// The compose program that people start stacks with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Hand {
    /// 2.26.1
    #[default]
    V2_26,
    /// 5.6.1
    V5_6,
}

/// Whose way of hashing a configuration and of recreating a container it is (N04, N05).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compose {
    V2_26,
    V5_6,
    /// The library in the newer manager's process.
    Library,
}

/// One run of `compose up`.
pub(super) struct Deployment {
    engine: String,
    project: String,
    text: String,
    /// The variables in the file that `--env-file` names, or compose's own `.env`.
    env_text: Option<String>,
    env_path: String,
    folder: String,
    file: String,
    home: String,
    compose: Compose,
    by_hand: bool,
}

impl Deployment {
    /// As the manager does it: in its own folder, where only the text and `stack.env` lie (M07, M11).
    pub fn by_manager(
        engine: &str,
        project: &str,
        text: &str,
        env: &[Variable],
        folder: &str,
        era: Era,
    ) -> Self {
        let lines = env
            .iter()
            .map(|one| format!("{}={}\n", one.name, one.value));
        Self {
            engine: engine.to_owned(),
            project: project.to_owned(),
            text: text.to_owned(),
            env_text: (!env.is_empty()).then(|| lines.collect()),
            env_path: format!("{folder}/stack.env"),
            folder: folder.to_owned(),
            file: format!("{folder}/docker-compose.yml"),
            home: "/root".to_owned(),
            compose: if era == Era::Sync {
                Compose::V2_26
            } else {
                Compose::Library
            },
            by_hand: false,
        }
    }
}

/// The variables of an env file by compose's rules (M08).
pub(super) fn variables(
    text: &str,
    path: &str,
    known: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let lookup = |name: &str| known.get(name).cloned();
    let read = compose_dotenv(text, &lookup);
    let read = read.map_err(|error| {
        format!(
            "failed to read {path}: line {}: {}",
            error.line, error.problem
        )
    })?;
    Ok(read.into_iter().collect())
}

impl World {
    /// Starts the stack in `folder` as a person does, with `compose up -d` in that folder.
    ///
    /// The compose file, `.env` and what `env_file` names are read from [`World::host`]; every path
    /// that the text binds is there afterwards.
    pub fn start_by_hand(&mut self, project: &str, folder: &str) -> Result<(), String> {
        let names = [
            format!("{}-compose.yml", self.tool),
            "compose.yaml".to_owned(),
        ];
        let mut files = names.iter().map(|name| format!("{folder}/{name}"));
        let file = files.find(|path| self.read_host(path).is_some());
        let file = file.ok_or_else(|| format!("no configuration file in {folder}"))?;
        self.start_file_by_hand(project, folder, &file)
    }

    /// The same with a compose file of another name.
    pub fn start_file_by_hand(
        &mut self,
        project: &str,
        folder: &str,
        file: &str,
    ) -> Result<(), String> {
        let text = self
            .read_host(file)
            .ok_or_else(|| format!("no such file: {file}"))?
            .to_owned();
        let env_path = format!("{folder}/.env");
        let deployment = Deployment {
            engine: self.engine.id.clone(),
            project: project.to_owned(),
            text,
            env_text: self.read_host(&env_path).map(str::to_owned),
            env_path,
            folder: folder.to_owned(),
            file: file.to_owned(),
            home: "/home/operator".to_owned(),
            compose: match self.hand {
                Hand::V2_26 => Compose::V2_26,
                Hand::V5_6 => Compose::V5_6,
            },
            by_hand: true,
        };
        self.up(&deployment)
    }

    /// One `compose up -d`. Where it fails it leaves what it did so far (N06); `down` is the caller's.
    pub(super) fn up(&mut self, deployment: &Deployment) -> Result<(), String> {
        let project = self.resolve(deployment)?;
        self.pull(deployment, &project)?;
        self.make_shared(deployment, &project)?;
        let mut recreated = BTreeSet::new();
        let mut wanted = Vec::new();
        for service in &project.services {
            for number in 1..=service.replicas {
                let run = Run {
                    deployment,
                    project: &project,
                    service,
                    number,
                };
                wanted.push((self.converge(&run, &mut recreated)?, service));
            }
            self.scale_down(deployment, service);
        }
        for (id, service) in wanted {
            self.start(&id, deployment, service)?;
        }
        Ok(())
    }

    fn resolve(&self, deployment: &Deployment) -> Result<Project, String> {
        let given = match &deployment.env_text {
            Some(text) => variables(text, &deployment.env_path, &BTreeMap::new())?,
            None => BTreeMap::new(),
        };
        let read = |path: &str| {
            if deployment.by_hand {
                return self.read_host(path).map(str::to_owned);
            }
            let own = [
                (deployment.env_path.as_str(), deployment.env_text.as_ref()),
                (deployment.file.as_str(), Some(&deployment.text)),
            ];
            own.into_iter()
                .find(|(known, _)| *known == path)
                .and_then(|(_, text)| text.cloned())
        };
        let context = Context {
            project: &deployment.project,
            variables: &given,
            folder: &deployment.folder,
            home: &deployment.home,
            file: &deployment.file,
            read: &read,
        };
        Project::resolve(&deployment.text, &context)
    }

    /// Gets every image that is not there, before anything changes (N06, N10).
    fn pull(&mut self, deployment: &Deployment, project: &Project) -> Result<(), String> {
        for service in &project.services {
            let image = &service.image;
            if service.builds {
                // The context is read where compose runs (M11).
                if !deployment.by_hand {
                    return Err(format!(
                        "unable to prepare context: path {:?} not found",
                        deployment.folder
                    ));
                }
            } else if self.unpullable.contains(image) && !self.images.contains(image) {
                return Err(format!(
                    " {} Pulling \n {} Error \nError response from daemon: pull access denied for {image}, \
                     repository does not exist or may require 'docker login': denied: requested access to \
                     the resource is denied",
                    service.name, service.name
                ));
            }
            self.images.insert(image.clone());
        }
        Ok(())
    }

    fn make_shared(&mut self, deployment: &Deployment, project: &Project) -> Result<(), String> {
        let engine = &deployment.engine;
        let used = |key: &String| {
            project
                .services
                .iter()
                .any(|one| one.networks.contains_key(key))
        };
        for (key, network) in project.networks.iter().filter(|(key, _)| used(key)) {
            let there = self
                .networks
                .iter()
                .any(|one| one.engine == *engine && one.name == network.name);
            if network.external && !there {
                return Err(format!(
                    "network {} declared as external, but could not be found",
                    network.name
                ));
            }
            if !there {
                let mut labels = self.shared_labels(deployment, network);
                labels.insert(self.label("network"), key.clone());
                let id = self.new_id();
                self.networks.push(Network {
                    id,
                    name: network.name.clone(),
                    engine: engine.clone(),
                    driver: "bridge".to_owned(),
                    labels,
                    created: self.seconds(),
                });
            }
        }
        for volume in project.volumes.values() {
            let there = self
                .volumes
                .iter()
                .any(|one| one.engine == *engine && one.name == volume.name);
            if volume.external && !there {
                return Err(format!("external volume {:?} not found", volume.name));
            }
            if !there {
                let mut labels = self.shared_labels(deployment, volume);
                labels.insert(self.label("volume"), volume.key.clone());
                self.make_volume(engine, &volume.name, labels);
            }
        }
        Ok(())
    }

    fn shared_labels(&self, deployment: &Deployment, of: &Shared) -> BTreeMap<String, String> {
        let mut labels = of.labels.clone();
        labels.insert(self.label("project"), deployment.project.clone());
        labels.insert(
            self.label("version"),
            deployment.compose.version().to_owned(),
        );
        labels
    }

    fn make_volume(&mut self, engine: &str, name: &str, labels: BTreeMap<String, String>) {
        self.volumes.push(Volume {
            name: name.to_owned(),
            engine: engine.to_owned(),
            labels,
            content: String::new(),
            created: self.seconds(),
        });
    }

    /// Leaves a container that is as it should be, creates or recreates one that is not (M05).
    fn converge(
        &mut self,
        run: &Run<'_>,
        recreated: &mut BTreeSet<String>,
    ) -> Result<String, String> {
        let Run {
            deployment,
            service,
            number,
            ..
        } = *run;
        let hash = deployment.compose.hash(service);
        let old = self.existing(deployment, &service.name, number);
        let follows = service
            .depends_on
            .iter()
            .any(|(name, dependency)| dependency.restart && recreated.contains(name));
        if let Some(old) = &old {
            let same = old.labels.get(&self.label("config-hash")) == Some(&hash);
            let built = service.builds && deployment.compose != Compose::V2_26;
            if same && !follows && !built {
                return Ok(old.id.clone());
            }
            recreated.insert(service.name.clone());
        }
        let new = self.create_container(run, hash, old.as_ref())?;
        if let Some(old) = old {
            self.remove_container(&old.id, Volumes::Kept);
        }
        let id = new.id.clone();
        self.containers.insert(id.clone(), new);
        Ok(id)
    }

    fn existing(&self, deployment: &Deployment, service: &str, number: usize) -> Option<Container> {
        let (of, at) = (self.label("service"), self.label("container-number"));
        let number = number.to_string();
        let is_it = |one: &&&Container| {
            one.labels.get(&of).is_some_and(|name| name == service)
                && one.labels.get(&at) == Some(&number)
        };
        let project = self.project_on(&deployment.engine, &deployment.project);
        project.iter().find(is_it).map(|one| (*one).clone())
    }

    fn scale_down(&mut self, deployment: &Deployment, service: &Service) {
        let (of, at) = (self.label("service"), self.label("container-number"));
        let is_over = |one: &&&Container| {
            let number = one
                .labels
                .get(&at)
                .and_then(|number| number.parse::<usize>().ok());
            one.labels.get(&of) == Some(&service.name) && number > Some(service.replicas)
        };
        let project = self.project_on(&deployment.engine, &deployment.project);
        let over = project
            .iter()
            .filter(is_over)
            .map(|one| one.id.clone())
            .collect::<Vec<_>>();
        for id in over {
            self.remove_container(&id, Volumes::Kept);
        }
    }

    fn create_container(
        &mut self,
        run: &Run<'_>,
        hash: String,
        old: Option<&Container>,
    ) -> Result<Container, String> {
        let Run {
            deployment,
            project,
            service,
            number,
        } = *run;
        let plain = || format!("{}-{}-{number}", deployment.project, service.name);
        let name = service.container_name.clone().unwrap_or_else(plain);
        let taken = self.containers.values().find(|other| {
            other.engine == deployment.engine
                && other.name == name
                && old.is_none_or(|old| old.id != other.id)
        });
        if let Some(other) = taken {
            return Err(format!(
                " Container {name}  Creating\nError response from daemon: Conflict. The container name \
                 \"/{name}\" is already in use by container \"{}\". You have to remove (or rename) that \
                 container to be able to reuse that name.",
                other.id
            ));
        }
        let doing = if old.is_some() {
            "Recreate"
        } else {
            "Creating"
        };
        let mounts = self.make_mounts(deployment, service, old).map_err(|what| {
            format!(" Container {name}  {doing}\nError response from daemon: {what}")
        })?;
        let mut container = Container::new(&self.new_id(), &name, &service.image);
        container.engine.clone_from(&deployment.engine);
        container.created = self.seconds();
        container.labels = self.labels(run, hash);
        container.env = service
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        container.command.clone_from(&service.command);
        container.mounts = mounts;
        container.ports.clone_from(&service.ports);
        container.restart.clone_from(&service.restart);
        for (key, attachment) in &service.networks {
            let mut attachment = attachment.clone();
            attachment.aliases.push(service.name.clone());
            let network = project
                .networks
                .get(key)
                .map_or(key, |network| &network.name);
            if container.network_mode == "default" {
                container.network_mode.clone_from(network);
            }
            container.networks.insert(network.clone(), attachment);
        }
        if let Some(mode) = &service.network_mode {
            let of = mode
                .strip_prefix("service:")
                .and_then(|of| self.existing(deployment, of, 1));
            container.network_mode = of.map_or_else(
                || mode.clone(),
                |container| format!("container:{}", container.id),
            );
        }
        Ok(container)
    }

    fn labels(&self, run: &Run<'_>, hash: String) -> BTreeMap<String, String> {
        let Run {
            deployment,
            service,
            number,
            ..
        } = *run;
        let depends_on = service.depends_on.iter().map(|(name, dependency)| {
            format!("{name}:{}:{}", dependency.condition, dependency.restart)
        });
        let own = [
            ("config-hash", hash),
            ("container-number", number.to_string()),
            ("depends_on", depends_on.collect::<Vec<_>>().join(",")),
            ("image", image_id(&service.image)),
            ("oneoff", "False".to_owned()),
            ("project", deployment.project.clone()),
            ("project.config_files", deployment.file.clone()),
            ("project.working_dir", deployment.folder.clone()),
            ("service", service.name.clone()),
            ("version", deployment.compose.version().to_owned()),
        ];
        let mut labels = service.labels.clone();
        labels.extend(
            own.into_iter()
                .map(|(name, value)| (self.label(name), value)),
        );
        if !deployment.by_hand && deployment.env_text.is_some() {
            labels.insert(
                self.label("project.environment_file"),
                deployment.env_path.clone(),
            );
        }
        labels
    }

    fn make_mounts(
        &mut self,
        deployment: &Deployment,
        service: &Service,
        old: Option<&Container>,
    ) -> Result<Vec<Mount>, String> {
        let mut specs = service.mounts.clone();
        for target in self.volumes_of_image(&service.image) {
            if !specs.iter().any(|spec| spec.target == target) {
                specs.push(MountSpec {
                    source: Source::Anonymous,
                    target,
                    read_only: false,
                });
            }
        }
        // All binds are looked at before a volume is made.
        for spec in &specs {
            if let Source::Bind { path, create, .. } = &spec.source {
                if !create && !deployment.by_hand && !self.has_path(path) {
                    return Err(format!(
                        "invalid mount config for type \"bind\": bind source path does not exist: {path}"
                    ));
                }
                if !self.has_path(path) {
                    self.add_directory(path);
                }
            }
        }
        let mut mounts = Vec::new();
        for spec in specs {
            // The programs carry anonymous volumes over, the library does not (N04).
            let kept = old
                .filter(|_| deployment.compose != Compose::Library)
                .and_then(|old| old.mounts.iter().find(|mount| mount.target == spec.target))
                .filter(|mount| mount.anonymous);
            let (kind, name, anonymous) = match &spec.source {
                Source::Bind { .. } => (MountKind::Bind, None, false),
                Source::Tmpfs => (MountKind::Tmpfs, None, false),
                Source::Volume { name } => (MountKind::Volume, Some(name.clone()), false),
                Source::Anonymous => {
                    let name = kept
                        .and_then(|mount| mount.name.clone())
                        .unwrap_or_else(|| {
                            let name = self.new_id();
                            self.make_volume(&deployment.engine, &name, BTreeMap::new());
                            name
                        });
                    (MountKind::Volume, Some(name), true)
                }
            };
            let source = match (&spec.source, &name) {
                (Source::Bind { path, .. }, _) => path.clone(),
                (_, Some(name)) => format!("/var/lib/docker/volumes/{name}/_data"),
                (_, None) => String::new(),
            };
            let (target, read_only) = (spec.target, spec.read_only);
            mounts.push(Mount {
                kind,
                name,
                anonymous,
                source,
                target,
                read_only,
            });
        }
        Ok(mounts)
    }

    fn volumes_of_image(&self, image: &str) -> Vec<String> {
        let name = image.rsplit('/').next().unwrap_or_default();
        let name = name.split([':', '@']).next().unwrap_or_default();
        self.image_volumes.get(name).cloned().unwrap_or_default()
    }

    /// Starts a container that does not run (N08) and lets it write into its empty volumes.
    fn start(
        &mut self,
        id: &str,
        deployment: &Deployment,
        service: &Service,
    ) -> Result<(), String> {
        let Some(container) = self.containers.get(id) else {
            return Ok(());
        };
        if container.is_running() {
            return Ok(());
        }
        self.start_container(id)?;
        let code = self
            .exits
            .get(&format!("{}/{}", deployment.project, service.name))
            .copied();
        let now = self.seconds();
        if let (Some(code), Some(container)) = (code, self.containers.get_mut(id)) {
            container.exit(code, now);
        }
        Ok(())
    }

    /// Starts a container; fails where one of its ports is taken, and leaves it as it was.
    pub(in crate::rehearsal) fn start_container(&mut self, id: &str) -> Result<(), String> {
        let Some(mut container) = self.containers.get(id).cloned() else {
            return Err(format!("No such container: {id}"));
        };
        for port in &mut container.ports {
            if port.published == Some(0) {
                port.published = Some(self.next.host_port);
                self.next.host_port += 1;
            }
        }
        let running = self.containers.values().filter(|other| {
            other.id != id && other.engine == container.engine && other.is_running()
        });
        let taken = running.flat_map(|other| &other.ports).find(|theirs| {
            theirs.published.is_some()
                && container.ports.iter().any(|ours| {
                    let any = |address: &str| address == "0.0.0.0" || address == "::";
                    ours.published == theirs.published
                        && ours.protocol == theirs.protocol
                        && (ours.address == theirs.address
                            || any(&ours.address)
                            || any(&theirs.address))
                })
        });
        if let Some(port) = taken {
            return Err(format!(
                "Error response from daemon: driver failed programming external connectivity on endpoint \
                 {} ({id}): Bind for {}:{} failed: port is already allocated",
                container.name,
                port.address,
                port.published.unwrap_or_default()
            ));
        }
        container.start(self.seconds());
        for name in container
            .mounts
            .iter()
            .filter_map(|mount| mount.name.as_ref())
        {
            let mut volumes = self.volumes.iter_mut();
            let volume = volumes.find(|one| one.engine == container.engine && one.name == *name);
            if let Some(volume) = volume.filter(|volume| volume.content.is_empty()) {
                volume.content = format!("written by {} {}", container.name, &id[..12]);
            }
        }
        self.containers.insert(id.to_owned(), container);
        Ok(())
    }
}

/// One container that a deployment is about.
#[derive(Clone, Copy)]
struct Run<'r> {
    deployment: &'r Deployment,
    project: &'r Project,
    service: &'r Service,
    number: usize,
}

impl Compose {
    fn version(self) -> &'static str {
        match self {
            Self::V2_26 => "2.26.1",
            Self::V5_6 => "5.6.1",
            Self::Library => "2.40.3",
        }
    }

    /// The hash of a configuration. What is measured to differ between versions differs here (N05).
    fn hash(self, service: &Service) -> String {
        let mut config = service.config.clone();
        if self == Self::V2_26 {
            let depends_on = service.depends_on.keys().collect::<Vec<_>>();
            if !depends_on.is_empty() {
                config["depends_on"] = json!(depends_on);
            }
            if !service.profiles.is_empty() {
                config["profiles"] = json!(service.profiles);
            }
        }
        let short = |spec: &&MountSpec| matches!(spec.source, Source::Bind { short: true, .. });
        if self == Self::V5_6 && service.mounts.iter().any(|spec| short(&spec)) {
            config["binds"] = json!("the default of create_host_path left out");
        }
        fingerprint(&config.to_string())
    }
}

/// The id of an image by its name.
pub(in crate::rehearsal) fn image_id(name: &str) -> String {
    format!("sha256:{}", fingerprint(&format!("image {name}")))
}
