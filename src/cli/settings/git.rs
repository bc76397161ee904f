//! The repository that `--git` names, and its password.

use std::env;

use anyhow::Result;
use secrecy::SecretString;

use super::{key::first_line, utf8};
use crate::{cli::arguments::GitArguments, failure::Failure, portainer::Repository};

/// The variables with the user name and the password for a repository.
pub(super) const USER: &str = "STACKLIFT_GIT_USER";
pub(super) const PASSWORD: &str = "STACKLIFT_GIT_PASSWORD";

/// The repository of `--git`. `file` is the name of the stack's Compose file.
pub(in crate::cli) fn repository(flags: &GitArguments, file: &str) -> Result<Option<Repository>> {
    let Some(url) = flags.git.clone() else {
        return Ok(None);
    };
    let user = flags.git_user.clone().or(given(USER)?);
    let password = match &flags.git_password_file {
        Some(path) => {
            let hint = "set --git-password-file to a text file whose first line is the password";
            let (what, secret) = ("Git password file", "the password or token");
            Some(first_line(what, path, hint, secret)?)
        }
        None => git_password()?,
    };
    if user.is_some() && password.is_none() {
        return Err(Failure::new("--git-user needs a password")
            .hint(format!("pass --git-password-file, or set {PASSWORD}"))
            .into());
    }
    Ok(Some(Repository {
        url,
        reference: flags.reference.clone().unwrap_or_default(),
        path: flags.path.clone().unwrap_or_else(|| file.to_owned()),
        additional_files: flags.additional.clone(),
        auto_update: flags.auto_update.clone(),
        has_webhook: false,
        user,
        password,
        skip_tls_verify: flags.git_skip_tls_verify,
        commit: String::new(),
        reveals: flags.reveal,
        flags: flags.flags(),
    }))
}

/// The password for a repository, if a variable contains it.
pub(in crate::cli) fn git_password() -> Result<Option<SecretString>> {
    Ok(given(PASSWORD)?.map(SecretString::from))
}

fn given(variable: &str) -> Result<Option<String>> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(|value| utf8(variable, value)).transpose()
}
