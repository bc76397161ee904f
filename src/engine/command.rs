//! The host's container command: `<tool> ps`, `inspect`, `rm`, `info`, `diff`, `cp`.
//!
//! Invariant: only well-formed IDs and names that cannot be read as options are passed to the command.

mod objects;
mod wire;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    process::Command as Process,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};

use super::{
    About, ClientConfig, MAX_OUTPUT, Options, PULL_TIMEOUT, Remaining,
    about::Info,
    left_until,
    objects::ObjectKind,
    removal_result, stop_result,
    supported::{NoSharedVersion, is_podman},
    wait_until,
};
use crate::{
    backoff::Backoff,
    failure::Failure,
    model::{Container, Pull, compose_label},
    process::{self, Limits, Output, RunError},
    text::{excerpt, printable},
    trace::{Exchange, Peer, Trace},
};

/// The most IDs in one call. At 65 bytes each they stay far below the argument limit of Linux.
const MAX_IDS_PER_CALL: usize = 500;

/// The container command.
#[derive(Debug)]
pub(super) struct Command {
    tool: String,
    /// Its path, if it is on `PATH`.
    program: Option<PathBuf>,
    /// The variables to set or, if `None`, to remove from the inherited environment.
    environment: Vec<(&'static str, Option<OsString>)>,
    label: String,
    read_timeout: Duration,
    removal_timeout: Duration,
    trace: Trace,
}

impl Command {
    /// Uses the command at `program`. Runs nothing.
    pub(super) fn new(program: Option<PathBuf>, options: Options) -> Self {
        Self {
            program,
            environment: difference(&ClientConfig::from_env(), options.client),
            label: compose_label(&options.tool, "project"),
            tool: options.tool,
            read_timeout: options.read_timeout,
            removal_timeout: options.removal_timeout,
            trace: options.trace,
        }
    }

    /// The containers of `project`, in every state.
    ///
    /// A removal needs the IDs only (C52): if `inspect` fails, the containers have only an ID.
    pub(super) fn list(&self, project: &str) -> Result<Vec<Container>> {
        let filter = format!("label={}={project}", self.label);
        let ids = self.ids(&["ps", "-aq", "--filter", &filter])?;
        let Ok(mut containers) = self.inspect_containers(&ids) else {
            return Ok(ids.into_iter().map(only_id).collect());
        };
        containers.retain(|found| {
            found
                .labels
                .get(&self.label)
                .is_some_and(|name| name == project)
        });
        if !containers.is_empty() {
            // The status is only displayed, so a failure to read it is ignored.
            let status = self.status(&filter).unwrap_or_default();
            for container in &mut containers {
                if let Some(status) = status.get(&container.id) {
                    container.status.clone_from(status);
                }
            }
        }
        Ok(containers)
    }

    /// The containers with these IDs, without those that have been removed in the meantime.
    fn inspect_containers(&self, ids: &[String]) -> Result<Vec<Container>> {
        let inspected: Vec<wire::Container> = self.inspect(ObjectKind::Container, ids)?;
        Ok(inspected.into_iter().map(Container::from).collect())
    }

    /// The status as the engine words it, by full ID.
    fn status(&self, filter: &str) -> Result<BTreeMap<String, String>> {
        let format = "{{.ID}}\t{{.Status}}";
        let output = self.read(&[
            "ps",
            "-a",
            "--no-trunc",
            "--filter",
            filter,
            "--format",
            format,
        ])?;
        let lines = String::from_utf8_lossy(&output);
        let pairs = lines.lines().filter_map(|line| line.split_once('\t'));
        Ok(pairs
            .map(|(id, status)| (id.to_owned(), status.trim().to_owned()))
            .collect())
    }

    /// All containers of the engine, in every state.
    pub(super) fn list_all(&self) -> Result<Vec<Container>> {
        self.inspect_containers(&self.ids(&["ps", "-aq", "--no-trunc"])?)
    }

    /// Stops `containers`, each within `grace`.
    pub(super) fn stop(&self, containers: &[Container], grace: Duration) -> Result<()> {
        let limit = self.removal_timeout + grace;
        let grace = grace.as_secs().to_string();
        let mut reasons = Vec::new();
        for containers in containers.chunks(MAX_IDS_PER_CALL) {
            let ids: Vec<_> = containers.iter().map(|one| one.id.clone()).collect();
            let output = self.run(&with_ids(&["stop", "-t", &grace], &ids), limit)?;
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                reasons.extend(stderr.lines().map(str::to_owned));
            }
        }
        if reasons.is_empty() {
            return Ok(());
        }
        // One that no longer exists fails the command, too.
        let running = self.ids(&["ps", "-q", "--no-trunc"])?;
        let still = containers
            .iter()
            .filter(|one| running.iter().any(|id| id.starts_with(&one.id)));
        stop_result(
            containers,
            still.map(|container| (container, error_about(container, &reasons))),
        )
    }

