//! What `doctor` reports.

use schemars::JsonSchema;
use serde::Serialize;

use crate::finding::Finding;

/// What `stacklift doctor --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift doctor --output json`")]
pub struct DoctorReport {
    /// The version of this format: 1.
    pub version: u32,
    /// Every check, in the order of the text output. A subject can have several checks.
    pub checks: Vec<Check>,
}

/// A check. `subject` is what is checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    pub status: Status,
    #[serde(flatten)]
    pub finding: Finding,
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
    fn new(subject: &str, status: Status, finding: Finding) -> Self {
        let finding = finding.on(subject);
        Self { status, finding }
    }

    /// What is checked.
    pub fn subject(&self) -> &str {
        self.finding.subject.as_deref().unwrap_or_default()
    }

    pub fn ok(subject: &str, fact: impl AsRef<str>) -> Self {
        Self::new(subject, Status::Ok, Finding::of_stack(fact.as_ref()))
    }

    pub fn warning(subject: &str, fact: impl AsRef<str>, hint: impl AsRef<str>) -> Self {
        Self::new(subject, Status::Warning, Finding::new(fact, hint))
    }

    pub fn failed(subject: &str, fact: impl AsRef<str>, hint: impl AsRef<str>) -> Self {
        Self::new(subject, Status::Failed, Finding::new(fact, hint))
    }

    /// `reason` says what is missing: `Portainer could not be read`.
    pub fn not_checked(subject: &str, reason: &str) -> Self {
        let finding = Finding::of_stack(&format!("not checked: {reason}"));
        Self::new(subject, Status::NotChecked, finding)
    }

    /// A failure with the hint of the finding, otherwise with this one.
    pub fn of(subject: &str, mut finding: Finding, otherwise: &str) -> Self {
        finding.hint.get_or_insert(otherwise.to_owned());
        Self::new(subject, Status::Failed, finding)
    }

    pub fn of_error(subject: &str, error: &anyhow::Error, otherwise: &str) -> Self {
        Self::of(subject, Finding::of_error(error), otherwise)
    }
}
