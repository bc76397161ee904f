//! The state of a stack, as reported wherever a run stops.

use std::fmt;

/// The state of a stack. Its `Display` is one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    sentence: String,
    roll_back: Option<String>,
}

impl State {
    /// Nothing was changed yet.
    pub fn untouched() -> Self {
        Self::new("the stack is unchanged: nothing was touched")
    }

    /// A state without anything to roll back.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            roll_back: None,
        }
    }

    /// The same state, with a snapshot that holds what ran before.
    #[must_use]
    pub fn with_snapshot(mut self, stack: &str, id: &str) -> Self {
        self.roll_back = Some(restore_command(stack, id));
        self
    }

    /// The same state, for a run whose snapshot does not outlive it.
    #[must_use]
    pub fn without_snapshot(mut self) -> Self {
        self.roll_back = None;
        self
    }

    /// The command that rolls back what the run changed.
    pub fn roll_back(&self) -> Option<&str> {
        self.roll_back.as_deref()
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// The command that restores a stack from one snapshot.
pub fn restore_command(stack: &str, id: &str) -> String {
    format!("stacklift restore {stack} --to {id}")
}