    /// The processes of a running container, one line each, after a line of titles.
    pub(super) fn top(&self, id: &str) -> Result<Vec<String>> {
        let output = self.read(&["top", id])?;
        let text = String::from_utf8_lossy(&output);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Removes `containers`, but not their volumes.
    pub(super) fn remove(&self, containers: &[Container]) -> Result<()> {
        let deadline = Instant::now() + self.removal_timeout;
        let mut errors: Vec<String> = Vec::new();
        for containers in containers.chunks(MAX_IDS_PER_CALL) {
            let ids: Vec<_> = containers
                .iter()
                .map(|container| container.id.clone())
                .collect();
            let line = with_ids(&["rm", "-f"], &ids);
            match self.run(&line, left_until(deadline)) {
                Ok(output) if output.status.success() => {}
                Ok(output) => {
                    let stderr = String::from_utf8_lossy(&output.stderr);
                    errors.extend(stderr.lines().map(str::to_owned));
                    errors.push(format!("`{} rm` failed ({})", self.tool, output.status));
                }
                Err(error) => {
                    errors.push(format!("{error:#}"));
                    break;
                }
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        let remaining = self.remaining(containers, &errors, deadline)?;
        removal_result(containers, &remaining)
    }

    /// Pulls an image.
    pub(super) fn pull(&self, pull: &Pull) -> Result<()> {
        let arguments = pull.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.successful(&arguments, PULL_TIMEOUT).map(drop)
    }

    /// The containers that remain, after waiting for those that another client is removing.
    fn remaining<'a>(
        &self,
        containers: &'a [Container],
        errors: &[String],
        deadline: Instant,
    ) -> Result<Vec<Remaining<'a>>> {
        let refused = Instant::now();
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            let existing = self.ids(&["ps", "-aq", "--no-trunc"]).with_context(|| {
                format!(
                    "cannot tell which containers remain, after: {}",
                    excerpt(&errors.join("; "))
                )
            })?;
            let remaining: Vec<_> = containers
                .iter()
                .filter(|container| existing.iter().any(|id| id.starts_with(&container.id)))
                .map(|container| Remaining {
                    container,
                    reason: error_about(container, errors),
                })
                .collect();
            let ids: Vec<_> = remaining
                .iter()
                .map(|one| one.container.id.clone())
                .collect();
            let until = match self.inspect_containers(&ids) {
                Ok(inspected) if inspected.len() == ids.len() => inspected
                    .iter()
                    .filter_map(|found| wait_until(&found.state, refused, deadline))
                    .max(),
                // Most likely one of them has disappeared since it was listed.
                _ => wait_until("running", refused, deadline),
            };
            match until.map(left_until) {
                Some(left) if !left.is_zero() => thread::sleep(backoff.pause().min(left)),
                _ => return Ok(remaining),
            }
        }
    }

    /// The engine's ID.
    pub(super) fn id(&self) -> Result<String> {
        let output = self.read(&["info", "--format", "{{.ID}}"])?;
        let id = excerpt(&String::from_utf8_lossy(&output));
        if id.is_empty() {
            bail!("`{} info` printed no ID", self.tool);
        }
        Ok(id)
    }

    /// What the engine says about itself.
    pub(super) fn about(&self) -> Result<About> {
        let output = self.read(&["info", "--format", "{{json .}}"])?;
        let info: Info = serde_json::from_slice(&output).with_context(|| {
            let text = excerpt(&String::from_utf8_lossy(&output));
            format!("unexpected output of `{} info`: {text}", self.tool)
        })?;
        match info.server_errors.first() {
            _ if !info.id.is_empty() => Ok(info.about(None)),
            Some(error) => bail!("`{} info`: {}", self.tool, excerpt(error)),
            None => bail!("`{} info` printed no ID", self.tool),
        }
    }

    /// Whether the command, or the engine that it reaches, says that it is Podman.
    pub(super) fn is_podman(&self) -> bool {
        let output = self.run(&["version"], self.read_timeout);
        output.is_ok_and(|output| is_podman(&String::from_utf8_lossy(&output.stdout)))
    }

    /// The IDs that the command prints, one per line. An error names the first two of `arguments`.
    fn ids(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let output = self.read(arguments)?;
        let text = String::from_utf8_lossy(&output);
        text.split_whitespace()
            .map(|id| {
                is_id(id).then(|| id.to_owned()).ok_or_else(|| {
                    anyhow!(
                        "unexpected output of `{} {}`: expected container IDs, got {}",
                        self.tool,
                        arguments.get(..2).unwrap_or(arguments).join(" "),
                        excerpt(id)
                    )
                })
            })
            .collect()
    }

