//! Stacks that a person starts with `compose up`, and what the Compose program of this host answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    deployment::{Deployment, variables},
    mounts::MountSource,
    resolve::Project,
    state::World,
    values::{self, many, text},
};

impl World {
    pub(super) fn resolve(&self, deployment: &Deployment) -> Result<Project, String> {
        let env = deployment.env_text.as_deref().unwrap_or_default();
        let given = variables(env, &deployment.env_path, &BTreeMap::new())?;
        let read = |path: &str| {
            if deployment.by_hand {
                return self.read_host(path).map(str::to_owned);
            }
            if path == deployment.file {
                return Some(deployment.text.clone());
            }
            let env = deployment.env_text.clone();
            env.filter(|_| path == deployment.env_path)
                .or_else(|| deployment.files.get(path).cloned())
        };
        Project::resolve(deployment, &given, &read)
    }

    /// Starts the stack in `folder` as `compose up -d` in that directory does. Without a file, from the one that Compose
    /// finds.
    ///
    /// Reads the Compose file, `.env` and other env files from [`World::host`], and creates missing bind sources.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn start_by_hand(
        &mut self,
        project: &str,
        folder: &str,
        file: Option<&str>,
    ) -> Result<(), String> {
        let deployment = self.by_hand(project, folder, file)?;
        self.up(&deployment)
    }

    /// Adds the external networks and volumes that a Compose file needs, and returns the paths that must exist before
    /// [`World::start_by_hand`]: the sources of long-syntax binds, secrets and configs.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn add_external(
        &mut self,
        project: &str,
        folder: &str,
        file: &str,
    ) -> Result<Vec<String>, String> {
        let deployment = self.by_hand(project, folder, Some(file))?;
        let resolved = self.resolve(&deployment)?;
        for network in resolved.networks.values().filter(|one| one.external) {
            if self.network(&network.name).is_err() {
                self.create_network(&json!({ "Name": network.name }))
                    .map_err(|error| error.message)?;
            }
        }
        for volume in resolved.volumes.values().filter(|one| one.external) {
            // An existing volume stays as it is.
            self.create_volume(&json!({ "Name": volume.name }));
        }
        let mounts = resolved.services.iter().flat_map(|service| &service.mounts);
        let needed = mounts.filter_map(|mount| match &mount.source {
            MountSource::Bind {
                path,
                create: false,
            } => Some(path.clone()),
            _ => None,
        });
        Ok(needed.collect())
    }

    /// A deployment by a person. Without a file, of the one that Compose finds.
    fn by_hand(
        &self,
        project: &str,
        folder: &str,
        file: Option<&str>,
    ) -> Result<Deployment, String> {
        let file = file.map(str::to_owned).into_iter();
        let mut files = file.chain(FILES.map(|name| format!("{folder}/{name}")));
        let found = files.find_map(|path| Some((self.read_host(&path)?, path)));
        let (text, file) = found.ok_or_else(|| format!("no configuration file in {folder}"))?;
        let env_path = format!("{folder}/.env");
        Ok(Deployment {
            env_text: self.read_host(&env_path).map(str::to_owned),
            env_path,
            file,
            home: self.home.clone(),
            by_hand: true,
            ..Deployment::new(project, text, folder)
        })
    }
}

/// The names of the files that Compose finds by itself, in the order in which it looks for them.
const FILES: [&str; 6] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
    "podman-compose.yml",
    "podman-compose.yaml",
];

/// What Compose reads in files, as `config --format json` prints it.
///
/// # Errors
/// The message that Compose prints.
pub fn config_of_files(files: &ComposeFiles) -> Result<Value, String> {
    let in_folder = |path: &String| {
        if path.starts_with('/') {
            path.clone()
        } else {
            format!("{}/{path}", files.folder)
        }
    };
    let mut paths: Vec<String> = files.files.iter().map(in_folder).collect();
    if paths.is_empty() {
        let mut found = FILES
            .map(|name| format!("{}/{name}", files.folder))
            .into_iter();
        paths.extend(found.find(|path| (files.read)(path).is_some()));
    }
    let text = |path: &String| {
        (files.read)(path).ok_or_else(|| format!("open {path}: no such file or directory"))
    };
    let mut texts = paths
        .iter()
        .map(text)
        .collect::<Result<Vec<_>, _>>()?
        .into_iter();
    let (Some(file), Some(text)) = (paths.first(), texts.next()) else {
        return Err(format!("no configuration file in {}", files.folder));
    };
    let mut env_files: Vec<String> = files.env_files.iter().map(in_folder).collect();
    if env_files.is_empty() {
        env_files.push(format!("{}/.env", files.folder));
    }
    let mut given = BTreeMap::new();
    for path in &env_files {
        let text = (files.read)(path).unwrap_or_default();
        let own = variables(&text, path, &given)?;
        given.extend(own);
    }
    given.extend(files.shell.clone());
    let mut deployment = Deployment {
        more: texts.collect(),
        file: file.clone(),
        home: files.home.to_owned(),
        ..Deployment::new("", &text, files.folder)
    };
    deployment.project = match files.project {
        Some(name) => name.to_owned(),
        None => name_of(&deployment, &given)?,
    };
    if !files.interpolates {
        return Project::model(&deployment, &given, files.read);
    }
    let project = Project::resolve(&deployment, &given, files.read)?;
    Ok(printed(&deployment, project))
}

