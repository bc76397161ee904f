//! The Engine API on a unix socket.
//!
//! Supports engines from 20.10 (API 1.41) on, including engines that reject versions below 1.44: requests use the
//! engine's newest version or [`NEWEST`], whichever is lower. An engine that supports no version from [`OLDEST`] to
//! [`NEWEST`] is an error of its own.

mod events;
mod exchange;
mod objects;
mod pull;
mod restoring;
mod socket;

use std::{
    fmt, io,
    path::PathBuf,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use ureq::{Agent, http::Method};

pub use self::events::ContainerEvent;
pub(super) use self::events::timestamp;
use self::socket::{NoResolver, UnixConnector};
use super::{
    About, KILL_TIMEOUT, Options, Remaining,
    about::Info,
    left_until, removal_result,
    supported::{NoSharedVersion, refuses_version},
    wire,
};
use crate::{
    backoff::Backoff,
    failure::Failure,
    memory::Memory,
    model::{Container, compose_label},
    parallel::{MAX_CONCURRENT, in_parallel},
    text::{excerpt, percent_encoded},
};

/// The oldest API version that this client supports: Docker Engine 20.10.
const OLDEST: Version = Version(1, 41);

/// The newest API version that this client supports.
const NEWEST: Version = Version(1, 51);

/// A client of one engine. Threads share its connections, which stay open.
#[derive(Debug)]
pub(super) struct Api {
    socket: PathBuf,
    agent: Agent,
    label: String,
    options: Options,
    version: OnceLock<Version>,
    is_podman: OnceLock<bool>,
    /// The response to each `GET`, by its path.
    pub(super) memory: Memory<ApiResponse>,
}

impl Api {
    /// A client of the engine on `socket`. Connects with the first request.
    pub(super) fn new(socket: PathBuf, options: Options) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(MAX_CONCURRENT)
            .max_idle_connections_per_host(MAX_CONCURRENT)
            .timeout_connect(Some(options.connect_timeout))
            .user_agent(concat!("stacklift/", env!("CARGO_PKG_VERSION")))
            .build();
        let connector = UnixConnector {
            path: socket.clone(),
        };
        Self {
            agent: Agent::with_parts(config, connector, NoResolver),
            socket,
            label: compose_label(&options.tool, "project"),
            options,
            version: OnceLock::new(),
            is_podman: OnceLock::new(),
            memory: Memory::default(),
        }
    }

    /// The containers of `project`, in every state.
    pub(super) fn list(&self, project: &str) -> Result<Vec<Container>> {
        let filter = self.label_filter(project);
        let mut containers = self.listed(&format!("/containers/json?all=1&{filter}"))?;
        containers.retain(|container| container.label(&self.label) == Some(project));
        for container in &mut containers {
            self.name_image(container)?;
        }
        Ok(containers)
    }

    /// The query for objects with the label of `project`.
    fn label_filter(&self, project: &str) -> String {
        let filters = json!({ "label": [format!("{}={project}", self.label)] });
        format!("filters={}", percent_encoded(&filters.to_string()))
    }

    /// All containers of the engine, in every state.
    pub(super) fn list_all(&self) -> Result<Vec<Container>> {
        self.listed("/containers/json?all=1")
    }

    fn listed(&self, path: &str) -> Result<Vec<Container>> {
        let listed: Option<Vec<Value>> = self.get(path)?;
        let containers = listed.iter().flatten().map(wire::listed);
        let containers: serde_json::Result<_> = containers.collect();
        containers.context("unexpected list of containers")
    }

    /// The processes of a running container, one line each.
    pub(super) fn top(&self, id: &str) -> Result<Vec<String>> {
        let top: Value = self.get(&format!("/containers/{id}/top"))?;
        let processes: Option<Vec<Vec<String>>> = Deserialize::deserialize(&top["Processes"])?;
        let lines = processes.into_iter().flatten();
        Ok(lines.map(|fields| fields.join(" ")).collect())
    }

    /// The last lines of a container's log.
    pub(super) fn log_tail(&self, id: &str, lines: u8) -> Result<String> {
        let path = format!("/containers/{id}/logs?stdout=1&stderr=1&tail={lines}");
        let response = self.fetch(&path)?;
        Ok(String::from_utf8_lossy(&unframed(&response.body)).into_owned())
    }

    /// Replaces an image ID by the image name. The list shows the ID if another image has the name now.
    fn name_image(&self, container: &mut Container) -> Result<()> {
        if container.image_name().starts_with("sha256:") {
            let path = format!("/containers/{}/json", container.id());
            if let Some(inspected) = self.find::<Container>(&path)? {
                container.0["Config"]["Image"] = inspected.image_name().into();
            }
        }
        Ok(())
    }

    /// Removes `containers` in parallel, but not their volumes.
    pub(super) fn remove(&self, containers: &[Container]) -> Result<()> {
        let version = self.version()?;
        let deadline = Instant::now() + self.options.change_timeout;
        let failed = in_parallel(containers, |container| {
            let removed = self.remove_one(version, container.id(), deadline);
            removed.err().map(|error| format!("{error:#}"))
        });
        removal_result(containers, &self.remaining(containers, failed))
    }

    fn remove_one(&self, version: Version, id: &str, deadline: Instant) -> Result<()> {
        let limit = left_until(deadline);
        if limit.is_zero() {
            bail!("not attempted: the time limit for the removal was exceeded");
        }
        let path = format!("/v{version}/containers/{id}?force=1");
        let response = self.send(&Method::DELETE, &path, &[], limit)?;
        match response.status {
            200..=299 | 404 => Ok(()),
            // Another client may be removing it.
            409 => self.wait_until_gone(id, deadline, self.refused(&response)),
            _ => Err(self.refused(&response)),
        }
    }

    /// The containers that remain of those that failed. Once a request fails, all others count as remaining.
    fn remaining<'a>(
        &self,
        containers: &'a [Container],
        failed: Vec<Option<String>>,
    ) -> Vec<Remaining<'a>> {
        let mut responds = true;
        let mut remaining = Vec::new();
        for (container, reason) in containers.iter().zip(failed) {
            let Some(reason) = reason else {
                continue;
            };
            let state = responds.then(|| self.state(container.id()));
            responds = matches!(state, Some(Ok(_)));
            if !matches!(state, Some(Ok(None))) {
                remaining.push(Remaining { container, reason });
            }
        }
        remaining
    }

    /// Waits until the container is gone, as long as another client may be removing it. Otherwise fails with `refusal`.
    fn wait_until_gone(&self, id: &str, deadline: Instant, refusal: anyhow::Error) -> Result<()> {
        let refused = Instant::now();
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        while let Some(state) = self.state(id)? {
            match wait_until(&state, refused, deadline).map(left_until) {
                Some(left) if !left.is_zero() => thread::sleep(backoff.pause().min(left)),
                _ => return Err(refusal),
            }
        }
        Ok(())
    }

    /// The state of the container: `running`, `removing`, …; `None` if it does not exist.
    fn state(&self, id: &str) -> Result<Option<String>> {
        let found = self.find::<Container>(&format!("/containers/{id}/json"))?;
        Ok(found.map(|found| found.status().to_owned()))
    }

    /// What the engine says about itself.
    pub(super) fn about(&self) -> Result<About> {
        let info: Info = self.get("/info")?;
        let about = info.about(Some(self.version()?.to_string()));
        about.with_context(|| format!("{} has no ID", self.name()))
    }

    /// Sends `GET` for `path`, which does not include the API version.
    fn ask(&self, path: &str) -> Result<ApiResponse> {
        let path = format!("/v{}{path}", self.version()?);
        let read = || self.send(&Method::GET, &path, &[], self.options.read_timeout);
        self.memory.get(&path, read)
    }

    /// The response to [`Self::ask`], if its status is 200.
    fn fetch(&self, path: &str) -> Result<ApiResponse> {
        let response = self.ask(path)?;
        match response.status {
            200 => Ok(response),
            _ => Err(self.refused(&response)),
        }
    }

    /// The JSON of the response.
    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.parse(&self.fetch(path)?)
    }

    /// Like [`Self::get`], but returns `None` for a 404.
    fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let response = self.ask(path)?;
        match response.status {
            200 => self.parse(&response).map(Some),
            404 => Ok(None),
            // What cannot be the name of an image does not exist.
            400 if path.starts_with("/images/") => Ok(None),
            _ => Err(self.refused(&response)),
        }
    }

    fn parse<T: DeserializeOwned>(&self, response: &ApiResponse) -> Result<T> {
        serde_json::from_slice(&response.body).map_err(|error| {
            let what = if response.is_html() {
                "an HTML page".to_owned()
            } else {
                format!("{error}: {}", excerpt(&response.beginning()))
            };
            self.unexpected(response, &what)
        })
    }

    /// The API version to use. Requested once, by `GET`: not every `/_ping` accepts `HEAD`.
    pub(super) fn version(&self) -> Result<Version> {
        if let Some(version) = self.version.get() {
            return Ok(*version);
        }
        let response = self.send(&Method::GET, "/_ping", &[], self.options.read_timeout)?;
        let newest = response.api_version.as_deref().and_then(Version::parse);
        // A failing engine returns 500, but still its version.
        let Some(newest) = newest else {
            return Err(match response.status {
                200 if !response.is_html() => self.unexpected(&response, "no API version"),
                _ => self.refused(&response),
            });
        };
        self.is_podman.get_or_init(|| response.is_podman);
        if newest < OLDEST {
            return Err(self.no_shared_version(
                &format!("the newest of Docker is {newest}"),
                "upgrade to Docker Engine 20.10 or later, or use `--engine command`",
            ));
        }
        // An engine that supports nothing newer supports `version`, its newest.
        if newest > NEWEST
            && let Some(oldest) = self.oldest()?
            && oldest > NEWEST
        {
            return Err(self.no_shared_version(
                &format!("the oldest of Docker is {oldest}"),
                "upgrade stacklift, or use `--engine command`",
            ));
        }
        Ok(*self.version.get_or_init(|| newest.min(NEWEST)))
    }

    /// The oldest API version that the engine supports, if it says.
    fn oldest(&self) -> Result<Option<Version>> {
        let response = self.send(&Method::GET, "/version", &[], self.options.read_timeout)?;
        let version: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        Ok(version["MinAPIVersion"].as_str().and_then(Version::parse))
    }

    /// Whether the engine says that it is Podman.
    pub(super) fn is_podman(&self) -> bool {
        // Its version is refused with the first request, and need not be a version of Docker's.
        let _ = self.version();
        self.is_podman.get().copied().unwrap_or_default()
    }

    /// The engine, in an error.
    pub(super) fn name(&self) -> String {
        format!("Docker on {}", self.socket.display())
    }

    fn no_shared_version(&self, theirs: &str, hint: &str) -> anyhow::Error {
        let why = format!("stacklift supports {OLDEST} to {NEWEST}, and {theirs}");
        NoSharedVersion::failure(&format!("stacklift and {}", self.name()), why, hint)
    }

    fn unreachable(&self, error: ureq::Error, limit: Duration) -> anyhow::Error {
        let socket = self.socket.display();
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect) => Failure::new(format!(
                "Docker on {socket} did not accept a connection within {:.0?}",
                self.options.connect_timeout
            ))
            .hint("check that Docker is healthy"),
            ureq::Error::Timeout(_) => Failure::new(format!(
                "no response from Docker on {socket} within {limit:.0?}"
            ))
            .hint("check that Docker is healthy"),
            ureq::Error::Io(error) => {
                let failure = Failure::new(format!("cannot reach Docker on {socket}"));
                match error.kind() {
                    io::ErrorKind::PermissionDenied => failure.hint(
                        "run the command as root or as a member of the socket's group (often `docker`)",
                    ),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                        failure.hint("check that Docker is running")
                    }
                    _ => failure,
                }
                .source(error)
            }
            ureq::Error::BodyExceedsLimit(limit) => Failure::new(format!(
                "the response of Docker on {socket} is larger than {} MiB",
                limit >> 20
            ))
            .hint("is this the socket of Docker?"),
            error => Failure::new(format!("invalid HTTP response from Docker on {socket}"))
                .source(error),
        }
        .into()
    }

    fn refused(&self, response: &ApiResponse) -> anyhow::Error {
        if response.is_html() {
            return self.unexpected(
                response,
                &format!("status {} and an HTML page", response.status),
            );
        }
        let message = response.message();
        if response.status == 400 && refuses_version(&message) {
            return self.no_shared_version(
                &format!("Docker returned 400: {message}"),
                "use a version of stacklift that supports this Docker, or `--engine command`",
            );
        }
        let status = response.status;
        Rejected { status, message }.into()
    }

    fn unexpected(&self, response: &ApiResponse, what: &str) -> anyhow::Error {
        let (socket, request) = (self.socket.display(), &response.request);
        Failure::new(format!(
            "unexpected response from {socket} to {request}: {what}"
        ))
        .hint("is this the socket of Docker?")
        .into()
    }
}

