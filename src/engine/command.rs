//! The host's container command: what a migration cannot do without. It lists and removes containers, inspects
//! containers and images, pulls images, and identifies the engine. Everything else needs the Engine API.
//!
//! Invariant: only well-formed IDs and names that cannot be read as options are passed to the command.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Command as Process, Output},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};

use super::{
    About, KILL_TIMEOUT, MAX_OUTPUT, Options, PULL_TIMEOUT, Remaining,
    about::Info,
    left_until,
    objects::identifies,
    removal_result,
    supported::{NoSharedVersion, is_podman, refuses_version},
};
use crate::{
    backoff::Backoff,
    failure::Failure,
    model::{Container, Pull, compose_label},
    process::{self, Limits, RunError},
    text::{excerpt, printable},
    trace::Exchange,
};

/// Inspects containers.
const CONTAINERS: [&str; 3] = ["inspect", "--type", "container"];

/// Lists the IDs of all containers.
const ALL: [&str; 3] = ["ps", "-aq", "--no-trunc"];

/// The container command.
#[derive(Debug)]
pub(super) struct Command {
    tool: String,
    /// Its path, if it is on `PATH`.
    program: Option<PathBuf>,
    label: String,
    options: Options,
}

impl Command {
    /// Uses the command at `program`. Runs nothing.
    pub(super) fn new(program: Option<PathBuf>, options: Options) -> Self {
        Self {
            tool: options.tool.clone(),
            program,
            label: compose_label(&options.tool, "project"),
            options,
        }
    }

    /// The containers of `project`, in every state.
    ///
    /// A removal needs the IDs only (C52): if `inspect` fails, the containers have only an ID.
    pub(super) fn list(&self, project: &str) -> Result<Vec<Container>> {
        let filter = format!("label={}={project}", self.label);
        let ids = self.ids(&["ps", "-aq", "--filter", &filter])?;
        let Ok(mut containers) = self.containers(&ids) else {
            let only_id = |id| Container(json!({ "Id": id }));
            return Ok(ids.into_iter().map(only_id).collect());
        };
        containers.retain(|container| container.label(&self.label) == Some(project));
        if !containers.is_empty() {
            // The status is only displayed, so a failure to read it is ignored.
            let format = ["--format", "{{.ID}}\t{{.Status}}"];
            let arguments = [
                &["ps", "-a", "--no-trunc", "--filter", &filter][..],
                &format,
            ];
            let printed = self.read(&arguments.concat()).unwrap_or_default();
            let lines = printed.lines().filter_map(|line| line.split_once('\t'));
            let status: BTreeMap<&str, &str> = lines.collect();
            for container in &mut containers {
                if let Some(status) = status.get(container.id()) {
                    container.0["Status"] = (*status).into();
                }
            }
        }
        Ok(containers)
    }

    /// All containers of the engine, in every state.
    pub(super) fn list_all(&self) -> Result<Vec<Container>> {
        self.containers(&self.ids(&ALL)?)
    }

    /// The containers with these IDs, without those that have been removed in the meantime.
    fn containers(&self, ids: &[String]) -> Result<Vec<Container>> {
        let inspected = self.inspect_containers(ids)?;
        Ok(inspected.into_iter().map(Container).collect())
    }

    /// The inspect JSON of the containers with these IDs. Those that do not exist are left out, however many are removed at
    /// this moment.
    pub(super) fn inspect_containers(&self, ids: &[String]) -> Result<Vec<Value>> {
        self.inspect(&CONTAINERS, &ALL, ids)
    }

    /// The inspect JSON of the images with these names or IDs. Those that do not exist are left out.
    pub(super) fn inspect_images(&self, names: &[String]) -> Result<Vec<Value>> {
        let list = ["image", "ls", "-aq", "--no-trunc"];
        self.inspect(&["image", "inspect"], &list, names)
    }

    fn inspect(&self, inspect: &[&str], list: &[&str], names: &[String]) -> Result<Vec<Value>> {
        let mut names = names.to_vec();
        while !names.is_empty() {
            let failed = match self.read(&with_ids(inspect, &names)) {
                Ok(output) => {
                    return serde_json::from_str(&output).with_context(|| {
                        format!("unexpected output of `{} {}`", self.tool, inspect.join(" "))
                    });
                }
                Err(error) => error,
            };
            // One that is missing fails the whole command. Only a list tells which exist.
            let existing = self.read(list)?;
            let before = names.len();
            names.retain(|name| existing.split_whitespace().any(|id| identifies(name, id)));
            if names.len() == before {
                return Err(failed);
            }
        }
        Ok(Vec::new())
    }

