//! Which adapter reaches the engine that the host's container command reaches.
//!
//! Invariant: the API is taken only where it is certain that it is the same engine. The rules are those
//! of the `docker` command: `DOCKER_HOST`, else the context that `DOCKER_CONTEXT` or `config.json` name.

use std::{
    ffi::OsStr,
    fmt, fs,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Surroundings;

/// `--engine`: how the engine is to be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The API where it certainly reaches the engine of the container command, else the command
    #[default]
    Auto,
    /// The Engine API on a unix socket
    Api,
    /// The container command
    Command,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "api" => Ok(Self::Api),
            "command" => Ok(Self::Command),
            _ => Err(format!("`{text}` is none of auto, api, command")),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Api => "api",
            Self::Command => "command",
        })
    }
}

/// The adapter that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    /// The container command's name.
    pub tool: String,
    /// How the engine is reached.
    pub route: Route,
    /// Why, as a fragment: `DOCKER_HOST is tcp://…`.
    pub because: String,
}

/// How the engine is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// By the Engine API on this unix socket.
    Api(PathBuf),
    /// By the container command.
    Command,
    /// Not at all: the API is asked for and there is no unix socket to speak it on.
    Nowhere,
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.route {
            Route::Api(socket) => write!(f, "the Engine API on {}", socket.display())?,
            Route::Command => write!(f, "the `{}` command", self.tool)?,
            Route::Nowhere => f.write_str("nothing")?,
        }
        write!(f, " ({})", self.because)
    }
}

/// What the container command on `PATH` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Program {
    /// Not there.
    Missing,
    /// A native binary of the command's own name.
    Native(PathBuf),
    /// A script, or a wrapper of another format.
    Script(PathBuf),
    /// A link to a program of another name: `podman`, `snap`.
    Alias { path: PathBuf, target: PathBuf },
    /// Not to be looked into.
    Unreadable { path: PathBuf, why: String },
}

impl Program {
    /// Where it was found.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Missing => None,
            Self::Native(path)
            | Self::Script(path)
            | Self::Alias { path, .. }
            | Self::Unreadable { path, .. } => Some(path.clone()),
        }
    }
}

/// Where the `docker` command's own rules lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// To this socket, named by `by`.
    Socket { path: PathBuf, by: String },
    /// Not certainly to a unix socket; the text says what stands in the way.
    Elsewhere(String),
}

/// The socket of the `default` context.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// The only command whose rules are known.
const DOCKER: &str = "docker";

/// Decides from the facts alone.
pub(super) fn decide(
    tool: &str,
    choice: Choice,
    program: &Program,
    endpoint: &Endpoint,
) -> Adapter {
    let (route, because) = match choice {
        Choice::Command => (Route::Command, "as asked for".to_owned()),
        Choice::Api => match endpoint {
            Endpoint::Socket { path, by } => {
                (Route::Api(path.clone()), format!("as asked for, {by}"))
            }
            Endpoint::Elsewhere(why) => (Route::Nowhere, why.clone()),
        },
        Choice::Auto => match certain(tool, program, endpoint) {
            Ok((socket, by)) => (Route::Api(socket), by),
            Err(why) => (Route::Command, why),
        },
    };
    Adapter {
        tool: tool.to_owned(),
        route,
        because,
    }
}

/// The socket that certainly reaches the command's engine and what names it, or the doubt.
fn certain(
    tool: &str,
    program: &Program,
    endpoint: &Endpoint,
) -> Result<(PathBuf, String), String> {
    if tool != DOCKER {
        return Err(format!("the engine behind `{tool}` is not known"));
    }
    match program {
        Program::Native(_) => {}
        Program::Missing => return Err(format!("there is no `{tool}` on PATH to compare with")),
        Program::Script(path) => return Err(format!("{} is not a native binary", path.display())),
        Program::Alias { path, target } => {
            return Err(format!(
                "{} is a link to {}",
                path.display(),
                target.display()
            ));
        }
        Program::Unreadable { path, why } => {
            return Err(format!("{} cannot be looked into: {why}", path.display()));
        }
    }
    match endpoint {
        Endpoint::Socket { path, by } => Ok((path.clone(), by.clone())),
        Endpoint::Elsewhere(why) => Err(why.clone()),
    }
}

