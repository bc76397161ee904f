//! One kept connection to the manager, and what its answers mean as errors.

use std::{
    fmt,
    io::Read,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use secrecy::ExposeSecret;
use serde::Serialize;
use ureq::{
    Agent, Body, Proxy, RequestExt,
    http::{HeaderValue, Method, Request, Response, header},
    unversioned::{
        resolver::DefaultResolver,
        transport::{ConnectProxyConnector, Connector, SocksConnector, TcpConnector},
    },
};

use super::{Options, Outcome, hints, tls::TlsConnector};
use crate::{
    failure::Failure,
    text::printable,
    trace::{Exchange, Peer},
};

/// How much of an error's body is read.
const ERROR_BODY: u64 = 1024 * 1024;

/// How long each kind of request may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub connect: Duration,
    pub read: Duration,
    pub change: Duration,
}

/// Sends requests with the key, each exactly once.
pub(super) struct Client {
    agent: Agent,
    options: Options,
    key: HeaderValue,
    patience: Patience,
}

/// An answer that is not what was asked for: its status and its body as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The body, at most 1 MiB of an error.
    pub body: Vec<u8>,
    /// Where a redirect points; it is not followed.
    pub location: Option<String>,
}

/// A status that is not 2xx, to a request that needs one.
#[derive(Debug)]
struct BadStatus {
    refusal: Refusal,
}

impl Client {
    pub(super) fn new(options: Options) -> Result<Self> {
        let mut key = HeaderValue::from_str(options.key.expose_secret()).map_err(|_| {
            Failure::new("the API key holds a character that cannot stand in an HTTP header")
                .hint("set STACKMGR_API_KEY to the key alone, without line breaks")
        })?;
        key.set_sensitive(true);
        let patience = Patience::of(&options);
        let proxy = if options.base_url.is_loopback() {
            None
        } else {
            Proxy::try_from_env()
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .user_agent(concat!("stacklift/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .max_idle_age(Duration::from_mins(1))
            .timeout_connect(Some(patience.connect))
            .timeout_resolve(Some(patience.connect))
            .build();
        let connector =
            ().chain(SocksConnector::default())
                .chain(ConnectProxyConnector::default())
                .chain(TcpConnector::default())
                .chain(TlsConnector(options.tls.config()?));
        Ok(Self {
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            options,
            key,
            patience,
        })
    }

    /// A read whose answer must be 2xx. The body is not read yet.
    pub(super) fn get(&self, path: &str, what: &str) -> Result<Response<Body>> {
        let request = Request::get(self.options.base_url.join(path)).body(());
        let reply = self.send(request, path, what, self.patience.read)?;
        successful(reply).with_context(|| failed_to(what))
    }

    /// A delete whose answer must be 2xx. The body is discarded.
    pub(super) fn delete(&self, path: &str, what: &str) -> Result<()> {
        let request = Request::delete(self.options.base_url.join(path)).body(());
        let reply = self.send(request, path, what, self.patience.change)?;
        let mut reply = successful(reply).with_context(|| failed_to(what))?;
        // Read to its end, so that the connection can be kept. It may break here: it is discarded.
        let _ = std::io::copy(
            &mut reply.body_mut().as_reader().take(ERROR_BODY),
            &mut std::io::sink(),
        );
        Ok(())
    }

    /// Posts JSON. Every answer that comes whole is a success here, whatever its status.
    pub(super) fn post(&self, path: &str, json: &impl Serialize, what: &str) -> Result<Refusal> {
        self.change(Method::POST, path, json, what)
    }

    /// The same by PUT.
    pub(super) fn put(&self, path: &str, json: &impl Serialize, what: &str) -> Result<Refusal> {
        self.change(Method::PUT, path, json, what)
    }

    fn change(
        &self,
        method: Method,
        path: &str,
        json: &impl Serialize,
        what: &str,
    ) -> Result<Refusal> {
        let body = serde_json::to_vec(json).with_context(|| failed_to(what))?;
        let request = Request::builder()
            .method(method)
            .uri(self.options.base_url.join(path))
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        let mut reply = self.send(request, path, what, self.patience.change)?;
        read_refusal(&mut reply, u64::MAX).with_context(|| failed_to(what))
    }

    fn send<B: ureq::AsSendBody>(
        &self,
        request: Result<Request<B>, ureq::http::Error>,
        path: &str,
        what: &str,
        patience: Duration,
    ) -> Result<Response<Body>> {
        let mut request = request.with_context(|| failed_to(what))?;
        request.headers_mut().insert("X-API-Key", self.key.clone());
        let method = request.method().to_string();
        let request = request
            .with_agent(&self.agent)
            .configure()
            .timeout_send_body(Some(self.patience.change))
            .timeout_recv_response(Some(patience))
            .timeout_per_read(Some(patience))
            .build();
        let started = Instant::now();
        let result = request.run();
        self.options.trace.report(&Exchange {
            peer: Peer::Manager,
            method,
            path: path.to_owned(),
            outcome: match &result {
                Ok(reply) => reply.status().as_u16().to_string(),
                Err(error) => error.to_string(),
            },
            elapsed: started.elapsed(),
        });
        result.map_err(|error| {
            let hint = hints::of_transport(&error, &self.options);
            let failure = Failure::new(failed_to(what)).hint(hint);
            failure
                .source(Unreached {
                    error,
                    url: self.options.base_url.to_string(),
                })
                .into()
        })
    }
}

fn failed_to(what: &str) -> String {
    format!("failed to {what}")
}

fn successful(mut reply: Response<Body>) -> Result<Response<Body>> {
    if reply.status().is_success() {
        return Ok(reply);
    }
    // The status matters more than a body that breaks off.
    let refusal = read_refusal(&mut reply, ERROR_BODY).unwrap_or_else(|_| Refusal {
        status: reply.status().as_u16(),
        body: Vec::new(),
        location: None,
    });
    let hint = hints::of_refusal(&refusal);
    Err(Failure::new("the manager refused")
        .hint(hint)
        .source(BadStatus { refusal })
        .into())
}

fn read_refusal(reply: &mut Response<Body>, limit: u64) -> Result<Refusal> {
    let mut body = Vec::new();
    reply
        .body_mut()
        .with_config()
        .limit(u64::MAX)
        .reader()
        .take(limit)
        .read_to_end(&mut body)
        .map_err(cut_off)?;
    let location = reply
        .headers()
        .get(header::LOCATION)
        .map(|location| String::from_utf8_lossy(location.as_bytes()).into_owned());
    Ok(Refusal {
        status: reply.status().as_u16(),
        body,
        location,
    })
}

/// Whether `error` is the manager's answer with that status.
pub(super) fn is_status(error: &anyhow::Error, status: u16) -> bool {
    status_of(error) == Some(status)
}

/// What became of a request that failed with `error`.
pub(super) fn outcome(error: &anyhow::Error) -> Outcome {
    let refused = |bad: &BadStatus| bad.refusal.is_final();
    let mut causes = error.chain();
    let found = causes.find_map(|cause| {
        let answered = cause.downcast_ref::<BadStatus>().map(refused);
        let unreached = || Some(cause.downcast_ref::<Unreached>()?.was_not_sent());
        match (answered, answered.is_none().then(unreached).flatten()) {
            (Some(true), _) => Some(Outcome::Refused),
            (_, Some(true)) => Some(Outcome::NotSent),
            _ => None,
        }
    });
    found.unwrap_or(Outcome::Unknown)
}

fn status_of(error: &anyhow::Error) -> Option<u16> {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<BadStatus>())
        .map(|bad| bad.refusal.status)
}

impl Refusal {
    /// What the answer says in one line: the `message` of an error object (M01), or what kind of
    /// body it is.
    pub fn summary(&self) -> String {
        let rest = if self.location.is_some() {
            String::new()
        } else if let Some(message) = self.message() {
            format!(": {}", printable(message.trim()))
        } else if hints::is_html(&self.body) {
            ", an HTML page".to_owned()
        } else if self.body.is_empty() {
            ", without a body".to_owned()
        } else {
            String::new()
        };
        format!("{}{rest}", self.status_line())
    }

    /// The same without the body, for where the body stands beside it.
    pub fn status_line(&self) -> String {
        match &self.location {
            Some(location) => format!(
                "status {}, a redirect to {}",
                self.status,
                printable(location)
            ),
            None => format!("status {}", self.status),
        }
    }

    /// Whether the request has no further effect: the manager says so itself (M01), or what stands in
    /// front of it did not let it through. A gateway that lost patience says nothing of the manager.
    pub fn is_final(&self) -> bool {
        match self.status {
            408 | 499 => false,
            300..=499 => true,
            500..=599 => self.message().is_some(),
            _ => false,
        }
    }

    /// What to do after a create that was answered like this.
    pub fn hint_after_create(&self) -> String {
        let again = "a re-run is the recovery path";
        match self.status {
            500..=599 if self.message().is_some() => {
                format!("mend what the manager names, then run again: {again}")
            }
            200..=299 => format!(
                "that is no answer to a create: {}; then run again: {again}",
                hints::of_refusal(self)
            ),
            _ => format!("{}; then run again: {again}", hints::of_refusal(self)),
        }
    }

    fn message(&self) -> Option<String> {
        let json: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        Some(json.get("message")?.as_str()?.to_owned())
    }
}

impl fmt::Display for BadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.refusal.summary())
    }
}

