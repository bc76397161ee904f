//! A resolved service: the specification of its containers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    container::Port,
    context::Context,
    deployment::variables,
    mounts::{self, ServiceMount},
    ports,
    values::{labels, many, pairs, text, texts},
};

/// A resolved service.
pub(super) struct Service {
    pub name: String,
    pub image: String,
    pub env: BTreeMap<String, String>,
    pub mounts: Vec<ServiceMount>,
    pub ports: Vec<Port>,
    /// By the key of the network in the file.
    pub networks: BTreeMap<String, NetworkOptions>,
    pub depends_on: BTreeMap<String, Dependency>,
    /// As it is written, after interpolation.
    pub written: Map<String, Value>,
}

/// The options of a service for a network.
#[derive(Default, Serialize)]
pub(super) struct NetworkOptions {
    pub aliases: Vec<String>,
    /// The fixed address, if the engine does not choose.
    pub address: Option<String>,
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
}

/// The keys whose values are resolved, or that are no part of a container.
const RESOLVED: [&str; 16] = [
    "build",
    "depends_on",
    "deploy",
    "env_file",
    "environment",
    "extends",
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

impl Service {
    pub fn resolve(
        name: &str,
        written: Map<String, Value>,
        context: &Context<'_>,
    ) -> Result<Self, String> {
        let image = written.get("image").and_then(text);
        let built = || format!("{}-{name}", context.deployment.project);
        Ok(Self {
            name: name.to_owned(),
            image: image.unwrap_or_else(built),
            env: environment(&written, context)?,
            mounts: mounts::of(name, &written, context)?,
            ports: ports::of(&written, name)?,
            networks: networks(&written),
            depends_on: dependencies(&written),
            written,
        })
    }

    /// The text of a key.
    pub fn text(&self, key: &str) -> Option<String> {
        self.written.get(key).and_then(text)
    }

    pub fn profiles(&self) -> Vec<String> {
        texts(self.written.get("profiles"))
    }

    pub fn labels(&self) -> BTreeMap<String, String> {
        labels(self.written.get("labels"))
    }

    pub fn builds(&self) -> bool {
        let build = self.written.get("build");
        build.is_some_and(|build| !build.is_null())
    }

    pub fn replicas(&self) -> usize {
        let scale = self.text("scale");
        let count = scale.or_else(|| self.written.get("deploy")?.get("replicas").and_then(text));
        count.and_then(|count| count.parse().ok()).unwrap_or(1)
    }

    /// The configuration, as `config --format json` prints it, but for the `$`: what it hashes of containers, in the order in
    /// which Compose hashes it. What the world reads in a form of its own is a text in `annotations`.
    pub fn config(&self) -> Value {
        let is_taken = |key: &str| !RESOLVED.contains(&key) && !key.starts_with("x-");
        let rest = self.written.iter().filter(|(key, _)| is_taken(key));
        let own = json!({
            "rest": rest.collect::<BTreeMap<_, _>>(),
            "mounts": self.mounts,
            "ports": self.ports,
            "networks": self.networks,
        });
        let needs = self.depends_on.keys();
        let how = json!({"condition": "service_started", "required": true});
        let needs: BTreeMap<_, _> = needs.map(|name| (name, &how)).collect();
        // The name of an image that is only built is no part of it (N22).
        let image = self.written.get("image").cloned();
        let all = [
            ("profiles", json!(self.profiles())),
            ("annotations", json!({"rehearsal": own.to_string()})),
            ("depends_on", json!(needs)),
            ("environment", json!(self.env)),
            ("image", json!(image)),
            ("labels", json!(self.labels())),
        ];
        let is_set = |value: &Value| ![json!([]), json!({}), Value::Null].contains(value);
        let set = all.into_iter().filter(|(_, value)| is_set(value));
        set.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// What is hashed of it: the library leaves out two keys (N05).
    pub fn hashed(&self, by_library: bool) -> Value {
        let mut config = self.config();
        if by_library && let Some(config) = config.as_object_mut() {
            config.shift_remove("depends_on");
            config.shift_remove("profiles");
        }
        config
    }
}

/// The words of a command.
pub(super) fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(line)) => line.split_whitespace().map(str::to_owned).collect(),
        other => texts(other),
    }
}

/// The variables of the container: those of each `env_file`, then those of `environment`.
fn environment(
    written: &Map<String, Value>,
    context: &Context<'_>,
) -> Result<BTreeMap<String, String>, String> {
    let mut env = BTreeMap::new();
    for item in many(written.get("env_file")) {
        let written = text(item.get("path").unwrap_or(item)).unwrap_or_default();
        let path = context.deployment.absolute(&written);
        match (context.read)(&path) {
            Some(file) => env.extend(variables(&file, &path, context.variables)?),
            None if item.get("required") == Some(&Value::Bool(false)) => {}
            None => {
                return Err(format!(
                    "env file {path} not found: stat {path}: no such file or directory"
                ));
            }
        }
    }
    for (name, value) in pairs(written.get("environment")) {
        match value.or_else(|| context.variables.get(&name).cloned()) {
            Some(value) => env.insert(name, value),
            None => env.remove(&name),
        };
    }
    Ok(env)
}

fn networks(written: &Map<String, Value>) -> BTreeMap<String, NetworkOptions> {
    let options = |value: &Value| NetworkOptions {
        aliases: texts(value.get("aliases")),
        address: value.get("ipv4_address").and_then(text),
        has_options: value.is_object(),
    };
    match written.get("networks") {
        _ if written.get("network_mode").and_then(text).is_some() => BTreeMap::new(),
        Some(Value::Object(map)) if !map.is_empty() => map
            .iter()
            .map(|(key, value)| (key.clone(), options(value)))
            .collect(),
        other => {
            let mut keys = texts(other);
            if keys.is_empty() {
                keys.push("default".to_owned());
            }
            keys.into_iter()
                .map(|key| (key, NetworkOptions::default()))
                .collect()
        }
    }
}

fn dependencies(written: &Map<String, Value>) -> BTreeMap<String, Dependency> {
    let plain = || Dependency {
        condition: "service_started".to_owned(),
        restart: false,
        shares: false,
    };
    let named = |item: &str| item.split(':').next().unwrap_or_default().to_owned();
    let mut found = BTreeMap::new();
    for key in ["network_mode", "pid", "ipc"] {
        let mode = written.get(key).and_then(text).unwrap_or_default();
        if let Some(of) = mode.strip_prefix("service:") {
            let one = found.entry(of.to_owned()).or_insert_with(plain);
            (one.restart, one.shares) = (true, true);
        }
    }
    for item in texts(written.get("links")) {
        found.entry(named(&item)).or_insert_with(plain).restart = true;
    }
    for item in texts(written.get("volumes_from")) {
        if !item.starts_with("container:") {
            found.entry(named(&item)).or_insert_with(plain).shares = true;
        }
    }
    let Some(Value::Object(map)) = written.get("depends_on") else {
        for name in texts(written.get("depends_on")) {
            found.entry(name).or_insert_with(plain);
        }
        return found;
    };
    for (name, options) in map {
        let one = found.entry(name.clone()).or_insert_with(plain);
        one.restart = options.get("restart") == Some(&Value::Bool(true));
        if let Some(condition) = options.get("condition").and_then(text) {
            one.condition = condition;
        }
    }
    found
}