/// A response of the engine that does not indicate success.
#[derive(Debug, thiserror::Error)]
#[error("Docker returned {status}: {message}")]
pub struct Rejected {
    status: u16,
    /// The engine's message, escaped for a terminal.
    message: String,
}

impl Rejected {
    /// Whether the engine responded with an error.
    pub fn caused(error: &anyhow::Error) -> bool {
        error.chain().any(<dyn std::error::Error>::is::<Self>)
    }

    /// Whether the cause of `error` is a 409: the engine has or creates something of this name, or is busy with it.
    pub fn is_conflict(error: &anyhow::Error) -> bool {
        let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
        causes.any(|rejected: &Self| rejected.status == 409)
    }
}

/// A response with its whole body.
#[derive(Clone)]
pub(super) struct ApiResponse {
    /// The request: `GET /info`.
    request: String,
    status: u16,
    api_version: Option<String>,
    /// Whether the header exists that only Podman sends.
    is_podman: bool,
    body: Vec<u8>,
}

/// Without the body, which contains values of variables.
impl fmt::Debug for ApiResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.request)
    }
}

impl ApiResponse {
    /// The engine's message, escaped for a terminal.
    fn message(&self) -> String {
        let json: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        match json["message"].as_str() {
            Some(message) => excerpt(message),
            None => excerpt(&self.beginning()),
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
pub(super) struct Version(pub(super) u16, pub(super) u16);

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

/// The time limit for waiting until a container in `state` is gone, if its removal was refused at `refused` and another
/// client may be removing it. `None` if no other client is.
fn wait_until(state: &str, refused: Instant, deadline: Instant) -> Option<Instant> {
    match state {
        "removing" => Some(deadline),
        "running" | "paused" | "restarting" => Some(deadline.min(refused + KILL_TIMEOUT)),
        _ => None,
    }
}

/// A log without the headers that the engine writes before each piece, unless the container has a terminal.
fn unframed(mut log: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(log.len());
    while let [1 | 2, 0, 0, 0, a, b, c, d, rest @ ..] = log {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let (piece, next) = rest.split_at(length.min(rest.len()));
        text.extend_from_slice(piece);
        log = next;
    }
    text.extend_from_slice(log);
    text
}

#[cfg(test)]
mod tests;
