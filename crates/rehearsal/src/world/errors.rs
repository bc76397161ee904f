//! The error responses of Portainer and of the engine, in their own words (M01).

use serde::Serialize;

/// An error response of Portainer or of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The HTTP status.
    #[serde(skip)]
    pub status: u16,
    /// `message` in the body.
    pub message: String,
    /// `details` in the body; empty for the engine, which sends none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub details: String,
}

impl Refused {
    /// By the engine.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            details: String::new(),
        }
    }

    /// By Portainer.
    pub fn with_details(status: u16, message: &str, details: &str) -> Self {
        let details = details.to_owned();
        Self {
            details,
            ..Self::new(status, message)
        }
    }

    /// With the same text in both fields.
    pub fn same(status: u16, text: &str) -> Self {
        Self::with_details(status, text, text)
    }

    /// Of a stack that does not exist.
    pub fn no_record(id: &str) -> Self {
        Self::with_details(
            404,
            "Unable to find a stack with the specified identifier inside the database",
            &format!("Object not found inside the database (bucket=stacks, key={id})"),
        )
    }

    /// Of an environment that does not exist.
    pub fn no_endpoint(message: &str, id: u64) -> Self {
        let details = format!("Object not found inside the database (bucket=endpoints, key={id})");
        Self::with_details(404, message, &details)
    }

    /// A payload that Portainer cannot use.
    pub fn invalid(what: &str) -> Self {
        Self::with_details(400, "Invalid request payload", what)
    }

    /// A failed `compose up`.
    pub fn failed(reason: &str) -> Self {
        Self::with_details(
            500,
            &format!("failed to deploy a stack: {reason}\n"),
            &format!("Failed to deploy a stack: {reason}\n"),
        )
    }
}

impl From<Refused> for String {
    fn from(refused: Refused) -> Self {
        refused.message
    }
}
