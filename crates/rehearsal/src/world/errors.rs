//! The error responses of Portainer and of the engine, in their own words (M01).

/// An error response of Portainer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortainerError {
    /// The HTTP status.
    pub status: u16,
    /// `message` in the body.
    pub message: String,
    /// `details` in the body.
    pub details: String,
}

impl PortainerError {
    pub fn new(status: u16, message: &str, details: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            details: details.to_owned(),
        }
    }

    /// With the same text in both fields.
    pub fn same(status: u16, text: &str) -> Self {
        Self::new(status, text, text)
    }

    pub fn no_record(id: &str) -> Self {
        Self::new(
            404,
            "Unable to find a stack with the specified identifier inside the database",
            &format!("Object not found inside the database (bucket=stacks, key={id})"),
        )
    }

    pub fn no_endpoint(message: &str, id: u64) -> Self {
        let details = format!("Object not found inside the database (bucket=endpoints, key={id})");
        Self::new(404, message, &details)
    }

    pub fn failed(reason: &str) -> Self {
        Self::new(
            500,
            &format!("failed to deploy a stack: {reason}\n"),
            &format!("Failed to deploy a stack: {reason}\n"),
        )
    }

    pub fn failed_down(reason: &str) -> Self {
        Self::same(500, &format!("failed to remove a stack: {reason}\n"))
    }
}

/// An error response of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError {
    /// The HTTP status.
    pub status: u16,
    /// `message` in the body.
    pub message: String,
}

impl EngineError {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}
