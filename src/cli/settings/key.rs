//! Where the API key comes from, and reading it.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Result;
use secrecy::SecretString;

use super::{Settings, file::read_secret, utf8};
use crate::{
    cli::{
        arguments::Common,
        options::{self, is_api_key},
    },
    failure::Failure,
};

/// The start of the error of C02.
const KEY_REQUIRED: &str = "no API key (STACKMGR_API_KEY is required)";

/// The variable that contains the API key.
pub(in crate::cli) const VARIABLE: &str = "STACKMGR_API_KEY";

/// The source of the API key (C02): `STACKMGR_API_KEY`, otherwise the file that `--api-key-file`, `STACKMGR_API_KEY_FILE`
/// or a settings file names.
#[derive(Debug)]
pub(in crate::cli) enum KeySource {
    Given(SecretString),
    File(PathBuf),
}

impl KeySource {
    /// Finds the source. Reads the settings files only if neither a flag nor a variable names the source, so that a refusal
    /// after it has read nothing (C05).
    pub(in crate::cli) fn find(flags: &Common) -> Result<Self> {
        let flag = flags.value(options::API_KEY_FILE.key).map(Path::new);
        if is_given() || flag.is_some() {
            return Self::of(flag);
        }
        let variable = options::API_KEY_FILE.variable;
        match env::var_os(variable).filter(|path| !path.is_empty()) {
            Some(path) => Self::of(Some(Path::new(&path))),
            None => Self::of(Settings::load(flags)?.api_key_file.as_deref()),
        }
    }

    /// The source, if this file is the one that the settings name.
    pub(in crate::cli) fn of(file: Option<&Path>) -> Result<Self> {
        let refused = match (env::var_os(VARIABLE), file) {
            // The file replaces only an unset key.
            (Some(key), _) if key.is_empty() => {
                Failure::new(format!("{KEY_REQUIRED}: the variable is set, but empty"))
                    .hint("set it to a Portainer API key, or unset it")
            }
            (Some(key), _) => return Ok(Self::Given(utf8(VARIABLE, key)?.into())),
            // An API key must not appear in a message.
            (None, Some(path)) if is_api_key(&path.to_string_lossy()) => Failure::new(
                "invalid --api-key-file: it contains an API key instead of the path of a file",
            )
            .hint("write the API key to a file, and pass the path of that file"),
            (None, Some(path)) => return Ok(Self::File(path.to_owned())),
            (None, None) => Failure::new(format!("{KEY_REQUIRED}: run `stacklift config init`")),
        };
        Err(refused.into())
    }

    /// Reads the key.
    pub(in crate::cli) fn read(self) -> Result<SecretString> {
        let path = match self {
            Self::Given(key) => return Ok(key),
            Self::File(path) => path,
        };
        let hint = "set --api-key-file to a text file whose first line is the API key";
        first_line("API key file", &path, hint, "the Portainer API key")
    }
}

/// The first line of a file that only its owner may read.
pub(super) fn first_line(
    what: &str,
    path: &Path,
    hint: &str,
    secret: &str,
) -> Result<SecretString> {
    let text = read_secret(what, path, hint)?;
    match text.lines().next().unwrap_or_default().trim() {
        "" => {
            let what = format!("the first line of the {what} {} is empty", path.display());
            let hint = format!("write {secret} to its first line");
            Err(Failure::new(what).hint(hint).into())
        }
        line => Ok(line.into()),
    }
}

/// Whether `STACKMGR_API_KEY` is set, even if it is empty: then no file is used.
pub(in crate::cli) fn is_given() -> bool {
    env::var_os(VARIABLE).is_some()
}
