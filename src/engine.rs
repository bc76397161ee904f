//! The container engine of this host.
//!
//! Two adapters reach it: [`api`] uses the Engine API on a unix socket, [`command`] runs the host's container
//! command, which can do less. [`choice`] decides which one. In doubt it runs the command, so that both always reach the
//! same engine.
//!
//! Invariants: a container is reported only if its own label names the project, even if the engine's filter
//! returned it. Volumes are never removed. A failure is never treated as absence.

mod about;
mod api;
mod choice;
mod command;
mod objects;
mod supported;
mod wire;

use std::{
    ffi::OsString,
    ops::Deref,
    path::PathBuf,
    sync::OnceLock,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result};

pub use self::{
    about::About,
    api::{ContainerEvent, Rejected},
    choice::Choice,
    objects::Archive,
    supported::NoSharedVersion,
};
use self::{
    api::Api,
    choice::{Adapter, Route},
    command::Command,
};
use crate::{
    failure::Failure,
    memory::Memory,
    model::{Container, Pull},
    parallel::{MAX_CONCURRENT, in_parallel},
    process,
    text::Mask,
    trace::Trace,
};

/// The container command, unless another is named.
pub const DEFAULT_TOOL: &str = "docker";

/// How long the engine may take to kill a container. It reports `removing` only after that.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long one image may take to be pulled.
const PULL_TIMEOUT: Duration = Duration::from_hours(1);

/// The size limit of a response, and of each output stream of the command (B12).
const MAX_OUTPUT: u64 = 256 << 20;

/// The settings of the host's container command that decide which engine it reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientConfig {
    /// `PATH`, to find the container command.
    pub path: Option<OsString>,
    /// `DOCKER_HOST`. Empty means unset.
    pub docker_host: Option<String>,
    /// `DOCKER_CONTEXT`. Empty means unset.
    pub docker_context: Option<String>,
    /// Whether `DOCKER_TLS` or `DOCKER_TLS_VERIFY` is set: the command then uses TLS.
    pub docker_tls: bool,
    /// `DOCKER_CONFIG`, otherwise `~/.docker`.
    pub config_dir: Option<PathBuf>,
}

impl ClientConfig {
    /// Reads the environment of this process.
    pub fn from_env() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name| set(name).map(|value| value.to_string_lossy().into_owned());
        Self {
            path: std::env::var_os("PATH"),
            docker_host: text("DOCKER_HOST"),
            docker_context: text("DOCKER_CONTEXT"),
            docker_tls: set("DOCKER_TLS").or(set("DOCKER_TLS_VERIFY")).is_some(),
            config_dir: process::docker_config(),
        }
    }
}

/// How to reach the engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The name of the container command. It also names the project label: `com.<tool>.compose.project`.
    pub tool: String,
    /// The adapter to use.
    pub choice: Choice,
    /// Decides the adapter for [`Choice::Auto`]. The command runs with these settings.
    pub client: ClientConfig,
    /// The time limit for a read, including its response.
    pub read_timeout: Duration,
    /// The time limit for connecting to the socket.
    pub connect_timeout: Duration,
    /// The time limit for one [`Engine::remove`], and for one change of another kind, in addition to the grace period of a
    /// stop.
    pub change_timeout: Duration,
    /// Receives each request and each run of the command.
    pub trace: Trace,
}

impl Options {
    /// The default time limits, each at most `timeout`: 10 s to connect, 30 s for a read, five minutes for a removal or
    /// a change.
    pub fn new(
        tool: &str,
        choice: Choice,
        client: ClientConfig,
        timeout: Duration,
        trace: Trace,
    ) -> Self {
        Self {
            tool: tool.to_owned(),
            choice,
            client,
            read_timeout: timeout.min(Duration::from_secs(30)),
            connect_timeout: timeout.min(Duration::from_secs(10)),
            change_timeout: timeout.min(Duration::from_mins(5)),
            trace,
        }
    }
}

/// The container engine of this host. Also reads what its [`EngineReader`] reads.
#[derive(Debug)]
pub struct Engine(EngineReader);

/// The container engine of this host, without the operations that change something.
#[derive(Debug)]
pub struct EngineReader {
    adapter: Adapter,
    client: Client,
    /// The container command, if the API is used and the command is on `PATH`.
    puller: Option<Command>,
    about: OnceLock<About>,
    /// The containers that use others, by ID; `None` for one that uses none.
    users: Memory<Option<Container>>,
    trace: Trace,
}

impl Deref for Engine {
    type Target = EngineReader;

    fn deref(&self) -> &EngineReader {
        &self.0
    }
}

