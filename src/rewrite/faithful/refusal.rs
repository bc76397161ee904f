//! Why a stack cannot be rewritten: the place, the cause, and what to do.
#![deny(clippy::disallowed_methods)]

use composefile::document::{Node, ParseError, Position};

/// Something that cannot be carried over. Never holds a value of an env file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of thing it is.
    pub reason: Reason,
    /// Where in the compose file; `None` where it is about another file.
    pub position: Option<Position>,
    /// What is in the way.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// The kinds of things that cannot be carried over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The text is not YAML that compose could read.
    NotYaml,
    /// Something is not what compose takes at its place.
    WrongType,
    /// `.env` or another env file cannot be read by compose.
    BadEnvFile,
    /// An env file or label file that must be there is not.
    MissingEnvFile,
    /// A `${…}` that is no variable, or a required one without a value.
    BadVariable,
    /// `include`, `extends.file`, an override file, several files in `COMPOSE_FILE`.
    SeveralFiles,
    /// An anchor or merge that would need a different text at each use.
    Shared,
    /// A variable of the shell at a place where its value cannot be written.
    OfTheShell,
    /// Compose programs do not agree on what it means.
    Disputed,
    /// Something names what is not there, or contradicts itself: compose refuses the stack.
    Inconsistent,
    /// A file that compose itself reads or runs, and that has no other form: a seccomp profile.
    UnreadableFile,
    /// The new text cannot be written at its place.
    Unwritable,
    /// The rewrite is not what it was to be: a defect of this program.
    Internal,
}

impl Refusal {
    pub(super) fn at(
        node: Node<'_>,
        reason: Reason,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            position: Some(node.document().position(node.span().start)),
            ..Self::of(reason, message, hint)
        }
    }

    pub(super) fn of(reason: Reason, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason,
            position: None,
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(super) fn not_yaml(error: &ParseError) -> Self {
        Self {
            position: Some(error.position),
            ..Self::of(
                Reason::NotYaml,
                format!("not YAML as compose reads it: {}", error.message),
                "mend the line: `docker compose config` has to accept the file",
            )
        }
    }
}
