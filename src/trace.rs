//! What `-v` shows: each request's method, path, status and time; never a header or a body.

use std::{fmt, sync::Arc, time::Duration};

/// One request and how it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Who was asked.
    pub peer: Peer,
    /// `GET`, `POST`, …; `run` for a container command.
    pub method: String,
    /// The path with its query, or the command line.
    pub path: String,
    /// The status in words: `200`, `exit 1`, `timeout: …`.
    pub outcome: String,
    /// From sending to the end of the answer's head.
    pub elapsed: Duration,
}

/// Who a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The stack management service.
    Manager,
    /// The container engine of this host.
    Engine,
}

type Reader = dyn Fn(&Exchange) + Send + Sync;

/// Receives each [`Exchange`] once it has ended, in the order they end.
#[derive(Clone)]
pub struct Trace(Option<Arc<Reader>>);

impl Trace {
    /// A trace that nobody reads.
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