    /// Removes `containers`, but not their volumes.
    pub(super) fn remove(&self, containers: &[Container]) -> Result<()> {
        let deadline = Instant::now() + self.options.change_timeout;
        let errors = match self.run(
            &with_ids(&["rm", "-f"], &ids(containers)),
            left_until(deadline),
        ) {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => format!(
                "{}`{} rm` failed ({})",
                stderr(&output),
                self.tool,
                output.status
            ),
            Err(error) => format!("{error:#}"),
        };
        // Another client may be removing one of them.
        let patience = deadline.min(Instant::now() + KILL_TIMEOUT);
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            let existing = self.ids(&ALL).with_context(|| {
                let errors = excerpt(&errors);
                format!("cannot tell which containers remain, after: {errors}")
            })?;
            let remaining = still_there(containers, &existing, &errors);
            let left = left_until(patience);
            if remaining.is_empty() || left.is_zero() {
                return removal_result(containers, &remaining);
            }
            thread::sleep(backoff.pause().min(left));
        }
    }

    /// Pulls an image.
    pub(super) fn pull(&self, pull: &Pull) -> Result<()> {
        let arguments = pull.arguments();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.successful(&words, PULL_TIMEOUT).map(drop)
    }

    /// What the engine says about itself.
    pub(super) fn about(&self) -> Result<About> {
        let output = self.read(&["info", "--format", "{{json .}}"])?;
        let info: Info =
            serde_json::from_str(&output).with_context(|| match excerpt(&output).as_str() {
                "" => format!("`{} info` printed nothing", self.tool),
                text => format!("unexpected output of `{} info`: {text}", self.tool),
            })?;
        info.about(None)
            .ok_or_else(|| match info.server_errors.iter().flatten().next() {
                Some(error) => anyhow!("`{} info`: {}", self.tool, excerpt(error)),
                None => anyhow!("`{} info` printed no ID", self.tool),
            })
    }

    /// Whether the command, or the engine that it reaches, says that it is Podman.
    pub(super) fn is_podman(&self) -> bool {
        let output = self.run(&["version"], self.options.read_timeout);
        output.is_ok_and(|output| is_podman(&String::from_utf8_lossy(&output.stdout)))
    }

    /// The IDs that the command prints, one per line. An error names the first two of `arguments`.
    fn ids(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let text = self.read(arguments)?;
        text.split_whitespace()
            .map(|id| {
                is_id(id).then(|| id.to_owned()).ok_or_else(|| {
                    anyhow!(
                        "unexpected output of `{} {}`: expected container IDs, got {}",
                        self.tool,
                        arguments[..2].join(" "),
                        excerpt(id)
                    )
                })
            })
            .collect()
    }

    /// Runs a command that only reads. Returns its standard output.
    fn read(&self, arguments: &[&str]) -> Result<String> {
        let output = self.successful(arguments, self.options.read_timeout)?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// Runs a command that must succeed. Returns its standard output.
    fn successful(&self, arguments: &[&str], limit: Duration) -> Result<Vec<u8>> {
        let output = self.run(arguments, limit)?;
        if !output.status.success() {
            let (tool, stderr) = (&self.tool, excerpt(&stderr(&output)));
            if refuses_version(&stderr) {
                let both = format!("`{tool}` and its engine");
                let hint = "upgrade the older of the two, or use `--engine api`; if DOCKER_API_VERSION is set, unset it";
                return Err(NoSharedVersion::failure(&both, stderr, hint));
            }
            let (verb, status) = (arguments[0], output.status);
            bail!("`{tool} {verb}` failed ({status}): {stderr}");
        }
        Ok(output.stdout)
    }

    fn run(&self, arguments: &[&str], limit: Duration) -> Result<Output> {
        let tool = &self.tool;
        let Some(program) = &self.program else {
            return Err(Failure::new(format!("`{tool}` not found on PATH"))
                .hint("install it, pass another command with `--tool`, or use `--engine api` if the engine has a Unix socket")
                .into());
        };
        let started = Instant::now();
        let limits = Limits {
            time: limit,
            output: MAX_OUTPUT,
        };
        let output = process::run(program, arguments, limits, |process| self.prepare(process));
        let line = format!("{tool} {}", arguments.join(" "));
        self.options.trace.report(Exchange {
            peer: "engine",
            request: format!("run {}", printable(&line)),
            outcome: process::outcome(&output, limits),
            elapsed: started.elapsed(),
        });
        let verb = arguments[0];
        output.map_err(|error| match error {
            RunError::TooLarge => {
                anyhow!("`{tool} {verb}` printed more than {} MiB", MAX_OUTPUT >> 20)
            }
            RunError::TimedOut => {
                Failure::new(format!("`{tool} {verb}` did not finish within {limit:.0?}"))
                    .hint("check that Docker is healthy")
                    .into()
            }
            RunError::Failed(error) => {
                anyhow!(error).context(format!("cannot run {}", program.display()))
            }
        })
    }

    /// Sets the variables that decide which engine the command reaches.
    fn prepare(&self, process: &mut Process) {
        let client = &self.options.client;
        let (host, context) = (&client.docker_host, &client.docker_context);
        let config_dir = client.config_dir.as_ref();
        for (name, value) in [
            ("PATH", client.path.as_deref()),
            ("DOCKER_HOST", host.as_ref().map(AsRef::as_ref)),
            ("DOCKER_CONTEXT", context.as_ref().map(AsRef::as_ref)),
            ("DOCKER_CONFIG", config_dir.map(AsRef::as_ref)),
        ] {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
    }
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

fn ids(containers: &[Container]) -> Vec<String> {
    containers
        .iter()
        .map(|container| container.id().to_owned())
        .collect()
}

fn with_ids<'a>(start: &[&'a str], ids: &'a [String]) -> Vec<&'a str> {
    let ids = ids.iter().map(String::as_str);
    start.iter().copied().chain(ids).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The containers that are among `ids`, each with the line of `errors` that names it, otherwise with all of them.
fn still_there<'a>(
    containers: &'a [Container],
    ids: &[String],
    errors: &str,
) -> Vec<Remaining<'a>> {
    let there = containers
        .iter()
        .filter(|container| ids.iter().any(|id| id.starts_with(container.id())));
    there
        .map(|container| {
            let line = errors.lines().find(|line| line.contains(container.id()));
            Remaining {
                container,
                reason: excerpt(line.unwrap_or(errors)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
