//! `stacklift restore <STACK>`: restores the containers that ran before a run.

use std::{io::ErrorKind::PermissionDenied, time::Duration};

use anyhow::Result;

use super::{
    Cli, Console, Ended, RestoreArguments,
    confirm::consent,
    interrupt::Interrupt,
    opened::say_where,
    peers,
    settings::{KeySource, Settings, git_password, other_state_folders},
    table::plain,
};
use crate::{
    disk,
    failure::Failure,
    observe::with_hint,
    report::{SnapshotEntry, SnapshotState, SnapshotsReport, VERSION},
    restore::{self, Cause, Restore, Scope},
    run::{Event, Stopped},
    snapshot::{Place, Store},
    stack::{StackName, stack_dir},
    text::counted,
};

pub(super) fn run(arguments: &RestoreArguments, Cli { common, console }: Cli) -> Result<(), Ended> {
    let name = StackName::new(&arguments.stack)?;
    let needs_key = !arguments.list && !arguments.engine_only && !arguments.prune;
    let key = needs_key.then(|| KeySource::find(common)).transpose()?;
    let settings = Settings::load(common)?;
    let setup = peers::setup(&settings, &name)?;
    if arguments.list {
        let engine = peers::engine(&settings, console);
        if let Err(error) = engine.refuse_podman() {
            console.warning(&with_hint(&error));
        }
        let store = setup.store(&engine);
        warn_of_other_users(store, &name, console);
        let list = list(store, &name, console)?;
        let command = settings.typed.with(&["restore", name.as_str()]);
        return Ok(console.result(arguments.output, &list, |list, console| {
            show(list, &command, console);
        })?);
    }
    if arguments.prune {
        let dir = stack_dir(&name, &settings.location)?;
        let _lock = setup.lock(&dir)?;
        let store = setup.store(&peers::engine(&settings, console));
        return Ok(prune(store, &name, arguments.yes, console).map_err(Stopped::untouched)?);
    }
    let key = key.map(KeySource::read).transpose()?;
    let interrupt = Interrupt::watch(console);
    if let Some(key) = &key {
        console.hide(key);
    }
    let peers = peers::open(&settings, key, console)?;
    let to = arguments.to.as_deref();
    let mut dir = stack_dir(&name, &settings.location)?;
    if settings.location.dir.is_none() && !disk::is_dir(&dir) {
        // The one in which the snapshot was taken. The restore says why there is no such snapshot.
        let saved = setup.store(peers.readers().1).choose(to);
        dir = saved.map_or(dir, |saved| saved.snapshot.dir.into());
    }
    say_where(&name, &dir, &settings.location, console);
    let question = |question: &str| console.ask(question);
    let restore = Restore {
        name: &name,
        dir: &dir,
        file: settings.location.file.as_deref(),
        snapshot: to,
        scope: if arguments.engine_only {
            Scope::EngineOnly
        } else {
            Scope::Everything
        },
        force: arguments.force,
        unhealthy: Duration::ZERO,
        consent: consent(arguments.yes, &question),
        cause: Cause::Wanted,
        git_password: git_password()?,
        dry_run: arguments.dry_run,
    };
    let mut listener = |event: Event| interrupt.show(&event);
    let ended = restore::run(&restore, &peers, &setup, &mut listener);
    if let (Err(_), Some(store)) = (&ended, setup.opened_store()) {
        warn_of_other_users(store, &name, console);
    }
    let has_changes = ended?;
    if arguments.dry_run && has_changes {
        let mut words = vec!["restore", name.as_str()];
        words.extend(to.into_iter().flat_map(|to| ["--to", to]));
        words.extend(arguments.engine_only.then_some("--engine-only"));
        words.extend(arguments.force.then_some("--force"));
        console.next(&settings.typed.with(&words));
    }
    Ok(())
}

/// Names the snapshots in the state directories of other users, if there is none in the own one (B40).
fn warn_of_other_users(store: &Store, name: &StackName, console: &Console) {
    if !store.ids().is_ok_and(|ids| ids.is_empty()) {
        return;
    }
    for (owner, folder) in other_state_folders() {
        let found = Place::new(&folder, name.as_str()).has_snapshots();
        let may_have = match found {
            Ok(true) => "has",
            // A home may be closed to others.
            Err(error)
                if error.kind() == PermissionDenied
                    && (folder.starts_with("/home") || disk::is_dir(&folder)) =>
            {
                "may have"
            }
            _ => continue,
        };
        let folder = folder.display();
        console.warning(&match owner {
            Some(user) => format!(
                "{user} {may_have} snapshots of {name} in {folder}: to use them, run the command as {user}"
            ),
            None => format!(
                "there are snapshots of {name} in {folder}: to use them, unset STACKLIFT_STATE_DIR"
            ),
        });
    }
}

