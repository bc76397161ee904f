//! Git stacks, and the repositories that Portainer can read (M24, M25).

use std::{collections::BTreeMap, sync::Mutex};

use rehearsal::{
    ADMIN, Apis, Call, Era, Files, Kind, Record, Refused, Request, Response, Variable, Work, World,
    config_hash,
    portainer::{self, Perform, answered, change, payload},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lock;

/// Clones a repository: its URL, a reference, a user name and a password. Returns the files and the commit.
pub type Fetch = fn(&str, &str, &str, &str) -> Result<(Files, String), CloneError>;

/// Why a repository cannot be cloned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloneError {
    /// The credentials are missing or wrong.
    Credential,
    /// Another reason.
    Failed(String),
}

/// A repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitRepository {
    /// The files of each branch, by its full name.
    pub branches: BTreeMap<String, Files>,
    /// The full name of the default branch.
    pub default: String,
    /// The password, if it is private. Every user name is right.
    pub password: Option<String>,
}

/// What Portainer has to do with Git.
#[derive(Default)]
pub struct Git {
    /// The repositories that it can reach, by URL.
    pub repositories: BTreeMap<String, GitRepository>,
    /// Clones repositories instead, if they are real.
    pub fetch: Option<Fetch>,
    /// What each Git stack was cloned with.
    settings: BTreeMap<u64, GitSettings>,
}

/// The Git settings of a request, with the names that they have in a preview, and in a create.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GitSettings {
    #[serde(rename = "repository", alias = "repositoryURL")]
    url: String,
    /// The full name of a branch or tag; empty for the default branch.
    #[serde(alias = "repositoryReferenceName")]
    reference: String,
    /// The Compose file.
    #[serde(rename = "targetFile", alias = "composeFile")]
    entry: String,
    /// Further Compose files.
    #[serde(rename = "additionalFiles")]
    additional: Option<Vec<String>>,
    #[serde(rename = "username", alias = "repositoryUsername")]
    user: String,
    #[serde(alias = "repositoryPassword")]
    password: String,
    /// Whether the certificate of the Git server is not checked.
    #[serde(rename = "tlsSkipVerify", alias = "tlsskipVerify")]
    skips_tls: bool,
}

/// What a create or a new deployment of a Git stack contains besides that.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Payload {
    name: String,
    env: Option<Vec<Variable>>,
    auto_update: Option<Value>,
    repository_authentication: bool,
}

/// Responds to a request about Git.
pub(crate) fn respond(
    git: &Mutex<Git>,
    apis: &Apis,
    request: &Request,
    perform: Perform,
) -> Response {
    let prepare = |world: &mut World| {
        let git = &mut lock(git);
        match request.call {
            Call::CreateGit => git.prepare_create(world, request),
            _ => git.prepare_redeploy(world, request),
        }
    };
    let outcome = match request.call {
        Call::Preview => {
            let checked = portainer::check_key(&apis.world(), request);
            checked.and_then(|()| lock(git).preview(request))
        }
        _ => change(apis, request, prepare, perform),
    };
    answered(apis, outcome)
}

/// Only http and https are simulated.
fn check_url(url: &str) -> Result<(), Refused> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(());
    }
    let what = "Invalid repository URL. Must correspond to a valid URL format";
    Err(Refused::invalid(what))
}

impl Git {
    /// The files that Portainer clones, and their commit. Without a reference, those of the default branch, which is also
    /// `HEAD`.
    fn clone_of(&self, given: &GitSettings) -> Result<(Files, String), CloneError> {
        let url = given.url.trim_end_matches('/');
        let reference = Some(given.reference.as_str()).filter(|name| !name.is_empty());
        let reference = reference.unwrap_or("HEAD");
        if let Some(fetch) = self.fetch {
            return fetch(url, reference, &given.user, &given.password);
        }
        let failed = |why: &str| CloneError::Failed(why.to_owned());
        let repository = self.repositories.get(url);
        let repository = repository.ok_or_else(|| failed("repository not found"))?;
        let own = repository.password.as_ref();
        if own.is_some_and(|own| *own != given.password) {
            return Err(CloneError::Credential);
        }
        let branch = match reference {
            "HEAD" => &repository.default,
            reference => reference,
        };
        let files = repository.branches.get(branch).cloned();
        let files = files.ok_or_else(|| failed("reference not found"))?;
        let commit = config_hash(&json!(Vec::from_iter(&files)));
        Ok((files, commit[..40].to_owned()))
    }

