//! Failures below HTTP: whether the request was sent, what to print, and what to do about it.

use std::{
    fmt,
    io::{self, ErrorKind},
};

use rustls::CertificateError;
use ureq::{
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver},
        transport::{ConnectionDetails, Connector, NextTimeout},
    },
};

use super::{
    address::BaseUrl,
    certificate::{Fingerprint, NotPinned, how_to_compare},
    error::Error,
    owner::Owners,
    tls::Tls,
};
use crate::failure::Failure;

/// Marks each error of resolving the host and connecting, up to the end of the TLS handshake, as
/// [`ureq::Error::Other`]: nothing is sent before there is a connection.
#[derive(Debug)]
pub(super) struct MarkErrors<C>(pub(super) C);

fn mark(error: ureq::Error) -> ureq::Error {
    ureq::Error::Other(Box::new(error))
}

impl<R: Resolver> Resolver for MarkErrors<R> {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.0.resolve(uri, config, timeout).map_err(mark)
    }
}

impl<C: Connector> Connector for MarkErrors<C> {
    type Out = C::Out;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        self.0.connect(details, chained).map_err(mark)
    }
}

const HINT_FOR_TRUNCATED: &str = "check Portainer and any proxy in front of it";

/// A request without a response. Prints as the reason in a few words.
#[derive(Debug)]
pub(super) struct NoResponse {
    may_be_sent: bool,
    error: ureq::Error,
}

impl From<ureq::Error> for NoResponse {
    fn from(error: ureq::Error) -> Self {
        use ureq::Error as E;
        let (may_be_sent, error) = match error {
            E::Other(marked) => {
                let error = marked.downcast().map_or_else(E::Other, |error| *error);
                (false, error)
            }
            E::BadUri(_)
            | E::ConnectionFailed
            | E::HostNotFound
            | E::Http(_)
            | E::InvalidProxyUrl => (false, error),
            error => (true, error),
        };
        Self { may_be_sent, error }
    }
}

impl fmt::Display for NoResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            ureq::Error::Io(error) if is_disconnect(error) => {
                f.write_str("the connection was closed")
            }
            ureq::Error::Io(error) => error.fmt(f),
            ureq::Error::Timeout(_) if !self.may_be_sent => {
                f.write_str("timed out while connecting")
            }
            ureq::Error::Timeout(_) => f.write_str("timed out"),
            // It ends with the status twice: `502/502`.
            ureq::Error::ConnectProxyFailed(reason) => {
                f.write_str(reason.split('/').next().unwrap_or(reason))
            }
            error => error.fmt(f),
        }
    }
}

impl NoResponse {
    /// The error of the request; `action` completes "failed to …".
    pub(super) fn into_error(self, action: &str, base_url: &BaseUrl, tls: &Tls) -> Error {
        if let Some(refused) = self.not_pinned() {
            return Error::not_sent(action, not_pinned(refused, base_url, tls));
        }
        if let Some(owners) = self.cause::<Owners>() {
            return Error::not_sent(action, owners.refused());
        }
        if !self.may_be_sent {
            let failure = Failure::new(self.to_string()).hint(self.hint(tls));
            return Error::unreachable(base_url, failure);
        }
        let what = match &self.error {
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
                "invalid response from Portainer at"
            }
            _ => "no response from Portainer at",
        };
        let failure = Failure::new(format!("{what} {base_url}"))
            .source(self.to_string())
            .hint(self.hint(tls));
        Error::unknown(action, failure)
    }

    fn hint(&self, tls: &Tls) -> String {
        match (&self.error, self.cause::<rustls::Error>()) {
            (_, Some(rustls::Error::InvalidCertificate(_))) => format!(
                "the certificate is not trusted by --tls {tls}: pass Portainer's own certificate as a PEM file with --tls"
            ),
            (_, Some(rustls::Error::InvalidMessage(_))) => {
                "the port does not use TLS: check --base-url (http:// is accepted for loopback only)"
                    .to_owned()
            }
            (ureq::Error::ConnectProxyFailed(_) | ureq::Error::InvalidProxyUrl, _) => {
                "check the proxy in HTTPS_PROXY and --base-url".to_owned()
            }
            (ureq::Error::Timeout(_), _) => {
                "check that Portainer is running and reachable".to_owned()
            }
            (ureq::Error::Protocol(_), _) => {
                "check --base-url: the port may need https://, or belong to another program"
                    .to_owned()
            }
            _ => "check that Portainer is running and that --base-url is its address".to_owned(),
        }
    }

    /// The fingerprint of the certificate that was refused because it is not the pinned one.
    pub(super) fn refused(&self) -> Option<Fingerprint> {
        self.not_pinned().map(|refused| refused.received)
    }

    fn not_pinned(&self) -> Option<&NotPinned> {
        match self.cause()? {
            rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
                other.0.downcast_ref()
            }
            _ => None,
        }
    }

    /// What another layer than the kernel reports.
    fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match &self.error {
            ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
            _ => None,
        }
    }
}