#[derive(Debug)]
enum Client {
    Api(Api),
    Command(Command),
    Unavailable,
}

impl Engine {
    /// Chooses the adapter. Reads the disk but sends nothing: errors are reported by the first request.
    pub fn open(options: Options) -> Self {
        let Options { tool, choice, .. } = &options;
        let trace = options.trace.clone();
        let program = choice::find_program(tool, options.client.path.as_deref());
        let host = choice::resolve_host(&options.client);
        let adapter = choice::decide(tool, *choice, &program, host);
        let puller = match (&adapter.route, &program.path) {
            (Route::Api(_), path @ Some(_)) => Some(Command::new(path.clone(), options.clone())),
            _ => None,
        };
        let client = match &adapter.route {
            Route::Api(socket) => Client::Api(Api::new(socket.clone(), options)),
            Route::Command => Client::Command(Command::new(program.path, options)),
            Route::Unavailable => Client::Unavailable,
        };
        Self(EngineReader {
            adapter,
            client,
            puller,
            about: OnceLock::new(),
            users: Memory::default(),
            trace,
        })
    }

    /// Removes `containers`, running or not, but not their volumes (C52).
    ///
    /// A container that no longer exists is not an error. The error names the containers that remain.
    pub fn remove(&self, containers: &[Container]) -> Result<()> {
        if containers.is_empty() {
            return Ok(());
        }
        match &self.client {
            Client::Command(command) => command.remove(containers),
            _ => self.api().and_then(|api| api.remove(containers)),
        }
        .context("failed to remove the containers")
    }

    /// Pulls an image, by the container command, which has the credentials of the registries. Without the command, the
    /// Engine API pulls it without credentials.
    pub fn pull(&self, pull: &Pull) -> Result<()> {
        match (&self.client, &self.puller) {
            (Client::Command(command), _) | (_, Some(command)) => command.pull(pull),
            _ => self.api()?.pull(pull),
        }
    }
}

impl EngineReader {
    /// The containers of `project` in every state, sorted by name (C52, C54).
    pub fn list(&self, project: &str) -> Result<Vec<Container>> {
        match &self.client {
            Client::Command(command) => command.list(project),
            _ => self.api().and_then(|api| api.list(project)),
        }
        .map(sorted)
        .with_context(|| format!("failed to list the containers of {project}"))
    }

    /// All containers of the engine in every state, sorted by name.
    pub fn list_all(&self) -> Result<Vec<Container>> {
        match &self.client {
            Client::Command(command) => command.list_all(),
            _ => self.api().and_then(Api::list_all),
        }
        .map(sorted)
        .context("failed to list all containers")
    }

    /// The processes of a running container (M21), one line each. By the Engine API only.
    pub fn top(&self, container: &str) -> Result<Vec<String>> {
        let listed = self.api().and_then(|api| api.top(container));
        listed.with_context(|| format!("failed to list the processes of container {container}"))
    }

    /// The last lines of a container's log. By the Engine API only.
    pub fn log_tail(&self, container: &str, lines: u8) -> Result<String> {
        let log = self.api().and_then(|api| api.log_tail(container, lines));
        log.with_context(|| format!("failed to read the log of container {container}"))
    }

    /// Hides these values in the requests that `-v` shows.
    pub fn hide(&self, mask: &Mask) {
        self.trace.hide(mask);
    }

    /// The ID of the engine, read once. Portainer reports the same ID for its environment (B03).
    pub fn id(&self) -> Result<String> {
        Ok(self.about()?.id.clone())
    }

    /// Reads its ID by the Engine API, while the caller waits for something else. If that fails, whoever needs the ID says why.
    pub fn read_ahead(&self) {
        if matches!(self.client, Client::Api(_)) {
            let _ = self.about();
        }
    }

    /// Reads everything once during a task that changes nothing.
    pub fn remembering<R>(&self, task: impl FnOnce() -> R) -> R {
        self.users.during(|| match &self.client {
            Client::Api(api) => api.memory.during(task),
            Client::Command(_) | Client::Unavailable => task(),
        })
    }

    /// All containers, as they are now.
    pub fn list_all_again(&self) -> Result<Vec<Container>> {
        if let Client::Api(api) = &self.client {
            api.memory.clear();
        }
        self.list_all()
    }

    /// Those of these listed containers that share namespaces or volumes of others, or link to them.
    pub fn users_of_others(&self, listed: &[Container]) -> Result<Vec<Container>> {
        if let Client::Command(_) = self.client {
            // One run of the command inspects all of them.
            return self.inspect_containers(listed.iter().map(Container::id));
        }
        let user = |container: &Container| {
            self.users.get(container.id(), || {
                let mut found = self.inspect_containers([container.id()])?.into_iter();
                Ok(found.find(|one| one.refers_to().next().is_some()))
            })
        };
        let mut users = Vec::new();
        // After a failure, no more are asked for.
        for some in listed.chunks(MAX_CONCURRENT) {
            let found: Result<Vec<_>> = in_parallel(some, user).into_iter().collect();
            users.extend(found?.into_iter().flatten());
        }
        Ok(users)
    }

