//! How Compose creates one container.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    container::{Container, MountType},
    containers::AnonymousVolumes,
    deployment::Deployment,
    errors::EngineError,
    mounts::MountSource,
    resolve::Project,
    service::Service,
    state::World,
    values::texts,
};

/// One container of a deployment.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    pub deployment: &'r Deployment,
    pub project: &'r Project,
    pub service: &'r Service,
    pub number: usize,
}

impl World {
    /// Creates the container without starting it, and replaces the old one.
    pub(super) fn create_for_service(
        &mut self,
        run: &Run<'_>,
        hash: String,
        old: Option<&Container>,
    ) -> Result<String, String> {
        let (deployment, service) = (run.deployment, run.service);
        let plain = || {
            // Container names are ASCII; Compose restricts project names in the same way.
            let name = format!("{}-{}-{}", deployment.project, service.name, run.number);
            let plain = name.chars().filter(char::is_ascii).collect::<String>();
            plain.trim_start_matches('-').to_owned()
        };
        let name = service.text("container_name").unwrap_or_else(plain);
        let failed = |error: EngineError| {
            let reason = error.message;
            format!(" Container {name}  Creating\nError response from daemon: {reason}")
        };
        if deployment.by_hand {
            self.create_bind_sources(service);
        }
        let body = self.body(run, hash, &name, old);
        // A temporary name: if the create fails, the old container is still there.
        let temporary = old.map(|old| format!("{}_{name}", old.short_id()));
        let id = self
            .create_container(temporary.as_ref().unwrap_or(&name), &body)
            .map_err(failed)?;
        for (network, endpoint) in endpoints(run, &name).into_iter().skip(1) {
            self.connect(&network, &id, &endpoint).map_err(failed)?;
        }
        if let Some(old) = old {
            self.remove_container(&old.id, AnonymousVolumes::Keep);
            self.check_name(&name).map_err(failed)?;
            name.clone_into(&mut self.find_mut(&id).map_err(failed)?.name);
        }
        Ok(id)
    }

    pub(super) fn existing(
        &self,
        deployment: &Deployment,
        service: &str,
        number: usize,
    ) -> Option<Container> {
        let number = number.to_string();
        let is_it = |one: &&&Container| {
            self.label_of(one, "service") == Some(service)
                && self.label_of(one, "container-number") == Some(&number)
        };
        let project = self.project(&deployment.project);
        project.iter().find(is_it).map(|one| (*one).clone())
    }

    /// Creates the missing sources of bind mounts.
    fn create_bind_sources(&mut self, service: &Service) {
        for spec in &service.mounts {
            if let MountSource::Bind { path, .. } = &spec.source
                && !self.has_path(path)
            {
                self.add_directory(path);
            }
        }
    }

    fn body(&self, run: &Run<'_>, hash: String, name: &str, old: Option<&Container>) -> Value {
        let (deployment, service) = (run.deployment, run.service);
        let mut body = service.engine_config();
        let mut labels = self.labels(run, hash);
        if let Some(old) = old {
            labels.insert(self.label("replace"), old.id.clone());
        }
        body["Labels"] = json!(labels);
        let mut host = service.engine_host_config();
        let (binds, mounts, tmpfs) = self.mounts_for(run, old);
        host["Binds"] = json!(binds);
        host["Mounts"] = json!(mounts);
        host["Tmpfs"] = Value::Object(tmpfs);
        for (key, field) in [("pid", "PidMode"), ("ipc", "IpcMode")] {
            if let Some(mode) = service.text(key) {
                host[field] = json!(self.mode(deployment, &mode));
            }
        }
        let given = texts(service.config.get("volumes_from"));
        let from = given.iter().map(|from| self.volumes_from(deployment, from));
        host["VolumesFrom"] = json!(from.collect::<Vec<_>>());
        let endpoints = endpoints(run, name);
        host["NetworkMode"] = match (service.text("network_mode"), endpoints.first()) {
            (Some(mode), _) => json!(self.mode(deployment, &mode)),
            (None, Some((network, _))) => json!(network),
            (None, None) => json!("none"),
        };
        let first = endpoints.into_iter().take(1).collect::<Map<_, _>>();
        body["HostConfig"] = host;
        body["NetworkingConfig"] = json!({ "EndpointsConfig": first });
        body
    }

    /// Converts `service:a` to the engine's form, `container:<id>`.
    pub(super) fn mode(&self, deployment: &Deployment, mode: &str) -> String {
        let service = mode.strip_prefix("service:");
        match service.and_then(|of| self.existing(deployment, of, 1)) {
            Some(container) => format!("container:{}", container.id),
            None => mode.to_owned(),
        }
    }

