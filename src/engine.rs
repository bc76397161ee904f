//! The container engine of this host, in the domain's verbs.
//!
//! Two adapters reach it: [`api`] talks the Engine API on a unix socket, [`command`] runs the host's
//! container command. [`choice`] says which, and rather takes the command than reach another engine.
//!
//! Invariants: a container is reported only if its own label names the project, whatever the engine's
//! filter let through; volumes are never removed; a failure is never read as absence.

mod api;
mod choice;
mod command;
mod objects;
mod wire;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};

use self::{api::Api, command::Command};
pub use self::{
    api::{Restoring, Version},
    choice::{Adapter, Choice, Route},
};
use crate::{
    failure::Failure,
    model::{self, Container, MountKind, PublishedPort},
    trace::Trace,
};

/// What of the environment decides how the engine is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// `PATH`, where the container command is looked for.
    pub path: Option<OsString>,
    /// `DOCKER_HOST`; empty counts as unset.
    pub docker_host: Option<String>,
    /// `DOCKER_CONTEXT`; empty counts as unset.
    pub docker_context: Option<String>,
    /// Whether `DOCKER_TLS` or `DOCKER_TLS_VERIFY` is set: the command then speaks TLS.
    pub docker_tls: bool,
    /// `DOCKER_CONFIG`, else `~/.docker`.
    pub config_dir: Option<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub fn from_env() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name| set(name).map(|value| value.to_string_lossy().into_owned());
        Self {
            path: std::env::var_os("PATH"),
            docker_host: text("DOCKER_HOST"),
            docker_context: text("DOCKER_CONTEXT"),
            docker_tls: set("DOCKER_TLS").or(set("DOCKER_TLS_VERIFY")).is_some(),
            config_dir: set("DOCKER_CONFIG").map(PathBuf::from).or_else(|| {
                let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
                home.map(|home| home.join(".docker"))
            }),
        }
    }
}

/// How to reach the engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The container command's bare name; it names the label too: `com.<tool>.compose.project`.
    pub tool: String,
    /// Which adapter.
    pub choice: Choice,
    /// What decides where `choice` is [`Choice::Auto`], and what the command is run with.
    pub surroundings: Surroundings,
    /// The most that a question may take, answer included.
    pub read_timeout: Duration,
    /// The most that connecting to the socket may take.
    pub connect_timeout: Duration,
    /// The most that one [`Engine::remove`] may take.
    pub removal_timeout: Duration,
    /// The most that one change by [`Restoring`] may take, its own grace not counted.
    pub change_timeout: Duration,
    /// Receives each request and each run of the command.
    pub trace: Trace,
}

impl Options {
    /// The usual patience: connecting 10 s, questions 30 s, a removal or a change five minutes.
    pub fn new(tool: &str, choice: Choice, surroundings: Surroundings, trace: Trace) -> Self {
        Self {
            tool: tool.to_owned(),
            choice,
            surroundings,
            read_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            removal_timeout: Duration::from_mins(5),
            change_timeout: Duration::from_mins(5),
            trace,
        }
    }

    /// The same, where nothing may take longer than `timeout`.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Self {
            read_timeout: self.read_timeout.min(timeout),
            connect_timeout: self.connect_timeout.min(timeout),
            removal_timeout: self.removal_timeout.min(timeout),
            change_timeout: self.change_timeout.min(timeout),
            ..self
        }
    }
}

/// The container engine of this host.
#[derive(Debug)]
pub struct Engine {
    adapter: Adapter,
    reach: Reach,
}

#[derive(Debug)]
enum Reach {
    Api(Api),
    Command(Command),
    Nowhere,
}

impl Engine {
    /// Decides on the adapter. Looks at the disk but talks to nobody: errors come with the first question.
    pub fn open(options: Options) -> Self {
        let Options { tool, choice, .. } = &options;
        let program = choice::find_program(tool, options.surroundings.path.as_deref());
        let endpoint = choice::resolve_endpoint(&options.surroundings);
        let adapter = choice::decide(tool, *choice, &program, &endpoint);
        let reach = match &adapter.route {
            Route::Api(socket) => Reach::Api(Api::new(socket.clone(), options)),
            Route::Command => Reach::Command(Command::new(program.path(), options)),
            Route::Nowhere => Reach::Nowhere,
        };
        Self { adapter, reach }
    }

    /// Which adapter was chosen, and why.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// The containers of `project` in every state, by name (C52, C54).
    pub fn list(&self, project: &str) -> Result<Vec<Container>> {
        let found = match &self.reach {
            Reach::Api(api) => api.list(project),
            Reach::Command(command) => command.list(project),
            Reach::Nowhere => Err(self.nowhere()),
        };
        let mut containers =
            found.with_context(|| format!("failed to list the containers of {project}"))?;
        for container in &mut containers {
            tidy(container);
        }
        containers.sort_by(|a, b| (&a.names, &a.id).cmp(&(&b.names, &b.id)));
        Ok(containers)
    }

