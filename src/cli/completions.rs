//! Shell completions: the scripts, and the answers to their questions.
//!
//! Invariant: an answer reads settings files, names in directories, and at most the `.env` that names a Compose file. It
//! contacts neither Portainer nor the engine, writes nothing, and an error ends it without a message.

use std::io::{Write as _, stdout};

use serde_json::json;

use super::arguments::{CompleteArguments, Shell};

mod answer;
mod bash;
mod values;

use answer::{Answer, Paths};

/// Prints the script of a shell.
pub(super) fn script(shell: Shell) {
    print(match shell {
        Shell::Bash => include_str!("completions/stacklift.bash"),
        Shell::Zsh => include_str!("completions/stacklift.zsh"),
        Shell::Fish => include_str!("completions/stacklift.fish"),
        Shell::Nushell => include_str!("completions/stacklift.nu"),
    });
}

/// Prints how the last word can be completed, in the format that the script of the shell reads.
pub(super) fn run(arguments: &CompleteArguments) {
    let words = arguments.words.iter();
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into()).collect();
    let answer = match arguments.shell {
        Shell::Bash => bash::answer(&words),
        Shell::Zsh => Answer::to(&words).map(|answer| lines(&answer, zsh)),
        Shell::Fish => Answer::to(&words).map(|answer| lines(&answer, fish)),
        Shell::Nushell => Answer::to(&words).map(|answer| nushell(&answer)),
    };
    print(&answer.unwrap_or_default());
}

/// What may follow the candidates, then each candidate on a line.
fn lines(answer: &Answer, line: fn(&str, &str) -> String) -> String {
    let paths = match answer.paths {
        Paths::None => "values",
        Paths::Files => "files",
        Paths::Directories => "directories",
    };
    let candidates = answer.candidates.iter();
    let candidates = candidates.map(|one| line(&one.value, &one.about));
    let lines: Vec<String> = [paths.to_owned()].into_iter().chain(candidates).collect();
    lines.join("\n") + "\n"
}

/// For `_describe`.
fn zsh(value: &str, about: &str) -> String {
    let value = value.replace('\\', r"\\").replace(':', r"\:");
    if about.is_empty() {
        return value;
    }
    format!("{value}:{about}")
}

fn fish(value: &str, about: &str) -> String {
    format!("{value}\t{about}")
}

/// JSON: `null` lets Nushell complete paths. Nushell inserts a value as it is, and does not filter.
fn nushell(answer: &Answer) -> String {
    let candidates = answer.matching();
    if candidates.is_empty() && answer.paths != Paths::None {
        return "null".to_owned();
    }
    let candidates = candidates
        .iter()
        .map(|one| json!({"value": nushell_word(&one.value), "description": one.about}));
    json!(candidates.collect::<Vec<_>>()).to_string()
}

/// A word that Nushell reads as this text.
fn nushell_word(text: &str) -> String {
    let is_bare = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '=');
    if !text.is_empty() && text.chars().all(is_bare) {
        text.to_owned()
    } else if text.contains('\'') {
        format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
    } else {
        format!("'{text}'")
    }
}

/// Prints `text` as it is. It contains no text from outside with control characters.
fn print(text: &str) {
    let mut out = stdout().lock();
    // A closed pipe is not an error.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_for_nushell() {
        for (text, word) in [
            ("--to=1", "--to=1"),
            ("books-db", "books-db"),
            ("$(touch x)", "'$(touch x)'"),
            ("it's \"\\", r#""it's \"\\""#),
            ("a b", "'a b'"),
            ("", "''"),
        ] {
            assert_eq!(nushell_word(text), word);
        }
    }

    #[test]
    fn a_line_for_zsh_escapes_what_ends_a_value() {
        assert_eq!(zsh(r"a:b\", "c: d"), r"a\:b\\:c: d");
    }
}
