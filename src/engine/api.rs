//! The Engine API on a unix socket.
//!
//! Engines from 20.10 (API 1.41) to those that refuse anything below 1.44 are spoken to in the lower of
//! their newest version and [`NEWEST`].

mod objects;
mod restoring;
mod socket;
mod wire;

use std::{
    collections::BTreeMap,
    fmt, io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use serde::de::DeserializeOwned;
use ureq::{
    Agent, AsSendBody, Body,
    http::{Method, Request, Response, header::CONTENT_TYPE},
};

pub use self::restoring::Restoring;
use self::socket::{NoResolver, UnixConnector};
use super::{Left, Options, printable, project_label, verdict};
use crate::{
    failure::Failure,
    model::Container,
    trace::{Exchange, Peer, Trace},
};

/// The newest version of the API that this client was written for.
const NEWEST: Version = Version(1, 51);

/// How many requests are under way at the same time. The engine takes its time over each removal: thirty took
/// 1.3 s at once, 1.7 s by sixteens and 2.0 s by fours.
const AT_ONCE: usize = 32;

/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 256 << 20;

/// A client of one engine; connections are kept and shared between threads.
#[derive(Debug)]
pub(super) struct Api {
    socket: PathBuf,
    agent: Agent,
    label: String,
    connect_timeout: Duration,
    read_timeout: Duration,
    removal_timeout: Duration,
    change_timeout: Duration,
    trace: Trace,
    version: OnceLock<Version>,
}

impl Api {
    /// A client of the engine on `socket`. Connects with the first request.
    pub(super) fn new(socket: PathBuf, options: Options) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(AT_ONCE)
            .max_idle_connections_per_host(AT_ONCE)
            .timeout_connect(Some(options.connect_timeout))
            .user_agent(concat!("stacklift/", env!("CARGO_PKG_VERSION")))
            .build();
        let connector = UnixConnector {
            path: socket.clone(),
        };
        Self {
            agent: Agent::with_parts(config, connector, NoResolver),
            socket,
            label: project_label(&options.tool),
            connect_timeout: options.connect_timeout,
            read_timeout: options.read_timeout,
            removal_timeout: options.removal_timeout,
            change_timeout: options.change_timeout,
            trace: options.trace,
            version: OnceLock::new(),
        }
    }

    /// The containers of `project`, in every state.
    pub(super) fn list(&self, project: &str) -> Result<Vec<Container>> {
        let filter = label_filter(&self.label, project)?;
        let path = format!("/containers/json?all=1&{filter}");
        let listed: Option<Vec<wire::Container>> = self.get(&path)?;
        let mut containers: Vec<Container> = listed
            .unwrap_or_default()
            .into_iter()
            .map(Container::from)
            .collect();
        containers.retain(|found| {
            found
                .labels
                .get(&self.label)
                .is_some_and(|name| name == project)
        });
        for container in &mut containers {
            self.name_image(container)?;
        }
        Ok(containers)
    }

    /// The list writes the image's id where its name has moved to another image since.
    fn name_image(&self, container: &mut Container) -> Result<()> {
        if !container.image.starts_with("sha256:") {
            return Ok(());
        }
        let path = format!("/containers/{}/json", container.id);
        if let Some(inspected) = self.find::<wire::Inspected>(&path)? {
            container.image = inspected.config.image;
        }
        Ok(())
    }

    /// Removes `containers` in parallel; volumes stay.
    pub(super) fn remove(&self, containers: &[Container]) -> Result<()> {
        let version = self.version()?;
        let deadline = Instant::now() + self.removal_timeout;
        let failed = at_once(containers, |container| {
            let removed = self.remove_one(version, &container.id, deadline);
            removed.err().map(|error| format!("{error:#}"))
        });
        verdict(containers, &self.left(containers, failed))
    }

    fn remove_one(&self, version: Version, id: &str, deadline: Instant) -> Result<()> {
        let limit = left_of(deadline);
        if limit.is_zero() {
            bail!("not tried: the time for the removal was over");
        }
        let path = format!("/v{version}/containers/{id}?force=1");
        let answer = self.send(&Method::DELETE, &path, &[], limit)?;
        match answer.status {
            200..=299 | 404 => Ok(()),
            409 if answer.message().contains("already in progress") => {
                self.wait_until_gone(id, deadline)
            }
            _ => Err(self.refused(&answer)),
        }
    }

    /// Whatever went wrong: what is gone needs no removal. Asks until a question fails.
    fn left<'a>(&self, containers: &'a [Container], failed: Vec<Option<String>>) -> Vec<Left<'a>> {
        let mut answers = true;
        let mut left = Vec::new();
        for (container, why) in containers.iter().zip(failed) {
            let Some(why) = why else {
                continue;
            };
            let gone = answers.then(|| self.is_gone(&container.id));
            answers = matches!(gone, Some(Ok(_)));
            if !matches!(gone, Some(Ok(true))) {
                left.push(Left { container, why });
            }
        }
        left
    }

    fn wait_until_gone(&self, id: &str, deadline: Instant) -> Result<()> {
        let mut pause = Duration::from_millis(20);
        while !self.is_gone(id)? {
            if left_of(deadline).is_zero() {
                bail!("its removal, begun by another, has not ended");
            }
            thread::sleep(pause.min(left_of(deadline)));
            pause = (pause * 2).min(Duration::from_secs(1));
        }
        Ok(())
    }

    fn is_gone(&self, id: &str) -> Result<bool> {
        let found = self.find::<serde::de::IgnoredAny>(&format!("/containers/{id}/json"))?;
        Ok(found.is_none())
    }

    /// The engine's ID.
    pub(super) fn id(&self) -> Result<String> {
        let wire::Info { id } = self.get("/info")?;
        if id.is_empty() {
            bail!("the engine on {} has none", self.socket.display());
        }
        Ok(id)
    }

    /// Asks for `path`, to which the version is added.
    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let path = format!("/v{}{path}", self.version()?);
        let answer = self.send(&Method::GET, &path, &[], self.read_timeout)?;
        self.read(&answer)
    }

    /// As [`Self::get`]; a 404 is `None`.
    fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let path = format!("/v{}{path}", self.version()?);
        let answer = self.send(&Method::GET, &path, &[], self.read_timeout)?;
        if answer.status == 404 {
            return Ok(None);
        }
        self.read(&answer).map(Some)
    }

    fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T> {
        if answer.status != 200 {
            return Err(self.refused(answer));
        }
        self.parse(answer)
    }

    fn parse<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T> {
        serde_json::from_slice(&answer.body).map_err(|error| {
            let what = if answer.is_html() {
                "it is an HTML page".to_owned()
            } else {
                format!("{error}: {}", printable(&answer.beginning()))
            };
            self.no_engine(&format!(
                "answers {} with what no engine writes: {what}",
                answer.path
            ))
        })
    }

    /// The version to speak: asked for once, by `GET`, since not every `/_ping` takes `HEAD`.
    fn version(&self) -> Result<Version> {
        if let Some(version) = self.version.get() {
            return Ok(*version);
        }
        let answer = self.send(&Method::GET, "/_ping", &[], self.read_timeout)?;
        let theirs = answer.api_version.as_deref().and_then(Version::parse);
        // An engine in trouble answers 500, and its version all the same.
        let Some(theirs) = theirs else {
            return Err(match answer.status {
                _ if answer.is_html() => self.refused(&answer),
                200 => self.no_engine("does not say which version of the Engine API it speaks"),
                _ => self.refused(&answer),
            });
        };
        Ok(*self.version.get_or_init(|| theirs.min(NEWEST)))
    }

    /// Sends one request, `body` being JSON or nothing, and reads the answer whole, within `limit`.
    fn send(&self, method: &Method, path: &str, body: &[u8], limit: Duration) -> Result<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"));
        let started = Instant::now();
        let response = if method == Method::POST {
            self.run(
                match body {
                    [] => request,
                    _ => request.header(CONTENT_TYPE, "application/json"),
                }
                .body(body)?,
                limit,
            )
        } else {
            self.run(request.body(())?, limit)
        };
        self.trace.report(&Exchange {
            peer: Peer::Engine,
            method: method.to_string(),
            path: path.to_owned(),
            outcome: match &response {
                Ok(response) => response.status().as_u16().to_string(),
                Err(error) => error.to_string(),
            },
            elapsed: started.elapsed(),
        });
        let mut response = response.map_err(|error| self.unreachable(error, limit))?;
        let header = response.headers().get("Api-Version");
        let api_version = header
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let body = response
            .body_mut()
            .with_config()
            .limit(LONGEST_ANSWER)
            .read_to_vec();
        Ok(Answer {
            path: format!("{method} {path}"),
            status: response.status().as_u16(),
            api_version,
            body: body.map_err(|error| self.unreachable(error, limit))?,
        })
    }

    fn run(
        &self,
        request: Request<impl AsSendBody>,
        limit: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request);
        self.agent.run(request.timeout_global(Some(limit)).build())
    }

    fn unreachable(&self, error: ureq::Error, limit: Duration) -> anyhow::Error {
        let socket = self.socket.display();
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect) => Failure::new(format!(
                "the engine on {socket} took no connection within {:.0?}",
                self.connect_timeout
            ))
            .hint("is the engine in good health?"),
            ureq::Error::Timeout(_) => Failure::new(format!(
                "no answer from the engine on {socket} within {limit:.0?}"
            ))
            .hint("is the engine in good health?"),
            ureq::Error::Io(error) => {
                let failure = Failure::new(format!("cannot reach the engine on {socket}"));
                match error.kind() {
                    io::ErrorKind::PermissionDenied => failure.hint(
                        "run it as root, or as a member of the socket's group (often `docker`)",
                    ),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                        failure.hint("is the engine running?")
                    }
                    _ => failure,
                }
                .source(error)
            }
            error => Failure::new(format!("the engine on {socket} does not answer in HTTP"))
                .source(error),
        }
        .into()
    }

    fn refused(&self, answer: &Answer) -> anyhow::Error {
        if answer.is_html() {
            let what = format!(
                "answers {} with {} and an HTML page",
                answer.path, answer.status
            );
            return self.no_engine(&what);
        }
        anyhow!("the engine answers {}: {}", answer.status, answer.message())
    }

    fn no_engine(&self, what: &str) -> anyhow::Error {
        Failure::new(format!("what listens on {} {what}", self.socket.display()))
            .hint("is it a container engine?")
            .into()
    }
}