    /// Runs a command that only reads. Returns its standard output.
    fn read(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        self.successful(arguments, self.read_timeout)
    }

    /// Runs a command that must succeed. Returns its standard output.
    fn successful(&self, arguments: &[&str], limit: Duration) -> Result<Vec<u8>> {
        let output = self.run(arguments, limit)?;
        if !output.status.success() {
            let stderr = excerpt(&String::from_utf8_lossy(&output.stderr));
            if let Some(failure) = NoSharedVersion::of_command(&self.tool, &stderr) {
                return Err(failure);
            }
            let verb = arguments.first().copied().unwrap_or_default();
            bail!(
                "`{} {verb}` failed ({}): {stderr}",
                self.tool,
                output.status
            );
        }
        Ok(output.stdout)
    }

    fn run(&self, arguments: &[&str], limit: Duration) -> Result<Output> {
        match self.run_up_to(arguments, limit, MAX_OUTPUT)? {
            Ran::Whole(output) => Ok(output),
            Ran::Cut(_) => bail!(
                "`{} {}` printed more than {} MiB",
                self.tool,
                arguments.first().copied().unwrap_or_default(),
                MAX_OUTPUT >> 20
            ),
        }
    }

    fn run_up_to(&self, arguments: &[&str], limit: Duration, most: u64) -> Result<Ran> {
        let Some(program) = &self.program else {
            return Err(Failure::new(format!("`{}` not found on PATH", self.tool))
                .hint("install it, pass another command with `--tool`, or use `--engine api` if the engine has a Unix socket")
                .into());
        };
        let started = Instant::now();
        let limits = Limits {
            time: limit,
            output: most,
        };
        let output = process::run(program, arguments, limits, |process| self.prepare(process));
        let outcome = process::outcome(&output, limits);
        let line = format!("{} {}", self.tool, arguments.join(" "));
        self.trace.report(&Exchange {
            peer: Peer::Engine,
            method: "run".to_owned(),
            path: printable(&line).into_owned(),
            outcome,
            elapsed: started.elapsed(),
        });
        let verb = arguments.first().copied().unwrap_or_default();
        match output {
            Ok(output) => Ok(Ran::Whole(output)),
            Err(RunError::TooLarge(beginning)) => Ok(Ran::Cut(beginning)),
            Err(RunError::TimedOut) => Err(Failure::new(format!(
                "`{} {verb}` did not finish within {limit:.0?}",
                self.tool
            ))
            .hint("check that the engine is healthy")
            .into()),
            Err(RunError::Failed(error)) => {
                Err(anyhow!(error).context(format!("cannot run {}", program.display())))
            }
        }
    }

    fn prepare(&self, process: &mut Process) {
        for (name, value) in &self.environment {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
    }
}

/// What a run of the command printed.
enum Ran {
    Whole(Output),
    /// The beginning of the standard output. The command was killed.
    Cut(Vec<u8>),
}

/// The variables of `wanted` that a child of this process would not inherit.
fn difference(
    inherited: &ClientConfig,
    wanted: ClientConfig,
) -> Vec<(&'static str, Option<OsString>)> {
    let mut changes = Vec::new();
    if wanted.path != inherited.path {
        changes.push(("PATH", wanted.path));
    }
    if wanted.docker_host != inherited.docker_host {
        changes.push(("DOCKER_HOST", wanted.docker_host.map(OsString::from)));
    }
    if wanted.docker_context != inherited.docker_context {
        changes.push(("DOCKER_CONTEXT", wanted.docker_context.map(OsString::from)));
    }
    if wanted.config_dir != inherited.config_dir {
        changes.push(("DOCKER_CONFIG", wanted.config_dir.map(OsString::from)));
    }
    changes
}

/// Whether `id` looks like a container ID and not like an option or a word of a message. All engines use hexadecimal IDs.
fn is_id(id: &str) -> bool {
    let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = id.bytes().any(|byte| byte.is_ascii_digit());
    id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && (is_hex || has_digit)
}

/// A container of which only the ID is known.
fn only_id(id: String) -> Container {
    Container {
        id,
        ..Container::default()
    }
}

fn with_ids<'a>(start: &[&'a str], ids: &'a [String]) -> Vec<&'a str> {
    start
        .iter()
        .copied()
        .chain(ids.iter().map(String::as_str))
        .collect()
}

/// The line of `errors` that names `container`, otherwise all of them.
fn error_about(container: &Container, errors: &[String]) -> String {
    let line = errors.iter().find(|line| line.contains(&container.id));
    line.map_or_else(|| excerpt(&errors.join("; ")), |line| excerpt(line))
}

#[cfg(test)]
mod tests;
