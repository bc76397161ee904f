//! Git stacks: what Portainer reads from a repository, and what it deploys from one (M24, M25).

use std::{fmt, iter};

use anyhow::Result;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ureq::http::Method;

use super::{Error, PortainerReader, Response};
use crate::{
    failure::Failure,
    model::Variable,
    text::{printable, without_credentials},
};

/// How much of a commit is shown.
const SHORT: usize = 10;

/// A repository, and the files in it that Portainer deploys.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Repository {
    /// Without credentials.
    pub url: String,
    /// The full name of a branch or tag; empty for the default branch.
    pub reference: String,
    /// The Compose file, relative to the root of the repository.
    pub path: String,
    /// Further Compose files, in the order in which they override it.
    pub additional_files: Vec<String>,
    /// How often Portainer looks for a new commit, as it writes durations: `5m`.
    pub auto_update: Option<String>,
    /// Whether a webhook deploys it. Its address is secret, and a new Portainer stack gets another one.
    #[serde(default)]
    pub has_webhook: bool,
    /// The user name of a private repository.
    pub user: Option<String>,
    #[serde(skip)]
    pub password: Option<SecretString>,
    /// Whether the certificate of the Git server is not checked.
    pub skip_tls_verify: bool,
    /// The commit that was deployed last, if it was read from Portainer.
    pub commit: String,
    /// Whether a patch for it shows the values of variables.
    #[serde(skip)]
    pub reveals: bool,
    /// The flags that were typed for it. They do not contain the password.
    #[serde(skip)]
    pub flags: Vec<String>,
}

/// The password does not count.
impl PartialEq for Repository {
    fn eq(&self, other: &Self) -> bool {
        let shown = |one: &Self| serde_json::to_value(one).ok();
        shown(self) == shown(other)
    }
}

impl Eq for Repository {}

impl Repository {
    /// Reads the JSON of a record, which does not contain the password.
    pub(super) fn of(record: &Value) -> Option<Self> {
        let git = record.get("GitConfig").filter(|git| git.is_object())?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let update = text(&record["AutoUpdate"]["Interval"]);
        let files = record["AdditionalFiles"].as_array();
        Some(Self {
            url: without_credentials(git["URL"].as_str().unwrap_or_default()),
            reference: text(&git["ReferenceName"]).unwrap_or_default(),
            path: text(&git["ConfigFilePath"]).unwrap_or_default(),
            additional_files: files.into_iter().flatten().filter_map(text).collect(),
            auto_update: update.filter(|interval| !interval.is_empty()),
            has_webhook: text(&record["AutoUpdate"]["Webhook"]).is_some_and(|id| !id.is_empty()),
            user: text(&git["Authentication"]["Username"]),
            skip_tls_verify: git["TLSSkipVerify"] == true,
            commit: text(&git["ConfigHash"]).unwrap_or_default(),
            ..Self::default()
        })
    }

    /// The same with the flags that were typed, if the repository was named and read.
    #[must_use]
    pub fn typed(self, named: Option<&Self>) -> Self {
        let flags = named.map_or_else(Vec::new, |named| named.flags.clone());
        Self { flags, ..self }
    }

    /// The body of the create, without the password.
    pub fn create_body(&self, name: &str, env: &[Variable]) -> Value {
        let interval = self.auto_update.as_ref();
        json!({
            "name": name,
            "repositoryURL": self.url,
            "repositoryReferenceName": self.reference,
            "composeFile": self.path,
            "additionalFiles": self.additional_files,
            "env": env,
            "autoUpdate": interval.map(|interval| json!({ "interval": interval })),
            "repositoryAuthentication": self.password.is_some(),
            "repositoryUsername": self.user.as_deref().unwrap_or_default(),
            "tlsskipVerify": self.skip_tls_verify,
            "fromAppTemplate": false,
        })
    }

    /// The body of the request that deploys a Git stack again, without the password. What it leaves out would be lost.
    pub(super) fn redeploy_body(&self, env: &[Variable], prune: bool) -> Value {
        json!({
            "repositoryReferenceName": self.reference,
            "repositoryAuthentication": self.password.is_some(),
            "repositoryUsername": self.user.as_deref().unwrap_or_default(),
            "env": env,
            "prune": prune,
            "pullImage": false,
        })
    }

    /// Adds the password to the body of a request.
    pub(super) fn authenticate(&self, body: &mut Value) {
        if let Some(password) = &self.password {
            body["repositoryPassword"] = password.expose_secret().into();
        }
    }

    /// The beginning of the commit.
    pub fn short_commit(&self) -> String {
        let commit: String = self.commit.chars().take(SHORT).collect();
        printable(&commit).into_owned()
    }

    /// Whether it leads to these files of this branch.
    pub fn is_of(&self, wanted: &Self) -> bool {
        (&self.url, &self.reference, &self.path) == (&wanted.url, &wanted.reference, &wanted.path)
            && self.additional_files == wanted.additional_files
    }

