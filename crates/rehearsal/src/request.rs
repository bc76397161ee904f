//! A request that a client sent to the rehearsal.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::calls::{Call, Peer};

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
        let mut all = self.headers.iter();
        let found = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The version of the Engine API in the path: `/v1.41/info` → `1.41`
    pub fn version(&self) -> Option<&str> {
        let first = self.path.split('/').nth(1)?;
        first
            .strip_prefix('v')
            .filter(|version| version.contains('.'))
    }

    /// The segments of the path without a version.
    pub fn segments(&self) -> Vec<&str> {
        let path = self.path.split('?').next().unwrap_or_default();
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.skip(self.version().iter().len()).collect()
    }

    /// The decoded value of the first query parameter with that name.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.path.split_once('?')?;
        let mut pairs = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        Some(decode(&value.replace('+', " ")))
    }
}

/// Percent-decodes a text.
pub(super) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
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
