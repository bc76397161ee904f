//! Resolves a Compose file for a project: validates it and puts the services in start order.

use std::collections::{BTreeMap, BTreeSet};

use composefile::schema::SERVICE;
use serde_json::{Map, Value};

use super::{
    deployment::Deployment,
    service::Service,
    values::{self, labels, many, text, texts},
};

/// A resolved project.
pub(super) struct Project {
    /// The enabled services, dependencies first.
    pub services: Vec<Service>,
    pub networks: BTreeMap<String, Shared>,
    pub volumes: BTreeMap<String, Shared>,
}

/// A top-level network or volume.
pub(super) struct Shared {
    /// The name on the engine.
    pub name: String,
    pub external: bool,
    /// The mapping below the key.
    pub written: Value,
}

/// What a service refers to: the surroundings of the file, and its top-level sections.
pub(super) struct Context<'c> {
    pub deployment: &'c Deployment,
    /// The variables for interpolation.
    pub variables: &'c BTreeMap<String, String>,
    /// Reads a file where Compose runs; `None` if it does not exist.
    pub read: &'c dyn Fn(&str) -> Option<String>,
    pub networks: BTreeMap<String, Shared>,
    pub volumes: BTreeMap<String, Shared>,
    /// The text as plain values.
    pub root: Map<String, Value>,
}

const TOP: [&str; 8] = [
    "version", "name", "include", "services", "networks", "volumes", "secrets", "configs",
];

impl Project {
    /// Parses, validates and resolves a Compose file.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn resolve(
        deployment: &Deployment,
        variables: &BTreeMap<String, String>,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let Value::Object(root) = values::read(&deployment.text, variables)? else {
            return Err("top-level object must be a mapping".to_owned());
        };
        check(&root).map_err(|what| format!("validating {}: {what}", deployment.file))?;
        let context = Context {
            deployment,
            variables,
            read,
            networks: shared(&root, "networks", &deployment.project),
            volumes: shared(&root, "volumes", &deployment.project),
            root,
        };
        for include in many(context.root.get("include")) {
            let path = include.get("path").unwrap_or(include);
            for path in texts(Some(path)).into_iter().take(1) {
                context.require_file(&path)?;
            }
        }
        let mut services = BTreeMap::new();
        for name in written(&context.root).map(|(name, _)| name) {
            let service = Service::resolve(name, context.extended(name, 0)?, &context)?;
            services.insert(name.clone(), service);
        }
        let Context {
            networks, volumes, ..
        } = context;
        Ok(Self {
            services: ordered(services, variables)?,
            networks,
            volumes,
        })
    }
}

/// The services of the file.
fn written(root: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let services = root.get("services").and_then(Value::as_object);
    services.into_iter().flatten()
}

/// Rejects unknown keys.
fn check(root: &Map<String, Value>) -> Result<(), String> {
    let is_known = |key: &str| key.starts_with("x-") || TOP.contains(&key);
    if let Some(key) = root.keys().find(|key| !is_known(key)) {
        return Err(format!("(root) Additional property {key} is not allowed"));
    }
    for (name, value) in written(root) {
        let Value::Object(service) = value else {
            return Err(format!("services.{name} must be a mapping"));
        };
        if let Some(key) = service.keys().find(|key| SERVICE.key(key).is_none()) {
            return Err(format!(
                "services.{name} Additional property {key} is not allowed"
            ));
        }
    }
    Ok(())
}

impl Context<'_> {
    /// Fails if a file that Compose must read does not exist.
    fn require_file(&self, path: &str) -> Result<(), String> {
        let path = self.deployment.absolute(path);
        match (self.read)(&path) {
            Some(_) => Ok(()),
            None => Err(format!("open {path}: no such file or directory")),
        }
    }

    /// A service merged over the services of the same file that it extends.
    fn extended(&self, name: &str, depth: usize) -> Result<Map<String, Value>, String> {
        let mut all = written(&self.root);
        let own = all.find(|(one, _)| *one == name);
        let own = own.and_then(|(_, service)| service.as_object());
        let own = own.ok_or_else(|| format!("service \"{name}\" not found"))?;
        let Some(extends) = own.get("extends") else {
            return Ok(own.clone());
        };
        if let Some(file) = extends.get("file").and_then(text) {
            self.require_file(&file)?;
            return Ok(own.clone());
        }
        if depth > written(&self.root).count() {
            return Err("circular reference in extends".to_owned());
        }
        let base = text(extends.get("service").unwrap_or(extends)).unwrap_or_default();
        let mut merged = self.extended(&base, depth + 1)?;
        merged.extend(own.clone());
        Ok(merged)
    }
}

/// The networks or volumes of the file. There is always a default network.
fn shared(root: &Map<String, Value>, section: &str, project: &str) -> BTreeMap<String, Shared> {
    let mut all = root.get(section).and_then(Value::as_object).cloned();
    if section == "networks" {
        let all = all.get_or_insert_default();
        all.entry("default").or_insert(Value::Null);
    }
    let shared = all.into_iter().flatten().map(|(key, written)| {
        let external = written.get("external");
        let external = external.filter(|value| !matches!(value, Value::Null | Value::Bool(false)));
        let name = written.get("name").or_else(|| external?.get("name"));
        let name = name.and_then(text).unwrap_or_else(|| match external {
            Some(_) => key.clone(),
            None => format!("{project}_{key}"),
        });
        let shared = Shared {
            name,
            external: external.is_some(),
            written,
        };
        (key, shared)
    });
    shared.collect()
}

impl Shared {
    /// The labels that the file gives it.
    pub fn labels(&self) -> BTreeMap<String, String> {
        labels(self.written.get("labels"))
    }
}

/// The enabled services in start order: dependencies first (M14).
fn ordered(
    mut all: BTreeMap<String, Service>,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<Service>, String> {
    let profiles = variables.get("COMPOSE_PROFILES").map_or("", String::as_str);
    let profiles = profiles.split(',').map(str::trim).collect::<BTreeSet<_>>();
    for (name, service) in &all {
        let needed = service.depends_on.iter().filter(|(_, one)| one.required);
        if let Some((missing, _)) = needed.into_iter().find(|(of, _)| !all.contains_key(*of)) {
            return Err(format!(
                "service \"{name}\" depends on undefined service \"{missing}\": invalid compose project"
            ));
        }
    }
    all.retain(|_, service| {
        let of = service.profiles();
        of.is_empty()
            || profiles.contains("*")
            || of.iter().any(|one| profiles.contains(one.as_str()))
    });
    let mut order = Vec::new();
    while !all.is_empty() {
        let is_free = |one: &&Service| one.depends_on.keys().all(|name| !all.contains_key(name));
        let next = all.values().find(is_free).map(|one| one.name.clone());
        let next = next.and_then(|next| all.remove(&next));
        order.push(next.ok_or("dependency cycle detected")?);
    }
    if order.is_empty() {
        return Err("no service selected".to_owned());
    }
    Ok(order)
}
