//! The checks of this host: settings, API key, Compose program, stacks root and state directory.

use std::{collections::BTreeMap, fs};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use secrecy::SecretString;

use crate::{
    cli::settings::{API_KEY, KeySource, Settings, Sourced, api_key_is_given, state_folder},
    compose, disk,
    engine::EngineReader,
    finding::Finding,
    observe::interrupted,
    parallel::in_parallel,
    report::Check,
    snapshot::{self, Interrupted, Place, check_state_dir},
    stack::Location,
    text::counted,
};

const CONFIG_INIT: &str = "run stacklift config init";

/// The settings files that were read, or everything that is invalid.
pub(super) fn settings(sourced: &Sourced) -> Vec<Check> {
    let subject = "settings";
    let files = sourced.files.iter().filter_map(|file| file.error.as_ref());
    let settings = sourced
        .entries
        .iter()
        .filter_map(|entry| entry.error.as_ref());
    let check = |problem: &Finding| {
        let otherwise = "to see every setting, run `stacklift config`";
        Check::of(subject, problem.clone(), otherwise)
    };
    let problems: Vec<Check> = files.chain(settings).map(check).collect();
    if !problems.is_empty() {
        return problems;
    }
    let read = sourced.files.iter().filter(|file| file.exists);
    let read: Vec<&str> = read.map(|file| file.path.as_str()).collect();
    let fact = match read.as_slice() {
        [] => "no settings file".to_owned(),
        read => format!("read {}", read.join(", ")),
    };
    vec![Check::ok(subject, fact)]
}

/// The API key, if it can be read, and where it comes from.
pub(super) fn api_key(settings: &Settings) -> (Option<SecretString>, Check) {
    let subject = "API key";
    if !api_key_is_given() && settings.api_key_file.is_none() {
        let hint = format!("{CONFIG_INIT}, or set {API_KEY}");
        return (None, Check::failed(subject, "there is none", hint));
    }
    let read = KeySource::of(settings.api_key_file.as_deref()).and_then(|source| {
        let from = match &source {
            KeySource::Given(_) => format!("from {API_KEY}"),
            KeySource::File(path) => format!("from the file {}", path.display()),
        };
        Ok((source.read()?, from))
    });
    match read {
        Ok((key, from)) => (Some(key), Check::ok(subject, from)),
        Err(error) => (None, Check::of_error(subject, &error, CONFIG_INIT)),
    }
}

/// The Compose program. Runs it to read its version.
pub(super) fn compose(host: &compose::Installation) -> Check {
    match host.compose() {
        Ok(program) => Check::ok("Compose", program.name()),
        Err(error) => Check::of_error("Compose", &error, ""),
    }
}

/// Whether the stacks root can be read, and how many of its directories contain a Compose file.
pub(super) fn stacks_root(at: &Location) -> Check {
    let subject = "stacks root";
    let hint = format!(
        "{CONFIG_INIT}, or set --stacks-root to the directory that contains the stack directories"
    );
    let root = std::path::absolute(&at.root).unwrap_or_else(|_| at.root.clone());
    let shown = root.display();
    let dirs = match disk::entries(&root) {
        Ok(dirs) => dirs,
        Err(error) => return Check::failed(subject, format!("cannot read {shown}: {error}"), hint),
    };
    let found = in_parallel(&dirs, |dir| at.has_file(dir));
    let count = found.into_iter().filter(|found| *found).count();
    let with_file = counted(count, "directory");
    let fact = format!("{shown}: {with_file} with a Compose file");
    match count {
        0 => Check::warning(subject, fact, hint),
        _ => Check::ok(subject, fact),
    }
}

/// Whether snapshots can be written, as far as modes and file systems tell. Writes nothing.
pub(super) fn state_dir() -> Check {
    let subject = "state directory";
    let hint = "set STACKLIFT_STATE_DIR to a directory that you can write to";
    let dir = match state_folder().and_then(|dir| check_state_dir(&dir).map(|()| dir)) {
        Ok(dir) => dir,
        Err(error) => return Check::of_error(subject, &error, hint),
    };
    let mut parents = dir.ancestors();
    let existing = parents.find(|parent| fs::symlink_metadata(parent).is_ok());
    let existing = existing.unwrap_or(&dir);
    let shown = existing.display();
    if !existing.is_dir() {
        return Check::failed(subject, format!("{shown} is not a directory"), hint);
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    if let Err(error) = accessat(CWD, existing, access, AtFlags::EACCESS) {
        let error = std::io::Error::from(error);
        return Check::failed(subject, format!("cannot write to {shown}: {error}"), hint);
    }
    if existing == dir {
        return Check::ok(subject, format!("{shown} (mode 0700)"));
    }
    let fact = format!("{} does not exist; the first run creates it", dir.display());
    Check::ok(subject, fact)
}

/// The stacks that a failed or interrupted run left, if there are any.
pub(super) fn runs(settings: &Settings, engine: &EngineReader) -> Option<Check> {
    let state = settings.state.as_ref()?;
    let mut left: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for name in snapshot::marked(state) {
        let Ok(containers) = engine.list(&name) else {
            let reason = "Docker could not be read";
            return Some(Check::not_checked("runs", reason));
        };
        let place = Place::new(state, &name);
        let tool = &settings.location.tool;
        if let Some(run) = interrupted(&place, engine, &containers, tool)
            && run.left != Interrupted::InProgress
        {
            let kind = if run.has_failed {
                "failed"
            } else {
                "interrupted"
            };
            left.entry(kind).or_default().push(place.name);
        }
    }
    let facts = left
        .iter()
        .map(|(kind, stacks)| format!("{kind}: {}", stacks.join(", ")));
    let fact = facts.collect::<Vec<_>>().join("; ");
    let hint = "to see what to do, run `stacklift list`";
    (!left.is_empty()).then(|| Check::warning("runs", fact, hint))
}
