//! Portainer, the engine and the store, as the settings describe them.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use secrecy::SecretString;

use super::{
    certificate,
    console::Console,
    settings::{
        Settings, api_key_is_given, given_state_folder, read_secret, state_folder, system_file,
        user_file,
    },
};
use crate::{
    engine::{self, Engine},
    failure::Failure,
    observe::Environments,
    portainer::{self, Headers, Portainer},
    run::{Peers, RestoreCommand, Setup},
    snapshot::Place,
    stack::StackName,
};

/// The variables that decide which engine is reached.
const OF_ENGINE: [&str; 6] = [
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS",
    "DOCKER_TLS_VERIFY",
];

/// Prepares both clients without sending a request. Without a key, the run sends nothing to Portainer.
pub(super) fn open(
    settings: &Settings,
    key: Option<SecretString>,
    console: &Arc<Console>,
) -> Result<Peers> {
    let portainer = match key {
        Some(key) => portainer(settings, key, true, console)?,
        None => Portainer::new(portainer::ClientOptions {
            tls: portainer::Tls::Off,
            ..unpinned(settings, SecretString::default(), console)
        })?,
    };
    Ok(Peers::new(portainer, engine(settings, console)))
}

/// The client of Portainer, without a request. If `--tls pin` needs it, asks whether to trust its certificate, or fails if it
/// must not ask.
pub(super) fn portainer(
    settings: &Settings,
    key: SecretString,
    may_ask: bool,
    console: &Arc<Console>,
) -> Result<Portainer> {
    Portainer::new(portainer::ClientOptions {
        headers: headers(settings, console)?,
        pin: certificate::pinned(settings, may_ask.then_some(&**console))?,
        ..unpinned(settings, key, console)
    })
}

/// The headers of `--header-file`. Their values are masked from now on.
fn headers(settings: &Settings, console: &Console) -> Result<Headers> {
    let Some(path) = settings.header_file.as_deref() else {
        return Ok(Headers::default());
    };
    let hint = "write one header per line: Name: value; lines that start with # are comments";
    let text = read_secret("header file", path, hint)?;
    let headers: Headers = text.parse().map_err(|problem: String| {
        let path = path.display();
        Failure::new(format!("cannot parse the header file {path}: {problem}")).hint(hint)
    })?;
    console.hide_all(&headers.secrets());
    Ok(headers)
}

/// What a client of Portainer needs, without `--tls pin` and `--header-file`.
pub(super) fn unpinned(
    settings: &Settings,
    key: SecretString,
    console: &Arc<Console>,
) -> portainer::ClientOptions {
    portainer::ClientOptions {
        base_url: settings.base_url.clone(),
        key,
        tls: settings.tls.clone(),
        pin: None,
        headers: Headers::default(),
        timeout: settings.timeout,
        trace: console.trace(),
    }
}

/// The ID of the environment that was searched for. Says with `-v` which it is.
pub(super) fn found(search: &Environments, settings: &Settings, console: &Console) -> Result<i64> {
    let environment = search.found(&settings.base_url)?;
    console.detail(&format!("environment {environment} is this host"));
    for unread in search.unread() {
        console.note(&unread);
    }
    Ok(environment.id)
}

/// Warns if Portainer is on another host and its certificate is not verified.
pub(super) fn warn_about_tls(settings: &Settings, console: &Console) {
    if settings.tls == portainer::Tls::Off && !settings.base_url.is_loopback() {
        console.warning(&format!(
            "TLS verification is off for {}; to turn it on, pass --tls pin, or write this line to {}: tls = \"pin\"",
            settings.base_url,
            user_file().unwrap_or_else(system_file).display()
        ));
    }
}

/// The engine, without a request. `-v` shows how it is reached.
pub(super) fn engine(settings: &Settings, console: &Arc<Console>) -> Engine {
    let engine = Engine::open(engine::Options::new(
        &settings.location.tool,
        settings.engine,
        engine::ClientConfig::from_env(),
        settings.timeout,
        console.trace(),
    ));
    console.detail(&format!("engine: {}", engine.adapter()));
    engine
}

/// What a run on a stack needs besides its peers. Sends no request.
pub(super) fn setup(settings: &Settings, name: &StackName) -> Result<Setup> {
    Setup::new(
        Place::new(&state_folder()?, name.as_str()),
        settings.base_url.clone(),
        settings.timeout,
        command(settings, given_state_folder()?),
        settings.typed.clone(),
    )
}

/// The settings of the command that rolls back, each that is not the default (B14). It works from any directory.
fn command(settings: &Settings, state: Option<PathBuf>) -> RestoreCommand {
    let absolute = |path: &Path| {
        let absolute = std::path::absolute(path);
        OsString::from(absolute.unwrap_or_else(|_| path.to_owned()))
    };
    let at = &settings.location;
    let mut flags = Vec::new();
    for (key, value) in &settings.changed {
        let value = match (*key, settings.endpoint) {
            ("api-key-file", _) if api_key_is_given() => continue,
            // It is pinned by now.
            ("tls", _) if matches!(settings.tls, portainer::Tls::Pin(_)) => "pin".into(),
            // `auto` may find another one later.
            ("endpoint", Some(id)) => id.to_string().into(),
            _ => value.clone(),
        };
        flags.extend([format!("--{key}").into(), value]);
    }
    if let Some(dir) = &at.dir {
        flags.extend(["--dir".into(), absolute(dir)]);
    }
    if let Some(file) = &at.file {
        flags.extend(["--file".into(), file.into()]);
    }
    let state = state.map(|state| ("STACKLIFT_STATE_DIR", absolute(&state)));
    let engine = OF_ENGINE.iter().filter_map(|&name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some(match name {
            "DOCKER_CERT_PATH" | "DOCKER_CONFIG" => (name, absolute(Path::new(&value))),
            _ => (name, value),
        })
    });
    RestoreCommand {
        variables: state.into_iter().chain(engine).collect(),
        flags,
    }
}
