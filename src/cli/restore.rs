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
    observe::with_hint,
    restore::{self, Cause, Restore, Scope},
    snapshot::{Known, Place, Store},
    stack::{StackName, stack_dir},
};

pub(super) fn run(arguments: &RestoreArguments, Cli { common, console }: Cli) -> Result<(), Ended> {
    let name = StackName::new(&arguments.stack)?;
    let needs_key = !arguments.list && !arguments.engine_only;
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
        let what = match list(store, console)? {
            Default::Found => "restores the default snapshot; add --to SNAPSHOT for another",
            Default::Missing => "restores none by default: add --to SNAPSHOT",
        };
        let command = settings.typed.with(&["restore", name.as_str()]);
        console.note(&format!("`{command}` {what}. The names are times in UTC"));
        return Ok(());
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
        base_url: &settings.base_url,
        peers: &peers,
        setup: &setup,
        snapshot: to,
        scope: if arguments.engine_only {
            Scope::EngineOnly
        } else {
            Scope::Everything
        },
        force: arguments.force,
        timeout: settings.timeout,
        unhealthy: Duration::ZERO,
        consent: consent(arguments.yes, &question),
        cause: Cause::Wanted,
        git_password: git_password()?,
        dry_run: arguments.dry_run,
    };
    let ended = restore::run(&restore, &mut |event| interrupt.show(&event));
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

/// Whether a list of snapshots shows the one that a restore uses by default.
enum Default {
    Found,
    Missing,
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
            Err(error) if error.kind() == PermissionDenied && disk::is_dir(&folder) => "may have",
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

fn list(store: &Store, console: &Console) -> Result<Default> {
    for unanswered in store.unanswered()? {
        console.warning(&format!(
            "an interrupted run was {}: Portainer may still be working on it",
            unanswered.request.doing()
        ));
    }
    let ids = store.ids()?;
    if ids.is_empty() {
        store.choose(None)?;
    }
    // The row of one that cannot be read says why.
    let default = store.default_id().ok().flatten();
    let mut rows = Vec::new();
    for id in ids.into_iter().rev() {
        let [by, containers, record, state] = match store.load(&id) {
            Ok(saved) => {
                let snapshot = &saved.snapshot;
                let count = snapshot.containers.known().map(|all| all.len().to_string());
                let containers = count.as_deref().unwrap_or("unknown");
                let record: &str = match &snapshot.record {
                    Known::Known(Some(record)) => &record.id,
                    Known::Known(None) if !snapshot.may_be_unseen => "none",
                    Known::Known(None) | Known::Unknown(_) => "unknown",
                };
                let state = match snapshot.ran_whole {
                    _ if default.as_ref() == Some(&id) => "default",
                    Some(true) => "complete",
                    Some(false) => "incomplete",
                    None => "unknown",
                };
                [snapshot.command.as_str(), containers, record, state].map(str::to_owned)
            }
            // An unreadable snapshot does not hide the others.
            Err(error) => {
                console.warning(&format!("{error:#}"));
                ["unknown", "unknown", "unknown", "unreadable"].map(str::to_owned)
            }
        };
        rows.push(plain([id, by, containers, record, state]));
    }
    let header = ["SNAPSHOT", "BEFORE", "CONTAINERS", "PORTAINER", "STATE"];
    console.table(&header, rows);
    Ok(default.map_or(Default::Missing, |_| Default::Found))
}
