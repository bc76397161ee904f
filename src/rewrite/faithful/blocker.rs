//! What prevents a rewrite: the place, the cause, and what to do.

use composefile::document::{Node, ParseError, Position};

/// What to do about several files that cannot be combined.
pub const ONE_FILE: &str = "write one Compose file for which `docker compose config` prints the same, then pass it with --file";

/// What to do about a line that Compose rejects.
pub(super) const FIX_LINE: &str = "fix this line: `docker compose config` must accept the file";

/// A reason why the stack cannot be rewritten faithfully. Never holds a value of an env file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The kind of problem.
    pub reason: Reason,
    /// The place in the Compose file; `None` if the problem is in another file.
    pub position: Option<Position>,
    /// The problem.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// The kinds of problems that prevent a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Compose cannot parse the text as YAML.
    NotYaml,
    /// A value has a type that Compose rejects.
    WrongType,
    /// Compose cannot read `.env` or another env file.
    BadEnvFile,
    /// A required env file or label file does not exist.
    MissingEnvFile,
    /// Invalid interpolation, or a required variable without a value.
    BadVariable,
    /// The stack has more than one file: `include`, `extends.file`, an override file, `COMPOSE_FILE`.
    SeveralFiles,
    /// An anchor or a merge is used in places that need different values.
    Shared,
    /// A variable of the shell is used where its value cannot be written.
    ShellVariable,
    /// Compose versions disagree about the meaning.
    VersionDependent,
    /// A reference to something undefined, or a contradiction: Compose rejects the stack.
    Inconsistent,
    /// Compose reads or runs a file of this host that Portainer does not have, such as a seccomp profile.
    UnreadableFile,
    /// The new text cannot be written in its place.
    Unwritable,
    /// The rewritten file failed verification: a bug in this program.
    Internal,
}

impl Blocker {
    pub(super) fn at(
        node: Node<'_>,
        reason: Reason,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let start = node.span().start;
        Self {
            position: Some(Position::of(node.document().text(), start)),
            ..Self::new(reason, message, hint)
        }
    }

    /// A problem without a place in the Compose file.
    pub(super) fn new(reason: Reason, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason,
            position: None,
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// A problem of a stack with several files.
    pub fn several_files(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Reason::SeveralFiles, message, hint)
    }

    pub(super) fn not_yaml(error: &ParseError) -> Self {
        let message = format!("cannot parse the Compose file: {}", error.message);
        Self {
            position: Some(error.position),
            ..Self::new(Reason::NotYaml, message, FIX_LINE)
        }
    }

    /// Variables that have no effect in Portainer, but would have one in `.env`.
    pub(in crate::rewrite) fn without_effect(names: &str) -> Self {
        let message = format!(
            "{names}: Compose would read this setting from .env, but it has no effect in Portainer, and a service may get it as a variable (`env_file`)"
        );
        let hint = "remove it from the variables of the Portainer stack";
        Self::new(Reason::VersionDependent, message, hint)
    }

    pub(in crate::rewrite) fn internal(message: &str, position: Option<Position>) -> Self {
        let message = format!("internal error: {message}; nothing was changed");
        let hint = "please report this with the Compose file";
        Self {
            position,
            ..Self::new(Reason::Internal, message, hint)
        }
    }
}