    /// The folder of the Compose file in the repository: empty, or with a slash at its end.
    pub fn folder(&self) -> &str {
        let end = self.path.rfind('/').map_or(0, |slash| slash + 1);
        &self.path[..end]
    }

    /// Portainer's `stack.env`, as the Compose file has to name it: Portainer writes it to the root of its clone.
    pub fn stack_env(&self) -> String {
        "../".repeat(self.folder().matches('/').count()) + "stack.env"
    }
}

/// `blog/compose.yaml of https://host/stacks.git (main)`
impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", printable(&self.path), printable(&self.url))?;
        match self.reference.trim_start_matches("refs/heads/") {
            "" => Ok(()),
            reference => write!(f, " ({})", printable(reference)),
        }
    }
}

/// What Portainer reads from a repository.
#[derive(Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The names and the texts of the Compose files, in order.
    pub files: Vec<(String, String)>,
    /// The `.env` next to the first one, which Portainer reads too.
    pub env: Option<String>,
    /// The names and the texts of other env files.
    pub env_files: Vec<(String, String)>,
}

impl PortainerReader {
    /// The Compose files, and the `.env` next to the first one.
    pub fn fetch(&self, from: &Repository) -> Result<Fetched> {
        let env = self.preview(from, &format!("{}.env", from.folder()));
        let names = iter::once(&from.path).chain(&from.additional_files);
        let files = names.map(|name| Ok((name.clone(), self.file_of(from, name)?)));
        let files = files.collect::<Result<_>>()?;
        Ok(Fetched {
            files,
            // Portainer has read the other files since, so only this one may be missing.
            env: if_there(env)?,
            env_files: Vec::new(),
        })
    }

    /// The text of a file, or `None` if there is none. The path is relative to the root of the repository.
    pub fn fetch_file(&self, from: &Repository, path: &str) -> Result<Option<String>> {
        if_there(self.preview(from, path))
    }

    fn file_of(&self, from: &Repository, name: &str) -> Result<String> {
        self.preview(from, name).map_err(|error| {
            let Error::Refused { response, .. } = &error else {
                return error.into();
            };
            let failure = Failure::new(format!("Portainer cannot read {name} from {}", from.url));
            let failure = failure.source(response.summary());
            let hint = hint_of(response).unwrap_or_else(|| response.hint());
            failure.hint(hint).into()
        })
    }

    /// The text of a file, as Portainer reads it from the repository now (M25). Changes nothing, although it is a POST.
    fn preview(&self, from: &Repository, file: &str) -> Result<String, Error> {
        let action = format!("read {file} from {}", from.url);
        // Without a reference, the preview reads `main`, and the create the default branch.
        let reference = Some(from.reference.as_str()).filter(|one| !one.is_empty());
        let mut body = json!({
            "repository": from.url,
            "reference": reference.unwrap_or("HEAD"),
            "targetFile": file,
            "tlsSkipVerify": from.skip_tls_verify,
        });
        if let Some(password) = &from.password {
            body["username"] = from.user.as_deref().unwrap_or_default().into();
            body["password"] = password.expose_secret().into();
        }
        let path = "/api/gitops/repo/file/preview";
        let response = self.client.change(Method::POST, path, &body, &action)?;
        let json: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        match json["FileContent"].as_str() {
            Some(text) if (200..300).contains(&response.status) => Ok(text.to_owned()),
            _ => Err(self.client.error(&action, response)),
        }
    }
}

/// A file that was read, or `None` if there is none.
fn if_there(read: Result<String, Error>) -> Result<Option<String>> {
    match read {
        Err(error) if error.status() == Some(500) => Ok(None),
        read => Ok(Some(read?)),
    }
}

/// What to do about a repository that Portainer cannot read. Portainer tells most causes apart by its words only.
fn hint_of(response: &Response) -> Option<&'static str> {
    let said = response.message()?;
    Some(match response.status {
        400 if said.contains("credential") => {
            "check --git-user, and the password in --git-password-file or STACKLIFT_GIT_PASSWORD"
        }
        // N27
        400 => {
            "check --git: Portainer reads repositories over http:// and https:// only, and its SSRF protection may refuse the address"
        }
        500 if said.contains("certificate") => {
            "if the certificate of the Git server is self-signed, pass --git-skip-tls-verify"
        }
        500 if said.contains("reference not found") => {
            "the repository has no such branch: check --ref; for a tag, pass --ref refs/tags/NAME"
        }
        500 if said.contains("repository not found") => {
            "check --git; if the repository is private, pass --git-user and --git-password-file"
        }
        500 if said.contains("dial tcp") => {
            "check --git: Portainer itself has to reach the Git server, and its container may not know the names of this host"
        }
        500 if said.contains("from disk") => {
            "the repository has no such file: check --path, --additional-file and --ref"
        }
        500 => "check --git, --ref and --path",
        _ => return None,
    })
}