impl std::error::Error for BadStatus {}

/// No answer: the connection failed, broke or took too long.
#[derive(Debug)]
struct Unreached {
    error: ureq::Error,
    url: String,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer from {}: {}", self.url, in_words(&self.error))
    }
}

impl Unreached {
    /// Whether no connection was made, so that nothing was sent.
    fn was_not_sent(&self) -> bool {
        use std::io::ErrorKind::{
            AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable,
        };
        match &self.error {
            ureq::Error::Io(error) => matches!(
                error.kind(),
                ConnectionRefused | HostUnreachable | NetworkUnreachable | AddrNotAvailable
            ),
            ureq::Error::ConnectionFailed
            | ureq::Error::HostNotFound
            | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => true,
            _ => false,
        }
    }
}

/// What went wrong on the way, without the words of the library below.
fn in_words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) if is_break(error) => "the connection broke off".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            "no connection came about in time".to_owned()
        }
        ureq::Error::Timeout(_) => "it did not come in time".to_owned(),
        error => error.to_string(),
    }
}

fn is_break(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    )
}

/// An answer that began and did not come to its end.
pub(super) fn cut_off(error: std::io::Error) -> anyhow::Error {
    let late = matches!(
        error.kind(),
        std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock
    ) || error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<ureq::Error>())
        .is_some_and(|inner| matches!(inner, ureq::Error::Timeout(_)));
    let what = if late {
        "the rest of the manager's answer did not come in time"
    } else if is_break(&error) {
        "the manager's answer breaks off in the middle"
    } else {
        return Failure::new("the manager's answer cannot be read")
            .source(error)
            .hint("check the manager, and what stands in front of it, then run again")
            .into();
    };
    Failure::new(what)
        .hint("check the manager, and what stands in front of it, then run again")
        .into()
}

impl std::error::Error for Unreached {}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
