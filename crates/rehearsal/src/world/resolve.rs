//! Resolves the Compose files of a project: validates them, combines them, and puts the services in start order.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use composefile::schema::{ROOT, SERVICE};
use serde_json::{Map, Value, json};

use super::{
    canonical::{self, Form},
    context::{Context, Resource, resources, written},
    deployment::Deployment,
    merge::merge,
    service::Service,
    values::{self, many, text, texts},
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
    pub secrets: BTreeMap<String, Resource>,
    pub configs: BTreeMap<String, Resource>,
    /// The `x-` keys of the text.
    pub extensions: Map<String, Value>,
}

/// Reads a file where Compose runs; `None` if it does not exist.
pub(super) type Read<'r> = &'r dyn Fn(&str) -> Option<String>;

impl Project {
    /// Parses, validates and resolves the Compose files.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn resolve(
        deployment: &Deployment,
        variables: &BTreeMap<String, String>,
        read: Read<'_>,
    ) -> Result<Self, String> {
        let context = Context::read(deployment, variables, read, true)?;
        let given = variables.get("COMPOSE_PROFILES").map_or("", String::as_str);
        let profiles = given.split(',').map(str::trim).collect::<BTreeSet<_>>();
        let is_enabled = |service: &Map<String, Value>| {
            let of = texts(service.get("profiles"));
            of.is_empty()
                || profiles.contains("*")
                || of.iter().any(|one| profiles.contains(one.as_str()))
        };
        let mut services = BTreeMap::new();
        for (name, service) in written(&context.root) {
            if let Some(service) = service.as_object().filter(|service| is_enabled(service)) {
                services.insert(name.clone(), Service::resolve(name, service, &context)?);
            }
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
        let extensions = context.root.iter().filter(|(key, _)| key.starts_with("x-"));
        Ok(Self {
            defined: written(&context.root)
                .map(|(name, _)| name.clone())
                .collect(),
            removes_orphans,
            services: ordered(services, &context)?,
            secrets: resources(&context.root, "secrets", deployment),
            configs: resources(&context.root, "configs", deployment),
            extensions: extensions
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            networks: context.networks,
            volumes: context.volumes,
        })
    }

    /// What `config --no-interpolate --format json` prints: the canonical form, in which variables stay as they are written.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn model(
        deployment: &Deployment,
        variables: &BTreeMap<String, String>,
        read: Read<'_>,
    ) -> Result<Value, String> {
        let context = Context::read(deployment, variables, read, false)?;
        let mut root = context.root.clone();
        root.insert("name".to_owned(), json!(deployment.project));
        root.shift_remove("version");
        let mut uses_default = false;
        for (name, service) in root
            .get_mut("services")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            if let Some(service) = service.as_object_mut() {
                canonical::service(name, service, &context, Form::Model)?;
                uses_default |= service
                    .get("networks")
                    .is_some_and(|networks| networks.get("default").is_some());
            }
        }
        for section in ["networks", "volumes", "secrets", "configs"] {
            let mut all = resources(&root, section, deployment);
            all.retain(|key, _| {
                key != "default"
                    || section != "networks"
                    || uses_default
                    || root
                        .get("networks")
                        .is_some_and(|all| all.get(key).is_some())
            });
            if !all.is_empty() {
                let all = all.into_iter().map(|(key, one)| (key, one.written));
                root.insert(section.to_owned(), all.collect());
            }
        }
        let mut root = Value::Object(root);
        root.sort_all_objects();
        Ok(root)
    }
}

impl<'c> Context<'c> {
    fn read(
        deployment: &'c Deployment,
        variables: &'c BTreeMap<String, String>,
        read: Read<'c>,
        interpolates: bool,
    ) -> Result<Self, String> {
        let invalid = |what: String| format!("validating {}: {what}", deployment.file);
        if deployment.by_library {
            values::reject_dates(&deployment.text).map_err(invalid)?;
        }
        let mut root = Value::Null;
        for text in [&deployment.text].into_iter().chain(&deployment.more) {
            let mut file = values::read(text, interpolates.then_some(variables))?;
            let Value::Object(entries) = &mut file else {
                return Err("top-level object must be a mapping".to_owned());
            };
            check(entries).map_err(invalid)?;
            let extending = Extending {
                deployment,
                variables,
                read,
                interpolates,
            };
            let services = extending.extended(entries)?;
            if entries.contains_key("services") {
                entries.insert("services".to_owned(), services);
            }
            merge(&mut root, file, "");
        }
        let Value::Object(root) = root else {
            return Err("top-level object must be a mapping".to_owned());
        };
        let context = Context {
            deployment,
            variables,
            read,
            networks: resources(&root, "networks", deployment),
            volumes: resources(&root, "volumes", deployment),
            root,
        };
        for include in many(context.root.get("include")) {
            let path = include.get("path").unwrap_or(include);
            for path in texts(Some(path)).into_iter().take(1) {
                context.require_file(&path)?;
            }
        }
        Ok(context)
    }
}

