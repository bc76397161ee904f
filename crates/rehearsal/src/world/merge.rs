//! Makes one of the Compose files of a project: merges a file over another, and a service over one that it extends.

use composefile::{
    interpolate::interpolate,
    reader::normalized_project_name,
    schema::{ROOT, SERVICE},
};
use serde_json::{Value, json};

use super::{
    canonical::{self, Form, dependencies, keys},
    compose_files::ComposeFiles,
    values::{self, entries, many, pairs, text, texts},
};

/// The keys whose mappings and lists are merged as lists.
const LISTS: &str = "networks.*.labels volumes.*.labels services.*.annotations services.*.build.args \
                     services.*.build.additional_contexts services.*.build.labels services.*.deploy.labels \
                     services.*.dns services.*.dns_opt services.*.dns_search services.*.env_file \
                     services.*.environment services.*.labels services.*.sysctls services.*.tmpfs \
                     services.*.extra_hosts";

/// The keys whose values replace each other.
const REPLACED: &str = "services.*.command services.*.entrypoint services.*.healthcheck.test";

impl ComposeFiles<'_> {
    /// The files as one, with the name of the project.
    pub(super) fn root(&self, by_library: bool) -> Result<Value, String> {
        let mut root = Value::Null;
        for path in self.paths()? {
            let text = self.open(&path)?;
            let invalid = |what: String| format!("validating {path}: {what}");
            let (mut file, date) = self.parse(&text)?;
            if let Some(date) = date.filter(|_| by_library) {
                return Err(invalid(date));
            }
            if !file.is_object() {
                return Err("top-level object must be a mapping".to_owned());
            }
            check(&file).map_err(invalid)?;
            let services = entries(&file["services"]).map(|(name, _)| name);
            let services = services.map(|name| Ok((name.clone(), self.service(&file, name, 0)?)));
            let services = services.collect::<Result<Value, String>>()?;
            if file.get("services").is_some() {
                file["services"] = services;
            }
            merge(&mut root, file, "");
        }
        for include in many(&root["include"]) {
            let path = include.get("path").unwrap_or(include);
            if let Some(path) = texts(path).first() {
                self.open(&self.absolute(path))?;
            }
        }
        let of_variables = || self.shell.get("COMPOSE_PROJECT_NAME").cloned();
        let of_files = || {
            let name = text(&root["name"])?;
            let lookup = |name: &str| self.shell.get(name).cloned();
            Some(interpolate(&name, &lookup).ok()?.into_owned())
        };
        let name = self.project.map(str::to_owned).or_else(of_variables);
        let name = name.or_else(of_files).filter(|name| !name.is_empty());
        let last = self.folder.rsplit('/').next().unwrap_or_default();
        root["name"] = json!(name.unwrap_or_else(|| normalized_project_name(last)));
        Ok(root)
    }

    fn parse(&self, text: &str) -> Result<(Value, Option<String>), String> {
        values::read(text, self.interpolates.then_some(self.shell))
    }

    /// A service of a file, merged over the one that it extends.
    fn service(&self, file: &Value, name: &str, depth: usize) -> Result<Value, String> {
        /// The most services in a chain.
        const DEEPEST: usize = 64;
        let found = file["services"].get(name).cloned();
        let mut own = found.ok_or_else(|| format!("service \"{name}\" not found"))?;
        let extends = own
            .as_object_mut()
            .and_then(|own| own.shift_remove("extends"));
        let Some(extends) = extends else {
            return Ok(own);
        };
        if depth > DEEPEST {
            return Err("circular reference in extends".to_owned());
        }
        let of = text(extends.get("service").unwrap_or(&extends)).unwrap_or_default();
        let mut base = match extends.get("file").and_then(text) {
            None => self.service(file, &of, depth + 1)?,
            Some(path) => {
                let path = self.absolute(&path);
                // The paths in another file start from its directory.
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let there = ComposeFiles { folder, ..*self };
                let mut base = there.service(&self.parse(&self.open(&path)?)?.0, &of, depth + 1)?;
                if let Some(base) = base.as_object_mut() {
                    canonical::long(&of, base, &there, Form::Program)?;
                }
                base
            }
        };
        merge(&mut base, own, "services.*");
        Ok(base)
    }
}

/// Rejects unknown keys.
fn check(root: &Value) -> Result<(), String> {
    let unknown = |key: &str| Err(format!("{key} is not allowed"));
    if let Some((key, _)) = entries(root).find(|(key, _)| ROOT.since(key).is_none()) {
        return unknown(&format!("(root) Additional property {key}"));
    }
    for (name, service) in entries(&root["services"]) {
        if !service.is_object() {
            return Err(format!("services.{name} must be a mapping"));
        }
        if let Some((key, _)) = entries(service).find(|(key, _)| SERVICE.since(key).is_none()) {
            return unknown(&format!("services.{name} Additional property {key}"));
        }
    }
    Ok(())
}

/// Merges `over` over the value at `path`, in which `*` stands for the name of a service or of another resource.
fn merge(base: &mut Value, over: Value, path: &str) {
    let is_in = |list: &str| list.split(' ').any(|key| key == path);
    let drivers = base.get("driver").zip(over.get("driver"));
    let has_other_driver = drivers.is_some_and(|(base, over)| base != over);
    if is_in(REPLACED) || base.is_null() || (path == "services.*.logging" && has_other_driver) {
        *base = over;
        return;
    }
    if over.is_null() {
        return;
    }
    if is_in(LISTS) {
        *base = as_list(base).into_iter().chain(as_list(&over)).collect();
        return;
    }
    *base = in_long(base.take(), path);
    match (base, in_long(over, path)) {
        (Value::Object(base), Value::Object(over)) => {
            let sections = ["services", "networks", "volumes", "secrets", "configs"];
            for (key, value) in over {
                let step = if sections.contains(&path) { "*" } else { &key };
                let below = format!("{path}.{step}");
                match base.get_mut(&key) {
                    Some(found) if !key.starts_with("x-") => {
                        merge(found, value, below.trim_start_matches('.'));
                    }
                    _ => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(base), Value::Array(over)) => base.extend(over),
        (base, over) => *base = over,
    }
}

/// The mapping of a value that may be written in short.
fn in_long(value: Value, path: &str) -> Value {
    match path {
        "services.*.depends_on" => dependencies(&value),
        "services.*.build" if !value.is_object() => json!({"context": value}),
        "services.*.networks" if !value.is_object() => keys(&value),
        _ => value,
    }
}

/// The items of a list; of a mapping, `NAME=value`, sorted.
fn as_list(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(_) => pairs(value)
            .into_iter()
            .map(|(name, value)| value.map_or(name.clone(), |value| format!("{name}={value}")))
            .map(Value::from)
            .collect(),
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        single => vec![single.clone()],
    }
}
