//! Resolves a project: computes what `config --format json` prints, and puts the services in start order.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    canonical::{self, Form},
    compose_files::ComposeFiles,
    entities::config_hash,
    service::Service,
    typed,
    values::{entries, many, text, texts},
};

/// The sections of what services share.
const SECTIONS: [&str; 4] = ["networks", "volumes", "secrets", "configs"];

/// The version of the Compose program, which also starts stacks by hand.
pub const COMPOSE_VERSION: &str = "2.26.1";
/// The version of the library in the newer Portainer. The two differ in how they hash a service and when they recreate a
/// container (N04, N05).
const LIBRARY: &str = "2.40.3";

/// A resolved project, and how it is deployed.
#[derive(Default)]
pub(super) struct Project {
    pub name: String,
    pub folder: String,
    pub env_files: Vec<String>,
    /// Whether a person runs Compose on the host.
    pub by_hand: bool,
    /// Whether the library of the newer Portainer runs it.
    pub by_library: bool,
    /// Whether every container is recreated, and not only those that changed.
    pub recreates_all: bool,
    /// The enabled services, dependencies first.
    pub services: Vec<Service>,
    /// The names of all services.
    pub defined: BTreeSet<String>,
    /// Whether the variables tell the library to remove orphans (N14), or else a request does (N19).
    pub removes_orphans: Option<bool>,
    /// The paths of the Compose files.
    pub files: Vec<String>,
    /// The name, the `x-` keys and the [`SECTIONS`], as `config --format json` prints them, but for the `$`, and also what
    /// no service uses.
    pub config: Value,
}

/// What Compose reads in files, as `config --format json` prints it.
///
/// # Errors
/// The message that Compose prints.
pub fn config_of_files(files: &ComposeFiles<'_>) -> Result<Value, String> {
    if files.interpolates {
        return Ok(Project::resolve(files, false)?.printed());
    }
    let shell = &files.variables()?;
    let files = &ComposeFiles { shell, ..*files };
    let mut root = files.root(false)?;
    let mut uses_default = root["networks"].get("default").is_some();
    let services = root.get_mut("services").and_then(Value::as_object_mut);
    for (name, service) in services.into_iter().flatten() {
        if let Some(service) = service.as_object_mut() {
            canonical::service(name, service, files, Form::Model)?;
            let networks = service.get("networks");
            uses_default |= networks.is_some_and(|networks| networks.get("default").is_some());
        }
    }
    for section in SECTIONS {
        let mut all = resources(&root, section, files);
        if let Some(networks) = all.as_object_mut().filter(|_| section == "networks") {
            networks.retain(|key, _| key != "default" || uses_default);
        }
        if entries(&all).next().is_some() {
            root[section] = all;
        }
    }
    if let Some(root) = root.as_object_mut() {
        root.shift_remove("version");
    }
    root.sort_all_objects();
    Ok(root)
}

