//! Resolves a Compose file for a project: validates it and puts the services in start order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    context::{Context, Sections, Shared},
    service::{self, Service},
    values::{self, many, pairs, text, unknown},
};

/// A resolved project.
pub(super) struct Project {
    /// The enabled services, dependencies first.
    pub services: Vec<Service>,
    pub networks: BTreeMap<String, Shared>,
    pub volumes: BTreeMap<String, Shared>,
}

const TOP: [&str; 8] = [
    "version", "name", "include", "services", "networks", "volumes", "secrets", "configs",
];

impl Project {
    /// Parses, validates and resolves a Compose file.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn resolve(source: &str, context: &Context<'_>) -> Result<Self, String> {
        let root = values::read(source, context.variables)?;
        let invalid = |what: &str| format!("validating {}: {what}", context.file);
        let root = match root {
            Value::Object(map) => map,
            Value::Null => return Err("empty compose file".to_owned()),
            _ => return Err("top-level object must be a mapping".to_owned()),
        };
        if let Some(key) = unknown(&root, &TOP) {
            return Err(invalid(&format!(
                "(root) Additional property {key} is not allowed"
            )));
        }
        for section in &TOP[3..] {
            if root
                .get(*section)
                .is_some_and(|value| !value.is_object() && !value.is_null())
            {
                return Err(invalid(&format!("{section} must be a mapping")));
            }
        }
        for include in many(root.get("include")) {
            let path = many(include.get("path").or(Some(include)))
                .into_iter()
                .find_map(text);
            require_file(context, &path.unwrap_or_default())?;
        }
        let networks = shared(root.get("networks"), context.project, true);
        let volumes = shared(root.get("volumes"), context.project, false);
        let mut all = BTreeMap::new();
        let empty = Map::new();
        let written = root
            .get("services")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        for (name, value) in written {
            service::validate(name, value).map_err(|what| invalid(&what))?;
        }
        for name in written.keys() {
            let value = extended(written, name, context, 0)?;
            let sections = Sections {
                networks: &networks,
                volumes: &volumes,
                secrets: root.get("secrets").unwrap_or(&Value::Null),
                configs: root.get("configs").unwrap_or(&Value::Null),
            };
            all.insert(
                name.clone(),
                Service::resolve(name, &value, context, &sections)?,
            );
        }
        if all.is_empty() {
            return Err("no service selected".to_owned());
        }
        let services = ordered(all, &active_profiles(context.variables))?;
        Ok(Self {
            services,
            networks,
            volumes,
        })
    }
}

/// Fails if a file that Compose must read does not exist.
fn require_file(context: &Context<'_>, path: &str) -> Result<(), String> {
    let path = context.absolute(path);
    match (context.read)(&path) {
        Some(_) => Ok(()),
        None => Err(format!("open {path}: no such file or directory")),
    }
}

/// A service merged over the services of the same file that it extends.
fn extended(
    services: &Map<String, Value>,
    name: &str,
    context: &Context<'_>,
    depth: usize,
) -> Result<Value, String> {
    let own = services
        .get(name)
        .ok_or_else(|| format!("service \"{name}\" not found"))?;
    let Some(extends) = own.get("extends") else {
        return Ok(own.clone());
    };
    if let Some(file) = extends.get("file").and_then(text) {
        require_file(context, &file)?;
        return Ok(own.clone());
    }
    let base = text(extends)
        .or_else(|| extends.get("service").and_then(text))
        .unwrap_or_default();
    if depth > services.len() {
        return Err("circular reference in extends".to_owned());
    }
    let mut merged = extended(services, &base, context, depth + 1)?;
    if let (Some(merged), Some(own)) = (merged.as_object_mut(), own.as_object()) {
        for (key, value) in own.iter().filter(|(key, _)| *key != "extends") {
            merged.insert(key.clone(), value.clone());
        }
    }
    Ok(merged)
}

fn shared(section: Option<&Value>, project: &str, with_default: bool) -> BTreeMap<String, Shared> {
    let mut found = BTreeMap::new();
    if let Some(Value::Object(map)) = section {
        for (key, value) in map {
            let external = value
                .get("external")
                .is_some_and(|value| value.as_bool().unwrap_or(false) || value.is_object());
            let plain = if external {
                key.clone()
            } else {
                format!("{project}_{key}")
            };
            let nested = value.get("external").and_then(|value| value.get("name"));
            let name = value.get("name").or(nested).and_then(text).unwrap_or(plain);
            let labels = pairs(value.get("labels"))
                .into_iter()
                .map(|(name, value)| (name, value.unwrap_or_default()))
                .collect();
            found.insert(
                key.clone(),
                Shared {
                    key: key.clone(),
                    name,
                    external,
                    labels,
                    written: value.clone(),
                },
            );
        }
    }
    if with_default {
        let name = format!("{project}_default");
        let labels = BTreeMap::new();
        let default = Shared {
            key: "default".to_owned(),
            name,
            external: false,
            labels,
            written: Value::Null,
        };
        found.entry("default".to_owned()).or_insert(default);
    }
    found
}

fn active_profiles(variables: &BTreeMap<String, String>) -> BTreeSet<String> {
    let named = variables.get("COMPOSE_PROFILES").map_or("", String::as_str);
    named
        .split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// The enabled services in start order: dependencies first (M14).
fn ordered(
    mut all: BTreeMap<String, Service>,
    profiles: &BTreeSet<String>,
) -> Result<Vec<Service>, String> {
    let runs = |service: &Service| {
        service.profiles.is_empty()
            || profiles.contains("*")
            || service
                .profiles
                .iter()
                .any(|profile| profiles.contains(profile))
    };
    let known = all.keys().cloned().collect::<BTreeSet<_>>();
    all.retain(|_, service| runs(service));
    let mut order = Vec::new();
    let mut done = BTreeSet::new();
    while !all.is_empty() {
        let free = |service: &Service| {
            let mut waits = service
                .depends_on
                .keys()
                .filter(|name| !done.contains(*name));
            waits.all(|name| !all.contains_key(name))
        };
        let Some(next) = all
            .values()
            .find(|service| free(service))
            .map(|one| one.name.clone())
        else {
            let names = all.into_keys().collect::<Vec<_>>().join(" -> ");
            return Err(format!("dependency cycle detected: {names}"));
        };
        if let Some(service) = all.remove(&next) {
            for (name, dependency) in &service.depends_on {
                if dependency.required && !known.contains(name) {
                    return Err(format!(
                        "service \"{next}\" depends on undefined service \"{name}\": invalid compose project"
                    ));
                }
            }
            done.insert(next);
            order.push(service);
        }
    }
    if order.is_empty() {
        Err("no service selected".to_owned())
    } else {
        Ok(order)
    }
}
