//! Shell completions: the scripts, and the answers to their questions.
//!
//! Invariant: an answer reads settings files, names in directories, and at most the `.env` that names a Compose file. It
//! contacts neither Portainer nor the engine, writes nothing, and an error ends it without a message.

use std::{
    env,
    ffi::OsString,
    io::{Write as _, stdout},
    iter,
};

use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};

use super::arguments::{self, Shell};
use crate::text::needs_escaping;

mod values;

use values::Given;

/// Prints the script of a shell.
pub(super) fn script(shell: Shell) {
    print(match shell {
        Shell::Bash => include_str!("completions/stacklift.bash"),
        Shell::Zsh => include_str!("completions/stacklift.zsh"),
        Shell::Fish => include_str!("completions/stacklift.fish"),
        Shell::Nushell => include_str!("completions/stacklift.nu"),
    });
}

/// Prints how the last of the words after the program's name can be completed: a candidate on a line, a tab, and what it is.
/// Candidates that could control a terminal are left out.
pub(super) fn run(words: &[OsString]) {
    let Some((last, before)) = words.split_last() else {
        return;
    };
    let given = Given::read(before);
    let wants_flags = last.as_encoded_bytes().starts_with(b"-");
    let mut command = completable(arguments::command(), &given, wants_flags);
    let line = iter::once("stacklift".into()).chain(words.iter().cloned());
    let here = env::current_dir().ok();
    let found = complete(&mut command, line.collect(), words.len(), here.as_deref());
    let found = found.unwrap_or_default();
    print(&found.iter().filter_map(line_of).collect::<String>());
}

/// Adds what stacks, snapshots and other values can be. Flags are shown if nothing else can stand there, or if `wants_flags`.
fn completable(command: Command, given: &Given, wants_flags: bool) -> Command {
    let name = command.get_name().to_owned();
    command
        .disable_help_flag(!wants_flags)
        .disable_version_flag(!wants_flags)
        .mut_args(|arg| {
            let is_hidden = arg.is_hide_set() || (!wants_flags && !arg.is_positional());
            let values = values::of(&name, arg.get_id().as_str(), given);
            let arg = arg.hide(is_hidden);
            let Some(values) = values else { return arg };
            arg.add(ArgValueCandidates::new(move || {
                values.iter().map(CompletionCandidate::new).collect()
            }))
        })
        .mut_subcommands(|command| completable(command, given, wants_flags))
}

fn line_of(candidate: &CompletionCandidate) -> Option<String> {
    let value = candidate.get_value().to_str()?;
    let help = candidate.get_help().map(ToString::to_string);
    let help = help.as_deref().and_then(|help| help.lines().next());
    // The help of a setting ends with its variable and its default.
    let about = help.and_then(|help| help.split(" [").next());
    (!value.contains(needs_escaping)).then(|| format!("{value}\t{}\n", about.unwrap_or_default()))
}

/// Prints `text` as it is. It contains no text from outside with control characters.
fn print(text: &str) {
    let mut out = stdout().lock();
    // A closed pipe is not an error.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
