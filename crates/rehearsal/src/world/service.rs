//! A resolved service: the specification of its containers.

use std::collections::BTreeMap;

use composefile::schema::{Place, SERVICE, Type};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    container::Port,
    context::{Context, Sections, variables},
    mounts::{self, MountSpec},
    ports,
    values::{many, pairs, text},
};

/// A resolved service.
pub(super) struct Service {
    pub name: String,
    pub image: String,
    pub builds: bool,
    pub container_name: Option<String>,
    pub replicas: usize,
    pub env: BTreeMap<String, String>,
    pub command: Vec<String>,
    pub mounts: Vec<MountSpec>,
    pub ports: Vec<Port>,
    pub network_mode: Option<String>,
    /// By the key of the network in the file.
    pub networks: BTreeMap<String, NetworkOptions>,
    pub depends_on: BTreeMap<String, Dependency>,
    pub profiles: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub restart: String,
    /// The configuration that is hashed.
    pub config: Value,
}

/// The options of a service for a network.
#[derive(Default, Serialize)]
pub(super) struct NetworkOptions {
    pub aliases: Vec<String>,
    /// The fixed address; empty if the engine chooses.
    pub address: String,
    /// Whether the network's key has a mapping.
    pub has_options: bool,
}

/// A dependency, written in `depends_on` or implied by another key.
pub(super) struct Dependency {
    pub condition: String,
    /// Whether the dependent is restarted with it; `links` implies it (N05).
    pub restart: bool,
    /// Whether the dependent uses a namespace or the volumes of its container.
    pub shares: bool,
    pub required: bool,
}

/// Checks the keys of a service and the types of their values; the error is the message of Compose.
pub(super) fn validate(name: &str, value: &Value) -> Result<(), String> {
    let Value::Object(map) = value else {
        return Err(format!("services.{name} must be a mapping"));
    };
    for (key, value) in map {
        let Some(place) = SERVICE.key(key) else {
            return Err(format!(
                "services.{name} Additional property {key} is not allowed"
            ));
        };
        if !has_right_form(place, value) {
            let expected = match place.types() {
                [.., Type::Mapping] => "mapping",
                [Type::List, ..] => "array",
                _ => "string",
            };
            return Err(format!("services.{name}.{key} must be a {expected}"));
        }
    }
    Ok(())
}

/// Whether the schema accepts the form of a value: scalar, list or mapping. It accepts null everywhere.
fn has_right_form(place: &Place, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(_) => place.accepts(Type::List),
        Value::Object(_) => place.accepts(Type::Mapping),
        _ => place
            .types()
            .iter()
            .any(|found| !matches!(found, Type::List | Type::Mapping)),
    }
}

impl Service {
    pub fn resolve(
        name: &str,
        value: &Value,
        context: &Context<'_>,
        sections: &Sections<'_>,
    ) -> Result<Self, String> {
        let field = |key: &str| value.get(key).and_then(text);
        let builds = value.get("build").is_some_and(|build| !build.is_null());
        let image = match field("image") {
            Some(image) => image,
            None if builds => format!("{}-{name}", context.project),
            None => {
                return Err(format!(
                    "service \"{name}\" has neither an image nor a build context specified: invalid compose project"
                ));
            }
        };
        if image.is_empty() || image.contains(char::is_whitespace) {
            return Err(format!(
                "invalid reference format: {image:?} of service {name}"
            ));
        }
        let env = environment(value, context)?;
        let mounts = mounts::of(name, value, context, sections)?;
        let ports = ports::of(value, name)?;
        let network_mode = field("network_mode");
        let networks = match network_mode {
            Some(_) => BTreeMap::new(),
            None => networks(name, value, sections)?,
        };
        let command = words(value.get("command"));
        let replicas = field("scale")
            .or_else(|| value.get("deploy")?.get("replicas").and_then(text))
            .and_then(|count| count.parse().ok())
            .unwrap_or(1);
        let mut service = Self {
            name: name.to_owned(),
            image,
            builds,
            container_name: field("container_name"),
            replicas,
            env,
            command,
            mounts,
            ports,
            network_mode,
            networks,
            depends_on: dependencies(value),
            profiles: many(value.get("profiles"))
                .into_iter()
                .filter_map(text)
                .collect(),
            labels: pairs(value.get("labels"))
                .into_iter()
                .map(|(name, value)| (name, value.unwrap_or_default()))
                .collect(),
            restart: field("restart").unwrap_or_default(),
            config: Value::Null,
        };
        service.config = service.configuration(value);
        Ok(service)
    }

