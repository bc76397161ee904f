//! The values of an argument that can be completed.

use std::{env, ffi::OsString, fs, iter, path::Path};

use rehearsal::seed;

use crate::{
    cli::{
        arguments::{self, Common},
        options,
        settings::{Settings, state_folder},
    },
    model::portainer_name,
    snapshot::{self, Place},
    stack::{Location, Stack, StackName, stack_dir},
};

/// What stands before the word.
pub(super) struct Given {
    stack: Option<OsString>,
    common: Common,
}

impl Given {
    /// Reads the words after the program's name, as far as they can be understood.
    pub(super) fn read(words: &[OsString]) -> Self {
        let lenient = arguments::command().ignore_errors(true);
        let line = iter::once("stacklift".into()).chain(words.iter().cloned());
        let matches = lenient.try_get_matches_from(line).unwrap_or_default();
        let matches = matches.subcommand().map_or(&matches, |(_, own)| own);
        let one = |id| matches.try_get_one::<OsString>(id).ok().flatten();
        // `help` has no flags.
        let has_flags = matches.try_contains_id("dir").is_ok();
        let common = has_flags.then(|| Common::of(matches));
        let mut common = common.and_then(Result::ok).unwrap_or_default();
        // The shell has not expanded the line yet.
        let expand = |path: &Path| Some(env::home_dir()?.join(path.strip_prefix("~").ok()?));
        for (_, value) in &mut common.typed {
            if let Some(path) = expand(Path::new(value)) {
                *value = path.into();
            }
        }
        if let Some(path) = common.dir.as_deref().and_then(expand) {
            common.dir = Some(path);
        }
        Self {
            stack: one("stack").or(one("stacks")).cloned(),
            common,
        }
    }

    fn settings(&self) -> Option<Settings> {
        Settings::load(&self.common).ok()
    }

    fn stack(&self) -> Option<StackName> {
        StackName::new(self.stack.as_deref()?).ok()
    }
}

/// The values of an argument of a command. `None` if its definition says what they are.
pub(super) fn of(command: &str, arg: &str, given: &Given) -> Option<Vec<String>> {
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Some(match (command, arg) {
        ("rehearse", "stack") if stacks(given).is_empty() => of(&seed::names()),
        ("restore", "stack") => with_others(given, |_| true),
        // The bare form is easily run by mistake.
        ("stacklift", "stack") => Vec::new(),
        (_, "stack" | "stacks" | "exclude") => with_others(given, |place| {
            let dir = place.open(None).last_sent().dir;
            dir.is_some_and(|dir| Path::new(&dir).is_dir())
        }),
        ("restore", "to") => snapshots(given).unwrap_or_default(),
        (_, "file") => compose_files(given).unwrap_or_default(),
        (_, "endpoint") => of(&["auto"]),
        (_, "tool") => of(&["docker"]),
        _ => return None,
    })
}

/// The directories in the stacks root that have a Compose file.
fn stacks(given: &Given) -> Vec<String> {
    let Some(settings) = given.settings() else {
        return Vec::new();
    };
    let at = Location {
        dir: None,
        ..settings.location
    };
    let entries = fs::read_dir(&at.root).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| StackName::new(&entry.file_name()).ok());
    let stacks = names.filter_map(|name| Stack::find_like_compose(name, &at).ok());
    let mut names: Vec<String> = stacks.map(|stack| stack.name().to_string()).collect();
    names.sort();
    names
}

/// The stacks, and such projects that have only snapshots, such as a stack outside of the stacks root.
fn with_others(given: &Given, is_such: impl Fn(&Place) -> bool) -> Vec<String> {
    let mut names = stacks(given);
    let Ok(state) = state_folder() else {
        return names;
    };
    let mut others = snapshot::projects(&state);
    for name in &names {
        others.remove(&portainer_name(name));
    }
    others.retain(|name| is_such(&Place::new(&state, name)));
    names.extend(others);
    names
}

/// The IDs of a stack's snapshots on every engine, newest first.
fn snapshots(given: &Given) -> Option<Vec<String>> {
    let place = Place::new(&state_folder().ok()?, given.stack()?.as_str());
    let mut ids = place.open(None).ids().ok()?;
    ids.reverse();
    Some(ids)
}

/// The YAML files in the stack's directory.
fn compose_files(given: &Given) -> Option<Vec<String>> {
    let dir = stack_dir(&given.stack()?, &given.settings()?.location).ok()?;
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
