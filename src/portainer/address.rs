//! The base URL: `https`, or `http` for loopback only; it keeps its path.

use std::{
    fmt,
    net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs},
    str::FromStr,
};

use ureq::http::Uri;

/// A checked base URL, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    host: String,
    port: u16,
}

impl BaseUrl {
    /// The URL of a path that starts with a slash.
    pub fn join(&self, path: &str) -> String {
        format!("{}{path}", self.text)
    }

    /// The port, given or implied.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the host is this machine by its name: `localhost`, `127.0.0.0/8`, `::1`.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// Whether the host is an address of this machine. Asks the resolver; an unknown host is not.
    pub fn is_this_host(&self) -> bool {
        self.is_loopback()
            || (self.host.as_str(), 0)
                .to_socket_addrs()
                .is_ok_and(|mut addresses| addresses.any(|address| is_local(address.ip())))
    }
}

/// An address is this machine's if a socket can be bound to it.
fn is_local(address: IpAddr) -> bool {
    !address.is_unspecified() && TcpListener::bind(SocketAddr::new(address, 0)).is_ok()
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl FromStr for BaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected a URL such as https://localhost:9443";
        let lower = text.to_ascii_lowercase();
        if !lower.starts_with("https://") && !lower.starts_with("http://") {
            return Err(format!("it has no scheme http:// or https://; {expected}"));
        }
        let uri: Uri = text
            .parse()
            .map_err(|error| format!("{error}; {expected}"))?;
        let authority = uri.authority().ok_or("it names no host")?;
        if authority.as_str().contains('@') {
            return Err("it holds a user name; the key goes into STACKMGR_API_KEY".to_owned());
        }
        if uri.query().is_some() || text.contains('#') {
            return Err("it holds a query or a fragment".to_owned());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(format!("it names no host; {expected}"));
        }
        let port_text = authority
            .as_str()
            .rsplit_once(':')
            .map_or("", |(_, port)| port);
        if authority.port_u16().is_none() && !port_text.is_empty() && !port_text.ends_with(']') {
            return Err(format!("{port_text:?} is not a port"));
        }
        let is_http = uri.scheme_str() == Some("http");
        if is_http && !is_loopback(&host) {
            return Err(format!(
                "http:// would send the key in clear to {host}; use https://"
            ));
        }
        Ok(Self {
            text: text.trim_end_matches('/').to_owned(),
            host,
            port: authority
                .port_u16()
                .unwrap_or(if is_http { 80 } else { 443 }),
        })
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_base_url() {
        for (text, joined, port) in [
            ("https://localhost:9443", "https://localhost:9443/x", 9443),
            ("https://h/portainer/", "https://h/portainer/x", 443),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000/x", 9000),
            ("https://[::1]:9443", "https://[::1]:9443/x", 9443),
            ("https://[2001:db8::1]/", "https://[2001:db8::1]/x", 443),
        ] {
            let url: BaseUrl = text.parse().expect(text);
            assert_eq!((url.join("/x").as_str(), url.port()), (joined, port));
        }
    }

    #[test]
    fn what_is_not() {
        for text in [
            "",
            "localhost:9443",
            "ftp://localhost",
            "https://",
            "https://user:secret@h",
            "https://h?x=1",
            "https://h#x",
            "https://h:99999",
            "https://h:abc",
            "http://manager.example",
        ] {
            let error = text.parse::<BaseUrl>().expect_err(text);
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
