//! Git repositories that Portainer can read, and its clones of them (M24, M25).

use serde_json::json;

use super::{
    entities::fingerprint,
    errors::Refused,
    record::Record,
    repository::{CloneError, Files, GitClone, GitSettings},
    state::World,
};

impl World {
    /// The files that Portainer clones, and their commit. Without a reference, those of the default branch, which is also
    /// `HEAD`.
    pub(crate) fn clone_of(&self, git: &GitSettings) -> Result<(Files, String), CloneError> {
        let url = git.url.trim_end_matches('/');
        let reference = Some(git.reference.as_str()).filter(|one| !one.is_empty());
        let reference = reference.unwrap_or("HEAD");
        if let Some(fetch) = self.fetch {
            return fetch(url, reference, &git.user, &git.password);
        }
        let failed = |why: &str| CloneError::Failed(why.to_owned());
        let repository = self.repositories.get(url);
        let repository = repository.ok_or_else(|| failed("repository not found"))?;
        let own = repository.password.as_ref();
        if own.is_some_and(|own| *own != git.password) {
            return Err(CloneError::Credential);
        }
        let branch = match reference {
            "HEAD" => &repository.default,
            reference => reference,
        };
        let files = repository.branches.get(branch).cloned();
        let files = files.ok_or_else(|| failed("reference not found"))?;
        let all = json!(Vec::from_iter(&files)).to_string();
        Ok((files, fingerprint(&all)[..40].to_owned()))
    }

    /// Clones the repository for a stack that is created from it. A short reference can be cloned, but its commit is not
    /// found.
    pub(crate) fn clone_for(&self, record: &mut Record, git: &GitSettings) -> Result<(), Refused> {
        let (files, commit) = self.clone_of(git).map_err(|error| {
            let text = match error {
                CloneError::Credential => "Invalid git credential".to_owned(),
                CloneError::Failed(why) => {
                    format!("unable to clone git repository: failed to clone git repository: {why}")
                }
            };
            Refused::same(500, &text)
        })?;
        let authentication = (!git.password.is_empty())
            .then(|| json!({ "Username": git.user, "Password": "", "GitCredentialID": 0 }));
        record.text = files.get(&git.entry).cloned().unwrap_or_default();
        record.git = Some(json!({
            "URL": git.url.trim_end_matches('/'),
            "ReferenceName": git.reference,
            "ConfigFilePath": git.entry,
            "Authentication": authentication,
            "ConfigHash": commit,
            "TLSSkipVerify": git.skips_tls,
        }));
        record.clone = Some(GitClone {
            git: git.clone(),
            files,
            recreates: false,
        });
        Ok(())
    }
}