/// Resolves `extends`.
struct Extending<'e> {
    deployment: &'e Deployment,
    variables: &'e BTreeMap<String, String>,
    read: Read<'e>,
    interpolates: bool,
}

impl Extending<'_> {
    /// The services of a file, each merged over those that it extends.
    fn extended(&self, file: &Map<String, Value>) -> Result<Value, String> {
        written(file)
            .map(|(name, _)| Ok((name.clone(), self.service(file, name, 0)?)))
            .collect()
    }

    fn service(
        &self,
        file: &Map<String, Value>,
        name: &str,
        depth: usize,
    ) -> Result<Value, String> {
        /// The most services in a chain.
        const DEEPEST: usize = 64;
        let found = written(file).find(|(one, _)| *one == name);
        let mut own = found
            .map(|(_, service)| service.clone())
            .ok_or_else(|| format!("service \"{name}\" not found"))?;
        let Some(extends) = own
            .as_object_mut()
            .and_then(|own| own.shift_remove("extends"))
        else {
            return Ok(own);
        };
        if depth > DEEPEST {
            return Err("circular reference in extends".to_owned());
        }
        let of = text(extends.get("service").unwrap_or(&extends)).unwrap_or_default();
        let mut base = match extends.get("file").and_then(text) {
            None => self.service(file, &of, depth + 1)?,
            Some(path) => self.of_file(&path, &of, depth)?,
        };
        merge(&mut base, own, "services.*");
        Ok(base)
    }

    /// A service of another file, whose paths start from the directory of that file.
    fn of_file(&self, path: &str, name: &str, depth: usize) -> Result<Value, String> {
        let path = self.deployment.absolute(path);
        let text =
            (self.read)(&path).ok_or_else(|| format!("open {path}: no such file or directory"))?;
        let folder = Path::new(&path)
            .parent()
            .and_then(Path::to_str)
            .unwrap_or("/");
        let deployment = Deployment {
            folder: folder.to_owned(),
            ..self.deployment.clone()
        };
        let there = Extending {
            deployment: &deployment,
            ..*self
        };
        let file = values::read(&text, self.interpolates.then_some(self.variables))?;
        let mut service =
            there.service(file.as_object().unwrap_or(&Map::new()), name, depth + 1)?;
        if let Some(service) = service.as_object_mut() {
            canonical::long(name, service, &deployment, self.variables, Form::Program)?;
        }
        Ok(service)
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

/// The services in start order: dependencies first (M14).
fn ordered(
    mut all: BTreeMap<String, Service>,
    context: &Context<'_>,
) -> Result<Vec<Service>, String> {
    let invalid = |service: &Service, what: String| {
        Err(format!(
            "service \"{}\" {what}: invalid compose project",
            service.name
        ))
    };
    for service in all.values() {
        let mut networks = service.networks().map(|(key, _)| key);
        if let Some(key) = networks.find(|key| !context.networks.contains_key(*key)) {
            return invalid(service, format!("refers to undefined network {key}"));
        }
        let mut needed = service.depends_on.iter().filter(|(_, how)| how.required);
        if let Some((name, _)) = needed.find(|(name, _)| !all.contains_key(*name)) {
            return invalid(service, format!("depends on undefined service \"{name}\""));
        }
    }
    let mut order = Vec::new();
    while !all.is_empty() {
        let is_free = |one: &&Service| one.depends_on.keys().all(|name| !all.contains_key(name));
        let name = all.values().find(is_free).map(|one| one.name.clone());
        let next = name.and_then(|name| all.remove(&name));
        order.push(next.ok_or("dependency cycle detected")?);
    }
    Ok(order)
}
