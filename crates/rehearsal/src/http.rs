//! HTTP/1.1 for both APIs: reads whole requests, and writes responses whole or in chunks.

use std::io::{self, Read, Write};

/// The limit for request line and headers, in bytes.
const MAX_HEAD: usize = 1 << 20;

/// A request as it was received.
#[derive(Debug, Clone)]
pub(super) struct Incoming {
    pub method: String,
    /// The path with its query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub keep_alive: bool,
}

impl Incoming {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The decoded value of the first query parameter with that name.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key) == name).then(|| decode(value))
        })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }
}

pub(super) fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// The segments of a path; empty ones are left out.
pub(super) fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// Percent-decodes `text`. `+` becomes a space.
pub(super) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = rest.clone().take(2).collect::<Vec<u8>>();
                let value = std::str::from_utf8(&digits)
                    .ok()
                    .filter(|digits| digits.len() == 2)
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                if let Some(value) = value {
                    bytes.push(value);
                    rest.nth(1);
                } else {
                    bytes.push(b'%');
                }
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The bytes of a connection that were read but not parsed yet.
#[derive(Default)]
pub(super) struct Buffer(Vec<u8>);

/// Reads the next request of a connection. `None` if the client closed it.
///
/// # Errors
/// I/O errors of the stream, and [`io::ErrorKind::InvalidData`] if the bytes are not HTTP.
pub(super) fn read_request(
    stream: &mut (impl Read + Write),
    buffer: &mut Buffer,
) -> io::Result<Option<Incoming>> {
    let (mut incoming, head) = loop {
        if let Some(found) = parse_head(&buffer.0)? {
            break found;
        }
        if buffer.0.len() > MAX_HEAD {
            return Err(invalid("the request headers are too long"));
        }
        if fill(stream, buffer)? == 0 {
            return Ok(None);
        }
    };
    buffer.0.drain(..head);
    if incoming
        .header("expect")
        .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
    {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        stream.flush()?;
    }
    let chunked = incoming
        .header("transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    incoming.body = if chunked {
        read_chunks(stream, buffer)?
    } else {
        let length = incoming
            .header("content-length")
            .unwrap_or("0")
            .trim()
            .parse();
        take(
            stream,
            buffer,
            length.map_err(|_| invalid("the content length is not a number"))?,
        )?
    };
    Ok(Some(incoming))
}

fn parse_head(bytes: &[u8]) -> io::Result<Option<(Incoming, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = request
        .parse(bytes)
        .map_err(|error| invalid(&error.to_string()))?
    else {
        return Ok(None);
    };
    let headers = request
        .headers
        .iter()
        .map(|header| {
            (
                header.name.to_owned(),
                String::from_utf8_lossy(header.value).into_owned(),
            )
        })
        .collect::<Vec<_>>();
    let connection = find_header(&headers, "connection")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let keep_alive = !connection.contains("close")
        && (request.version == Some(1) || connection.contains("keep-alive"));
    let incoming = Incoming {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        headers,
        body: Vec::new(),
        keep_alive,
    };
    Ok(Some((incoming, length)))
}

fn read_chunks(stream: &mut impl Read, buffer: &mut Buffer) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let (used, size) = loop {
            match httparse::parse_chunk_size(&buffer.0) {
                Ok(httparse::Status::Complete(found)) => break found,
                Ok(httparse::Status::Partial) => need(stream, buffer)?,
                Err(_) => return Err(invalid("invalid chunk size")),
            }
        };
        buffer.0.drain(..used);
        let size = usize::try_from(size).map_err(|_| invalid("the chunk is too large"))?;
        body.extend(take(stream, buffer, size)?);
        if size > 0 {
            take(stream, buffer, 2)?;
            continue;
        }
        // Trailers end with an empty line.
        loop {
            let end = loop {
                if let Some(end) = buffer.0.iter().position(|byte| *byte == b'\n') {
                    break end;
                }
                need(stream, buffer)?;
            };
            let line = buffer.0.drain(..=end).collect::<Vec<u8>>();
            if line == b"\r\n" || line == b"\n" {
                return Ok(body);
            }
        }
    }
}

