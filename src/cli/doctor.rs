//! `stacklift doctor`: checks everything that the other commands need. Reads only, and leaves no file behind.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;

use super::{
    Common, Console, Ended,
    arguments::{DoctorArguments, Output},
    peers as clients,
    settings::{Settings, Sourced},
};
use crate::{
    compose,
    parallel::side_by_side,
    report::{Check, DoctorReport, Status, Subject, VERSION},
};

mod here;
mod peers;
mod text;

use peers::Received;

/// The time limit for each request, so that the command ends even if nothing responds.
const LIMIT: Duration = Duration::from_secs(5);

/// What is not checked if a setting is invalid.
const NEED_SETTINGS: [Subject; 8] = [
    Subject::Engine,
    Subject::Compose,
    Subject::Portainer,
    Subject::Tls,
    Subject::ApiKey,
    Subject::User,
    Subject::Environment,
    Subject::StacksRoot,
];

pub(super) fn run(
    arguments: &DoctorArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    console.waiting("checking the settings, Portainer and the engine");
    let checks = checks(common, console);
    console.done();
    let report = DoctorReport {
        version: VERSION,
        checks,
    };
    match arguments.output {
        Output::Text => text::show(&report, console),
        Output::Json => console.json(&report)?,
    }
    let mut checks = report.checks.iter();
    if checks.any(|check| check.status == Status::Failed) {
        return Err(Ended::Verdict(1));
    }
    Ok(())
}

fn checks(common: &Common, console: &Arc<Console>) -> Vec<Check> {
    let common = Common {
        dir: None,
        ..common.clone()
    };
    let sourced = Sourced::load(&common);
    let mut checks = here::settings(&sourced);
    let Ok(settings) = sourced.settings else {
        let reason = "the settings are invalid";
        checks.extend(NEED_SETTINGS.map(|subject| Check::not_checked(subject, reason)));
        checks.push(here::state_dir());
        checks.push(Check::not_checked(Subject::Clock, reason));
        return checks;
    };
    checks.extend(with_settings(settings, console));
    checks
}

/// Asks the engine, the Compose program and Portainer at the same time.
fn with_settings(settings: Settings, console: &Arc<Console>) -> Vec<Check> {
    let (key, api_key) = here::api_key(&settings);
    if let Some(key) = &key {
        console.hide(key);
    }
    let has_key = key.is_some();
    let settings = Settings {
        timeout: settings.timeout.min(LIMIT),
        ..settings
    };
    let compose = compose::Host::new(&settings.location.tool, console.trace());
    let engine = clients::engine(&settings, console);
    let reader = engine.reader();
    // Portainer's status needs no key.
    let client = clients::portainer_as_pinned(&settings, key.unwrap_or_default(), console);
    let (client, no_client) = match client {
        Ok(client) => (Some(client), None),
        Err(error) => (None, Some(error)),
    };
    let portainer = client.as_ref().map(|client| client.reader());
    let settings = &settings;
    let of_engine = || {
        let about = Received::by(|| reader.about());
        (peers::engine(reader, &about), about)
    };
    let of_compose = || here::compose(&compose, &settings.location.tool);
    let status = || {
        Received::by(|| match portainer {
            Some(portainer) => portainer.status(),
            None => Err(no_client.context("there is no client for Portainer")?),
        })
    };
    let (status, (compose, (engine, about))) =
        side_by_side(status, || side_by_side(of_compose, of_engine));
    let with_key = match portainer {
        Some(portainer) if has_key && status.known().is_some() => {
            peers::with_key((portainer, reader), settings, about.known())
        }
        _ => {
            let reason = if has_key {
                "Portainer could not be read"
            } else {
                "there is no API key"
            };
            [Subject::User, Subject::Environment].map(|one| Check::not_checked(one, reason))
        }
    };
    let mut checks = vec![
        engine,
        compose,
        peers::portainer(settings, &status),
        peers::tls(settings, &status),
        api_key,
    ];
    checks.extend(with_key);
    checks.extend([
        here::stacks_root(&settings.location),
        here::state_dir(),
        peers::clock(&status, &about),
    ]);
    checks
}
