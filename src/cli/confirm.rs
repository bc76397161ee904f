//! The question before something is lost (B08, B17).

use std::io::{IsTerminal, stderr, stdin};

use super::Console;
use crate::run::Consent;

/// Whether a run asks: standard input and standard error are a terminal, and `--yes` is not given.
fn asks(yes: bool) -> bool {
    !yes && is_on_terminal()
}

/// Whether a question can be asked.
pub(super) fn is_on_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Whether the run asks `question` before something is lost.
pub(super) fn consent(yes: bool, question: &dyn Fn(&str) -> bool) -> Consent<'_> {
    if asks(yes) {
        Consent::Ask(question)
    } else {
        Consent::Given
    }
}

/// The answer to a question. Yes if the run does not ask.
pub(super) fn confirm(console: &Console, yes: bool, question: &str) -> bool {
    !asks(yes) || console.ask(question)
}
