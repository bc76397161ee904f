//! The question before something is lost (B08, B17).

use std::io::{IsTerminal, stderr, stdin};

use super::Console;

/// Whether a run asks: standard input and standard error are a terminal, and `--yes` is not given.
pub(super) fn asks(yes: bool) -> bool {
    !yes && stdin().is_terminal() && stderr().is_terminal()
}

/// The answer to a question. Yes if the run does not ask.
pub(super) fn confirm(console: &Console, yes: bool, question: &str) -> bool {
    !asks(yes) || console.ask(question)
}
