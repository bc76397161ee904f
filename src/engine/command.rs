//! The host's container command: `<tool> ps`, `inspect`, `rm`, `info`, `diff`.
//!
//! Invariant: of what the command has printed only ids that look like ids are passed back to it, and names
//! that no option can be mistaken for.

mod objects;
mod process;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
    process::Command as Process,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};

use self::process::{Ended, Stopped};
use super::{
    Left, Options, Surroundings, escaped, objects::Kind, printable, project_label, verdict,
};
use crate::{
    failure::Failure,
    model::Container,
    trace::{Exchange, Peer, Trace},
};

/// How many ids one call may carry: 65 bytes each stay far below what Linux takes.
const IDS_A_CALL: usize = 500;

/// How often a list is taken anew because containers vanished while they were looked at.
const TRIES: usize = 3;

/// The container command.
#[derive(Debug)]
pub(super) struct Command {
    tool: String,
    /// Where it was found on `PATH`.
    program: Option<PathBuf>,
    /// What its environment has that this process's has not.
    environment: Vec<(&'static str, Option<OsString>)>,
    label: String,
    read_timeout: Duration,
    removal_timeout: Duration,
    trace: Trace,
}

impl Command {
    /// The command at `program`. Runs nothing.
    pub(super) fn new(program: Option<PathBuf>, options: Options) -> Self {
        Self {
            program,
            environment: difference(&Surroundings::from_env(), options.surroundings),
            label: project_label(&options.tool),
            tool: options.tool,
            read_timeout: options.read_timeout,
            removal_timeout: options.removal_timeout,
            trace: options.trace,
        }
    }

    /// The containers of `project`, in every state.
    ///
    /// The ids alone are what a removal needs (C52): where `inspect` fails, what the containers are stays
    /// unknown, and their image is empty.
    pub(super) fn list(&self, project: &str) -> Result<Vec<Container>> {
        let filter = format!("label={}={project}", self.label);
        let ids = self.ids(&["ps", "-aq", "--filter", &filter])?;
        let Ok(mut containers) = self.inspect_all(&filter, ids.clone()) else {
            return Ok(ids.into_iter().map(only_id).collect());
        };
        containers.retain(|found| {
            found
                .labels
                .get(&self.label)
                .is_some_and(|name| name == project)
        });
        if !containers.is_empty() {
            // Only shown: a table without it is better than none.
            let status = self.status(&filter).unwrap_or_default();
            for container in &mut containers {
                if let Some(status) = status.get(&container.id) {
                    container.status.clone_from(status);
                }
            }
        }
        Ok(containers)
    }

    fn inspect_all(&self, filter: &str, mut ids: Vec<String>) -> Result<Vec<Container>> {
        for _ in 1..TRIES {
            let failed = match self.inspect_containers(&ids) {
                Ok(containers) => return Ok(containers),
                Err(error) => error,
            };
            let now = self.ids(&["ps", "-aq", "--filter", filter])?;
            if ids.iter().all(|id| now.contains(id)) {
                return Err(failed);
            }
            ids = now;
        }
        self.inspect_containers(&ids)
    }

    fn inspect_containers(&self, ids: &[String]) -> Result<Vec<Container>> {
        let inspected: Vec<wire::Container> = self.print(Kind::Container, ids)?;
        Ok(inspected.into_iter().map(Container::from).collect())
    }

