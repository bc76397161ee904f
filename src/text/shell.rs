//! Quoting for a shell.
#![deny(clippy::disallowed_methods)]

use std::borrow::Cow;

/// A text as one word of a shell command.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    // Only a NUL cannot be quoted, and no argument or path contains one.
    shlex::try_quote(text).unwrap_or(Cow::Borrowed("''"))
}