/// Removes the snapshots that nobody needs, after a question.
fn prune(store: &Store, name: &StackName, yes: bool, console: &Console) -> Result<()> {
    if store.is_unfinished() || !store.unanswered()?.is_empty() {
        let what = format!("the last run on {name} failed, or did not finish");
        let hint = "run the command that `stacklift list` shows first: it may need a snapshot";
        return Err(Failure::new(what).hint(hint).into());
    }
    ids_of(store)?;
    let old = store.unneeded()?;
    if old.is_empty() {
        console.note(&format!("no snapshot of {name} can be removed"));
        return Ok(());
    }
    let what = format!("{} of {name}", counted(old.len(), "snapshot"));
    let question = |question: &str| console.ask(question);
    let kept =
        "stacklift keeps the newest, the first and the last complete one, and those of restores";
    consent(yes, &question).require(&format!("remove {what}"), Some(kept))?;
    old.iter().try_for_each(|id| store.remove(id))?;
    console.outcome("removed", &what);
    Ok(())
}

/// The IDs of the snapshots, the oldest first. Fails if there is none.
fn ids_of(store: &Store) -> Result<Vec<String>> {
    let ids = store.ids()?;
    if ids.is_empty() {
        store.choose(None)?;
    }
    Ok(ids)
}

fn list(store: &Store, name: &StackName, console: &Console) -> Result<SnapshotsReport> {
    for unanswered in store.unanswered()? {
        console.warning(&format!(
            "an interrupted run was {}: Portainer may still be working on it",
            unanswered.request.doing()
        ));
    }
    let ids = ids_of(store)?;
    // The entry of one that cannot be read says why.
    let default = store.default_id().ok().flatten();
    let entry = |id: String| {
        let saved = store.load(&id);
        let saved = saved.map_err(|error| console.warning(&format!("{error:#}")));
        let snapshot = saved.as_ref().ok().map(|saved| &saved.snapshot);
        let record = snapshot.and_then(|snapshot| snapshot.record.known());
        let containers = snapshot.and_then(|snapshot| snapshot.containers.known());
        SnapshotEntry {
            size: store
                .path(&id)
                .and_then(|path| Some(disk::metadata(&path).ok()?.len())),
            command: snapshot.map(|snapshot| snapshot.command.clone()),
            containers: containers.map(Vec::len),
            portainer_known: match record {
                Some(Some(_)) => true,
                Some(None) => snapshot.is_some_and(|snapshot| !snapshot.may_be_unseen),
                None => false,
            },
            portainer_stack: record.and_then(|record| Some(record.as_ref()?.id.clone())),
            state: match snapshot.map(|snapshot| snapshot.ran_whole) {
                None => SnapshotState::Unreadable,
                Some(_) if default.as_ref() == Some(&id) => SnapshotState::Default,
                Some(Some(true)) => SnapshotState::Complete,
                Some(Some(false)) => SnapshotState::Incomplete,
                Some(None) => SnapshotState::Unknown,
            },
            id,
        }
    };
    Ok(SnapshotsReport {
        version: VERSION,
        stack: name.as_str().to_owned(),
        snapshots: ids.into_iter().rev().map(entry).collect(),
    })
}

/// The width of a terminal that has room for the sizes of snapshots.
const WITH_SIZE: usize = 80;

fn show(list: &SnapshotsReport, command: &str, console: &Console) {
    let unknown = || "unknown".to_owned();
    // The other columns help more to choose a snapshot.
    let shows_size = Console::width().is_none_or(|width| width >= WITH_SIZE);
    let row = |one: &SnapshotEntry| {
        let portainer = match &one.portainer_stack {
            Some(id) => id.clone(),
            None if one.portainer_known => "none".to_owned(),
            None => unknown(),
        };
        let state = match one.state {
            SnapshotState::Default => "default",
            SnapshotState::Complete => "complete",
            SnapshotState::Incomplete => "incomplete",
            SnapshotState::Unknown => "unknown",
            SnapshotState::Unreadable => "unreadable",
        };
        let size = one.size.map(|size| format!("{} KB", size.div_ceil(1000)));
        let first = [
            one.id.clone(),
            one.command.clone().unwrap_or_else(unknown),
            one.containers.map_or_else(unknown, |all| all.to_string()),
            portainer,
        ];
        let size = shows_size.then(|| size.unwrap_or_else(unknown));
        plain(first.into_iter().chain(size).chain([state.to_owned()]))
    };
    let first = ["SNAPSHOT", "TAKEN BEFORE", "CONTAINERS", "STACK ID"].into_iter();
    let header = first.chain(shows_size.then_some("SIZE")).chain(["STATE"]);
    let header: Vec<&str> = header.collect();
    console.result_table(&header, list.snapshots.iter().map(row));
    let mut all = list.snapshots.iter();
    let what = if all.any(|snapshot| snapshot.state == SnapshotState::Default) {
        "restores the default snapshot; add --to SNAPSHOT for another"
    } else {
        "restores none by default: add --to SNAPSHOT"
    };
    console.note(&format!("`{command}` {what}. The names are times in UTC"));
}
