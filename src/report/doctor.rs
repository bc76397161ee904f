//! What `doctor` reports.

use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::Failure;

/// What `stacklift doctor --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift doctor --output json`")]
pub struct DoctorReport {
    /// The version of this format: 1.
    pub version: u32,
    /// Every check, in the order of the text output. A subject can have several checks.
    pub checks: Vec<Check>,
}

/// A check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    pub subject: Subject,
    pub status: Status,
    /// What was found, or why the subject was not checked.
    pub fact: String,
    /// What to do about it; null if there is nothing to do.
    pub hint: Option<String>,
}

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The settings and the settings files.
    Settings,
    /// The container engine of this host.
    Engine,
    /// The Compose program of this host.
    Compose,
    /// Portainer's address and version.
    Portainer,
    /// How Portainer's certificate is verified.
    Tls,
    /// Where the API key comes from.
    ApiKey,
    /// The user of the API key.
    User,
    /// Whether the Portainer environment is the engine of this host.
    Environment,
    /// The directory that contains the stack directories.
    StacksRoot,
    /// The directory for snapshots.
    StateDirectory,
    /// The runs that were interrupted.
    Runs,
}

impl Subject {
    pub fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Engine => "Docker",
            Self::Compose => "Compose",
            Self::Portainer => "Portainer",
            Self::Tls => "TLS",
            Self::ApiKey => "API key",
            Self::User => "user",
            Self::Environment => "environment",
            Self::StacksRoot => "stacks root",
            Self::StateDirectory => "state directory",
            Self::Runs => "runs",
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Ok,
    /// Some commands or stacks may have a problem.
    Warning,
    /// Commands will fail.
    Failed,
    /// It depends on a check that failed.
    NotChecked,
}

impl Check {
    pub fn ok(subject: Subject, fact: impl Into<String>) -> Self {
        Self {
            subject,
            status: Status::Ok,
            fact: fact.into(),
            hint: None,
        }
    }

    pub fn warning(subject: Subject, fact: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            status: Status::Warning,
            hint: Some(hint.into()),
            ..Self::ok(subject, fact)
        }
    }

    pub fn failed(subject: Subject, fact: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            status: Status::Failed,
            ..Self::warning(subject, fact, hint)
        }
    }

    /// `reason` says what is missing: `Portainer could not be read`.
    pub fn not_checked(subject: Subject, reason: &str) -> Self {
        Self {
            status: Status::NotChecked,
            ..Self::ok(subject, format!("not checked: {reason}"))
        }
    }

    /// A failure with the hint of the error, otherwise with this one.
    pub fn of_error(subject: Subject, error: &anyhow::Error, otherwise: &str) -> Self {
        let hint = Failure::hint_of(error).unwrap_or(otherwise);
        Self::failed(subject, format!("{error:#}"), hint)
    }
}
