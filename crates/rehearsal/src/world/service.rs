//! A resolved service: the specification of its containers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    canonical::{self, Form},
    container::Port,
    context::Context,
    deployment::variables,
    mounts::{self, ServiceMount},
    ports, typed,
    values::{labels, many, pairs, text, texts},
};

/// A resolved service.
pub(super) struct Service {
    pub name: String,
    pub image: String,
    pub env: BTreeMap<String, String>,
    pub mounts: Vec<ServiceMount>,
    pub ports: Vec<Port>,
    pub depends_on: BTreeMap<String, Dependency>,
    /// As `config --format json` prints it, but for the `$`.
    pub config: Map<String, Value>,
    /// What is hashed of it.
    pub hashed: Map<String, Value>,
}

/// A dependency, written in `depends_on` or implied by another key.
pub(super) struct Dependency {
    pub condition: String,
    /// Whether the dependent is restarted with it; `links` implies it (N05).
    pub restart: bool,
    /// Whether it must be defined.
    pub required: bool,
    /// Whether the dependent uses a namespace or the volumes of its container.
    pub shares: bool,
}

/// The keys of a service that name a namespace, which may be that of another service.
pub(super) const NAMESPACES: [&str; 3] = ["network_mode", "pid", "ipc"];

impl Service {
    pub fn resolve(
        name: &str,
        written: &Map<String, Value>,
        context: &Context<'_>,
    ) -> Result<Self, String> {
        let in_form = |form| {
            let mut service = written.clone();
            canonical::service(name, &mut service, context, form)?;
            let variables = environment(&service, context)?;
            service.insert("environment".to_owned(), json!(variables));
            Ok::<_, String>(typed::part("Service", &Value::Object(service)))
        };
        let mut config = in_form(Form::Printed)?;
        if config.get("image").is_none() && config.get("build").is_none() {
            return Err(format!(
                "service \"{name}\" has neither an image nor a build context specified: invalid compose project"
            ));
        }
        let form = if context.deployment.by_library {
            Form::Library
        } else {
            Form::Program
        };
        let hashed = hashed(in_form(form)?, form);
        if let Some(scale) = config.get("scale").cloned()
            && let Some(deploy) = config.get_mut("deploy")
        {
            deploy["replicas"] = scale;
        }
        let image = config.get("image").and_then(text);
        let built = || format!("{}-{name}", context.deployment.project);
        let env = pairs(config.get("environment")).into_iter();
        Ok(Self {
            name: name.to_owned(),
            image: image.unwrap_or_else(built),
            env: env
                .filter_map(|(name, value)| Some((name, value?)))
                .collect(),
            mounts: mounts::of(name, &config, context)?,
            ports: ports::of(&config, name)?,
            depends_on: dependencies(&config),
            config,
            hashed,
        })
    }

    /// The text of a key.
    pub fn text(&self, key: &str) -> Option<String> {
        self.config.get(key).and_then(text)
    }

    pub fn labels(&self) -> BTreeMap<String, String> {
        labels(self.config.get("labels"))
    }

    pub fn builds(&self) -> bool {
        self.config.contains_key("build")
    }

    pub fn replicas(&self) -> usize {
        let scale = self.text("scale");
        let count = scale.or_else(|| self.config.get("deploy")?.get("replicas").and_then(text));
        count.and_then(|count| count.parse().ok()).unwrap_or(1)
    }

    /// The networks by their keys in the file, with what is set for each.
    pub fn networks(&self) -> impl Iterator<Item = (&String, &Value)> {
        let networks = self.config.get("networks").and_then(Value::as_object);
        networks.into_iter().flatten()
    }

    pub fn is_on(&self, network: &str) -> bool {
        self.networks().any(|(key, _)| key == network)
    }
}

/// What is hashed of a service: the keys that say how a container is created.
fn hashed(mut service: Map<String, Value>, form: Form) -> Map<String, Value> {
    let by_library = form == Form::Library;
    let unhashed = ["build", "pull_policy", "scale", "depends_on", "profiles"];
    // The library leaves out two more (N05).
    let count = if by_library { unhashed.len() } else { 3 };
    for key in unhashed.into_iter().take(count) {
        service.shift_remove(key);
    }
    let mut below = |key: &str, change: &dyn Fn(&mut Map<String, Value>)| match service.get_mut(key)
    {
        Some(Value::Object(map)) => change(map),
        Some(Value::Array(items)) => items
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(change),
        _ => {}
    };
    below("deploy", &|deploy| {
        deploy.shift_remove("replicas");
    });
    if by_library {
        below("networks", &|networks| {
            let networks = networks.values_mut().filter_map(Value::as_object_mut);
            networks.for_each(Map::sort_keys);
        });
    }
    service
}

/// The variables of the container: those of each `env_file`, then those of `environment`.
fn environment(
    service: &Map<String, Value>,
    context: &Context<'_>,
) -> Result<BTreeMap<String, Option<String>>, String> {
    let mut env = BTreeMap::new();
    for item in many(service.get("env_file")) {
        let path = item.get("path").and_then(text).unwrap_or_default();
        match (context.read)(&path) {
            Some(file) => {
                let own = variables(&file, &path, context.variables)?.into_iter();
                env.extend(own.map(|(name, value)| (name, Some(value))));
            }
            None if item.get("required") == Some(&Value::Bool(false)) => {}
            None => {
                return Err(format!(
                    "env file {path} not found: stat {path}: no such file or directory"
                ));
            }
        }
    }
    env.extend(pairs(service.get("environment")));
    Ok(env)
}

fn dependencies(service: &Map<String, Value>) -> BTreeMap<String, Dependency> {
    let modes = NAMESPACES
        .iter()
        .filter_map(|key| service.get(*key).and_then(text));
    let mut shared: Vec<String> = modes
        .filter_map(|mode| mode.strip_prefix("service:").map(str::to_owned))
        .collect();
    shared.extend(
        texts(service.get("volumes_from"))
            .iter()
            .filter_map(|from| from.split(':').next().map(str::to_owned)),
    );
    let all = service
        .get("depends_on")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    all.map(|(name, how)| {
        let dependency = Dependency {
            condition: text(&how["condition"]).unwrap_or_default(),
            restart: how["restart"] == true,
            required: how["required"] != false,
            shares: shared.contains(name),
        };
        (name.clone(), dependency)
    })
    .collect()
}