impl Project {
    /// Parses, validates and resolves the Compose files.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn resolve(files: &ComposeFiles<'_>, by_library: bool) -> Result<Self, String> {
        let (shell, paths) = (&files.variables()?, files.paths()?);
        let files = &ComposeFiles {
            shell,
            files: &paths,
            ..*files
        };
        let root = files.root(by_library)?;
        let extensions = entries(&root).filter(|(key, _)| key.starts_with("x-") || *key == "name");
        let mut config: Value = extensions
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for section in SECTIONS {
            let all = resources(&root, section, files);
            let all =
                entries(&all).map(|(key, written)| (key.clone(), typed::part(section, written)));
            config[section] = all.collect();
        }
        let given = shell.get("COMPOSE_PROFILES").map_or("", String::as_str);
        let profiles = given.split(',').map(str::trim).collect::<BTreeSet<_>>();
        let is_enabled = |service: &Value| {
            let of = texts(&service["profiles"]);
            let mut selected = of.iter().map(String::as_str);
            of.is_empty() || profiles.contains("*") || selected.any(|of| profiles.contains(of))
        };
        let enabled = entries(&root["services"]).filter(|(_, service)| is_enabled(service));
        let services = enabled.map(|(name, service)| {
            let service = Service::resolve(name, service, files, by_library)?;
            check_references(&service, &config).map(|()| service)
        });
        let services = services.collect::<Result<Vec<_>, _>>()?;
        let names = services
            .iter()
            .map(|service| service.name.clone())
            .collect();
        let services = services.into_iter();
        let services = services
            .map(|service| service.without_inactive(&names))
            .collect();
        let flag = |name: &str| shell.get(name).map(|value| value == "true");
        if let Some(limit) = shell.get("COMPOSE_PARALLEL_LIMIT")
            && limit.parse::<i64>().is_err()
        {
            let name = "COMPOSE_PARALLEL_LIMIT";
            return Err(format!("{name} must be an integer (found: {limit:?})"));
        }
        Ok(Self {
            name: text(&config["name"]).unwrap_or_default(),
            folder: files.folder.to_owned(),
            env_files: files.env_files.to_vec(),
            by_library,
            services: ordered(services)?,
            defined: entries(&root["services"])
                .map(|(name, _)| name.clone())
                .collect(),
            removes_orphans: match flag("COMPOSE_IGNORE_ORPHANS") {
                Some(true) => Some(false),
                _ => flag("COMPOSE_REMOVE_ORPHANS"),
            },
            files: paths,
            config,
            ..Self::default()
        })
    }

    /// The value of the label `version`.
    pub fn version(&self) -> &str {
        if self.by_library {
            LIBRARY
        } else {
            COMPOSE_VERSION
        }
    }

    /// The name on the engine of a network or a volume.
    pub fn name_of<'p>(&'p self, section: &str, key: &'p str) -> &'p str {
        self.config[section][key]["name"].as_str().unwrap_or(key)
    }

    /// The project as it is printed, without what no service uses.
    fn printed(self) -> Value {
        let mut config = self.config;
        let references = self
            .services
            .iter()
            .flat_map(|service| references(&service.config));
        let used: BTreeSet<_> = references.collect();
        for section in SECTIONS {
            if let Some(all) = config[section].as_object_mut() {
                all.retain(|key, _| used.contains(&(section, key.clone())));
            }
        }
        if let Some(config) = config.as_object_mut() {
            config.retain(|key, value| {
                let is_section = SECTIONS.contains(&key.as_str());
                if !is_section {
                    value.sort_all_objects();
                }
                !is_section || entries(value).next().is_some()
            });
        }
        let mut services: Map<_, _> = self
            .services
            .into_iter()
            .map(|service| (service.name, service.config))
            .collect();
        services.sort_keys();
        config["services"] = services.into();
        if let Some(config) = config.as_object_mut() {
            config.sort_keys();
        }
        // `config` prints every `$` twice.
        let doubled = config.to_string().replace('$', "$$");
        serde_json::from_str(&doubled).unwrap_or_default()
    }
}

/// The networks, volumes, secrets or configs of the file, each with its name. There is always a default network.
fn resources(root: &Value, section: &str, files: &ComposeFiles<'_>) -> Value {
    let mut all = root[section].as_object().cloned().unwrap_or_default();
    if section == "networks" {
        all.entry("default").or_insert_with(|| json!({}));
    }
    all.sort_keys();
    for (key, resource) in &mut all {
        if !resource.is_object() {
            *resource = json!({});
        }
        let external = resource.get("external").cloned().unwrap_or_default();
        let is_external = external.is_object() || text(&external).as_deref() == Some("true");
        let named = resource.get("name").or_else(|| external.get("name"));
        resource["name"] = match named.and_then(text) {
            Some(name) => json!(name),
            None if is_external => json!(key),
            None => json!(format!("{}_{key}", text(&root["name"]).unwrap_or_default())),
        };
        if external.is_object() {
            resource["external"] = json!(true);
        }
        let is_local = resource.get("driver") == Some(&json!("local"));
        let is_bind = is_local && resource.pointer("/driver_opts/o") == Some(&json!("bind"));
        for (path, is_path) in [("/file", true), ("/driver_opts/device", is_bind)] {
            if let Some(value) = resource.pointer_mut(path).filter(|_| is_path)
                && let Some(path) = text(value)
            {
                *value = json!(files.absolute(&path));
            }
        }
    }
    all.into()
}

/// The hash of the definition of a network or a volume (N13).
pub(super) fn hash_of(section: &str, definition: &Value) -> String {
    let mut definition = definition.as_object().cloned().unwrap_or_default();
    if section == "volumes" && !definition.contains_key("driver") {
        definition.shift_insert(1, "driver".to_owned(), json!("local"));
    }
    config_hash(&definition.into())
}