    /// What the engine says about itself, read once.
    pub fn about(&self) -> Result<&About> {
        if let Some(about) = self.about.get() {
            return Ok(about);
        }
        let about = match &self.client {
            Client::Command(command) => command.about(),
            _ => self.api().and_then(Api::about),
        }
        .context("failed to read the version and ID of Docker")?;
        Ok(self.about.get_or_init(|| about))
    }

    /// What happened to the containers of `project` since `since`, oldest first, as far as the engine remembers: it keeps
    /// its last 256 events. Times are those of the engine. An error unless the engine is reached by the Engine API.
    pub fn events(&self, project: &str, since: SystemTime) -> Result<Vec<ContainerEvent>> {
        let events = self.api().and_then(|api| api.events(project, since));
        events.context("failed to read the events of Docker")
    }

    /// Fails if the engine is Podman. An engine that does not answer is not known to be Podman.
    pub fn refuse_podman(&self) -> Result<()> {
        let tool = &self.adapter.tool;
        let client = match &self.client {
            Client::Api(api) if api.is_podman() => api.name(),
            Client::Command(command) if command.is_podman() => format!("the engine of `{tool}`"),
            _ => return Ok(()),
        };
        Err(supported::podman(&client))
    }

    /// Fails unless the engine is reached by the Engine API, which is needed to change containers.
    pub fn require_api(&self) -> Result<()> {
        self.api().map(|_| ())
    }

    fn api(&self) -> Result<&Api> {
        let Adapter { tool, reason, .. } = &self.adapter;
        let failure = match &self.client {
            Client::Api(api) => return Ok(api),
            Client::Command(_) => Failure::new(format!(
                "this needs the Engine API, but Docker is reached by the `{tool}` command: {reason}"
            ))
            .hint(format!(
                "if the engine of `{tool}` has a Unix socket on this host, use `--engine api`; if it is not the default \
                 socket, set DOCKER_HOST=unix:///…"
            )),
            Client::Unavailable => {
                Failure::new(format!("no Unix socket for the Engine API: {reason}")).hint(
                    "set DOCKER_HOST to Docker's socket (unix:///…), or use `--engine command`",
                )
            }
        };
        Err(failure.into())
    }
}

fn sorted(mut containers: Vec<Container>) -> Vec<Container> {
    containers.sort_by(|a, b| (a.name(), a.id()).cmp(&(b.name(), b.id())));
    containers
}

/// The name of the container, otherwise its short ID.
fn display_name(container: &Container) -> &str {
    match container.name() {
        id if id == container.id() => container.short_id(),
        name => name,
    }
}

/// A container that could not be removed.
struct Remaining<'a> {
    container: &'a Container,
    reason: String,
}

/// The error that names the containers of `all` that remain, if any do.
fn removal_result(all: &[Container], remaining: &[Remaining]) -> Result<()> {
    if remaining.is_empty() {
        return Ok(());
    }
    let shown = remaining.iter().map(|remaining| {
        let name = display_name(remaining.container);
        (name, format!("{name}: {}", remaining.reason))
    });
    let (names, reasons): (Vec<_>, Vec<_>) = shown.unzip();
    Err(Failure::new(format!(
        "not removed: {} ({} of {})",
        names.join(", "),
        remaining.len(),
        all.len()
    ))
    .details(reasons.join("\n"))
    .hint(
        "fix the errors above or remove the containers yourself, then run the command again: it continues from here",
    )
    .into())
}

/// The time left until `deadline`.
fn left_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_removal_names_the_remaining_containers() {
        let container = |name: &str| Container(json!({ "Id": "0123456789abcdef", "Name": name }));
        let all = [container("web-1"), container(""), container("db-1")];
        let remaining = |at: usize, reason: &str| Remaining {
            container: &all[at],
            reason: reason.to_owned(),
        };

        assert!(removal_result(&all, &[]).is_ok());
        let error =
            removal_result(&all, &[remaining(0, "busy"), remaining(1, "no response")]).unwrap_err();
        let expected = "not removed: web-1, 0123456789ab (2 of 3)";
        assert_eq!(error.to_string(), expected);
        assert_eq!(
            Failure::details_of(&error),
            Some("web-1: busy\n0123456789ab: no response")
        );
    }
}
