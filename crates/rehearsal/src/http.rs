//! HTTP/1.1 for both APIs: reads whole requests, and makes the bytes of responses.

use std::io::{self, Read};

use percent_encoding::percent_decode_str;

/// Portainer and the engine send longer responses in chunks. In bytes.
const LONGEST_WHOLE: usize = 2048;
/// The size of a chunk, in bytes.
const CHUNK: usize = 32 * 1024;

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// A request as it was received.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Incoming {
    pub method: String,
    /// The path with its query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub keep_alive: bool,
}

impl Incoming {
    /// The segments of the path.
    pub fn segments(&self) -> Vec<&str> {
        let path = self.target.split('?').next().unwrap_or_default();
        path.split('/').filter(|part| !part.is_empty()).collect()
    }

    /// The decoded value of the first query parameter with that name.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        Some(decode(&value.replace('+', " ")))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }
}

pub(super) fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut all = headers.iter();
    let found = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// Percent-decodes a text.
pub(super) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Reads the next request of a connection. `None` if the client closed it. `buffer` holds what was read but not parsed.
///
/// # Errors
/// I/O errors of the stream, and [`io::ErrorKind::InvalidData`] if the bytes are not HTTP.
pub(super) fn read_request(
    stream: &mut impl Read,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Incoming>> {
    let (mut incoming, head) = loop {
        if let Some(found) = parse_head(buffer)? {
            break found;
        }
        if fill(stream, buffer)? == 0 {
            return Ok(None);
        }
    };
    let given = incoming.header("content-length").unwrap_or("0");
    let length = given.parse::<usize>();
    let end = head + length.map_err(|_| invalid("the content length is not a number"))?;
    while buffer.len() < end {
        if fill(stream, buffer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    incoming.body = buffer[head..end].to_vec();
    buffer.drain(..end);
    Ok(Some(incoming))
}

fn parse_head(bytes: &[u8]) -> io::Result<Option<(Incoming, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request
        .parse(bytes)
        .map_err(|error| invalid(&error.to_string()))?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let lines = request.headers.iter().map(|header| {
        let value = String::from_utf8_lossy(header.value);
        (header.name.to_owned(), value.into_owned())
    });
    let headers = lines.collect::<Vec<_>>();
    let connection = find_header(&headers, "connection").unwrap_or_default();
    let incoming = Incoming {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        keep_alive: !connection.eq_ignore_ascii_case("close"),
        headers,
        body: Vec::new(),
    };
    Ok(Some((incoming, length)))
}

fn fill(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut bytes = [0; 16 * 1024];
    let count = stream.read(&mut bytes)?;
    buffer.extend_from_slice(&bytes[..count]);
    Ok(count)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
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
        Self {
            status: 204,
            headers: Vec::new(),
            body: Vec::new(),
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