/// The section and the key of everything that a service shares with others.
fn references(service: &Value) -> Vec<(&'static str, String)> {
    let networks = entries(&service["networks"]).map(|(key, _)| ("networks", key.clone()));
    let lists = [
        ("volumes", &service["volumes"]),
        ("secrets", &service["secrets"]),
        ("secrets", &service["build"]["secrets"]),
        ("configs", &service["configs"]),
    ];
    let items = lists.into_iter().flat_map(|(section, list)| {
        let items = many(list).iter();
        let items = items.filter(move |item| section != "volumes" || item["type"] == "volume");
        items.filter_map(move |item| Some((section, text(&item["source"])?)))
    });
    networks.chain(items).collect()
}

fn check_references(service: &Service, config: &Value) -> Result<(), String> {
    let mut all = references(&service.config).into_iter();
    match all.find(|(section, key)| config[section].get(key).is_none()) {
        Some((section, key)) => {
            let kind = section.trim_end_matches('s');
            Err(service.invalid(&format!("refers to undefined {kind} {key}")))
        }
        None => Ok(()),
    }
}

/// The services in start order: dependencies first (M14).
fn ordered(mut services: Vec<Service>) -> Result<Vec<Service>, String> {
    let names: BTreeSet<String> = services
        .iter()
        .map(|service| service.name.clone())
        .collect();
    for service in &services {
        let mut needed = service
            .depends_on()
            .filter(|(_, how)| how["required"] != false);
        if let Some((name, _)) = needed.find(|(name, _)| !names.contains(*name)) {
            return Err(service.invalid(&format!("depends on undefined service \"{name}\"")));
        }
    }
    services.sort_by(|one, other| one.name.cmp(&other.name));
    let mut order: Vec<Service> = Vec::new();
    while !services.is_empty() {
        let waits_for = |name: &str| services.iter().any(|service| service.name == name);
        let mut all = services.iter();
        let free = all.position(|service| !service.depends_on().any(|(name, _)| waits_for(name)));
        order.push(services.remove(free.ok_or("dependency cycle detected")?));
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TEXT: &str = include_str!("../../tests/every.yaml");

    fn read(path: &str) -> Option<String> {
        let text = match path {
            "/stack/every.yaml" => TEXT,
            "/stack/app.env" => "FROM_FILE=1\nA=file\nQ=\"x y\"\n",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn shell() -> BTreeMap<String, String> {
        let variables = [("COMPOSE_PROFILES", "*"), ("OCTAL", "0440")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        variables.into()
    }

    fn every<'f>(
        files: &'f [String],
        shell: &'f BTreeMap<String, String>,
        read: &'f dyn Fn(&str) -> Option<String>,
    ) -> ComposeFiles<'f> {
        ComposeFiles {
            project: None,
            folder: "/stack",
            files,
            env_files: &[],
            shell,
            interpolates: true,
            home: "/root",
            read,
        }
    }

    /// The file is what the 2.26.1 of Debian printed for this text.
    #[test]
    fn a_configuration_is_printed_as_compose_prints_it() {
        let config = config_of_files(&every(&["every.yaml".to_owned()], &shell(), &read));
        let expected: Value = serde_json::from_str(include_str!("../../tests/every.json")).unwrap();
        // The order of the keys counts: it is hashed.
        assert_eq!(config.unwrap().to_string(), expected.to_string());
    }

    /// Each hash is one that 2.40.3 printed with `config --hash`, which reads no env files.
    #[test]
    fn n36_the_library_hashes_a_service_as_compose_does() {
        let lines = TEXT.lines().filter(|line| !line.contains("env_file"));
        let text = lines.collect::<Vec<_>>().join("\n");
        let read = |path: &str| (path == "/stack/every.yaml").then(|| text.clone());
        let (files, shell) = (["every.yaml".to_owned()], shell());
        let project = Project::resolve(&every(&files, &shell, &read), true).unwrap();
        let services = project.services.into_iter();
        let hashes: BTreeMap<_, _> = services
            .map(|service| (service.name, config_hash(&service.hashed)))
            .collect();
        let expected = [
            (
                "app",
                "f71abbe9f3b6d54b933c251be44be21cfbfc38d6ce6c96a5f10d4d4c50dfb329",
            ),
            (
                "base",
                "1673a9f15bec4de6a7d4f1e183e06afb9fbd87beffbbfdfad31cc477fa555d70",
            ),
            (
                "job",
                "b6184a4033f3f65facf029aed88132bc7287cdc84a2eb67619cfc6e34f9490fb",
            ),
        ];
        let expected = expected.map(|(name, hash)| (name.to_owned(), hash.to_owned()));
        assert_eq!(hashes, BTreeMap::from(expected));
    }
}
