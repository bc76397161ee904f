//! Creating and starting one container.

use std::collections::BTreeMap;

use super::{
    Container, Mount, MountKind, World,
    converge::Run,
    deployment::{Compose, Deployment},
    entities::fingerprint,
    mounts::{MountSpec, Source},
    service::Service,
};

impl World {
    pub(super) fn create_container(
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

/// The id of an image by its name.
pub(in crate::rehearsal) fn image_id(name: &str) -> String {
    format!("sha256:{}", fingerprint(&format!("image {name}")))
}
