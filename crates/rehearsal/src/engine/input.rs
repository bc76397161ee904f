//! What a request to the engine contains.

use serde_json::Value;

use super::filters::Filters;
use crate::{http::Incoming, world::EngineError};

/// The query parameter `filters`.
pub(super) fn filters(incoming: &Incoming) -> Result<Filters, EngineError> {
    Filters::read(incoming.query("filters").as_deref()).map_err(|what| EngineError::new(400, what))
}

/// The body as JSON. Like the engine, reports invalid JSON as 500.
pub(super) fn body(incoming: &Incoming) -> Result<Value, EngineError> {
    serde_json::from_slice(&incoming.body).map_err(|error| {
        let text = match error.is_eof() {
            true if incoming.body.is_empty() => "EOF".to_owned(),
            true => "unexpected EOF".to_owned(),
            false => error.to_string(),
        };
        EngineError::new(500, text)
    })
}

/// A boolean query parameter, parsed as the engine does.
pub(super) fn flag(incoming: &Incoming, name: &str) -> bool {
    let value = incoming
        .query(name)
        .unwrap_or_default()
        .to_ascii_lowercase();
    !matches!(value.as_str(), "" | "0" | "no" | "false" | "none")
}
