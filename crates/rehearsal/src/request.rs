//! A request that a client sent to the rehearsal.

use std::fmt;

use super::{
    faults::{Call, Peer},
    http,
};

/// A request that a client sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The API that received it.
    pub peer: Peer,
    /// The API call.
    pub call: Call,
    /// `GET`, `POST`, …
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The status of the response; `None` if there was no response.
    pub status: Option<u16>,
    /// All headers, including the API key.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The client's port: the same for all requests of one connection; 0 for the engine.
    pub port: u16,
}

impl Request {
    /// The value of a header. The name is case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        http::find_header(&self.headers, name)
    }
}

impl fmt::Display for Request {
    /// `Portainer DELETE /api/stacks/3?endpointId=1 → 204`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = match self.peer {
            Peer::Portainer => "Portainer",
            Peer::Engine => "engine",
        };
        write!(f, "{peer} {} {} → ", self.method, self.path)?;
        match self.status {
            Some(status) => write!(f, "{status}"),
            None => f.write_str("no response"),
        }
    }
}

impl fmt::Debug for Request {
    // Leaves out headers and body, which hold the API key and values of `.env`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({self}, {} body bytes)", self.body.len())
    }
}
