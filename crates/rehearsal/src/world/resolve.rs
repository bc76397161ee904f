//! Resolves a Compose file for a project: validates it and puts the services in start order.

use std::collections::{BTreeMap, BTreeSet};

use composefile::schema::{ROOT, SERVICE};
use serde_json::{Map, Value};

use super::{
    context::{Context, Resource, resources, written},
    deployment::Deployment,
    service::Service,
    values::{self, many, texts},
};

/// A resolved project.
pub(super) struct Project {
    /// The enabled services, dependencies first.
    pub services: Vec<Service>,
    /// The names of all services.
    pub defined: BTreeSet<String>,
    /// Whether the variables tell the library to remove orphans (N14).
    pub removes_orphans: Option<bool>,
    pub networks: BTreeMap<String, Resource>,
    pub volumes: BTreeMap<String, Resource>,
}

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
        let mut root = values::read(&deployment.text, variables)?;
        for text in &deployment.more {
            merge(&mut root, values::read(text, variables)?);
        }
        let Value::Object(root) = root else {
            return Err("top-level object must be a mapping".to_owned());
        };
        let invalid = |what: String| format!("validating {}: {what}", deployment.file);
        if deployment.by_library {
            values::reject_dates(&deployment.text).map_err(invalid)?;
        }
        check(&root).map_err(invalid)?;
        let context = Context {
            deployment,
            variables,
            read,
            networks: resources(&root, "networks", &deployment.project),
            volumes: resources(&root, "volumes", &deployment.project),
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
        let given = |name: &str| variables.get(name).map(|value| value == "true");
        let removes_orphans = match given("COMPOSE_IGNORE_ORPHANS") {
            Some(true) => Some(false),
            _ => given("COMPOSE_REMOVE_ORPHANS"),
        };
        if let Some(limit) = variables.get("COMPOSE_PARALLEL_LIMIT")
            && limit.parse::<i64>().is_err()
        {
            return Err(format!(
                "COMPOSE_PARALLEL_LIMIT must be an integer (found: {limit:?})"
            ));
        }
        Ok(Self {
            defined: services.keys().cloned().collect(),
            removes_orphans,
            services: ordered(services, variables)?,
            networks: context.networks,
            volumes: context.volumes,
        })
    }
}

/// Overrides the values of a file. Lists are replaced.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// Rejects unknown keys.
fn check(root: &Map<String, Value>) -> Result<(), String> {
    if let Some(key) = root.keys().find(|key| ROOT.since(key).is_none()) {
        return Err(format!("(root) Additional property {key} is not allowed"));
    }
    for (name, value) in written(root) {
        let Value::Object(service) = value else {
            return Err(format!("services.{name} must be a mapping"));
        };
        if let Some(key) = service.keys().find(|key| SERVICE.since(key).is_none()) {
            return Err(format!(
                "services.{name} Additional property {key} is not allowed"
            ));
        }
    }
    Ok(())
}

/// The enabled services in start order: dependencies first (M14).
fn ordered(
    mut all: BTreeMap<String, Service>,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<Service>, String> {
    let given = variables.get("COMPOSE_PROFILES").map_or("", String::as_str);
    let profiles = given.split(',').map(str::trim).collect::<BTreeSet<_>>();
    all.retain(|_, service| {
        let of = service.profiles();
        of.is_empty()
            || profiles.contains("*")
            || of.iter().any(|one| profiles.contains(one.as_str()))
    });
    let mut order = Vec::new();
    while !all.is_empty() {
        let is_free = |one: &&Service| one.depends_on.keys().all(|name| !all.contains_key(name));
        let name = all.values().find(is_free).map(|one| one.name.clone());
        let next = name.and_then(|name| all.remove(&name));
        order.push(next.ok_or("dependency cycle detected")?);
    }
    Ok(order)
}
