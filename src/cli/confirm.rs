//! The question before something is lost (B08, B17).

use std::io::{IsTerminal, stderr, stdin};

use super::Console;

/// Asks on the terminal; the default is no. Without a terminal, or with `--yes`, the answer is yes without a question.
pub(super) fn confirm(console: &Console, yes: bool, question: &str) -> bool {
    if yes || !stdin().is_terminal() || !stderr().is_terminal() {
        return true;
    }
    console.done();
    console.question(&format!("{question} [y/N]"));
    let mut answer = String::new();
    // A read error counts as no.
    stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