/// Looks for `tool` in the folders of `path`, as a shell does.
pub(super) fn find_program(tool: &str, path: Option<&OsStr>) -> Program {
    let is_program = |file: &PathBuf| {
        fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let folders = std::env::split_paths(path.unwrap_or_default());
    let Some(found) = folders.map(|folder| folder.join(tool)).find(is_program) else {
        return Program::Missing;
    };
    match look_into(tool, &found) {
        Ok(program) => program,
        Err(error) => Program::Unreadable {
            path: found,
            why: error.to_string(),
        },
    }
}

fn look_into(tool: &str, found: &Path) -> io::Result<Program> {
    let target = fs::canonicalize(found)?;
    if target.file_name() != Some(OsStr::new(tool)) {
        return Ok(Program::Alias {
            path: found.to_owned(),
            target,
        });
    }
    let mut magic = Vec::new();
    fs::File::open(&target)?.take(4).read_to_end(&mut magic)?;
    Ok(if magic == b"\x7fELF" {
        Program::Native(found.to_owned())
    } else {
        Program::Script(found.to_owned())
    })
}

/// Follows the `docker` command's rules to its engine.
pub(super) fn resolve_endpoint(surroundings: &Surroundings) -> Endpoint {
    let set = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
    if surroundings.docker_tls {
        return Endpoint::Elsewhere("DOCKER_TLS or DOCKER_TLS_VERIFY is set".to_owned());
    }
    if let Some(host) = set(&surroundings.docker_host) {
        return socket_of(&host, "DOCKER_HOST");
    }
    let chosen = set(&surroundings.docker_context).map(|name| (name, "DOCKER_CONTEXT"));
    let chosen = match (chosen, &surroundings.config_dir) {
        (Some(chosen), _) => Ok(Some(chosen)),
        (None, Some(folder)) => {
            current_context(folder).map(|name| name.map(|name| (name, "config.json")))
        }
        (None, None) => Err("there is no home folder to read docker's config.json from".to_owned()),
    };
    match chosen {
        Err(why) => Endpoint::Elsewhere(why),
        Ok(Some((name, by))) if name != "default" => {
            let by = format!("context {name} of {by}");
            match context_host(surroundings.config_dir.as_deref(), &name) {
                Ok(host) => socket_of(&host, &by),
                Err(why) => Endpoint::Elsewhere(format!("{by}: {why}")),
            }
        }
        Ok(_) => Endpoint::Socket {
            path: PathBuf::from(DEFAULT_SOCKET),
            by: "the default context".to_owned(),
        },
    }
}

/// Reads a host as the command does: `unix://` alone means the default socket.
fn socket_of(host: &str, by: &str) -> Endpoint {
    let path = match host.strip_prefix("unix://") {
        Some("") => DEFAULT_SOCKET,
        Some(path)
            if path.starts_with('/') && !path.contains("://") && !path.contains('\u{fffd}') =>
        {
            path
        }
        _ => return Endpoint::Elsewhere(format!("{by} is {}", super::printable(host))),
    };
    Endpoint::Socket {
        path: PathBuf::from(path),
        by: by.to_owned(),
    }
}

/// `currentContext` of the command's `config.json`; `None` where none is set.
fn current_context(folder: &Path) -> Result<Option<String>, String> {
    let file = folder.join("config.json");
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", file.display())),
    };
    let unclear = |why: &str| format!("{} is unclear: {why}", file.display());
    let config: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|error| unclear(&error.to_string()))?;
    match field(&config, "currentContext") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) if name.is_empty() => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone())),
        Some(_) => Err(unclear("currentContext is not a string")),
    }
}

/// The host of the context called `name`, from the command's store of contexts.
fn context_host(folder: Option<&Path>, name: &str) -> Result<String, String> {
    let store = folder
        .ok_or("there is no home folder")?
        .join("contexts/meta");
    let entries = fs::read_dir(&store).map_err(|error| format!("{}: {error}", store.display()))?;
    for entry in entries.flatten() {
        let Ok(text) = fs::read(entry.path().join("meta.json")) else {
            continue;
        };
        let Ok(meta) = serde_json::from_slice::<Map<String, Value>>(&text) else {
            continue;
        };
        if field(&meta, "Name").and_then(Value::as_str) == Some(name) {
            return host_of(&meta).ok_or_else(|| "it names no host".to_owned());
        }
    }
    Err("there is no such context".to_owned())
}

fn host_of(meta: &Map<String, Value>) -> Option<String> {
    let endpoints = field(meta, "Endpoints")?.as_object()?;
    let endpoint = endpoints.get(DOCKER)?.as_object()?;
    let host = field(endpoint, "Host")?.as_str()?;
    (!host.is_empty()).then(|| host.to_owned())
}

/// A field by name in any case, as Go reads JSON.
fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let same = |(key, _): &(&String, &Value)| key.eq_ignore_ascii_case(name);
    object.iter().find(same).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
