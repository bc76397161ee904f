//! HTTP/1.1 for both APIs: reads whole requests, and makes the bytes of responses.

use std::io::{self, BufRead, Read as _};

use super::{
    faults::{Call, Peer},
    request::Request,
};

/// Portainer and the engine send longer responses in chunks. In bytes.
const LONGEST_WHOLE: usize = 2048;
/// The size of a chunk, in bytes.
const CHUNK: usize = 32 * 1024;

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
pub(super) struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", content_type.to_owned())],
            body: body.into(),
        }
    }

    pub fn json(status: u16, value: &impl serde::Serialize) -> Self {
        let mut body = serde_json::to_vec(value).unwrap_or_default();
        body.push(b'\n');
        Self::new(status, JSON, body)
    }

    pub fn no_content() -> Self {
        let headers = Vec::new();
        Self {
            headers,
            ..Self::new(204, TEXT, "")
        }
    }

    /// The bytes to send. The response to HEAD is `head_only`.
    pub fn into_bytes(self, head_only: bool, keep_alive: bool) -> Vec<u8> {
        let mut lines = vec![format!("HTTP/1.1 {} ", self.status)];
        let headers = self.headers.iter();
        lines.extend(headers.map(|(name, value)| format!("{name}: {value}")));
        let is_chunked = self.body.len() > LONGEST_WHOLE;
        if is_chunked {
            lines.push("Transfer-Encoding: chunked".to_owned());
        } else if self.status != 204 {
            lines.push(format!("Content-Length: {}", self.body.len()));
        }
        if !keep_alive {
            lines.push("Connection: close".to_owned());
        }
        let mut bytes = (lines.join("\r\n") + "\r\n\r\n").into_bytes();
        if head_only {
            return bytes;
        }
        if is_chunked {
            for chunk in self.body.chunks(CHUNK) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
        } else {
            bytes.extend(self.body);
        }
        bytes
    }
}