    /// The text of a file in a repository. Without a reference, of the branch `main`, whatever the default is.
    fn preview(&self, request: &Request) -> Result<Response, Refused> {
        let mut given = payload::<GitSettings>(request)?;
        check_url(&given.url)?;
        if given.reference.is_empty() {
            "refs/heads/main".clone_into(&mut given.reference);
        }
        let (files, _) = self.clone_of(&given).map_err(|error| match error {
            CloneError::Credential => {
                let details =
                    "Authentication failed, please ensure that the git credentials are correct";
                Refused::with_details(400, "Invalid git credential", details)
            }
            CloneError::Failed(why) => {
                let text = format!(
                    "unable to clone git repository, error: failed to clone git repository: {why}"
                );
                Refused::same(500, &text)
            }
        })?;
        let file = given.entry;
        let text = files.get(&file).ok_or_else(|| {
            let message = "Unable to retrieve custom template file from disk";
            let details = format!("Could not get the contents of the file '{file}'");
            Refused::with_details(500, message, &details)
        })?;
        Ok(Response::json(200, &json!({ "FileContent": text })))
    }

    /// Clones the repository for a stack that is created from it. A short reference can be cloned, but its commit is not
    /// found.
    fn clone_for(&mut self, record: &mut Record, given: GitSettings) -> Result<(), Refused> {
        let (files, commit) = self.clone_of(&given).map_err(|error| {
            let text = match error {
                CloneError::Credential => "Invalid git credential".to_owned(),
                CloneError::Failed(why) => {
                    format!("unable to clone git repository: failed to clone git repository: {why}")
                }
            };
            Refused::same(500, &text)
        })?;
        let authentication = (!given.password.is_empty())
            .then(|| json!({ "Username": given.user, "Password": "", "GitCredentialID": 0 }));
        record.text = files.get(&given.entry).cloned().unwrap_or_default();
        record.files = files;
        record.entries = vec![given.entry.clone()];
        record
            .entries
            .extend(given.additional.iter().flatten().cloned());
        record.git = Some(json!({
            "URL": given.url.trim_end_matches('/'),
            "ReferenceName": given.reference,
            "ConfigFilePath": given.entry,
            "Authentication": authentication,
            "ConfigHash": commit,
            "TLSSkipVerify": given.skips_tls,
        }));
        self.settings.insert(record.id, given);
        Ok(())
    }

    /// The checked create of a stack from Git.
    fn prepare_create(&mut self, world: &mut World, request: &Request) -> Result<Work, Refused> {
        portainer::check_key(world, request)?;
        let endpoint = portainer::endpoint_of_create(world, request)?;
        let given = payload::<Payload>(request)?;
        let mut settings = payload::<GitSettings>(request)?;
        if given.name.is_empty() {
            return Err(Refused::invalid("Invalid stack name"));
        }
        check_url(&settings.url)?;
        if !given.repository_authentication {
            settings.password.clear();
        } else if settings.password.is_empty() {
            let what = "Invalid repository credentials. Password must be specified when authentication is enabled";
            return Err(Refused::invalid(what));
        }
        let mut work = world.prepare_create(endpoint, &given.name)?;
        work.record.env = given.env;
        let cloned = self.clone_for(&mut work.record, settings);
        cloned.map_err(|error| match world.era {
            // N27
            Era::Async => Refused::with_details(500, "Failed to prepare stack", &error.details),
            Era::Sync | Era::Library => error,
        })?;
        work.record.auto_update = given.auto_update.map(|update| {
            json!({
                "Interval": update["interval"],
                "Webhook": "",
                "JobID": "1",
                "ForceUpdate": false,
                "ForcePullImage": false,
            })
        });
        Ok(work)
    }

    /// The checked new deployment of a Git stack, which recreates every container.
    fn prepare_redeploy(&mut self, world: &World, request: &Request) -> Result<Work, Refused> {
        portainer::check_key(world, request)?;
        let id = world.record_of(portainer::id_of(request))?.id;
        let endpoint = portainer::number(request, "endpointId")?;
        let mut work = world.prepare(id, endpoint, Kind::Update)?;
        let Some(old) = self.settings.get(&id).cloned() else {
            return Err(Refused::same(400, "Stack is not created from git"));
        };
        let given = payload::<Payload>(request)?;
        let mut settings = payload::<GitSettings>(request)?;
        if !given.repository_authentication {
            settings.password.clear();
        } else if settings.password.is_empty() {
            settings.password.clone_from(&old.password);
        }
        let settings = GitSettings {
            reference: settings.reference,
            user: settings.user,
            password: settings.password,
            ..old
        };
        self.clone_for(&mut work.record, settings)?;
        work.record.env = given.env;
        ADMIN.clone_into(&mut work.record.updated_by);
        work.record.recreates = true;
        Ok(work)
    }
}