    /// The status in the engine's words, by full id.
    fn status(&self, filter: &str) -> Result<BTreeMap<String, String>> {
        let format = "{{.ID}}\t{{.Status}}";
        let output = self.ask(&[
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

    /// Removes `containers`; volumes stay.
    pub(super) fn remove(&self, containers: &[Container]) -> Result<()> {
        let deadline = Instant::now() + self.removal_timeout;
        let mut complaints: Vec<String> = Vec::new();
        for containers in containers.chunks(IDS_A_CALL) {
            let ids: Vec<_> = containers
                .iter()
                .map(|container| container.id.clone())
                .collect();
            let line = with_ids(&["rm", "-f"], &ids);
            match self.run(&line, left_of(deadline)) {
                Ok(ended) if ended.status.success() => {}
                Ok(ended) => {
                    let said = String::from_utf8_lossy(&ended.stderr);
                    complaints.extend(said.lines().map(str::to_owned));
                    complaints.push(format!("`{} rm` failed ({})", self.tool, ended.status));
                }
                Err(error) => {
                    complaints.push(format!("{error:#}"));
                    break;
                }
            }
        }
        if complaints.is_empty() {
            return Ok(());
        }
        let left = self.left(containers, &complaints, deadline)?;
        verdict(containers, &left)
    }

    /// Those that are still there, once removals that others began have ended.
    fn left<'a>(
        &self,
        containers: &'a [Container],
        complaints: &[String],
        deadline: Instant,
    ) -> Result<Vec<Left<'a>>> {
        let mut pause = Duration::from_millis(50);
        loop {
            let there: BTreeSet<_> = self
                .ids(&["ps", "-aq", "--no-trunc"])
                .with_context(|| {
                    format!(
                        "not known which are left, after: {}",
                        printable(&complaints.join("; "))
                    )
                })?
                .into_iter()
                .collect();
            let left: Vec<_> = containers
                .iter()
                .filter(|container| there.iter().any(|id| id.starts_with(&container.id)))
                .map(|container| Left {
                    container,
                    why: complaint_of(container, complaints),
                })
                .collect();
            let going = |left: &Left<'_>| left.why.contains("already in progress");
            if !left.iter().any(going) || left_of(deadline).is_zero() {
                return Ok(left);
            }
            thread::sleep(pause.min(left_of(deadline)));
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// The engine's ID.
    pub(super) fn id(&self) -> Result<String> {
        let output = self.ask(&["info", "--format", "{{.ID}}"])?;
        let id = printable(&String::from_utf8_lossy(&output));
        if id.is_empty() {
            bail!("`{} info` prints none", self.tool);
        }
        Ok(id)
    }

    /// The ids that the command, a verb and its flag or two verbs first, prints one a line.
    fn ids(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let output = self.ask(arguments)?;
        let text = String::from_utf8_lossy(&output);
        text.split_whitespace()
            .map(|id| {
                is_id(id).then(|| id.to_owned()).ok_or_else(|| {
                    anyhow!(
                        "`{} {}` prints what is no id: {}",
                        self.tool,
                        arguments.get(..2).unwrap_or(arguments).join(" "),
                        printable(id)
                    )
                })
            })
            .collect()
    }

    /// Runs a question; what it prints is the answer.
    fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let ended = self.run(arguments, self.read_timeout)?;
        if !ended.status.success() {
            let said = printable(&String::from_utf8_lossy(&ended.stderr));
            let verb = arguments.first().copied().unwrap_or_default();
            bail!("`{} {verb}` failed ({}): {said}", self.tool, ended.status);
        }
        Ok(ended.stdout)
    }

    fn run(&self, arguments: &[&str], limit: Duration) -> Result<Ended> {
        let Some(program) = &self.program else {
            return Err(Failure::new(format!("there is no `{}` on PATH", self.tool))
                .hint("install it, name another with `--tool`, or use `--engine api` if its socket is here")
                .into());
        };
        let started = Instant::now();
        let ended = process::run(program, arguments, limit, |process| self.prepare(process));
        let outcome = match &ended {
            Ok(ended) => match ended.status.code() {
                Some(code) => format!("exit {code}"),
                None => ended.status.to_string(),
            },
            Err(Stopped::Late) => format!("timeout: ended after {limit:.0?}"),
            Err(Stopped::Failed(error)) => error.to_string(),
        };
        let line = format!("{} {}", self.tool, arguments.join(" "));
        self.trace.report(&Exchange {
            peer: Peer::Engine,
            method: "run".to_owned(),
            path: escaped(&line),
            outcome,
            elapsed: started.elapsed(),
        });
        let verb = arguments.first().copied().unwrap_or_default();
        ended.map_err(|stopped| match stopped {
            Stopped::Late => Failure::new(format!(
                "`{} {verb}` did not end within {limit:.0?}",
                self.tool
            ))
            .hint("is the engine in good health?")
            .into(),
            Stopped::Failed(error) => {
                anyhow!(error).context(format!("cannot run {}", program.display()))
            }
        })
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

/// What of `wanted` a child of this process would not inherit.
fn difference(
    inherited: &Surroundings,
    wanted: Surroundings,
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

/// Hexadecimal in every engine there is; what matters is that it is no option and no word of a message.
fn is_id(id: &str) -> bool {
    let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = id.bytes().any(|byte| byte.is_ascii_digit());
    id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && (is_hex || has_digit)
}

/// A container of which nothing else is known.
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

/// What the command said about `container`, else all that it said.
fn complaint_of(container: &Container, complaints: &[String]) -> String {
    let about = complaints.iter().find(|line| line.contains(&container.id));
    about.map_or_else(|| printable(&complaints.join("; ")), |line| printable(line))
}

fn left_of(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests;
