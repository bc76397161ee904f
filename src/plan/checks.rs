//! What would fail: the reasons why a stack cannot be adopted, or why a migration is refused (B02–B06).

pub mod adoption;
pub mod conditions;
pub mod conflicts;
pub mod inline;
pub mod missing;
pub mod overridden;
pub mod permissions;
pub mod sending;
pub mod unsupported;
pub mod validation;

use crate::finding::{Finding, Kind};

impl Finding {
    /// One blocker for each thing that has to be fixed in the Compose file `file` or elsewhere.
    pub fn split(self, file: &str) -> Vec<Self> {
        let hint = match self.kind {
            _ if self.details.is_empty() => return vec![self],
            Kind::MissingFiles => Some(format!("create it, or correct the path in {file}")),
            Kind::UnreadableFiles | Kind::OnEngine => self.hint,
            _ => return vec![self],
        };
        let problems = self.details.into_iter().map(|message| Self {
            message,
            hint: hint.clone(),
            details: Vec::new(),
            kind: self.kind.clone(),
            short: self.short.clone(),
            ..Self::default()
        });
        problems.collect()
    }

    /// What `--force` does about it.
    pub fn with_force(&self) -> &'static str {
        match self.kind {
            Kind::Damage => "--force sends the damaged file",
            _ => "--force overrides this check",
        }
    }
}
