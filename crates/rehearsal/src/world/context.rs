//! What a service of a Compose file refers to.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    deployment::Deployment,
    entities::config_hash,
    values::{labels, pairs, text},
};

/// A top-level network or volume.
pub(super) struct Resource {
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
    pub networks: BTreeMap<String, Resource>,
    pub volumes: BTreeMap<String, Resource>,
    /// The text as plain values.
    pub root: Map<String, Value>,
}

impl Context<'_> {
    /// Fails if a file that Compose must read does not exist.
    pub fn require_file(&self, path: &str) -> Result<(), String> {
        let path = self.deployment.absolute(path);
        match (self.read)(&path) {
            Some(_) => Ok(()),
            None => Err(format!("open {path}: no such file or directory")),
        }
    }

    /// A service merged over the services of the same file that it extends.
    pub fn extended(&self, name: &str, depth: usize) -> Result<Map<String, Value>, String> {
        let found = written(&self.root).find(|(one, _)| *one == name);
        let own = found
            .and_then(|(_, service)| service.as_object())
            .ok_or_else(|| format!("service \"{name}\" not found"))?;
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
pub(super) fn resources(
    root: &Map<String, Value>,
    section: &str,
    project: &str,
) -> BTreeMap<String, Resource> {
    let mut all = root.get(section).and_then(Value::as_object).cloned();
    if section == "networks" {
        let networks = all.get_or_insert_default();
        networks.entry("default").or_insert(Value::Null);
    }
    let resource = |(key, written): (String, Value)| {
        let is_set = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false));
        let external = written.get("external").filter(is_set);
        let named = written.get("name").or_else(|| external?.get("name"));
        let name = named.and_then(text).unwrap_or_else(|| match external {
            Some(_) => key.clone(),
            None => format!("{project}_{key}"),
        });
        let resource = Resource {
            name,
            external: external.is_some(),
            written,
        };
        (key, resource)
    };
    all.into_iter().flatten().map(resource).collect()
}

impl Resource {
    /// The definition, as `config --format json` prints it, but for the `$`.
    pub fn config(&self) -> Value {
        let written = |key: &str| self.written.get(key).filter(|value| !value.is_null());
        let all = [
            ("name", Some(json!(self.name))),
            ("driver", written("driver").cloned()),
            (
                "driver_opts",
                written("driver_opts").map(|all| json!(texts_of(all))),
            ),
            ("ipam", written("ipam").cloned()),
            ("external", self.external.then(|| json!(true))),
            ("internal", written("internal").cloned()),
            (
                "labels",
                written("labels").map(|all| json!(labels(Some(all)))),
            ),
            ("enable_ipv6", written("enable_ipv6").cloned()),
        ];
        let set = all.into_iter();
        set.filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect()
    }

    /// The hash of the definition of a `network` or a `volume` (N13).
    pub fn hash(&self, kind: &str) -> String {
        let mut config = self.config();
        if let Some(config) = config.as_object_mut()
            && kind == "volume"
            && !config.contains_key("driver")
        {
            config.shift_insert(1, "driver".to_owned(), json!("local"));
        }
        config_hash(&config)
    }
}

fn texts_of(options: &Value) -> BTreeMap<String, String> {
    let options = pairs(Some(options)).into_iter();
    options
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

/// The services of the file.
pub(super) fn written(root: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let services = root.get("services").and_then(Value::as_object);
    services.into_iter().flatten()
}
