//! The manager and the engine that the settings name.

use std::sync::Arc;

use anyhow::Result;
use secrecy::SecretString;

use super::{console::Console, settings::Settings};
use crate::{
    engine::{self, Engine},
    portainer::{self, Portainer},
};

/// Prepares both; neither is talked to yet.
pub(super) fn open(
    settings: &Settings,
    key: SecretString,
    console: &Arc<Console>,
) -> Result<(Portainer, Engine)> {
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
    Ok((manager, Engine::open(engine.within(settings.timeout))))
}
