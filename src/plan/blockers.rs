//! What would fail: the blockers of an adoption and the refusals of a migration.

pub mod adoption;
pub mod conditions;
pub mod conflicts;
pub mod inline;
pub mod missing;
pub mod permissions;
pub mod refusal;
pub mod validation;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{plan::Refusal, rewrite::faithful, text::printable};

/// A reason why a stack cannot be adopted, and what to do about it. Never holds a value of an env file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blocker {
    /// The problem.
    pub message: String,
    /// More facts, one per item.
    pub details: Vec<String>,
    /// What to do about it.
    pub hint: String,
    /// The problem in two or three words, for a table.
    #[serde(skip)]
    pub short: Option<&'static str>,
}

impl Blocker {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            details: Vec::new(),
            hint: hint.into(),
            short: None,
        }
    }

    /// The same, with `details`.
    #[must_use]
    pub fn details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }

    /// A reason to refuse a migration that also prevents the adoption of `stack`: one blocker for each thing that has to
    /// be fixed in the Compose file `file` or elsewhere.
    pub fn of_refusal(refusal: &Refusal, file: &str) -> Vec<Self> {
        let details = refusal.details();
        if refusal.lists_problems() {
            let problems = details.iter();
            return problems
                .map(|problem| Self {
                    short: refusal.short(),
                    ..Self::new(problem, refusal.hint_in(file))
                })
                .collect();
        }
        vec![Self::new(refusal.to_string(), refusal.hint()).details(details.to_vec())]
    }

    /// A problem of the faithful rewrite in the Compose file `file`.
    pub fn of_rewrite(blocker: &faithful::Blocker, file: &str) -> Self {
        let message = match blocker.position {
            Some(position) => format!("{file}:{}: {}", position.line, blocker.message),
            None => blocker.message.clone(),
        };
        Self::new(message, blocker.hint.clone())
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.message))?;
        for detail in &self.details {
            write!(f, "\n- {}", printable(detail))?;
        }
        if self.hint.is_empty() {
            return Ok(());
        }
        write!(f, "\n{}", printable(&self.hint))
    }
}