/// The name of a project: that of its variables, of its files, or of its directory.
fn name_of(deployment: &Deployment, given: &BTreeMap<String, String>) -> Result<String, String> {
    let mut name = given.get("COMPOSE_PROJECT_NAME").cloned();
    if name.is_none() {
        for file in [&deployment.text].into_iter().chain(&deployment.more) {
            let file = values::read(file, Some(given))?;
            name = file.get("name").and_then(text).or(name);
        }
    }
    let folder = deployment.folder.rsplit('/').next().unwrap_or_default();
    let of_folder = || {
        let lower = folder.to_lowercase();
        let kept = lower
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c));
        kept.collect::<String>()
            .trim_start_matches(['_', '-'])
            .to_owned()
    };
    Ok(name
        .filter(|name| !name.is_empty())
        .unwrap_or_else(of_folder))
}

/// The files that Compose reads, and their surroundings.
pub struct ComposeFiles<'f> {
    /// The name of the project; `None` if Compose finds it by itself.
    pub project: Option<&'f str>,
    /// The directory that relative paths start from.
    pub folder: &'f str,
    /// The Compose files, of which each overrides those before it. If empty, Compose finds one by itself.
    pub files: &'f [String],
    /// The env files. If empty, Compose reads `.env`.
    pub env_files: &'f [String],
    /// The variables of the shell.
    pub shell: &'f BTreeMap<String, String>,
    /// Whether variables are replaced.
    pub interpolates: bool,
    /// What `~` stands for.
    pub home: &'f str,
    /// Reads a file.
    pub read: &'f dyn Fn(&str) -> Option<String>,
}

/// A project as it is printed, without what no service uses.
fn printed(deployment: &Deployment, project: Project) -> Value {
    let mut used: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for service in &project.services {
        let networks = service.networks().map(|(key, _)| key.clone());
        used.entry("networks").or_default().extend(networks);
        for (section, list) in [
            ("volumes", service.config.get("volumes")),
            ("secrets", service.config.get("secrets")),
            (
                "secrets",
                service
                    .config
                    .get("build")
                    .and_then(|build| build.get("secrets")),
            ),
            ("configs", service.config.get("configs")),
        ] {
            let sources = many(list)
                .into_iter()
                .filter(|item| section != "volumes" || item["type"] == "volume");
            let sources = sources.filter_map(|item| text(&item["source"]));
            used.entry(section).or_default().extend(sources);
        }
    }
    let mut config = project.extensions;
    config.values_mut().for_each(Value::sort_all_objects);
    config.insert("name".to_owned(), json!(deployment.project));
    for (section, resources) in [
        ("networks", project.networks),
        ("volumes", project.volumes),
        ("secrets", project.secrets),
        ("configs", project.configs),
    ] {
        let is_used = |key: &String| used.get(section).is_some_and(|used| used.contains(key));
        let resources = resources.into_iter().filter(|(key, _)| is_used(key));
        let section_config: Map<_, _> = resources
            .map(|(key, one)| (key, one.config().into()))
            .collect();
        if !section_config.is_empty() {
            config.insert(section.to_owned(), section_config.into());
        }
    }
    let services = project.services.into_iter();
    let mut services: Map<_, _> = services
        .map(|service| (service.name, service.config.into()))
        .collect();
    services.sort_keys();
    config.insert("services".to_owned(), services.into());
    config.sort_keys();
    let mut config = Value::Object(config);
    double_dollars(&mut config);
    config
}

/// `config` prints every `$` of a value twice.
fn double_dollars(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace('$', "$$"),
        Value::Array(items) => items.iter_mut().for_each(double_dollars),
        Value::Object(map) => {
            let entries = std::mem::take(map).into_iter();
            *map = entries
                .map(|(key, mut value)| {
                    double_dollars(&mut value);
                    (key.replace('$', "$$"), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::entities::config_hash;

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

    /// The file is what the 2.26.1 of Debian printed for this text.
    #[test]
    fn a_configuration_is_printed_as_compose_prints_it() {
        let config = config_of_files(&ComposeFiles {
            project: None,
            folder: "/stack",
            files: &["every.yaml".to_owned()],
            env_files: &[],
            shell: &shell(),
            interpolates: true,
            home: "/root",
            read: &read,
        });
        let expected: Value = serde_json::from_str(include_str!("../../tests/every.json")).unwrap();
        // The order of the keys counts: it is hashed.
        assert_eq!(config.unwrap().to_string(), expected.to_string());
    }

    /// Each hash is one that 2.40.3 printed with `config --hash`, which reads no env files.
    #[test]
    fn n36_the_library_hashes_a_service_as_compose_does() {
        let lines = TEXT.lines().filter(|line| !line.contains("env_file"));
        let text = lines.collect::<Vec<_>>().join("\n");
        let deployment = Deployment {
            by_library: true,
            ..Deployment::new("every", &text, "/stack")
        };
        let project = Project::resolve(&deployment, &shell(), &read).unwrap();
        let services = project.services.into_iter();
        let hashes: BTreeMap<_, _> = services
            .map(|service| (service.name, config_hash(&service.hashed.into())))
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