    /// The configuration in canonical form, without the keys that [`super::deployment`] hashes depending on the version
    /// of Compose.
    fn configuration(&self, value: &Value) -> Value {
        let resolved = [
            "build",
            "depends_on",
            "deploy",
            "env_file",
            "environment",
            "extends",
            "image",
            "networks",
            "ports",
            "expose",
            "profiles",
            "scale",
            "secrets",
            "configs",
            "tmpfs",
            "volumes",
            "labels",
        ];
        let mut config = Map::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            if !resolved.contains(&key.as_str()) && !key.starts_with("x-") {
                config.insert(key.clone(), value.clone());
            }
        }
        let mounts = self
            .mounts
            .iter()
            .map(MountSpec::configuration)
            .collect::<Vec<_>>();
        let ports = self
            .ports
            .iter()
            .map(|port| json!(port))
            .collect::<Vec<_>>();
        // The name of an image that is only built is not part of the hash (N13).
        config.insert("image".to_owned(), json!(value.get("image")));
        config.insert("environment".to_owned(), json!(self.env));
        config.insert("mounts".to_owned(), json!(mounts));
        config.insert("ports".to_owned(), json!(ports));
        config.insert("networks".to_owned(), json!(self.networks));
        config.insert("labels".to_owned(), json!(self.labels));
        Value::Object(config)
    }
}

/// The words of a command.
pub(super) fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(line)) => line.split_whitespace().map(str::to_owned).collect(),
        other => many(other).into_iter().filter_map(text).collect(),
    }
}

/// The variables of the container: those of each `env_file`, then those of `environment`.
fn environment(value: &Value, context: &Context<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut env = BTreeMap::new();
    for item in many(value.get("env_file")) {
        let path = text(item)
            .or_else(|| item.get("path").and_then(text))
            .unwrap_or_default();
        let required = item
            .get("required")
            .and_then(Value::as_bool)
            .unwrap_or(true);
        let path = context.absolute(&path);
        let Some(file) = (context.read)(&path) else {
            if required {
                return Err(format!(
                    "env file {path} not found: stat {path}: no such file or directory"
                ));
            }
            continue;
        };
        env.extend(variables(&file, &path, context.variables)?);
    }
    for (name, value) in pairs(value.get("environment")) {
        match value.or_else(|| context.variables.get(&name).cloned()) {
            Some(value) => env.insert(name, value),
            None => env.remove(&name),
        };
    }
    Ok(env)
}

fn networks(
    name: &str,
    value: &Value,
    sections: &Sections<'_>,
) -> Result<BTreeMap<String, NetworkOptions>, String> {
    let mut found = BTreeMap::new();
    match value.get("networks") {
        Some(Value::Object(map)) => {
            for (key, options) in map {
                let aliases = many(options.get("aliases"))
                    .into_iter()
                    .filter_map(text)
                    .collect();
                let address = options
                    .get("ipv4_address")
                    .and_then(text)
                    .unwrap_or_default();
                let options = NetworkOptions {
                    aliases,
                    address,
                    has_options: options.is_object(),
                };
                found.insert(key.clone(), options);
            }
        }
        other => {
            for key in many(other).into_iter().filter_map(text) {
                found.insert(key, NetworkOptions::default());
            }
        }
    }
    if found.is_empty() {
        found.insert("default".to_owned(), NetworkOptions::default());
    }
    match found
        .keys()
        .find(|key| !sections.networks.contains_key(*key))
    {
        Some(key) => Err(format!(
            "service \"{name}\" refers to undefined network {key}: invalid compose project"
        )),
        None => Ok(found),
    }
}

fn dependencies(value: &Value) -> BTreeMap<String, Dependency> {
    let mut found = BTreeMap::new();
    let plain = || Dependency {
        condition: "service_started".to_owned(),
        restart: false,
        shares: false,
        required: true,
    };
    for key in ["network_mode", "pid", "ipc"] {
        let mode = value.get(key).and_then(text).unwrap_or_default();
        if let Some(of) = mode.strip_prefix("service:") {
            found.insert(
                of.to_owned(),
                Dependency {
                    restart: true,
                    shares: true,
                    ..plain()
                },
            );
        }
    }
    for item in many(value.get("links")).into_iter().filter_map(text) {
        found.insert(
            item.split(':').next().unwrap_or_default().to_owned(),
            Dependency {
                restart: true,
                ..plain()
            },
        );
    }
    for item in many(value.get("volumes_from")).into_iter().filter_map(text) {
        if !item.starts_with("container:") {
            found.insert(
                item.split(':').next().unwrap_or_default().to_owned(),
                Dependency {
                    shares: true,
                    ..plain()
                },
            );
        }
    }
    match value.get("depends_on") {
        Some(Value::Object(map)) => {
            for (name, options) in map {
                let flag = |key: &str| options.get(key).and_then(Value::as_bool);
                let condition = options.get("condition").and_then(text);
                let implied = found.get(name);
                found.insert(
                    name.clone(),
                    Dependency {
                        condition: condition.unwrap_or_else(|| "service_started".to_owned()),
                        restart: flag("restart").unwrap_or(false),
                        shares: implied.is_some_and(|implied| implied.shares),
                        required: flag("required").unwrap_or(true),
                    },
                );
            }
        }
        other => {
            for name in many(other).into_iter().filter_map(text) {
                found.entry(name).or_insert_with(plain);
            }
        }
    }
    found
}
