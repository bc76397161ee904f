//! The question before something is interrupted or lost (B08).

use std::io::{IsTerminal, stderr, stdin};

use crate::run::Consent;

/// Whether a question can be asked: standard input and standard error are a terminal.
pub(super) fn is_on_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// The consent to a run: `--yes`, or the answer to `question` on a terminal.
pub(super) fn consent(yes: bool, question: &dyn Fn(&str) -> bool) -> Consent<'_> {
    if yes {
        Consent::Given
    } else if is_on_terminal() {
        Consent::Ask(question)
    } else {
        Consent::Impossible
    }
}
