//! Portainer and the engine, as the settings describe them.

use std::sync::Arc;

use anyhow::Result;
use secrecy::SecretString;

use super::{console::Console, settings::Settings};
use crate::{
    engine::{self, Engine},
    portainer::{self, Portainer},
    run::Peers,
};

/// Prepares both clients without sending a request.
pub(super) fn open(
    settings: &Settings,
    key: SecretString,
    console: &Arc<Console>,
) -> Result<Peers> {
    let trace = console.trace();
    let manager = Portainer::new(portainer::Options {
        base_url: settings.base_url.clone(),
        key,
        tls: settings.tls.clone(),
        timeout: settings.timeout,
        trace: trace.clone(),
    })?;
    let engine = engine::Options::new(
        &settings.location.tool,
        settings.engine,
        engine::ClientConfig::from_env(),
        trace,
    );
    let engine = Engine::open(engine.within(settings.timeout));
    Ok(Peers::new(manager, engine))
}
