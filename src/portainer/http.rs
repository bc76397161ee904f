//! Sends requests with the API key over one kept connection, each exactly once.

use std::{
    io::{self, Cursor, Read},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    time::{Duration, Instant},
};

use anyhow::Result;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use ureq::{
    Agent, Body, Proxy, RequestExt,
    http::{self, HeaderName, HeaderValue, Method, Request, StatusCode, header},
    unversioned::{
        resolver::DefaultResolver,
        transport::{ConnectProxyConnector, Connector, SocksConnector, TcpConnector},
    },
};

use super::{
    address::BaseUrl,
    certificate::Fingerprint,
    connection::{MarkErrors, NoResponse, too_large, truncated},
    entries::LARGEST_LIST,
    error::{Error, Response},
    headers::Headers,
    owner::OwnerConnector,
    tls::{Tls, TlsConnector},
};
use crate::{
    failure::Failure,
    memory::Memory,
    text::Mask,
    trace::{Exchange, Trace},
};

/// How much of the body of an error is read, in bytes. The rest is ignored.
const LARGEST_ERROR: u64 = 1024 * 1024;
/// The size limit of any other body, in bytes.
pub(super) const LARGEST_BODY: u64 = 64 * 1024 * 1024;

/// What a Portainer client needs.
#[derive(Clone)]
pub struct ClientOptions {
    /// Where Portainer is.
    pub base_url: BaseUrl,
    /// The API key. It is sent in the header `X-API-Key` and nowhere else (C56).
    pub key: SecretString,
    /// How Portainer's certificate is verified.
    pub tls: Tls,
    /// The certificate that [`Tls::Pin`] accepts. Without it, every connection fails.
    pub pin: Option<Fingerprint>,
    /// Headers that each request carries besides the API key.
    pub headers: Headers,
    /// The time limit for a create, update or delete, from connecting to the end of the response, and for waiting
    /// for the deployment. Reads have 30 s, or this where it is less (B12).
    pub timeout: Duration,
    /// Receives each request.
    pub trace: Trace,
}

/// A response whose body has not been read yet.
pub(super) type Unread = http::Response<Body>;

/// An HTTP client that follows no redirect and repeats no request.
pub(super) struct Client {
    agent: Agent,
    pub(super) options: ClientOptions,
    key: HeaderValue,
    /// The time limit for a read.
    read_timeout: Duration,
    mask: RwLock<Mask>,
    /// The response to each `GET` that succeeded, by its path.
    pub(super) memory: Memory<http::Response<Arc<[u8]>>>,
}