    /// Removes `containers`, running or not, and leaves their volumes (C52).
    ///
    /// One that is gone already is no failure. The error names those that are left.
    pub fn remove(&self, containers: &[Container]) -> Result<()> {
        if containers.is_empty() {
            return Ok(());
        }
        match &self.reach {
            Reach::Api(api) => api.remove(containers),
            Reach::Command(command) => command.remove(containers),
            Reach::Nowhere => Err(self.nowhere()),
        }
        .context("failed to remove the containers")
    }

    /// The engine's own ID, the same that a manager reports of it (B03).
    pub fn id(&self) -> Result<String> {
        match &self.reach {
            Reach::Api(api) => api.id(),
            Reach::Command(command) => command.id(),
            Reach::Nowhere => Err(self.nowhere()),
        }
        .context("failed to ask the engine for its ID")
    }

    /// The engine as one that can be given containers, networks and volumes; an error where the Engine API
    /// does not certainly reach it.
    pub fn restoring(&self) -> Result<Restoring<'_>> {
        match &self.reach {
            Reach::Api(api) => Ok(Restoring::new(api)),
            Reach::Command(_) => Err(self.needs_the_api()),
            Reach::Nowhere => Err(self.nowhere()),
        }
    }

    fn needs_the_api(&self) -> anyhow::Error {
        let Adapter { tool, because, .. } = &self.adapter;
        Failure::new(format!(
            "this needs the Engine API, and the engine is reached by the `{tool}` command: {because}"
        ))
        .hint(format!(
            "where a unix socket reaches the engine of `{tool}`, use `--engine api`, with DOCKER_HOST=unix:///… if \
             it is not the usual one"
        ))
        .into()
    }

    fn nowhere(&self) -> anyhow::Error {
        Failure::new(format!(
            "no unix socket to reach the engine by: {}",
            self.adapter.because
        ))
        .hint("point DOCKER_HOST at the engine's socket (unix:///…), or use `--engine command`")
        .into()
    }
}

/// The label that names a container's project.
fn project_label(tool: &str) -> String {
    format!("com.{tool}.compose.project")
}

/// Makes both adapters say the same: no leading slash, no names that links give, a fixed order.
fn tidy(container: &mut Container) {
    for name in &mut container.names {
        if let Some(bare) = name.strip_prefix('/') {
            *name = bare.to_owned();
        }
    }
    container.names.retain(|name| !name.contains('/'));
    for port in &mut container.ports {
        if port.address.is_empty() {
            "0.0.0.0".clone_into(&mut port.address);
        }
    }
    container.ports.sort_by(|a, b| {
        let key = |port: &PublishedPort| {
            (
                port.container_port,
                port.protocol.clone(),
                port.host_port,
                port.address.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    for mount in &mut container.mounts {
        if mount.kind == MountKind::Volume {
            // The API's list knows it of some volumes only; the name is what counts.
            mount.source.clear();
        }
    }
    container.mounts.sort_by(|a, b| a.target.cmp(&b.target));
}

/// What a person calls the container.
fn called(container: &Container) -> &str {
    let short = container.id.get(..12).unwrap_or(&container.id);
    container.names.first().map_or(short, String::as_str)
}

/// A container that could not be removed, and why.
struct Left<'a> {
    container: &'a Container,
    why: String,
}

/// The verdict over a removal of `all`.
fn verdict(all: &[Container], left: &[Left<'_>]) -> Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = left.iter().map(|left| called(left.container)).collect();
    let reasons: Vec<_> = left
        .iter()
        .map(|left| format!("{}: {}", called(left.container), left.why))
        .collect();
    Err(Failure::new(format!(
        "{} of {} are left: {}",
        left.len(),
        all.len(),
        names.join(", ")
    ))
    .details(reasons.join("\n"))
    .hint(
        "mend what the engine names, or remove them by hand, then run again: it goes on from there",
    )
    .into())
}

/// Text from outside on one line, without control characters, at most 500 characters long.
fn printable(text: &str) -> String {
    const MOST: usize = 500;
    let text = text.trim();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", escaped(&text[..end])),
        None => escaped(text),
    }
}

/// Text without what would steer a terminal.
fn escaped(text: &str) -> String {
    crate::text::printable(text).into_owned()
}

#[cfg(test)]
mod real;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(
            printable(" a\u{1b}[2J\r\nb\u{9b}c \n"),
            "a\\u{1b}[2J\\r\\nb\\u{9b}c"
        );
        assert_eq!(printable(&"x".repeat(501)), format!("{}…", "x".repeat(500)));
    }

    #[test]
    fn a_removal_that_failed_names_what_is_left() {
        let container = |name: &str| Container {
            id: "0123456789abcdef".to_owned(),
            names: if name.is_empty() {
                vec![]
            } else {
                vec![name.to_owned()]
            },
            ..Container::default()
        };
        let all = [container("web-1"), container(""), container("db-1")];
        let left = |at: usize, why: &str| Left {
            container: &all[at],
            why: why.to_owned(),
        };

        assert!(verdict(&all, &[]).is_ok());
        let error = verdict(&all, &[left(0, "busy"), left(1, "no answer")]).unwrap_err();
        assert_eq!(error.to_string(), "2 of 3 are left: web-1, 0123456789ab");
        assert_eq!(
            Failure::details_of(&error),
            Some("web-1: busy\n0123456789ab: no answer")
        );
    }
}
