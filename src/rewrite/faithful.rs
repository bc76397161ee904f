//! The faithful rewrite: a text and an `env` that mean in Portainer what the stack's files mean on this host.
//!
//! Portainer stores the text in its own directory, with `stack.env` next to it, and reads no other file of the host
//! (M07–M15). So paths become absolute, env files become `stack.env` or `environment`, a
//! `build` becomes the image that it built, and variables of the caller's shell are written into the text. What runs can
//! add to this: anonymous volumes get names ([`Runs`]). All of these are edits on byte ranges: no other byte changes. Everything that
//! cannot be carried over is reported at once. What is not edited simply is [`Kind::NotSimple`]: Compose resolves the text then.
//!
//! Invariant: pure.

mod blocker;
mod encode;
mod findings;
mod listed;
mod mounts;
mod passes;
mod reading;
mod renamed;
mod runs;
mod shell;
mod write;

use std::{collections::BTreeSet, fmt, ops::Range};

pub use crate::finding::{Finding, Kind};
pub use blocker::ONE_FILE;
pub use encode::encoded;
pub use mounts::written_services;
pub(in crate::rewrite) use passes::values;
pub use renamed::{FROM_CONTAINERS, FROM_PORTAINER_DATA, MARK, renamed};
pub use runs::{Runs, ServiceRuns};
pub(in crate::rewrite) use shell::names;
use write::quoted;
pub(in crate::rewrite) use write::{scalar_text, word};

pub use composefile::reader::{Context, DEFAULT_FILES, EnvFiles};
use composefile::{
    document::{Document, Node, NodeKind},
    dotenv,
    reader::Reader,
};

use crate::{
    model::Variable,
    rewrite::{env::stack_env, replaced},
    text::HIDDEN,
};
use blocker::FIX_LINE;

/// What to send to Portainer, and how it differs from the original.
#[derive(Clone, PartialEq, Eq)]
pub struct Faithful {
    /// The text of the Compose file.
    pub text: String,
    /// The `env`, each value as `stack.env` needs it (N11).
    pub env: Vec<Variable>,
    /// The name of the project: the Portainer stack needs the same.
    pub project: String,
    /// The changes, in the order of the text.
    pub edits: Vec<TextChange>,
    /// What the user should know.
    pub notices: Vec<Finding>,
    /// The ranges of the text that must not be shown.
    hidden: Vec<Range<usize>>,
}

/// One change of the text. Never holds a value of an env file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// The line of the original, counted from 1.
    pub line: usize,
    /// The removed bytes of the original; empty for an insertion.
    pub span: Range<usize>,
}

impl Faithful {
    /// The text with every value of an env file hidden, but for those of an `environment`, which [`masked`](crate::rewrite::masked)
    /// hides.
    pub fn shown(&self) -> String {
        let hidden = self.hidden.iter().cloned();
        replaced(&self.text, hidden.map(|span| (span, quoted(HIDDEN))))
    }

    /// Hides scalars of the text, as they are written there at the ends of lines.
    pub fn hide(&mut self, scalars: &BTreeSet<String>) {
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            let text = line.trim_end_matches('\n');
            let mut starts = text.match_indices(' ').map(|(blank, _)| blank + 1);
            if let Some(start) = starts.find(|&start| scalars.contains(&text[start..])) {
                self.hidden.push(at + start..at + text.len());
            }
            at += line.len();
        }
    }

    /// `stack.env` as Portainer writes it: one `NAME=VALUE` per line (M07).
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

