//! Stacks that a person starts with `compose up`, and what the Compose program of this host answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    context::Resource,
    deployment::{Deployment, variables},
    mounts::MountSource,
    resolve::Project,
    state::World,
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

    /// What Compose reads in a text, as `config --format json` prints it. `env` is `stack.env`; it is not written if it is
    /// empty (M07).
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn config_of_text(&self, project: &str, text: &str, env: &str) -> Result<Value, String> {
        self.config(&Deployment {
            env_text: (!env.is_empty()).then(|| env.to_owned()),
            ..Deployment::new(project, text, "/stack")
        })
    }

    /// The same of the stack in `folder`. Without a file, of the one that Compose finds.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn config_on_disk(
        &self,
        project: &str,
        folder: &str,
        file: Option<&str>,
    ) -> Result<Value, String> {
        let file = file.map(|file| format!("{folder}/{file}"));
        self.config(&self.by_hand(project, folder, file.as_deref())?)
    }

    fn config(&self, deployment: &Deployment) -> Result<Value, String> {
        printed(deployment, self.resolve(deployment)?)
    }

    /// A deployment by a person. Without a file, of the one that Compose finds.
    fn by_hand(
        &self,
        project: &str,
        folder: &str,
        file: Option<&str>,
    ) -> Result<Deployment, String> {
        let of_tool = |extension| format!("{}-compose.{extension}", self.tool);
        let names = [
            "compose.yaml".to_owned(),
            "compose.yml".to_owned(),
            of_tool("yml"),
            of_tool("yaml"),
        ];
        let files = names.iter().map(|name| format!("{folder}/{name}"));
        let mut files = file.map(str::to_owned).into_iter().chain(files);
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

/// What Compose reads in files, as `config --format json` prints it.
///
/// # Errors
/// The message that Compose prints.
pub fn config_of_files(files: &ComposeFiles) -> Result<Value, String> {
    let [text, more @ ..] = files.texts else {
        return Err(format!("no configuration file in {}", files.folder));
    };
    let deployment = Deployment {
        more: more.to_vec(),
        file: files.file.to_owned(),
        home: files.home.to_owned(),
        ..Deployment::new(files.project, text, files.folder)
    };
    let project = Project::resolve(&deployment, files.variables, files.read)?;
    printed(&deployment, project)
}

/// The files that Compose reads, and their surroundings.
pub struct ComposeFiles<'f> {
    /// The name of the project.
    pub project: &'f str,
    /// The directory that relative paths start from.
    pub folder: &'f str,
    /// The path of the first file.
    pub file: &'f str,
    /// The texts of the Compose files. Each overrides those before it.
    pub texts: &'f [String],
    /// The variables for interpolation.
    pub variables: &'f BTreeMap<String, String>,
    /// What `~` stands for.
    pub home: &'f str,
    /// Reads another file.
    pub read: &'f dyn Fn(&str) -> Option<String>,
}

fn printed(deployment: &Deployment, project: Project) -> Result<Value, String> {
    let services = project.services.into_iter();
    let services = services.map(|service| (service.name.clone(), service.config()));
    let of = |resources: BTreeMap<String, Resource>| -> Value {
        let resources = resources.into_iter();
        resources.map(|(key, one)| (key, one.config())).collect()
    };
    let config = json!({
        "name": deployment.project,
        "services": services.collect::<Map<_, _>>(),
        "networks": of(project.networks),
        "volumes": of(project.volumes),
    });
    // `config` prints every `$` twice.
    serde_json::from_str(&config.to_string().replace('$', "$$")).map_err(|error| error.to_string())
}
