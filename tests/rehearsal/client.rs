//! A raw HTTP/1.1 client that shares no code with the program's client.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use rehearsal::Rehearsal;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::Value;

pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

pub struct Client(Box<dyn Stream>);

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Client {
    /// Connects to Portainer and verifies its certificate.
    pub fn portainer(rehearsal: &Rehearsal) -> Self {
        let mut roots = RootCertStore::empty();
        let pem = rehearsal.certificate_pem();
        roots
            .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let address = rehearsal
            .base_url()
            .strip_prefix("https://")
            .unwrap()
            .to_owned();
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(3)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(StreamOwned::new(connection, stream))
    }

    /// Uses a connected stream.
    pub fn over(stream: impl Stream + 'static) -> Self {
        Self(Box::new(stream))
    }

    /// Sends a request and reads the response. A body gets a `Content-Length`.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        let request = Self::request(method, path, headers, body);
        self.raw(&request, method == "HEAD")
    }

    fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: rehearsal\r\n");
        for (name, value) in headers {
            head.push_str(&[name, ": ", value, "\r\n"].concat());
        }
        if !body.is_empty() {
            head.push_str(&["Content-Length: ", &body.len().to_string(), "\r\n"].concat());
        }
        head.push_str("\r\n");
        [head.as_bytes(), body].concat()
    }

    /// Sends bytes unchanged and reads one response.
    pub fn raw(&mut self, bytes: &[u8], head_only: bool) -> io::Result<Response> {
        self.0.write_all(bytes)?;
        self.0.flush()?;
        let mut response = self.head()?;
        if head_only || matches!(response.status, 204 | 304) {
            return Ok(response);
        }
        if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(self.line()?.trim(), 16).unwrap();
                let chunk = self.exactly(size)?;
                self.line()?;
                if size == 0 {
                    return Ok(response);
                }
                response.body.extend(chunk);
            }
        }
        let length = response.header("content-length").unwrap().parse().unwrap();
        response.body = self.exactly(length)?;
        Ok(response)
    }

    fn head(&mut self) -> io::Result<Response> {
        let status = self.line()?.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Ok(Response {
            status,
            headers,
            body: Vec::new(),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            line.extend(self.exactly(1)?);
        }
        Ok(String::from_utf8(line).unwrap())
    }

    fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
