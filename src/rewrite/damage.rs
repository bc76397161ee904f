//! Whether the literal rewrite damages a text (B02).
//!
//! Parsed, the result must be the original without its `env_file` keys and with `./` replaced inside
//! strings, keys included. Comments and the style of scalars do not matter. Decided where the contract
//! leaves room:
//! - `env_file` is a key of a service, of an `include` item or of anything below `x-`. Elsewhere
//!   (`environment`, `labels`, a service of that name) it is a name like any other, and deleting it is
//!   damage.
//! - An `env_file` that stays (flow style, a quoted key) is damage: the manager cannot read the file (M11).
//! - A mapping of which nothing is left becomes null, which is damage: compose refuses a service that is
//!   null, and `<<` of a fragment that is null.
//! - A `- .env` that goes from any list but an `env_file` is damage, also from a fragment that only serves
//!   as one: what else uses it cannot be told.
#![deny(clippy::disallowed_methods)]

mod origin;
mod walk;

use std::fmt;

use serde::Serialize;

use super::env_files::{DeletedLines, env_file_keys};
use composefile::document::{Document, ParseError};
use origin::Origin;

/// The result of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The result means what the rewrite is meant to produce.
    Undamaged,
    /// It does not, in these places, in the order of the original's lines; at most [`MOST`].
    Damaged(Vec<Damage>),
}

/// More damages than this are not listed.
pub const MOST: usize = 50;

/// One place where the rewrite damages the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Damage {
    /// The line of the original, counted from 1.
    pub line: usize,
    /// What happens there.
    #[serde(flatten)]
    pub kind: DamageKind,
}

/// What the rewrite can do to a text; paths are like `services.web.ports[0]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DamageKind {
    /// The result is no YAML.
    NoLongerYaml {
        /// What the parser says of the result.
        message: String,
    },
    /// Part of a removed `env_file` stays.
    LeftOver {
        /// The `env_file`.
        of: String,
        /// What it became part of; `None` where the result is no YAML.
        became_part_of: Option<String>,
    },
    /// Something that is no `env_file` is deleted.
    Deleted {
        /// What is deleted, or what it is deleted from.
        path: String,
    },
    /// Nothing is left of a mapping, which makes it null.
    Emptied {
        /// The mapping.
        path: String,
    },
    /// An `env_file` is not removed.
    EnvFileStays {
        /// The `env_file`.
        path: String,
    },
    /// Something reads otherwise than with its `./` replaced.
    Changed {
        /// What reads otherwise.
        path: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            DamageKind::NoLongerYaml { message } => write!(f, "no longer YAML: {message}"),
            DamageKind::LeftOver {
                of,
                became_part_of: None,
            } => {
                write!(f, "left over from the removed {of}")
            }
            DamageKind::LeftOver {
                of,
                became_part_of: Some(other),
            } => {
                write!(
                    f,
                    "left over from the removed {of}, becomes part of {other}"
                )
            }
            DamageKind::Deleted { path } => write!(f, "deleted from {path}, which is no env_file"),
            DamageKind::Emptied { path } => write!(f, "nothing is left of {path}"),
            DamageKind::EnvFileStays { path } => {
                write!(
                    f,
                    "{path} is not removed, and the manager cannot read its file"
                )
            }
            DamageKind::Changed { path } => write!(f, "{path} no longer reads the same"),
        }
    }
}

/// Compares `rewritten`, the result of [`super::literal::rewrite`] for `stack_dir`, with the original.
pub fn judge_document(original: &Document<'_>, rewritten: &str, stack_dir: &str) -> Verdict {
    let result = match Document::parse(rewritten) {
        Ok(result) => result,
        Err(error) => return Verdict::Damaged(no_longer_yaml(original, &error, stack_dir)),
    };
    let mut damages = walk::differences(original, &result, stack_dir);
    damages.sort();
    damages.dedup();
    if damages.is_empty() {
        Verdict::Undamaged
    } else {
        Verdict::Damaged(damages)
    }
}

/// Says where the result stops to be YAML, and which `env_file` left something over.
fn no_longer_yaml(original: &Document<'_>, error: &ParseError, stack_dir: &str) -> Vec<Damage> {
    let origin = Origin::new(original.text(), stack_dir);
    let deleted = DeletedLines::of(original.text());
    let left_over = env_file_keys(original).into_iter().filter_map(|entry| {
        let removed = deleted.hold(entry.key.span().start);
        let left = deleted.first_left(original.text(), &entry.value.span());
        Some(Damage {
            line: original.line(left.filter(|_| removed)?),
            kind: DamageKind::LeftOver {
                of: entry.key.path(),
                became_part_of: None,
            },
        })
    });
    let failure = Damage {
        line: original.line(origin.of(error.offset)),
        kind: DamageKind::NoLongerYaml {
            message: error.message.clone(),
        },
    };
    let mut damages: Vec<_> = std::iter::once(failure)
        .chain(left_over.take(MOST - 1))
        .collect();
    damages.sort();
    damages
}

#[cfg(test)]
mod tests;
