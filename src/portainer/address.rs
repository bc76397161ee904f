//! The base URL: `https`, or `http` for loopback only. Its path is kept.

use std::{
    fmt,
    net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs},
    str::FromStr,
};

use ureq::http::Uri;

/// A valid base URL, without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    is_https: bool,
    host: String,
    port: u16,
}

impl BaseUrl {
    /// The URL of `path`, which starts with a slash.
    pub(super) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.text)
    }

    /// The port: explicit, or the default of the scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host in lower case, and the port: `nas.example:9443`, `[::1]:9443`.
    pub fn host_and_port(&self) -> String {
        let host = self.host.to_ascii_lowercase();
        if host.contains(':') {
            format!("[{host}]:{}", self.port)
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// Whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Whether the host is `localhost`, in `127.0.0.0/8`, or `::1`.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// Whether the host resolves to an address of this machine.
    pub fn is_this_host(&self) -> bool {
        let mut addresses = self.addresses().into_iter();
        self.is_loopback() || addresses.any(|address| is_local(address.ip()))
    }

    /// The addresses of the host; none if it cannot be resolved.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        addresses.map(Iterator::collect).unwrap_or_default()
    }
}

/// An address belongs to this machine if a socket can be bound to it.
pub(super) fn is_local(address: IpAddr) -> bool {
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
        let is_https = lower.starts_with("https://");
        if !is_https && !lower.starts_with("http://") {
            return Err(expected.to_owned());
        }
        let uri: Uri = text
            .parse()
            .map_err(|error| format!("{error}; {expected}"))?;
        let no_host = || format!("the host is missing; {expected}");
        let authority = uri.authority().ok_or_else(no_host)?;
        if authority.as_str().contains('@') {
            return Err(
                "the URL must not contain a user name; set the API key with STACKMGR_API_KEY"
                    .to_owned(),
            );
        }
        if uri.query().is_some() || text.contains('#') {
            return Err("the URL must not contain a query or fragment".to_owned());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(no_host());
        }
        let parts = authority.as_str().rsplit_once(':');
        let port_text = parts.map_or("", |(_, port)| port);
        if authority.port_u16().is_none() && !port_text.is_empty() && !port_text.ends_with(']') {
            return Err(format!("{port_text:?} is not a port"));
        }
        if !is_https && !is_loopback(&host) {
            return Err(format!(
                "http:// would send the API key unencrypted to {host}; use https://"
            ));
        }
        let default_port = if is_https { 443 } else { 80 };
        Ok(Self {
            text: text.trim_end_matches('/').to_owned(),
            is_https,
            host,
            port: authority.port_u16().unwrap_or(default_port),
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
    fn valid_base_urls() {
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
    fn a_host_and_port_name_a_server() {
        for (text, server) in [
            ("https://NAS.example", "nas.example:443"),
            ("https://[::1]:9443/x", "[::1]:9443"),
            ("http://localhost:9000", "localhost:9000"),
        ] {
            let url: BaseUrl = text.parse().expect(text);
            assert_eq!(url.host_and_port(), server);
            assert_eq!(url.is_https(), text.starts_with("https"));
        }
    }
}