fn take(stream: &mut impl Read, buffer: &mut Buffer, length: usize) -> io::Result<Vec<u8>> {
    if buffer.0.len() >= length {
        return Ok(buffer.0.drain(..length).collect());
    }
    let mut body = std::mem::take(&mut buffer.0);
    let missing = (length - body.len()) as u64;
    if stream.take(missing).read_to_end(&mut body)? as u64 != missing {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

fn need(stream: &mut impl Read, buffer: &mut Buffer) -> io::Result<()> {
    if fill(stream, buffer)? == 0 {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(())
    }
}

fn fill(stream: &mut impl Read, buffer: &mut Buffer) -> io::Result<usize> {
    let mut bytes = [0; 16 * 1024];
    let count = stream.read(&mut bytes)?;
    buffer.0.extend_from_slice(&bytes[..count]);
    Ok(count)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

/// A response.
pub(super) struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
}

/// The body of a response.
pub(super) enum Body {
    /// No body and no `Content-Length`: 204.
    None,
    /// Sent with `Content-Length`.
    Whole(Vec<u8>),
    /// Produced while it is sent, in chunks.
    Chunks(Box<dyn Iterator<Item = Vec<u8>> + Send>),
}

impl Response {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type", content_type.to_owned())];
        Self {
            status,
            headers,
            body: Body::Whole(body.into()),
        }
    }

    pub fn json(status: u16, value: &impl serde::Serialize) -> Self {
        let mut body = serde_json::to_vec(value).unwrap_or_default();
        body.push(b'\n');
        Self::new(status, "application/json", body)
    }

    pub fn ok(value: &impl serde::Serialize) -> Self {
        Self::json(200, value)
    }

    pub fn no_content() -> Self {
        Self {
            status: 204,
            headers: Vec::new(),
            body: Body::None,
        }
    }

    /// The complete body.
    pub fn into_bytes(self) -> Vec<u8> {
        match self.body {
            Body::None => Vec::new(),
            Body::Whole(bytes) => bytes,
            Body::Chunks(chunks) => chunks.flatten().collect(),
        }
    }

    /// Writes the response. `head_only` leaves out the body, as for HEAD.
    pub fn write(self, to: &mut impl Write, head_only: bool, keep_alive: bool) -> io::Result<()> {
        let mut out = self.head(keep_alive);
        match self.body {
            Body::Whole(body) if !head_only => {
                // A single write keeps a small response in one TLS record.
                if body.len() <= 16 * 1024 {
                    out.extend_from_slice(&body);
                } else {
                    to.write_all(&out)?;
                    out = body;
                }
            }
            Body::Chunks(chunks) if !head_only => {
                for chunk in chunks.filter(|chunk| !chunk.is_empty()) {
                    out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    out.extend_from_slice(&chunk);
                    out.extend_from_slice(b"\r\n");
                    to.write_all(&out)?;
                    out.clear();
                }
                out.extend_from_slice(b"0\r\n\r\n");
            }
            Body::None | Body::Whole(_) | Body::Chunks(_) => {}
        }
        to.write_all(&out)?;
        to.flush()
    }

    /// The status line and the headers.
    pub fn head(&self, keep_alive: bool) -> Vec<u8> {
        let mut lines = vec![format!("HTTP/1.1 {} {}", self.status, reason(self.status))];
        lines.extend(
            self.headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}")),
        );
        match &self.body {
            Body::None => {}
            Body::Whole(body) => lines.push(format!("Content-Length: {}", body.len())),
            Body::Chunks(_) => lines.push("Transfer-Encoding: chunked".to_owned()),
        }
        if !keep_alive {
            lines.push("Connection: close".to_owned());
        }
        (lines.join("\r\n") + "\r\n\r\n").into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Request Entity Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
