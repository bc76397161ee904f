//! What would fail: the reasons why a stack cannot be adopted, or why a migration is refused (B02–B06).

pub mod adoption;
pub mod conditions;
pub mod conflicts;
pub mod inline;
pub mod missing;
pub mod overridden;
pub mod permissions;
pub mod unsupported;
pub mod validation;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    rewrite::faithful,
    text::{Mask, printable},
};

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
    pub short: Option<String>,
    #[serde(skip)]
    pub kind: BlockerKind,
}

/// Hides the values of `.env` in what is said of names and paths, unless they are paths or plain words (B13).
pub fn hide_values(blockers: &mut [Blocker], warnings: &mut [String], mask: &Mask) {
    let shown = |text: &mut String| *text = mask.hide_unless(text, |hit| hit.is_plain);
    for blocker in blockers {
        shown(&mut blocker.message);
        shown(&mut blocker.hint);
        blocker.details.iter_mut().for_each(shown);
    }
    warnings.iter_mut().for_each(shown);
}

/// What plans distinguish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockerKind {
    #[default]
    Other,
    /// The literal rewrite damages the text (B02).
    Damage,
    /// Compose would reject the text.
    Rejected,
    /// Compose would reject `.env`.
    UnreadableEnv,
    /// Each detail is a file that does not exist where the engine looks for it.
    MissingFiles,
    /// Each detail is a file that Portainer cannot read.
    UnreadableFiles,
    /// Each detail is about an image, a network, a volume, a port or a name of this engine.
    OnEngine,
    /// Paused containers of this engine.
    Paused,
}

impl Blocker {
    /// The texts may quote what is from outside: they are escaped here.
    pub fn new(message: impl AsRef<str>, hint: impl AsRef<str>) -> Self {
        Self {
            message: printable(message.as_ref()).into_owned(),
            details: Vec::new(),
            hint: printable(hint.as_ref()).into_owned(),
            short: None,
            kind: BlockerKind::Other,
        }
    }

    /// A blocker with these details, if there are any.
    pub fn about(
        details: Vec<String>,
        message: impl AsRef<str>,
        hint: impl AsRef<str>,
    ) -> Option<Self> {
        (!details.is_empty()).then(|| Self::new(message, hint).details(details))
    }

    /// The same, with `details`.
    #[must_use]
    pub fn details(self, details: impl IntoIterator<Item = String>) -> Self {
        let shown = details.into_iter().map(|one| printable(&one).into_owned());
        Self {
            details: shown.collect(),
            ..self
        }
    }

    #[must_use]
    pub fn of_kind(self, kind: BlockerKind) -> Self {
        Self { kind, ..self }
    }

    #[must_use]
    pub fn short(self, short: &str) -> Self {
        let short = Some(short.to_owned());
        Self { short, ..self }
    }

    /// One blocker for each thing that has to be fixed in the Compose file `file` or elsewhere.
    pub fn split(self, file: &str) -> Vec<Self> {
        let hint = match self.kind {
            _ if self.details.is_empty() => return vec![self],
            BlockerKind::MissingFiles => format!("create it, or correct the path in {file}"),
            BlockerKind::UnreadableFiles | BlockerKind::OnEngine => self.hint.clone(),
            _ => return vec![self],
        };
        let problems = self.details.iter().map(|problem| Self {
            short: self.short.clone(),
            kind: self.kind,
            ..Self::new(problem, &hint)
        });
        problems.collect()
    }

    /// What `--force` does about it.
    pub fn with_force(&self) -> &'static str {
        match self.kind {
            BlockerKind::Damage => "--force sends the damaged file",
            _ => "--force overrides this check",
        }
    }

    /// A problem of the faithful rewrite in the Compose file `file`.
    pub fn of_rewrite(blocker: &faithful::Blocker, file: &str) -> Self {
        let message = match blocker.position {
            Some(position) => format!("{file}:{}: {}", position.line, blocker.message),
            None => blocker.message.clone(),
        };
        Self::new(message, &blocker.hint)
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for detail in &self.details {
            write!(f, "\n- {detail}")?;
        }
        match self.hint.as_str() {
            "" => Ok(()),
            hint => write!(f, "\n{hint}"),
        }
    }
}
