//! Chooses the adapter that reaches the same engine as the host's container command.
//!
//! Invariant: [`Choice::Auto`] uses the API only if it certainly reaches the same engine. The rules are those of the
//! `docker` command: `DOCKER_HOST`, otherwise the context that `DOCKER_CONTEXT` or `config.json` names.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde_json::{Map, Value};

use super::ClientConfig;
use crate::{process, text::excerpt};

/// `--engine`: how to reach the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    /// The Engine API if it is certain to reach the same engine as the container command, otherwise the command
    #[default]
    Auto,
    /// The Engine API on a Unix socket
    Api,
    /// The container command
    Command,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The text is not quoted: in a settings file, it may be a misplaced API key (C56).
        clap::ValueEnum::from_str(text, false)
            .map_err(|_| "expected auto, api or command".to_owned())
    }
}

/// The adapter that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Adapter {
    /// The name of the container command.
    pub(super) tool: String,
    pub(super) route: Route,
    /// The reason, as a fragment: `DOCKER_HOST is tcp://…`.
    pub(super) reason: String,
}

/// How the engine is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// The Engine API on this unix socket.
    Api(PathBuf),
    /// The container command.
    Command,
    /// The API was requested, but no unix socket reaches the engine.
    Unavailable,
}

/// The container command on `PATH`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Program {
    /// Its path, if it was found.
    pub(super) path: Option<PathBuf>,
    /// Why it is not certainly the `docker` command.
    pub(super) doubt: Option<String>,
}

/// The unix socket that the `docker` command connects to, and what names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) path: PathBuf,
    pub(super) source: String,
}

/// The socket of the `default` context.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// The only command whose rules are supported.
const DOCKER: &str = super::DEFAULT_TOOL;

/// Decides without reading anything. Without a `socket`, the reason is given.
pub(super) fn decide(
    tool: &str,
    choice: Choice,
    program: &Program,
    socket: Result<Socket, String>,
) -> Adapter {
    let certain = match (&program.doubt, choice) {
        (Some(doubt), Choice::Auto) => Err(doubt.clone()),
        _ => socket,
    };
    let (route, reason) = match (choice, certain) {
        (Choice::Command, _) => (Route::Command, "as requested".to_owned()),
        (Choice::Api, Ok(Socket { path, source })) => {
            (Route::Api(path), format!("as requested, {source}"))
        }
        (Choice::Api, Err(why)) => (Route::Unavailable, why),
        (Choice::Auto, Ok(Socket { path, source })) => (Route::Api(path), source),
        (Choice::Auto, Err(why)) => (Route::Command, why),
    };
    Adapter {
        tool: tool.to_owned(),
        route,
        reason,
    }
}

/// Searches the absolute directories of `path` for `tool`.
pub(super) fn find_program(tool: &str, path: Option<&OsStr>) -> Program {
    let found = process::find_in(path, tool);
    let doubt = match &found {
        _ if tool != DOCKER => Some(format!("the engine of `{tool}` is unknown")),
        None => Some(format!("`{tool}` not found on PATH")),
        Some(found) => doubt_of(tool, found)
            .unwrap_or_else(|error| Some(format!("cannot read {}: {error}", found.display()))),
    };
    Program { path: found, doubt }
}

fn doubt_of(tool: &str, found: &Path) -> io::Result<Option<String>> {
    let (target, shown) = (fs::canonicalize(found)?, found.display());
    if target.file_name() != Some(OsStr::new(tool)) {
        // Such as `podman` or `snap`.
        return Ok(Some(format!("{shown} is a link to {}", target.display())));
    }
    let is_native = process::is_native(&target)?;
    Ok((!is_native).then(|| format!("{shown} is not a native binary")))
}

/// The socket by the rules of the `docker` command. The error says why it is not certainly one.
pub(super) fn resolve_host(config: &ClientConfig) -> Result<Socket, String> {
    let set = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
    if config.docker_tls {
        return Err("DOCKER_TLS or DOCKER_TLS_VERIFY is set".to_owned());
    }
    if let Some(host) = set(&config.docker_host) {
        return parse_host(&host, "DOCKER_HOST");
    }
    let context = match (set(&config.docker_context), &config.config_dir) {
        (Some(name), _) => Some((name, "DOCKER_CONTEXT")),
        (None, Some(config_dir)) => current_context(config_dir)?.map(|name| (name, "config.json")),
        (None, None) => return Err("no home directory with docker's config.json".to_owned()),
    };
    match context {
        Some((name, source)) if name != "default" => {
            let source = format!("context {name} of {source}");
            let host = context_host(config.config_dir.as_deref(), &name)
                .map_err(|why| format!("{source}: {why}"))?;
            parse_host(&host, &source)
        }
        _ => Ok(Socket {
            path: PathBuf::from(DEFAULT_SOCKET),
            source: "the default context".to_owned(),
        }),
    }
}

/// Parses a host as the command does: `unix://` without a path means the default socket.
fn parse_host(host: &str, source: &str) -> Result<Socket, String> {
    let path = match host.strip_prefix("unix://") {
        Some("") => DEFAULT_SOCKET,
        Some(path)
            if path.starts_with('/') && !path.contains("://") && !path.contains('\u{fffd}') =>
        {
            path
        }
        _ => return Err(format!("{source} is {}", excerpt(host))),
    };
    Ok(Socket {
        path: PathBuf::from(path),
        source: source.to_owned(),
    })
}

/// `currentContext` in the command's `config.json`; `None` if it is not set.
fn current_context(config_dir: &Path) -> Result<Option<String>, String> {
    let file = config_dir.join("config.json");
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
    };
    let invalid = |why: &str| format!("cannot parse {}: {why}", file.display());
    let config: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|error| invalid(&error.to_string()))?;
    match field(&config, "currentContext") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone()).filter(|name| !name.is_empty())),
        Some(_) => Err(invalid("currentContext is not a string")),
    }
}

/// The host of the context `name` in the command's context store.
fn context_host(config_dir: Option<&Path>, name: &str) -> Result<String, String> {
    let store = config_dir.ok_or("no home directory")?.join("contexts/meta");
    let entries = fs::read_dir(&store).map_err(|error| format!("{}: {error}", store.display()))?;
    for entry in entries.flatten() {
        let Ok(text) = fs::read(entry.path().join("meta.json")) else {
            continue;
        };
        let Ok(meta) = serde_json::from_slice::<Map<String, Value>>(&text) else {
            continue;
        };
        if field(&meta, "Name").and_then(Value::as_str) == Some(name) {
            return host_of(&meta).ok_or_else(|| "it has no host".to_owned());
        }
    }
    Err("context not found".to_owned())
}

fn host_of(meta: &Map<String, Value>) -> Option<String> {
    let endpoints = field(meta, "Endpoints")?.as_object()?;
    let endpoint = endpoints.get(DOCKER)?.as_object()?;
    let host = field(endpoint, "Host")?.as_str()?;
    (!host.is_empty()).then(|| host.to_owned())
}

/// A field by name, ignoring the case, as Go reads JSON.
fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let same = |(key, _): &(&String, &Value)| key.eq_ignore_ascii_case(name);
    object.iter().find(same).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
