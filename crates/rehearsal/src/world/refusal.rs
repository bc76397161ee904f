//! The manager's errors, in its words (M01).

/// Why the manager does not do a call: status, message, details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What went wrong.
    pub message: String,
    /// What went wrong in more words.
    pub details: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: &str, details: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            details: details.to_owned(),
        }
    }

    pub(crate) fn no_record(id: &str) -> Self {
        Self::new(
            404,
            "Unable to find a stack with the specified identifier inside the database",
            &format!("Object not found inside the database (bucket=stacks, key={id})"),
        )
    }

    pub(super) fn no_endpoint(message: &str, id: u64) -> Self {
        let details = format!("Object not found inside the database (bucket=endpoints, key={id})");
        Self::new(404, message, &details)
    }

    pub(super) fn failed(reason: &str) -> Self {
        Self::new(
            500,
            &format!("failed to deploy a stack: {reason}\n"),
            &format!("Failed to deploy a stack: {reason}\n"),
        )
    }

    pub(super) fn busy() -> Self {
        let text = "The stack deployment is in progress";
        Self::new(409, text, text)
    }
}
