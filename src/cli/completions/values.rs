//! The values of an argument that can be completed.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use clap::{Arg, builder::StyledStr};

use crate::{
    cli::{
        arguments::Common,
        options, peers,
        settings::{Settings, state_folder},
    },
    snapshot,
    stack::{EXAMPLES, Location, Stack, StackName, stack_dir},
    text::needs_escaping,
};

/// A completion of a word.
pub(super) struct Candidate {
    /// The whole word, without quotes.
    pub(super) value: String,
    /// One line that describes it, or nothing.
    pub(super) about: String,
}

/// The values that stand before the word, by the ID of their argument.
pub(super) type Given = BTreeMap<String, String>;

impl Candidate {
    /// A candidate that the first line of a help describes.
    pub(super) fn new(value: impl Into<String>, help: Option<&StyledStr>) -> Self {
        let about = help.map(ToString::to_string).unwrap_or_default();
        let line = about.lines().next().unwrap_or_default();
        // The help of a setting ends with its variable and its default.
        let (about, _) = line.split_once(" [").unwrap_or((line, ""));
        Self {
            value: value.into(),
            about: about.to_owned(),
        }
    }
}

/// The values of `arg` of a command, given the values before it.
pub(super) fn of(arg: &Arg, command: &str, given: &Given) -> Vec<Candidate> {
    let values = match (command, arg.get_id().as_str()) {
        ("rehearse", "stack") if !has_root(given) => EXAMPLES.map(str::to_owned).to_vec(),
        ("restore", "stack") => with_snapshots(given),
        (_, "stack") => settings(given).map_or(Vec::new(), |settings| stacks(&settings.location)),
        (_, "to") => snapshots(given).unwrap_or_default(),
        (_, "file") => compose_files(given).unwrap_or_default(),
        (_, "tls") => ["off", "system"].map(str::to_owned).to_vec(),
        (_, "tool") => ["docker", "podman"].map(str::to_owned).to_vec(),
        _ => {
            let values = arg.get_possible_values().into_iter();
            let shown = values.filter(|value| !value.is_hide_set());
            return shown
                .map(|value| Candidate::new(value.get_name(), value.get_help()))
                .collect();
        }
    };
    // A shell would print the characters of a name as they are.
    let safe = values
        .into_iter()
        .filter(|one| !one.contains(needs_escaping));
    safe.map(|value| Candidate::new(value, None)).collect()
}

/// Whether `rehearse` would look for the user's own stacks.
fn has_root(given: &Given) -> bool {
    given.contains_key("stacks_root") || Settings::stacks_root_variable().is_some()
}

/// The settings, with those that the line gives and that decide where stacks and snapshots are.
fn settings(given: &Given) -> Option<Settings> {
    // The shell has not expanded the line yet.
    let expanded = |path: &String| match (path.strip_prefix("~/"), env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(path),
    };
    let path = |id| given.get(id).map(expanded);
    let flags = Common {
        stacks_root: path("stacks_root"),
        dir: path("dir"),
        file: given.get("file").cloned(),
        tool: given.get("tool").cloned(),
        ..Common::default()
    };
    Settings::load(&flags).ok()
}

/// The directories in the stacks root that have a Compose file.
fn stacks(at: &Location) -> Vec<String> {
    let at = Location {
        dir: None,
        ..at.clone()
    };
    let entries = fs::read_dir(&at.root).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| StackName::new(&entry.file_name()).ok());
    let stacks = names.filter_map(|name| Stack::find_like_compose(name, &at).ok());
    let mut names: Vec<String> = stacks
        .map(|stack| stack.name().as_str().to_owned())
        .collect();
    names.sort();
    names
}

/// The stacks, and the projects that have only snapshots.
fn with_snapshots(given: &Given) -> Vec<String> {
    let settings = settings(given);
    let mut names = settings.map_or(Vec::new(), |settings| stacks(&settings.location));
    let known: Vec<String> = names
        .iter()
        .filter_map(|name| Some(StackName::new(OsStr::new(name)).ok()?.portainer_name()))
        .collect();
    let state = state_folder().ok();
    let projects = state.map_or_else(Default::default, |state| snapshot::projects(&state));
    names.extend(projects.into_iter().filter(|name| !known.contains(name)));
    names
}

/// The IDs of a stack's snapshots on every engine, newest first.
fn snapshots(given: &Given) -> Option<Vec<String>> {
    let name = StackName::new(OsStr::new(given.get("stack")?)).ok()?;
    let place = peers::place(state_folder().ok()?, &settings(given)?, &name).ok()?;
    let mut ids = place.open(None).ids().ok()?;
    ids.reverse();
    Some(ids)
}

/// The YAML files in the stack's directory.
fn compose_files(given: &Given) -> Option<Vec<String>> {
    let name = StackName::new(OsStr::new(given.get("stack")?)).ok()?;
    let dir = stack_dir(&name, &settings(given)?.location).ok()?;
    let entries = fs::read_dir(dir).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_yaml = |name: &String| {
        let extension = Path::new(name).extension();
        let is_yaml = extension.is_some_and(|extension| extension == "yml" || extension == "yaml");
        is_yaml && options::plain_name(name).is_ok()
    };
    let mut names: Vec<String> = names.filter(is_yaml).collect();
    names.sort();
    Some(names)
}
