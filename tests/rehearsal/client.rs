//! A raw HTTP/1.1 client that shares no code with the program's client.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use testbed::Rehearsal;

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: String,
}

/// Sends a request to Portainer on a connection of its own, and verifies its certificate. A body gets a `Content-Length`.
pub fn send(
    rehearsal: &Rehearsal,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: rehearsal\r\n");
    for (name, value) in headers {
        request.push_str(&[name, ": ", value, "\r\n"].concat());
    }
    if !body.is_empty() {
        request.push_str(&["Content-Length: ", &body.len().to_string(), "\r\n"].concat());
    }
    let mut stream = connected(rehearsal);
    stream
        .write_all(format!("{request}\r\n{body}").as_bytes())
        .unwrap();
    let mut reader = BufReader::new(stream);
    let lines = reader.by_ref().lines().map(Result::unwrap);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let mut pairs = head.iter().filter_map(|line| line.split_once(": "));
        let found = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    };
    let mut body = Vec::new();
    if let Some(length) = header("content-length") {
        let mut rest = reader.take(length.parse().unwrap());
        rest.read_to_end(&mut body).unwrap();
    } else if header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).unwrap();
            let size = u64::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = reader.by_ref().take(size + 2);
            chunk.read_to_end(&mut body).unwrap();
            body.truncate(body.len() - 2);
            if size == 0 {
                break;
            }
        }
    }
    Response {
        status: head[0].split(' ').nth(1).unwrap().parse().unwrap(),
        content_type: header("content-type"),
        body: String::from_utf8(body).unwrap(),
    }
}

fn connected(rehearsal: &Rehearsal) -> StreamOwned<ClientConnection, TcpStream> {
    let certificate = rehearsal.certificate_pem();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let address = rehearsal.base_url();
    let stream = TcpStream::connect(address.trim_start_matches("https://")).unwrap();
    let limit = Some(Duration::from_mins(3));
    stream.set_read_timeout(limit).unwrap();
    StreamOwned::new(connection, stream)
}
