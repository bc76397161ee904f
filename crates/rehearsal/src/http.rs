//! HTTP/1.1 for both APIs: reads whole requests, and makes the bytes of responses.

use std::io::{self, BufRead, Read as _};

use super::{
    calls::{Call, Peer},
    request::Request,
};

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Reads the next request of a connection. `None` if the client closed it.
///
/// # Errors
/// I/O errors of the stream, and [`io::ErrorKind::InvalidData`] if the bytes are not HTTP.
pub(super) fn read_request(
    stream: &mut impl BufRead,
    peer: Peer,
    port: u16,
) -> io::Result<Option<Request>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let first = lines.first().map_or("", String::as_str);
    let [method, target, "HTTP/1.1" | "HTTP/1.0"] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let headers = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    let mut request = Request {
        peer,
        call: Call::Other,
        method: method.to_owned(),
        path: target.to_owned(),
        status: None,
        headers: headers.collect(),
        body: Vec::new(),
        port,
    };
    request.call = Call::of(peer, method, &request.segments());
    let length = request.header("content-length").unwrap_or("0").parse();
    let length: u64 = length.map_err(|_| io::ErrorKind::InvalidData)?;
    if stream.take(length).read_to_end(&mut request.body)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(request))
}

/// A response. One with status 204 has no body.
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers, without those about its length and its connection.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// A response of this content type.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", content_type.to_owned())],
            body: body.into(),
        }
    }

    /// A response in JSON.
    pub fn json(status: u16, value: &impl serde::Serialize) -> Self {
        let mut body = serde_json::to_vec(value).unwrap_or_default();
        body.push(b'\n');
        Self::new(status, JSON, body)
    }

    /// A response with status 204.
    pub fn no_content() -> Self {
        let headers = Vec::new();
        Self {
            headers,
            ..Self::new(204, TEXT, "")
        }
    }

    /// The bytes to send.
    pub fn into_bytes(mut self) -> Vec<u8> {
        let mut names = self.headers.iter().map(|(name, _)| *name);
        if self.status != 204 && !names.any(|name| name == "Transfer-Encoding") {
            let length = self.body.len().to_string();
            self.headers.push(("Content-Length", length));
        }
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!(
            "HTTP/1.1 {} \r\n{}\r\n",
            self.status,
            headers.collect::<String>()
        );
        [head.into_bytes(), self.body].concat()
    }
}
