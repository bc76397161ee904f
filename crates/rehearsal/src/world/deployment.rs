//! What is deployed, by whom, and how that compose works.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use composefile::dotenv;

use super::{
    Era, World,
    entities::fingerprint,
    mounts::{MountSpec, Source},
    records::Variable,
    resolve::{Context, Project},
    service::Service,
};

/// The compose program that people start stacks with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Hand {
    /// 2.26.1
    #[default]
    V2_26,
    /// 5.6.1
    V5_6,
}

/// Whose way of hashing a configuration and of recreating a container it is (N04, N05).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compose {
    V2_26,
    V5_6,
    /// The library in the newer manager's process.
    Library,
}

/// One run of `compose up`.
pub(super) struct Deployment {
    pub engine: String,
    pub project: String,
    pub text: String,
    /// The variables in the file that `--env-file` names, or compose's own `.env`.
    pub env_text: Option<String>,
    pub env_path: String,
    pub folder: String,
    pub file: String,
    pub home: String,
    pub compose: Compose,
    pub by_hand: bool,
}

impl Deployment {
    /// As the manager does it: in its own folder, where only the text and `stack.env` lie (M07, M11).
    pub fn by_manager(
        engine: &str,
        project: &str,
        text: &str,
        env: &[Variable],
        folder: &str,
        era: Era,
    ) -> Self {
        let lines = env
            .iter()
            .map(|one| format!("{}={}\n", one.name, one.value));
        Self {
            engine: engine.to_owned(),
            project: project.to_owned(),
            text: text.to_owned(),
            env_text: (!env.is_empty()).then(|| lines.collect()),
            env_path: format!("{folder}/stack.env"),
            folder: folder.to_owned(),
            file: format!("{folder}/docker-compose.yml"),
            home: "/root".to_owned(),
            compose: if era == Era::Sync {
                Compose::V2_26
            } else {
                Compose::Library
            },
            by_hand: false,
        }
    }
}

/// The variables of an env file by compose's rules (M08).
pub(super) fn variables(
    text: &str,
    path: &str,
    known: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let lookup = |name: &str| known.get(name).cloned();
    let read = dotenv::parse(text, &lookup);
    let read = read.map_err(|error| {
        format!(
            "failed to read {path}: line {}: {}",
            error.line, error.problem
        )
    })?;
    Ok(read.into_iter().collect())
}

impl Compose {
    pub fn version(self) -> &'static str {
        match self {
            Self::V2_26 => "2.26.1",
            Self::V5_6 => "5.6.1",
            Self::Library => "2.40.3",
        }
    }

    /// The hash of a configuration. What is measured to differ between versions differs here (N05).
    pub fn hash(self, service: &Service) -> String {
        let mut config = service.config.clone();
        if self == Self::V2_26 {
            let depends_on = service.depends_on.keys().collect::<Vec<_>>();
            if !depends_on.is_empty() {
                config["depends_on"] = json!(depends_on);
            }
            if !service.profiles.is_empty() {
                config["profiles"] = json!(service.profiles);
            }
        }
        let short = |spec: &&MountSpec| matches!(spec.source, Source::Bind { short: true, .. });
        if self == Self::V5_6 && service.mounts.iter().any(|spec| short(&spec)) {
            config["binds"] = json!("the default of create_host_path left out");
        }
        fingerprint(&config.to_string())
    }
}

impl World {
    /// Starts the stack in `folder` as a person does, with `compose up -d` in that folder.
    ///
    /// The compose file, `.env` and what `env_file` names are read from [`World::host`]; every path
    /// that the text binds is there afterwards.
    pub fn start_by_hand(&mut self, project: &str, folder: &str) -> Result<(), String> {
        let file = self.compose_file(folder)?;
        self.start_file_by_hand(project, folder, &file)
    }

    /// The same with a compose file of another name.
    pub fn start_file_by_hand(
        &mut self,
        project: &str,
        folder: &str,
        file: &str,
    ) -> Result<(), String> {
        let deployment = self.deployment_by_hand(project, folder, file)?;
        self.up(&deployment)
    }

    /// The services that a `compose up -d` by hand would create or recreate; changes nothing.
    pub fn up_would_change(&self, project: &str, folder: &str) -> Result<Vec<String>, String> {
        let file = self.compose_file(folder)?;
        let deployment = self.deployment_by_hand(project, folder, &file)?;
        self.changed_by(&deployment)
    }

    fn compose_file(&self, folder: &str) -> Result<String, String> {
        let names = [
            format!("{}-compose.yml", self.tool),
            "compose.yaml".to_owned(),
        ];
        let mut files = names.iter().map(|name| format!("{folder}/{name}"));
        let file = files.find(|path| self.read_host(path).is_some());
        file.ok_or_else(|| format!("no configuration file in {folder}"))
    }

    fn deployment_by_hand(
        &self,
        project: &str,
        folder: &str,
        file: &str,
    ) -> Result<Deployment, String> {
        let text = self
            .read_host(file)
            .ok_or_else(|| format!("no such file: {file}"))?
            .to_owned();
        let env_path = format!("{folder}/.env");
        Ok(Deployment {
            engine: self.engine.id.clone(),
            project: project.to_owned(),
            text,
            env_text: self.read_host(&env_path).map(str::to_owned),
            env_path,
            folder: folder.to_owned(),
            file: file.to_owned(),
            home: "/home/operator".to_owned(),
            compose: match self.hand {
                Hand::V2_26 => Compose::V2_26,
                Hand::V5_6 => Compose::V5_6,
            },
            by_hand: true,
        })
    }

    pub(super) fn resolve(&self, deployment: &Deployment) -> Result<Project, String> {
        let given = match &deployment.env_text {
            Some(text) => variables(text, &deployment.env_path, &BTreeMap::new())?,
            None => BTreeMap::new(),
        };
        let read = |path: &str| {
            if deployment.by_hand {
                return self.read_host(path).map(str::to_owned);
            }
            let own = [
                (deployment.env_path.as_str(), deployment.env_text.as_ref()),
                (deployment.file.as_str(), Some(&deployment.text)),
            ];
            own.into_iter()
                .find(|(known, _)| *known == path)
                .and_then(|(_, text)| text.cloned())
        };
        let context = Context {
            project: &deployment.project,
            variables: &given,
            folder: &deployment.folder,
            home: &deployment.home,
            file: &deployment.file,
            read: &read,
        };
        Project::resolve(&deployment.text, &context)
    }
}
