//! The state of a stack, as reported wherever a run stops, and the command that rolls back.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    fmt::Write as _,
    os::unix::ffi::OsStrExt as _,
};

use crate::text::{said, shell_word};

/// The state of a stack. Its `Display` is one sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    sentence: String,
    /// What the run wrote besides.
    pub(super) written: Vec<String>,
    /// Whether what the run changed can be rolled back, if it has a snapshot.
    is_undoable: bool,
    /// Whether Portainer does not list the stack.
    is_unlisted: bool,
    /// See [`Self::told`].
    is_told: bool,
    roll_back: Option<String>,
    /// The same with the flags that were typed only.
    roll_back_here: Option<String>,
    unanswered: Option<String>,
}

impl State {
    /// The run changed nothing yet.
    pub fn untouched() -> Self {
        Self::told("nothing was changed")
    }

    /// A state without anything to roll back.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            ..Self::default()
        }
    }

    /// A state that says what was done about a failure, or that nothing was: it is shown as a sentence of its own.
    pub fn told(sentence: impl Into<String>) -> Self {
        Self {
            is_told: true,
            ..Self::new(sentence)
        }
    }

    /// Whether it is shown as a sentence of its own.
    pub fn is_told(&self) -> bool {
        self.is_told
    }

    /// The same state, after the name of its stack.
    #[must_use]
    pub fn of(&self, stack: &str) -> Self {
        Self {
            sentence: format!("{stack}: {}", self.sentence),
            is_told: false,
            ..self.clone()
        }
    }

    /// The same state, which the snapshot of the run undoes, of a stack that Portainer does or does not list.
    #[must_use]
    pub fn undoable(mut self, is_unlisted: bool) -> Self {
        (self.is_undoable, self.is_unlisted) = (true, is_unlisted);
        self
    }

    /// Whether the run changed nothing, and did not even pull an image.
    pub fn is_untouched(&self) -> bool {
        self.sentence == Self::untouched().sentence
    }

    /// The same state, for a run whose snapshot and journal do not outlive it.
    #[must_use]
    pub fn without_snapshot(mut self) -> Self {
        (self.roll_back, self.roll_back_here) = (None, None);
        self.unanswered = None;
        self
    }

    /// The command that rolls back what the run changed, which works in any directory and shell (B14).
    pub fn roll_back(&self) -> Option<&str> {
        self.roll_back.as_deref()
    }

    /// The same for a user who is still in the shell of the run.
    pub fn roll_back_here(&self) -> Option<&str> {
        self.roll_back_here.as_deref()
    }

    /// The same state, with the commands that roll back to the snapshot of a stack, and with the requests that are unanswered
    /// (B11). The key of a run that does not see every Portainer stack cannot restore one that is not listed (B24).
    pub(super) fn complete(
        mut self,
        (restore, typed): (&RestoreCommand, &RestoreCommand),
        snapshot: Option<(&str, &str)>,
        unanswered: &[String],
        sees_every_stack: bool,
    ) -> Self {
        let engine_only = self.is_unlisted && !sees_every_stack;
        if let Some((stack, id)) = snapshot.filter(|_| self.is_undoable) {
            self.roll_back = Some(restore.to(stack, id, engine_only));
            self.roll_back_here = Some(typed.to(stack, id, engine_only));
        }
        self.unanswered = (!unanswered.is_empty()).then(|| unanswered.join("; "));
        self
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        if let Some(written) = said(&self.written, "was written") {
            write!(f, "; {written}")?;
        }
        match &self.unanswered {
            Some(requests) => write!(
                f,
                "; no response yet to {requests}; the next run first waits until Portainer has finished"
            ),
            None => Ok(()),
        }
    }
}

/// The settings of a printed command: those that were typed, or, for the one that rolls back, each that is not the
/// default (B14).
#[derive(Debug, Clone, Default)]
pub struct RestoreCommand {
    /// Variables of the environment: name and value.
    pub variables: Vec<(&'static str, OsString)>,
    /// The other arguments: flags and values.
    pub flags: Vec<OsString>,
}

impl RestoreCommand {
    /// The command that restores one snapshot, or its containers alone, quoted for a shell.
    pub fn to(&self, stack: &str, id: &str, engine_only: bool) -> String {
        let command = self.with(&["restore", stack, "--to", id]);
        command + if engine_only { " --engine-only" } else { "" }
    }

    /// `stacklift` with these arguments and the settings, quoted for a shell.
    pub fn with(&self, arguments: &[&str]) -> String {
        let variables = self.variables.iter();
        let mut words: Vec<String> = variables
            .map(|(name, value)| format!("{name}={}", quoted(value)))
            .collect();
        let arguments = ["stacklift"].iter().chain(arguments);
        words.extend(arguments.map(|word| quoted(OsStr::new(word))));
        words.extend(self.flags.iter().map(|flag| quoted(flag)));
        words.join(" ")
    }
}

fn quoted(word: &OsStr) -> String {
    let Some(text) = word.to_str() else {
        let mut escaped = String::from("$'");
        for &byte in word.as_bytes() {
            // A hexadecimal escape has at most two digits. Writing to a string does not fail.
            let _ = write!(escaped, "\\x{byte:02x}");
        }
        escaped.push('\'');
        return escaped;
    };
    shell_word(text).into_owned()
}
