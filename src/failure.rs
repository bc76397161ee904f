//! An error with a hint: the message says what failed and why, the hint what to do.

use std::error::Error;

/// An error message with an optional hint and details. Printed as `error: message: cause`, then `hint: …`.
#[derive(Debug, Default, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
    hint: Option<String>,
    details: Option<String>,
    body: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    is_mistyped: bool,
    is_final: bool,
}

impl Failure {
    /// A failure with `message`, a lower-case fragment.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same, if there is something that the user can do.
    #[must_use]
    pub fn hint_if_any(mut self, hint: Option<&str>) -> Self {
        self.hint = hint.map(str::to_owned);
        self
    }

    /// Adds lines to print below the message: a response body, a list of reasons.
    #[must_use]
    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }

    /// Adds these lines, if there are any.
    #[must_use]
    pub fn lines(self, lines: &[String]) -> Self {
        match lines {
            [] => self,
            lines => self.details(lines.join("\n")),
        }
    }

    /// Adds the response of another program, to print below the details with `-v`.
    #[must_use]
    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Adds the details and the response of `error`.
    #[must_use]
    pub fn details_from(mut self, error: &anyhow::Error) -> Self {
        self.details = Self::details_of(error).map(str::to_owned);
        self.body = Self::body_of(error).map(str::to_owned);
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Marks an error of what was typed: nobody expects that it changed anything.
    #[must_use]
    pub fn mistyped(mut self) -> Self {
        self.is_mistyped = true;
        self
    }

    /// Whether `error` is one of what was typed.
    pub fn is_mistyped(error: &anyhow::Error) -> bool {
        Self::in_chain(error).any(|failure| failure.is_mistyped)
    }

    /// Marks an error that no command can repair, or not if `is_final` is false.
    #[must_use]
    pub fn final_if(mut self, is_final: bool) -> Self {
        self.is_final = is_final;
        self
    }

    /// Whether no command can repair what `error` says.
    pub fn is_final(error: &anyhow::Error) -> bool {
        Self::in_chain(error).any(|failure| failure.is_final)
    }

    /// A failure because of `error`, with a way out after those that it names: only the first hint in the chain is shown.
    pub fn with_way(message: &str, error: anyhow::Error, way: &str) -> Self {
        let own = Self::hint_of(&error).map(|own| format!("{own}; "));
        let hint = own.unwrap_or_default() + way;
        Self::new(message).source(error).hint(hint)
    }

    /// The first hint in the chain of causes of `error`.
    pub fn hint_of(error: &anyhow::Error) -> Option<&str> {
        Self::in_chain(error).find_map(|failure| failure.hint.as_deref())
    }

    /// The first details in the chain of causes of `error`.
    pub fn details_of(error: &anyhow::Error) -> Option<&str> {
        Self::in_chain(error).find_map(|failure| failure.details.as_deref())
    }

    /// The first response in the chain of causes of `error`.
    pub fn body_of(error: &anyhow::Error) -> Option<&str> {
        Self::in_chain(error).find_map(|failure| failure.body.as_deref())
    }

    fn in_chain(error: &anyhow::Error) -> impl Iterator<Item = &Self> {
        error.chain().filter_map(|cause| cause.downcast_ref())
    }
}
