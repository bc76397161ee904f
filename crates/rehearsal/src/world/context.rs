//! What a service of a Compose file refers to.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{deployment::Deployment, entities::config_hash, typed, values::text};

/// A top-level network, volume, secret or config.
pub(super) struct Resource {
    section: String,
    /// The name on the engine.
    pub name: String,
    pub external: bool,
    /// The mapping below the key, in the canonical form.
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
}

/// The networks, volumes, secrets or configs of the file. There is always a default network.
pub(super) fn resources(
    root: &Map<String, Value>,
    section: &str,
    deployment: &Deployment,
) -> BTreeMap<String, Resource> {
    let mut all = root.get(section).and_then(Value::as_object).cloned();
    if section == "networks" {
        let networks = all.get_or_insert_default();
        networks.entry("default").or_insert(Value::Null);
    }
    let resource = |(key, written): (String, Value)| {
        let mut written = written.as_object().cloned().unwrap_or_default();
        let external = written.get("external").cloned().unwrap_or_default();
        let is_external =
            external.is_object() || text(&external).is_some_and(|text| text == "true");
        let named = written.get("name").or_else(|| external.get("name"));
        let name = named.and_then(text).unwrap_or_else(|| {
            if is_external {
                key.clone()
            } else {
                format!("{}_{key}", deployment.project)
            }
        });
        written.insert("name".to_owned(), json!(name));
        if external.is_object() {
            written.insert("external".to_owned(), json!(true));
        }
        if let Some(file) = written.get("file").and_then(text) {
            written.insert("file".to_owned(), json!(deployment.absolute(&file)));
        }
        if written.get("driver") == Some(&json!("local"))
            && let Some(options) = written.get_mut("driver_opts")
            && options["o"] == "bind"
            && let Some(device) = options.get("device").and_then(text)
        {
            options["device"] = json!(deployment.absolute(&device));
        }
        let resource = Resource {
            section: section.to_owned(),
            name,
            external: is_external,
            written: written.into(),
        };
        (key, resource)
    };
    all.into_iter().flatten().map(resource).collect()
}

impl Resource {
    /// The definition, as `config --format json` prints it, but for the `$`.
    pub fn config(&self) -> Map<String, Value> {
        let part = match self.section.as_str() {
            "secrets" | "configs" => "files",
            section => section,
        };
        typed::part(part, &self.written)
    }

    /// The hash of the definition of a network or a volume (N13).
    pub fn hash(&self) -> String {
        let mut config = self.config();
        if self.section == "volumes" && !config.contains_key("driver") {
            config.shift_insert(1, "driver".to_owned(), json!("local"));
        }
        config_hash(&config.into())
    }
}

/// The services of the file.
pub(super) fn written(root: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let services = root.get("services").and_then(Value::as_object);
    services.into_iter().flatten()
}
