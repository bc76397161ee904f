//! `stacklift restore <STACK>`: brings back what ran before a run.

use std::{path::Path, sync::Arc};

use anyhow::Result;

use super::{
    Common, Console, Ended, RestoreArguments,
    interrupt::Interrupt,
    peers,
    settings::{KeySource, Settings, state_folder},
};
use crate::{
    failure::Failure,
    portainer::BaseUrl,
    restore::{self, Event, RecordStep, Restore},
    snapshot::{Key, Known, Saved, Store},
    stack::{Location, Lock, StackName, lock_dir, stack_dir},
};

pub(super) fn run(
    arguments: &RestoreArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    let name = StackName::new(&arguments.stack)?;
    let key = if arguments.list {
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
    let Some(key) = key else {
        return Ok(list(&name, &store, console)?);
    };
    let key = key.read()?;
    console.hide(&key);
    let _lock = lock(&name, &settings.location)?;
    let saved = choose(&name, &store, arguments.to.as_deref())?;
    let (manager, engine) = peers::open(&settings, key, console)?;
    let restore = Restore {
        saved: &saved,
        manager: &manager,
        engine: &engine,
    };
    let interrupt = Interrupt::watch(console, name.as_str());
    let mut say = |event: Event| {
        if let Event::Touched(state) = event {
            interrupt.note(state.to_owned(), None);
        }
        show(console, &event);
    };
    restore::run(&restore, &mut say).map_err(Ended::Restore)
}

/// Where the snapshots of a stack lie.
pub(super) fn store(
    name: &StackName,
    at: &Location,
    base_url: &BaseUrl,
    endpoint: i64,
) -> Result<Store> {
    let dir = stack_dir(name, at)?;
    Ok(store_at(&state_folder()?, name, &dir, base_url, endpoint))
}

/// The same below a state folder of one's own.
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

/// The lock of the stack's directory, where it is still there.
fn lock(name: &StackName, at: &Location) -> Result<Option<Lock>> {
    let dir = stack_dir(name, at)?;
    if dir.is_dir() {
        lock_dir(name, &dir).map(Some)
    } else {
        Ok(None)
    }
}

fn choose(name: &StackName, store: &Store, id: Option<&str>) -> Result<Saved> {
    if let Some(id) = id {
        return store.load(id);
    }
    match store.ids()?.last() {
        Some(newest) => store.load(newest),
        None => Err(Failure::new(format!(
            "there is no snapshot of the stack {name} in {}",
            store.folder().display()
        ))
        .hint("a snapshot is taken by each run that has something to destroy, and is known by the stack's directory, the base URL and the endpoint: give the same ones")
        .into()),
    }
}

fn list(name: &StackName, store: &Store, console: &Console) -> Result<()> {
    let ids = store.ids()?;
    if ids.is_empty() {
        choose(name, store, None)?;
    }
    let mut rows = vec![
        ["Id", "Taken", "By", "Containers", "Record"]
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
            // One that cannot be read does not hide the others.
            Err(error) => vec![id, format!("{error:#}")],
        };
        rows.push(row);
    }
    console.table(rows);
    Ok(())
}

/// Prints what a restore says.
pub(super) fn show(console: &Console, event: &Event) {
    if matches!(event, Event::Touched(_)) {
        return;
    }
    console.done();
    match event {
        Event::Touched(_) => {}
        Event::Banner(saved) => console.step(
            "restore",
            &format!(
                "{} from the snapshot {}, taken before a run of {}",
                saved.snapshot.stack, saved.id, saved.snapshot.command
            ),
        ),
        Event::Warning(text) => console.warning(text),
        Event::Plan {
            record,
            containers,
            names,
        } => {
            console.step("plan", &record_words(record));
            let stay = containers.keep.len();
            let removed: Vec<&str> = containers
                .remove
                .iter()
                .map(|(_, name)| name.as_str())
                .collect();
            if !removed.is_empty() {
                console.step("plan", &format!("remove {}", removed.join(", ")));
            }
            if !names.is_empty() {
                console.step("plan", &format!("make again {}", names.join(", ")));
            }
            if stay > 0 {
                console.step(
                    "plan",
                    &format!("{stay} of the containers are there as they were"),
                );
            }
            if matches!(record, RecordStep::Delete(_)) {
                console.warning(
                    "deleting the record takes the stack's containers down: the stack is out until they are brought back",
                );
            }
        }
        Event::Lost(lost) => {
            let lines: Vec<_> = lost.iter().map(|what| format!("  - {what}")).collect();
            console.warning(&format!(
                "this cannot be brought back:\n{}",
                lines.join("\n")
            ));
        }
        Event::Step(verb, about) => console.step(verb, about),
        Event::Waiting(what) => console.waiting(what),
        Event::Verified {
            containers,
            running,
        } => console.step(
            "verified",
            &format!("{containers} containers are as they were, {running} of them running"),
        ),
    }
}

fn record_words(record: &RecordStep) -> String {
    match record {
        RecordStep::Nothing => "the manager is as it was".to_owned(),
        RecordStep::Unknown => "the manager is left as it is: what it had is not known".to_owned(),
        RecordStep::Delete(record) => format!("delete record {} at the manager", record.id),
        RecordStep::Update(record, _) => {
            format!(
                "give record {} at the manager its text and variables back",
                record.id
            )
        }
        RecordStep::Create(_) => "make the record at the manager again".to_owned(),
    }
}