impl Client {
    /// Fails where the key cannot be a header's value or the certificates of `options.tls` cannot be used.
    pub(super) fn new(options: ClientOptions) -> Result<Self> {
        let mut key = HeaderValue::from_str(options.key.expose_secret()).map_err(|_| {
            Failure::new("the API key contains a character that is not allowed in an HTTP header")
                .hint("set STACKMGR_API_KEY to the key alone, without line breaks")
        })?;
        key.set_sensitive(true);
        let connect_timeout = options.timeout.min(Duration::from_secs(10));
        let is_remote = !options.base_url.is_loopback();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(is_remote.then(Proxy::try_from_env).flatten())
            .user_agent(concat!("stacklift/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .max_idle_age(Duration::from_mins(1))
            .timeout_connect(Some(connect_timeout))
            .timeout_resolve(Some(connect_timeout))
            .build();
        let connector = ()
            .chain(SocksConnector::default())
            .chain(ConnectProxyConnector::default())
            .chain(OwnerConnector {
                tcp: TcpConnector::default(),
                checks: options.base_url.is_unverified(&options.tls),
            })
            .chain(TlsConnector(options.tls.config(options.pin)?));
        let resolver = MarkErrors(DefaultResolver::default());
        Ok(Self {
            agent: Agent::with_parts(config, MarkErrors(connector), resolver),
            key,
            read_timeout: options.timeout.min(Duration::from_secs(30)),
            options,
            mask: RwLock::default(),
            memory: Memory::default(),
        })
    }

    /// The fingerprint of the server's certificate, if the client accepts none: the handshake then ends before anything is
    /// sent. `action` completes "failed to …".
    pub(super) fn refused_certificate(&self, action: &str) -> Result<Option<Fingerprint>, Error> {
        let ClientOptions { base_url, tls, .. } = &self.options;
        let connecting = self
            .agent
            .get(base_url.join("/"))
            .config()
            .timeout_global(Some(self.read_timeout));
        match connecting.build().call().map_err(NoResponse::from) {
            Ok(_) => Ok(None),
            Err(error) => match error.refused() {
                Some(received) => Ok(Some(received)),
                None => Err(error.into_error(action, base_url, tls)),
            },
        }
    }

    /// A GET whose response must be 2xx. `action` completes "failed to …".
    pub(super) fn get(&self, path: &str, action: &str) -> Result<Unread, Error> {
        let read = || {
            let request = Request::get(self.options.base_url.join(path)).body(());
            let mut response = self.send(request, path, action, self.read_timeout)?;
            if response.status().is_success() {
                return Ok(response);
            }
            Err(self.failed(&mut response, action))
        };
        if !self.memory.keeps() {
            return read();
        }
        let known = self.memory.get(path, || {
            let (head, body) = read()?.into_parts();
            let mut whole = Vec::new();
            let mut reader = body.into_with_config().limit(LARGEST_LIST).reader();
            let read = reader.read_to_end(&mut whole);
            read.map_err(|error| Error::unknown(action, truncated(error)))?;
            Ok(http::Response::from_parts(head, whole.into()))
        })?;
        Ok(known.map(|whole| Body::builder().reader(Cursor::new(whole))))
    }

    /// A DELETE. Portainer responds with 204 (M04): another 2xx is that of another program (B35). The body of the response
    /// is discarded (C51).
    pub(super) fn delete(&self, path: &str, action: &str) -> Result<(), Error> {
        let request = Request::delete(self.options.base_url.join(path)).body(());
        let mut response = self.send(request, path, action, self.options.timeout)?;
        // The body is not read: it may be slow, and Portainer sends none.
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(());
        }
        Err(self.failed(&mut response, action))
    }

    /// Hides values in everything that Portainer says from now on (B13).
    pub(super) fn hide(&self, mask: Mask) {
        *self.mask.write().unwrap_or_else(PoisonError::into_inner) = mask;
    }

    /// The error of a response that does not indicate success, with the values hidden.
    pub(super) fn error(&self, action: &str, mut response: Response) -> Error {
        let mask = self.mask();
        response.body = mask.hide_body(&response.body).into_bytes();
        response.location = response.location.map(|location| mask.hide(&location));
        response.hint_for_403 = self.options.headers.hint_for_403();
        Error::of(action, response)
    }

    /// Hides the values.
    pub(super) fn mask(&self) -> RwLockReadGuard<'_, Mask> {
        self.mask.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of a response that has not been read.
    fn failed(&self, unread: &mut Unread, action: &str) -> Error {
        // The status matters more than a body that ends early.
        let (response, _) = read(unread, LARGEST_ERROR);
        self.error(action, response)
    }

    /// Changes the object `id`, which must be the response.
    pub(super) fn change_object(
        &self,
        id: &str,
        method: Method,
        path: &str,
        json: &Value,
        action: &str,
    ) -> Result<(), Error> {
        let response = self.change(method, path, json, action)?;
        match response.object() {
            Some(object) if object.id == id => Ok(()),
            _ => Err(self.error(action, response)),
        }
    }

    /// Sends JSON and reads the response, whatever its status.
    pub(super) fn change(
        &self,
        method: Method,
        path: &str,
        json: &Value,
        action: &str,
    ) -> Result<Response, Error> {
        let request = Request::builder()
            .method(method)
            .uri(self.options.base_url.join(path))
            .header(header::CONTENT_TYPE, "application/json")
            .body(json.to_string());
        let mut unread = self.send(request, path, action, self.options.timeout)?;
        let most = if unread.status().is_success() {
            LARGEST_BODY + 1
        } else {
            LARGEST_ERROR
        };
        let (response, read) = read(&mut unread, most);
        let length = read.map_err(|error| Error::unknown(action, truncated(error)))?;
        if length as u64 > LARGEST_BODY {
            return Err(Error::unknown(action, too_large()));
        }
        Ok(response)
    }

    /// Sends a request. `timeout` includes connecting and the body of the response.
    fn send<B: ureq::AsSendBody>(
        &self,
        request: Result<Request<B>, http::Error>,
        path: &str,
        action: &str,
        timeout: Duration,
    ) -> Result<Unread, Error> {
        let (base_url, tls) = (&self.options.base_url, &self.options.tls);
        let failed = |error: NoResponse| error.into_error(action, base_url, tls);
        let mut request =
            request.map_err(|error| failed(NoResponse::from(ureq::Error::from(error))))?;
        self.options.headers.add_to(request.headers_mut());
        request.headers_mut().insert("X-API-Key", self.key.clone());
        let shown = format!("{} {path}", request.method());
        let request = request
            .with_agent(&self.agent)
            .configure()
            .timeout_global(Some(timeout))
            .build();
        let started = Instant::now();
        let result = request.run().map_err(NoResponse::from);
        self.options.trace.report(Exchange {
            peer: "portainer",
            request: shown,
            outcome: match &result {
                Ok(response) => response.status().as_u16().to_string(),
                Err(error) => error.to_string(),
            },
            elapsed: started.elapsed(),
        });
        result.map_err(failed)
    }
}

/// Reads at most `limit` bytes of the body. If that fails, the response holds the bytes read before.
fn read(unread: &mut Unread, limit: u64) -> (Response, io::Result<usize>) {
    let mut response = Response::without_body(unread);
    let mut reader = unread.body_mut().with_config().limit(u64::MAX).reader();
    let read = reader.by_ref().take(limit).read_to_end(&mut response.body);
    (response, read)
}

impl Response {
    /// Everything but the body.
    pub(super) fn without_body(unread: &Unread) -> Self {
        let text = |name: HeaderName| {
            let value = unread.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            status: unread.status().as_u16(),
            location: text(header::LOCATION),
            server: text(header::SERVER),
            ..Self::default()
        }
    }
}
