//! The requests that `-v` shows: method, path, status and time, never a header or a body.

use std::{fmt, sync::Arc, time::Duration};

/// One request and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The receiver of the request: `portainer`, `engine` or `compose`.
    pub peer: &'static str,
    /// The method, and the path with its query: `GET /info`. For a command, `run` and its line: `run docker info`.
    pub request: String,
    /// The status or the failure: `200`, `exit 1`, `timed out`.
    pub outcome: String,
    /// From sending the request to receiving the headers of the response, or to the exit of the command.
    pub elapsed: Duration,
}

type Reader = dyn Fn(&Exchange) + Send + Sync;

/// Receives each [`Exchange`] when it ends.
#[derive(Clone)]
pub struct Trace(Option<Arc<Reader>>);

impl Trace {
    /// A trace that discards every exchange.
    pub fn off() -> Self {
        Self(None)
    }

    /// Calls `reader` with each exchange, possibly from several threads.
    pub fn to(reader: impl Fn(&Exchange) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(reader)))
    }

    /// Reports one exchange.
    pub fn report(&self, exchange: &Exchange) {
        if let Some(reader) = &self.0 {
            reader(exchange);
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({})", if self.0.is_some() { "on" } else { "off" })
    }
}
