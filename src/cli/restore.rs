//! `stacklift restore <STACK>`: restores the containers that ran before a run.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use secrecy::SecretString;

use super::{
    Common, Console, Ended, RestoreArguments,
    confirm::confirm,
    interrupt::Interrupt,
    peers,
    settings::{KeySource, Settings, state_folder},
};
use crate::{
    portainer::BaseUrl,
    restore::{self, OnMissing, Restore, Scope},
    run::Event,
    snapshot::{Key, Known, Store},
    stack::{Location, StackName, stack_dir},
};

pub(super) fn run(
    arguments: &RestoreArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    let name = StackName::new(&arguments.stack)?;
    let key = if arguments.list || arguments.engine_only {
        None
    } else {
        Some(KeySource::from_env()?)
    };
    let settings = Settings::load(common)?;
    let store = store(
        &name,
        &settings.location,
        &settings.base_url,
        settings.endpoint,
    )?;
    if arguments.list {
        return Ok(list(&store, console)?);
    }
    let key = match key {
        Some(key) => key.read()?,
        // Nothing is sent to Portainer.
        None => SecretString::default(),
    };
    console.hide(&key);
    let dir = stack_dir(&name, &settings.location)?;
    let location = &settings.location;
    let file = location.file.clone();
    let file = file.unwrap_or_else(|| format!("{}-compose.yml", location.tool));
    let peers = peers::open(&settings, key, console)?;
    let restore = Restore {
        name: &name,
        dir: &dir,
        file: &file,
        base_url: &settings.base_url,
        peers: &peers,
        store: &store,
        snapshot: arguments.to.as_deref(),
        scope: if arguments.engine_only {
            Scope::EngineOnly
        } else {
            Scope::Everything
        },
        on_missing: if arguments.force {
            OnMissing::Continue
        } else {
            OnMissing::Stop
        },
        timeout: settings.timeout,
        confirm: &|question| confirm(console, arguments.yes, question),
    };
    let interrupt = Interrupt::watch(console);
    let mut listener = |event: Event| interrupt.show(&event);
    Ok(restore::run(&restore, &mut listener)?)
}

/// The snapshots of a stack.
pub(super) fn store(
    name: &StackName,
    at: &Location,
    base_url: &BaseUrl,
    endpoint: i64,
) -> Result<Store> {
    let dir = stack_dir(name, at)?;
    Ok(store_at(&state_folder()?, name, &dir, base_url, endpoint))
}

/// The snapshots of a stack below another state directory.
pub(super) fn store_at(
    state: &Path,
    name: &StackName,
    dir: &Path,
    base_url: &BaseUrl,
    endpoint: i64,
) -> Store {
    Store::new(
        state,
        &Key {
            name: name.as_str(),
            dir: &dir.to_string_lossy(),
            base_url: &base_url.to_string(),
            endpoint,
        },
    )
}

fn list(store: &Store, console: &Console) -> Result<()> {
    let ids = store.ids()?;
    if ids.is_empty() {
        store.choose(None)?;
    }
    let mut rows = vec![
        ["Id", "Taken", "By", "Containers", "Portainer stack"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for id in ids {
        let row = match store.load(&id) {
            Ok(saved) => {
                let snapshot = &saved.snapshot;
                let containers = match &snapshot.containers {
                    Known::Known(containers) => containers.len().to_string(),
                    Known::Unknown(_) => "unknown".to_owned(),
                };
                let record = match &snapshot.record {
                    Known::Known(Some(record)) => record.id.clone(),
                    Known::Known(None) => "none".to_owned(),
                    Known::Unknown(_) => "unknown".to_owned(),
                };
                vec![
                    id,
                    snapshot.taken.clone(),
                    snapshot.command.clone(),
                    containers,
                    record,
                ]
            }
            // An unreadable snapshot does not hide the others.
            Err(error) => vec![id, format!("{error:#}")],
        };
        rows.push(row);
    }
    console.table(rows);
    Ok(())
}
