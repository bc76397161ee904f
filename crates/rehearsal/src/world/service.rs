//! A resolved service.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    canonical::{self, Form},
    compose_files::{ComposeFiles, variables},
    typed,
    values::{entries, many, pairs, text, texts},
};

/// A resolved service: everything about its containers follows from its configuration.
pub(super) struct Service {
    pub name: String,
    /// As `config --format json` prints it, but for the `$`.
    pub config: Value,
    /// What is hashed of it.
    pub hashed: Value,
}

/// The keys of a service that name a namespace, which may be that of another service.
pub(super) const NAMESPACES: [&str; 3] = ["network_mode", "pid", "ipc"];

impl Service {
    pub fn resolve(
        name: &str,
        written: &Value,
        files: &ComposeFiles<'_>,
        by_library: bool,
    ) -> Result<Self, String> {
        let in_form = |form| {
            let mut service = written.as_object().cloned().unwrap_or_default();
            canonical::service(name, &mut service, files, form)?;
            let mut service = Value::from(service);
            service["environment"] = json!(environment(&service, files)?);
            Ok::<_, String>(typed::part("Service", &service))
        };
        let form = if by_library {
            Form::Library
        } else {
            Form::Program
        };
        let mut service = Self {
            name: name.to_owned(),
            config: in_form(Form::Printed)?,
            hashed: hashed(in_form(form)?, form),
        };
        let config = &mut service.config;
        if config.get("image").is_none() && config.get("build").is_none() {
            return Err(service.invalid("has neither an image nor a build context specified"));
        }
        let is_port = |port: &&Value| {
            let published = text(&port["published"]).unwrap_or_default();
            let mut ends = published.split('-').filter(|_| !published.is_empty());
            port["target"]
                .as_u64()
                .is_some_and(|target| target <= u16::MAX.into())
                && ends.all(|end| end.parse::<u16>().is_ok())
        };
        if let Some(port) = many(&config["ports"]).iter().find(|port| !is_port(port)) {
            return Err(format!("services.{name}.ports: invalid port {port}"));
        }
        if let Some(scale) = config.get("scale").cloned()
            && let Some(deploy) = config.get_mut("deploy")
        {
            deploy["replicas"] = scale;
        }
        Ok(service)
    }

    /// What Compose says about a service that makes the project invalid.
    pub fn invalid(&self, what: &str) -> String {
        format!("service \"{}\" {what}: invalid compose project", self.name)
    }

    /// The text of a key.
    pub fn text(&self, key: &str) -> Option<String> {
        text(&self.config[key])
    }

    /// The name of its image, also if it is built.
    pub fn image(&self, project: &str) -> String {
        let built = || format!("{project}-{}", self.name);
        self.text("image").unwrap_or_else(built)
    }

    pub fn replicas(&self) -> usize {
        let scale = self.text("scale");
        let count = scale.or_else(|| text(&self.config["deploy"]["replicas"]));
        count.and_then(|count| count.parse().ok()).unwrap_or(1)
    }

    /// The networks by their keys in the file, with what is set for each.
    pub fn networks(&self) -> impl Iterator<Item = (&String, &Value)> {
        entries(&self.config["networks"])
    }

    pub fn is_on(&self, network: &str) -> bool {
        self.networks().any(|(key, _)| key == network)
    }

    /// Leaves out of what is hashed the optional dependencies on services that are not `enabled`.
    pub fn without_inactive(mut self, enabled: &BTreeSet<String>) -> Self {
        let hashed = self.hashed.as_object_mut();
        if let Some(hashed) = hashed
            && let Some(Value::Object(needs)) = hashed.get_mut("depends_on")
        {
            needs.retain(|name, how| how["required"] != false || enabled.contains(name));
            if needs.is_empty() {
                hashed.shift_remove("depends_on");
            }
        }
        self
    }

    /// The services that it depends on, also because of other keys, with the condition.
    pub fn depends_on(&self) -> impl Iterator<Item = (&String, &Value)> {
        entries(&self.config["depends_on"])
    }

    /// Whether it uses a namespace or the volumes of a container of this service.
    pub fn shares(&self, of: &str) -> bool {
        let mut modes = NAMESPACES.iter().filter_map(|key| self.text(key));
        let mut volumes = texts(&self.config["volumes_from"]).into_iter();
        modes.any(|mode| mode.strip_prefix("service:") == Some(of))
            || volumes.any(|from| from.split(':').next() == Some(of))
    }
}

/// What is hashed of a service: the keys that say how a container is created.
fn hashed(mut service: Value, form: Form) -> Value {
    let by_library = form == Form::Library;
    let unhashed = ["build", "pull_policy", "scale", "depends_on", "profiles"];
    // The library leaves out two more (N05).
    let count = if by_library { unhashed.len() } else { 3 };
    if let Some(service) = service.as_object_mut() {
        for key in unhashed.into_iter().take(count) {
            service.shift_remove(key);
        }
    }
    if let Some(Value::Object(deploy)) = service.get_mut("deploy") {
        deploy.shift_remove("replicas");
    }
    if by_library && let Some(networks) = service.get_mut("networks") {
        networks.sort_all_objects();
    }
    service
}

/// The variables of the container: those of each `env_file`, then those of `environment`.
fn environment(
    service: &Value,
    files: &ComposeFiles<'_>,
) -> Result<BTreeMap<String, Option<String>>, String> {
    let mut env = BTreeMap::new();
    for item in many(&service["env_file"]) {
        let path = text(&item["path"]).unwrap_or_default();
        match (files.read)(&path) {
            Some(file) => {
                let own = variables(&file, &path, files.shell)?.into_iter();
                env.extend(own.map(|(name, value)| (name, Some(value))));
            }
            None if item["required"] == false => {}
            None => {
                return Err(format!(
                    "env file {path} not found: stat {path}: no such file or directory"
                ));
            }
        }
    }
    env.extend(pairs(&service["environment"]));
    Ok(env)
}