/// An answer, read whole.
struct Answer {
    /// What was asked: `GET /info`.
    path: String,
    status: u16,
    api_version: Option<String>,
    body: Vec<u8>,
}

impl Answer {
    /// The engine's message, fit for printing.
    fn message(&self) -> String {
        match serde_json::from_slice(&self.body) {
            Ok(wire::Message { message }) => printable(&message),
            Err(_) => printable(&self.beginning()),
        }
    }

    fn beginning(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(1000)]).into_owned()
    }

    fn is_html(&self) -> bool {
        self.body.trim_ascii_start().starts_with(b"<")
    }
}

/// A version of the Engine API: `Version(1, 41)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u16, pub u16);

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once('.')?;
        Some(Self(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn left_of(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Does `task` for each of `items`, [`AT_ONCE`] at the same time; the results are in their order.
fn at_once<I: Sync, T: Send>(items: &[I], task: impl Fn(&I) -> T + Sync) -> Vec<T> {
    if let [one] = items {
        return vec![task(one)];
    }
    let queue = Mutex::new(items.iter().enumerate());
    let results = Mutex::new(BTreeMap::new());
    let worker = || {
        loop {
            let Some((at, item)) = lock(&queue).next() else {
                break;
            };
            let result = task(item);
            lock(&results).insert(at, result);
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(items.len()) {
            scope.spawn(worker);
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_values().collect()
}

/// The query for what carries the label of `project`.
fn label_filter(label: &str, project: &str) -> Result<String> {
    let labels = [format!("{label}={project}")];
    let filters = serde_json::to_string(&BTreeMap::from([("label", labels)]))?;
    Ok(format!("filters={}", percent_encoded(&filters)))
}

/// `text` as part of a path or a query: all but RFC 3986's unreserved characters is encoded.
fn percent_encoded(text: &str) -> String {
    const HEX: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend([
                '%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
