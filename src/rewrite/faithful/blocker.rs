//! What prevents a rewrite: the place, the cause, and what to do.

use composefile::document::{Node, ParseError, Position};

use crate::finding::{Finding, Kind};

/// What to do about several files that cannot be combined.
pub const ONE_FILE: &str = "write one Compose file for which `docker compose config` prints the same, then pass it with --file";

/// What to do about a line that Compose rejects.
pub(super) const FIX_LINE: &str = "fix this line: `docker compose config` must accept the file";

impl Finding {
    pub(super) fn at(
        node: Node<'_>,
        kind: Kind,
        message: impl AsRef<str>,
        hint: impl AsRef<str>,
    ) -> Self {
        let start = node.span().start;
        let position = Position::of(node.document().text(), start);
        Self::new(message, hint).of_kind(kind).placed(position)
    }

    /// A problem of a stack with several files.
    pub fn several_files(message: impl AsRef<str>, hint: impl AsRef<str>) -> Self {
        Self::new(message, hint).of_kind(Kind::SeveralFiles)
    }

    pub(super) fn not_yaml(error: &ParseError) -> Self {
        let message = format!("cannot parse the Compose file: {}", error.message);
        let found = Self::new(message, FIX_LINE).of_kind(Kind::NotYaml);
        found.placed(error.position)
    }

    /// Variables that have no effect in Portainer, but would have one in `.env`.
    pub(in crate::rewrite) fn without_effect(names: &str) -> Self {
        let message = format!(
            "{names}: Compose would read this setting from .env, but it has no effect in Portainer, and a service may get it as a variable (`env_file`)"
        );
        let hint = "remove it from the variables of the Portainer stack";
        Self::new(message, hint).of_kind(Kind::VersionDependent)
    }

    /// A part of the file that cannot be edited in place.
    pub(super) fn not_simple(node: Option<Node<'_>>) -> Self {
        let message = "this part cannot be edited in place";
        let hint = "write it out on lines of its own, without anchors, `extends` and brackets";
        match node {
            Some(node) => Self::at(node, Kind::NotSimple, message, hint),
            None => Self::new(message, hint).of_kind(Kind::NotSimple),
        }
    }

    pub(in crate::rewrite) fn internal(message: &str) -> Self {
        let message = format!("internal error: {message}; nothing was changed");
        let hint = "please report this with the Compose file";
        Self::new(message, hint).of_kind(Kind::Internal)
    }
}