/// The failure of a request that was not sent, because the certificate is not the pinned one.
fn not_pinned(
    &NotPinned { pinned, received }: &NotPinned,
    base_url: &BaseUrl,
    tls: &Tls,
) -> Failure {
    let not_sent = "neither the request nor the API key was sent";
    let message = match (pinned, tls) {
        (Some(pinned), Tls::Pin(_)) => format!(
            "the certificate of Portainer at {base_url} has changed: the SHA-256 fingerprint was {pinned}, and now it is {received}; {not_sent}"
        ),
        (Some(_), _) => format!(
            "the certificate of Portainer at {base_url} does not match --tls: its SHA-256 fingerprint is {received}; {not_sent}"
        ),
        (None, _) => format!(
            "the certificate of Portainer at {base_url} is not pinned: its SHA-256 fingerprint is {received}; {not_sent}"
        ),
    };
    let accept = match tls {
        Tls::Pin(_) => {
            format!("run `stacklift list --base-url {base_url} --tls pin:{received}`")
        }
        _ => format!("pass --tls sha256:{received}"),
    };
    Failure::new(message).hint(format!(
        "if the certificate was replaced, {}, then {accept}; otherwise, another server is responding in place of Portainer",
        how_to_compare(base_url)
    ))
}

/// The failure of a response that is larger than its limit (B12).
pub(super) fn too_large() -> Failure {
    Failure::new("the response is too large").hint(HINT_FOR_TRUNCATED)
}

/// The failure of a response that was cut off.
pub(super) fn truncated(error: io::Error) -> Failure {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref());
    if matches!(cause, Some(ureq::Error::BodyExceedsLimit(_))) {
        return too_large();
    }
    let timed_out = matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
        || matches!(cause, Some(ureq::Error::Timeout(_)));
    let failure = if timed_out {
        Failure::new("timed out while reading the response")
    } else if is_disconnect(&error) {
        Failure::new("the connection was closed in the middle of the response")
    } else {
        Failure::new("cannot read the response").source(error)
    };
    failure.hint(HINT_FOR_TRUNCATED)
}

fn is_disconnect(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    )
}

#[cfg(test)]
mod tests {
    use rustls::InvalidMessage;
    use ureq::Timeout;

    use super::*;

    fn of(error: ureq::Error) -> Error {
        let base_url = "https://h:9443".parse().expect("a URL");
        NoResponse::from(error).into_error("read it", &base_url, &Tls::System)
    }

    fn while_connecting(error: ureq::Error) -> Error {
        of(ureq::Error::Other(Box::new(error)))
    }

    fn io(kind: ErrorKind) -> ureq::Error {
        ureq::Error::Io(kind.into())
    }

    fn tls(error: rustls::Error) -> ureq::Error {
        ureq::Error::Io(io::Error::new(ErrorKind::InvalidData, error))
    }

    #[test]
    fn a_failure_to_connect_is_not_sent() {
        for error in [
            while_connecting(io(ErrorKind::ConnectionRefused)),
            while_connecting(io(ErrorKind::ConnectionReset)),
            while_connecting(ureq::Error::Timeout(Timeout::Connect)),
            while_connecting(tls(rustls::Error::HandshakeNotComplete)),
            while_connecting(ureq::Error::ConnectProxyFailed(String::new())),
            while_connecting(ureq::Error::Timeout(Timeout::Global)),
            of(ureq::Error::HostNotFound),
            of(ureq::Error::BadUri(String::new())),
        ] {
            assert!(matches!(error, Error::NotSent(_)), "{error:?}");
        }
        for error in [
            of(io(ErrorKind::ConnectionReset)),
            of(io(ErrorKind::UnexpectedEof)),
            of(tls(rustls::Error::DecryptError)),
            of(ureq::Error::Timeout(Timeout::Global)),
        ] {
            assert!(error.is_unknown(), "{error:?}");
        }
    }

    #[test]
    fn hints_go_by_the_type_of_the_error() {
        let expired = rustls::Error::InvalidCertificate(CertificateError::Expired);
        let not_tls = rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
        let untrusted = "the certificate is not trusted by --tls system";
        let general = rustls::Error::General("certificate".to_owned());
        let no_proxy = ureq::Error::ConnectProxyFailed(String::new());
        let timeout = ureq::Error::Timeout(Timeout::Connect);
        for (error, hint) in [
            (tls(expired), untrusted),
            (tls(not_tls), "the port does not use TLS"),
            (tls(general), "check that Portainer is running"),
            (no_proxy, "HTTPS_PROXY"),
            (timeout, "running and reachable"),
        ] {
            let error = anyhow::Error::from(while_connecting(error));
            let shown = Failure::hint_of(&error).expect("a hint");
            assert!(shown.contains(hint), "{shown}");
        }
    }
}
