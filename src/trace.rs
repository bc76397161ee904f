//! The requests that `-v` shows: method, path, status and time, never a header or a body.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{parallel::lock, text::Mask};

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

/// Receives each [`Exchange`] when it ends. Clones hide the same values.
#[derive(Clone)]
pub struct Trace {
    reader: Option<Arc<Reader>>,
    hidden: Arc<Mutex<Vec<Mask>>>,
}

impl Trace {
    /// A trace that discards every exchange.
    pub fn off() -> Self {
        Self::of(None)
    }

    /// Calls `reader` with each exchange, possibly from several threads.
    pub fn to(reader: impl Fn(&Exchange) + Send + Sync + 'static) -> Self {
        Self::of(Some(Arc::new(reader)))
    }

    fn of(reader: Option<Arc<Reader>>) -> Self {
        let hidden = Arc::default();
        Self { reader, hidden }
    }

    /// Hides these values in what is reported from now on: the name of an image may contain one.
    pub fn hide(&self, mask: &Mask) {
        if self.reader.is_some() {
            lock(&self.hidden).push(mask.clone());
        }
    }

    /// Reports one exchange.
    pub fn report(&self, mut exchange: Exchange) {
        if let Some(reader) = &self.reader {
            for mask in lock(&self.hidden).iter() {
                exchange.request = mask.hide_unless(&exchange.request, |_, is_plain| is_plain);
            }
            reader(&exchange);
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Trace({})",
            if self.reader.is_some() { "on" } else { "off" }
        )
    }
}
