//! Whether the literal rewrite damages a text (B02).
//!
//! The parsed result must equal the parsed original without its `env_file` keys and with `./` replaced inside strings,
//! including keys. Comments and the style of scalars do not matter. Where B02 leaves room:
//! - `env_file` is a key of a service, of an `include` item, or of anything below `x-`. Elsewhere (`environment`,
//!   `labels`, a service of that name) it is an ordinary name, and deleting it is damage.
//! - An `env_file` that stays (flow style, a quoted key) is damage: Portainer cannot read the file (M11).
//! - A mapping that loses all its entries becomes null, which is damage: Compose rejects a null service, and `<<` of a
//!   null fragment.
//! - Deleting `- .env` from any list except an `env_file` is damage, even from a fragment that is only used as one:
//!   something else might use it.
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
    /// The result has the expected meaning.
    Undamaged,
    /// It does not, in these places, in the order of the original's lines; at most [`MOST`].
    Damaged(Vec<Damage>),
}

/// The most damages that are listed.
pub const MOST: usize = 50;

/// One place where the rewrite damages the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Damage {
    /// The line of the original, counted from 1.
    pub line: usize,
    /// The damage.
    #[serde(flatten)]
    pub kind: DamageKind,
}

/// The kinds of damage. Paths are like `services.web.ports[0]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DamageKind {
    /// The result is not valid YAML.
    NoLongerYaml {
        /// The error of the parser.
        message: String,
    },
    /// Part of a removed `env_file` remains.
    LeftOver {
        /// The `env_file`.
        of: String,
        /// The value that it becomes part of; `None` if the result is not valid YAML.
        became_part_of: Option<String>,
    },
    /// A deleted line is not part of an `env_file`.
    Deleted {
        /// The deleted value, or the value that loses the line.
        path: String,
    },
    /// A mapping loses all its entries and becomes null.
    Emptied {
        /// The mapping.
        path: String,
    },
    /// An `env_file` is not removed.
    EnvFileStays {
        /// The `env_file`.
        path: String,
    },
    /// A value changes beyond the replacement of `./`.
    Changed {
        /// The value.
        path: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            DamageKind::NoLongerYaml { message } => {
                write!(f, "the result is not valid YAML: {message}")
            }
            DamageKind::LeftOver {
                of,
                became_part_of: None,
            } => {
                write!(f, "part of the removed {of} remains")
            }
            DamageKind::LeftOver {
                of,
                became_part_of: Some(other),
            } => {
                write!(
                    f,
                    "part of the removed {of} remains and becomes part of {other}"
                )
            }
            DamageKind::Deleted { path } => {
                write!(f, "deletes a line of {path}, which is not an env_file")
            }
            DamageKind::Emptied { path } => write!(f, "{path} loses all its entries"),
            DamageKind::EnvFileStays { path } => {
                write!(
                    f,
                    "{path} is not removed, and Portainer cannot read the file"
                )
            }
            DamageKind::Changed { path } => write!(f, "{path} gets a different value"),
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

/// Where the result stops being valid YAML, and the parts of each removed `env_file` that remain.
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