/// Rewrites a Compose file. `env` is the text of the stack's `.env`, if it exists. `runs` is what the containers have
/// that the text is to say.
///
/// The error lists everything that prevents the rewrite, in the order of the text.
pub fn rewrite(
    text: &str,
    env: Option<&str>,
    context: &Context<'_>,
    runs: &Runs,
) -> Result<Faithful, Vec<Finding>> {
    let document = parsed(text).map_err(|blocker| vec![blocker])?;
    let variables = variables_of(env, context).map_err(|blocker| vec![blocker])?;
    let reader = Reader::new(&document, env, &variables, context);
    let mut found = passes::run(&reader, runs);
    if !found.blockers.is_empty() {
        return Err(in_order(found.blockers));
    }
    let mut notices = std::mem::take(&mut found.notices);
    let written = found.apply();
    let (text, edits) = written.ok_or_else(|| vec![Finding::not_simple(None)])?;
    notices.sort_by_cached_key(|notice| {
        let line = notice.position.map(|place| place.line);
        (line, notice.message.clone())
    });
    notices.dedup();
    Ok(Faithful {
        text,
        env: encode::payload(&reader),
        project: reader.project,
        edits,
        notices,
        hidden: Vec::new(),
    })
}

/// The env files other than `.env` whose texts [`rewrite`] needs, as absolute paths. Empty for a
/// text that cannot be parsed: [`rewrite`] reports why.
pub fn env_files_needed(text: &str, env: Option<&str>, context: &Context<'_>) -> Vec<String> {
    let found = read(text, env, context, |reader| {
        let services = reader.services.iter();
        let listed = services.flat_map(|service| listed::listed(reader, *service));
        let files: BTreeSet<_> = listed.map(|listed| listed.file).collect();
        // A path can be empty because of an empty variable.
        let is_other = |file: &String| !file.is_empty() && *file != reader.own_env;
        files.into_iter().filter(is_other).collect()
    });
    found.unwrap_or_default()
}

/// The name that Compose gives the project in this context, and the Compose files that it reads, relative to the directory: those of
/// `COMPOSE_FILE`, or the file and its override file. `None` if the text or `env` cannot be parsed.
pub fn found(
    text: &str,
    env: Option<&str>,
    context: &Context<'_>,
) -> Option<(String, Vec<String>)> {
    read(text, env, context, |reader| {
        (reader.project.clone(), reader.files())
    })
}

fn read<R>(
    text: &str,
    env: Option<&str>,
    context: &Context<'_>,
    ask: impl FnOnce(&Reader<'_, '_>) -> R,
) -> Option<R> {
    let document = parsed(text).ok()?;
    let variables = variables_of(env, context).ok()?;
    Some(ask(&Reader::new(&document, env, &variables, context)))
}

fn in_order(mut blockers: Vec<Finding>) -> Vec<Finding> {
    blockers.sort_by_key(|blocker| blocker.position.map(|place| (place.line, place.column)));
    let mut found: Vec<Finding> = Vec::with_capacity(blockers.len());
    for blocker in blockers {
        if !found.contains(&blocker) {
            found.push(blocker);
        }
    }
    found
}

/// Parses the Compose file.
fn parsed(text: &str) -> Result<Document<'_>, Finding> {
    let document = Document::parse(text).map_err(|error| Finding::not_yaml(&error))?;
    let hint = "pass the right file with --file";
    let wrong = |message: &str| Finding::new(message, hint).of_kind(Kind::WrongType);
    let Some(root) = document.root() else {
        return Err(wrong("the Compose file is empty"));
    };
    if !root.is_mapping() {
        let message = "the Compose file is not a mapping";
        return Err(Finding::at(root, Kind::WrongType, message, hint));
    }
    let is_endless =
        |node: &Node<'_>| node.kind() == NodeKind::Alias && node.resolved().holds(*node);
    if let Some(alias) = document.nodes().find(is_endless) {
        let message = "the alias is inside its own anchor";
        return Err(Finding::at(alias, Kind::WrongType, message, FIX_LINE));
    }
    Ok(document)
}

/// The variables of `.env`, as Compose reads them.
fn variables_of(
    env: Option<&str>,
    context: &Context<'_>,
) -> Result<Vec<(String, String)>, Finding> {
    dotenv::parse(env.unwrap_or_default(), context.shell).map_err(|error| {
        let message = format!("cannot parse {}: {error}", context.env_file);
        Finding::new(message, FIX_LINE).of_kind(Kind::BadEnvFile)
    })
}

#[cfg(test)]
mod tests;
