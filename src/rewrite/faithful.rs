//! The faithful rewrite: a text and an `env` that mean to the manager what the stack's files mean here.
//!
//! The manager keeps the text in a folder of its own with `stack.env` beside it, and reads no file of the
//! host (M07–M15). So paths become absolute, env files become `stack.env` or `environment:`, label files
//! `labels:`, a `build` becomes the image it made, and what only the caller's shell defines is written into the
//! text. All of it is edits on byte spans: no other byte changes. What cannot be carried over is refused, all of
//! it at once.
//!
//! Invariant: pure; the result was parsed again and compared with the original node by node.
#![deny(clippy::disallowed_methods)]

mod block;
mod build;
mod carry;
mod check;
mod encode;
mod env;
mod env_files;
mod finish;
mod host;
mod keys;
mod paths;
mod project;
mod references;
mod refusal;
mod rewriter;
mod shape;
mod shell;
mod splice;
mod uses;
mod variables;

use std::{fmt, ops::Range};

pub use encode::encoded;
pub(in crate::rewrite) use env_files::read_over;
pub use refusal::{Reason, Refusal};
pub(in crate::rewrite) use shell::{OF_THE_MANAGER, names};

pub use composefile::reader::{Context, DEFAULT_FILES, EnvFiles};

use crate::{model::Variable, rewrite::env::stack_env};

/// What the manager is to be sent, and how it came about.
#[derive(Clone, PartialEq, Eq)]
pub struct Faithful {
    /// The text.
    pub text: String,
    /// The `env`, each value as `stack.env` needs it (N11).
    pub env: Vec<Variable>,
    /// The project's name, as compose finds it here: the name the record has to have.
    pub project: String,
    /// What was changed, in the order of the text.
    pub edits: Vec<Change>,
    /// What a person should know.
    pub notices: Vec<Notice>,
    masks: Vec<splice::Mask>,
}

/// One change of the text; never a value of an env file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The line of the original, counted from 1.
    pub line: usize,
    /// The bytes of the original that went; empty where something was put in.
    pub span: Range<usize>,
    /// What was done there.
    pub what: String,
    /// Why.
    pub why: &'static str,
}

/// Something a person should know; never a value of an env file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// The line of the original it is about.
    pub line: Option<usize>,
    /// What.
    pub message: String,
}

impl Faithful {
    /// The text for people: what came out of an env file is hidden.
    pub fn shown(&self) -> String {
        let mut shown = String::with_capacity(self.text.len());
        let mut done = 0;
        for (span, mask) in &self.masks {
            shown.push_str(&self.text[done..span.start]);
            shown.push_str(mask);
            done = span.end;
        }
        shown + &self.text[done..]
    }

    /// `stack.env` as the manager writes it: one `NAME=VALUE` a line (M07).
    pub fn stack_env(&self) -> String {
        stack_env(&self.env)
    }
}

impl fmt::Debug for Faithful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Faithful({}: {} bytes, {:?}, {} edits)",
            self.project,
            self.text.len(),
            self.env,
            self.edits.len()
        )
    }
}

/// Rewrites a compose file; `env` is the text of the stack's `.env`, if there is one.
pub fn rewrite(
    text: &str,
    env: Option<&str>,
    context: &Context<'_>,
) -> Result<Faithful, Vec<Refusal>> {
    rewriter::rewrite(text, env, context)
}

/// The env files other than `.env`, and the label files, whose texts [`rewrite`] needs, as absolute paths. A text that cannot be
/// read needs none: the rewrite says why.
pub fn env_files_needed(text: &str, env: Option<&str>, context: &Context<'_>) -> Vec<String> {
    rewriter::env_files_needed(text, env, context)
}

#[cfg(test)]
mod tests;