    /// Converts a service to the engine's form, `<id>`. Compose 2.26 drops a mode such as `:ro`.
    pub(super) fn volumes_from(&self, deployment: &Deployment, from: &str) -> String {
        if let Some(container) = from.strip_prefix("container:") {
            return container.to_owned();
        }
        let service = from.split(':').next().unwrap_or_default();
        self.existing(deployment, service, 1)
            .map_or_else(|| service.to_owned(), |container| container.id)
    }

    fn labels(&self, run: &Run<'_>, hash: String) -> BTreeMap<String, String> {
        let (deployment, service) = (run.deployment, run.service);
        let depends_on = service.depends_on.iter().map(|(name, dependency)| {
            format!("{name}:{}:{}", dependency.condition, dependency.restart)
        });
        let own = [
            ("config-hash", hash),
            ("container-number", run.number.to_string()),
            ("depends_on", depends_on.collect::<Vec<_>>().join(",")),
            ("image", self.image_of(service)),
            ("oneoff", "False".to_owned()),
            ("project", deployment.project.clone()),
            ("project.config_files", deployment.file.clone()),
            ("project.working_dir", deployment.folder.clone()),
            ("service", service.name.clone()),
            ("version", deployment.version()),
        ];
        let mut labels = service.labels();
        labels.extend(own.map(|(name, value)| (self.label(name), value)));
        if !deployment.by_hand
            && deployment.env_path.ends_with("stack.env")
            && deployment.env_text.is_some()
        {
            labels.insert(
                self.label("project.environment_file"),
                deployment.env_path.clone(),
            );
        }
        labels
    }

    /// The ID of a service's image; empty if the image is missing.
    pub(super) fn image_of(&self, service: &Service) -> String {
        let image = self.image(&service.image);
        image.map_or_else(String::new, |image| image.id.clone())
    }

    /// `Binds`, `Mounts` and `Tmpfs`.
    fn mounts_for(
        &self,
        run: &Run<'_>,
        old: Option<&Container>,
    ) -> (Vec<String>, Vec<Value>, Map<String, Value>) {
        let service = run.service;
        // The Compose programs keep anonymous volumes, the library does not (N04).
        let kept = |target: &str| {
            let old = old.filter(|_| !run.deployment.by_library)?;
            let mut mounts = old.mounts.iter();
            let there = mounts.find(|one| one.target == target && one.kind == MountType::Volume)?;
            there.name.clone()
        };
        let volume = |name: &str, target: &str| json!({ "Type": "volume", "Source": name, "Target": target });
        let (mut binds, mut mounts, mut tmpfs) = (Vec::new(), Vec::new(), Map::new());
        for spec in &service.mounts {
            let target = spec.target.as_str();
            let mut mount = match &spec.source {
                MountSource::Bind { path, create: true } => {
                    let mode = if spec.read_only { "ro" } else { "rw" };
                    binds.push(format!("{path}:{target}:{mode}"));
                    continue;
                }
                MountSource::Tmpfs(Some(options)) => {
                    tmpfs.insert(target.to_owned(), json!(options));
                    continue;
                }
                MountSource::Bind { path, .. } => {
                    json!({ "Type": "bind", "Source": path, "Target": target })
                }
                MountSource::Tmpfs(None) => json!({ "Type": "tmpfs", "Target": target }),
                MountSource::Volume(name) => volume(name, target),
                MountSource::Anonymous => match kept(target) {
                    Some(name) => volume(&name, target),
                    None => json!({ "Type": "volume", "Target": target, "VolumeOptions": {} }),
                },
            };
            if spec.read_only {
                mount["ReadOnly"] = json!(true);
            }
            mounts.push(mount);
        }
        let image = self.image(&service.image);
        let declared = image.and_then(|image| image.config["Volumes"].as_object());
        for target in declared.into_iter().flatten().map(|(target, _)| target) {
            let written = service.mounts.iter().any(|spec| spec.target == *target);
            if let Some(name) = kept(target).filter(|_| !written) {
                mounts.push(volume(&name, target));
            }
        }
        (binds, mounts, tmpfs)
    }
}

/// The networks of a service, by their name on the engine, with their `EndpointConfig`.
fn endpoints(run: &Run<'_>, name: &str) -> Vec<(String, Value)> {
    let (project, service) = (run.project, run.service);
    let endpoints = service.networks().map(|(key, options)| {
        let named = project.networks.get(key);
        let network = named.map_or(key, |network| &network.name);
        let mut aliases = vec![name.to_owned(), service.name.clone()];
        aliases.extend(texts(options.get("aliases")));
        let ipam = match options.get("ipv4_address") {
            Some(address) => json!({ "IPv4Address": address }),
            None if options.is_object() => json!({}),
            None => Value::Null,
        };
        let endpoint = json!({ "Aliases": aliases, "IPAMConfig": ipam });
        (network.clone(), endpoint)
    });
    endpoints.collect()
}
