//! A deployment: its inputs, and the version of Compose that runs it.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    context::{Context, variables},
    entities::fingerprint,
    mounts::{MountSpec, Source},
    record::Variable,
    resolve::Project,
    service::Service,
    state::{Era, LocalCompose, World},
};

/// The version of Compose. Versions differ in how they hash a service and when they recreate a container (N04, N05).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compose {
    V2_26,
    V5_6,
    /// The library in the newer Portainer.
    Library,
}

/// The inputs of `compose up`.
pub(super) struct Deployment {
    pub engine: String,
    pub project: String,
    pub text: String,
    /// The content of `.env`, or of the file that `--env-file` names.
    pub env_text: Option<String>,
    pub env_path: String,
    pub folder: String,
    pub file: String,
    pub home: String,
    pub compose: Compose,
    pub by_hand: bool,
}

impl Deployment {
    /// A deployment by Portainer: its directory contains only the Compose file and `stack.env` (M07, M11).
    pub fn by_portainer(
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

impl From<LocalCompose> for Compose {
    fn from(local: LocalCompose) -> Self {
        match local {
            LocalCompose::V2_26 => Self::V2_26,
            LocalCompose::V5_6 => Self::V5_6,
        }
    }
}

impl Compose {
    pub fn version(self) -> &'static str {
        match self {
            Self::V2_26 => "2.26.1",
            Self::V5_6 => "5.6.1",
            Self::Library => "2.40.3",
        }
    }

    /// The hash of a service. It differs between versions where the real ones were measured to differ (N05).
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
    /// The value of the label `version`.
    pub(super) fn version_label(&self, deployment: &Deployment) -> String {
        let version = deployment.compose.version();
        if self.labels_say_rehearsal {
            format!("rehearsal-{version}")
        } else {
            version.to_owned()
        }
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
