//! Where the value of a setting comes from.

use std::{fmt, path::PathBuf};

use crate::failure::Failure;

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Origin {
    /// The flag with the setting's name.
    Flag(&'static str),
    /// This environment variable.
    Variable(&'static str),
    /// A settings file, and the line of the key in it.
    File {
        path: PathBuf,
        line: Option<usize>,
    },
    Default,
}

impl Origin {
    /// The setting `key` from this source, in an error.
    pub(super) fn of(&self, key: &str) -> String {
        match self {
            Self::Flag(_) => format!("--{key}"),
            Self::Variable(name) => (*name).to_owned(),
            Self::File { path, .. } => format!("{key} in {}", path.display()),
            Self::Default => "the default".to_owned(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(key) => write!(f, "--{key}"),
            Self::Variable(name) => f.write_str(name),
            Self::File { path, line: None } => path.display().fmt(f),
            Self::File {
                path,
                line: Some(line),
            } => write!(f, "{}, line {line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// An error as text: its message with the causes, and its hint.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Problem {
    pub message: String,
    pub hint: Option<String>,
}

impl Problem {
    pub(in crate::cli) fn of(error: &anyhow::Error) -> Self {
        Self {
            message: format!("{error:#}"),
            hint: Failure::hint_of(error).map(str::to_owned),
        }
    }
}

/// A setting with its source.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Picked {
    pub key: &'static str,
    /// The value as text; `None` if there is none, or if it is invalid.
    pub value: Option<String>,
    pub origin: Origin,
    /// Why the value is invalid.
    pub error: Option<Problem>,
}

impl Picked {
    /// Records that `variable` has a value that is not UTF-8. This is an error even if a flag takes precedence.
    pub(super) fn replace_by_invalid(&mut self, variable: &'static str, error: &anyhow::Error) {
        self.value = None;
        self.origin = Origin::Variable(variable);
        self.error = Some(Problem::of(error));
    }
}

/// A place where a settings file may be.
#[derive(Debug, Clone)]
pub(in crate::cli) struct SettingsFile {
    pub path: PathBuf,
    /// Whether there is something at this path.
    pub exists: bool,
    /// Why the file is not used.
    pub error: Option<Problem>,
}
