//! What a service gets from its env files.
#![deny(clippy::disallowed_methods)]

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    rc::Rc,
};

use composefile::{dotenv, interpolate::Lookup};

use super::{Blocker, Reason, listed::Listed, write::quoted};

/// YAML limits a key before its colon to 1024 characters, including quotes.
const LONGEST_KEY: usize = 1000;

/// How Compose looks up a variable that an env file refers to.
#[derive(Clone, Copy)]
enum Era {
    /// Up to 2.2x: in earlier env files, then in its own environment.
    Old,
    /// Since then: in its own environment, then in the service's `environment`.
    New,
}

/// `environment` of a service, interpolated; `None` is a name without a value.
pub(super) type Explicit = HashMap<String, Option<String>>;

/// Everything that the values of a service's files depend on.
pub(super) struct Sources<'a> {
    /// The existing files with their texts, in order.
    pub(super) files: &'a [(&'a Listed<'a>, &'a str)],
    pub(super) explicit: &'a Explicit,
    /// The variables of Compose's own environment.
    pub(super) here: Lookup<'a>,
}

/// A file that Compose cannot parse.
struct Unreadable {
    /// Its index in [`Sources::files`].
    file: usize,
    message: String,
    hint: &'static str,
}

/// The values that a service gets from its files.
#[derive(Default)]
pub(super) struct Reading {
    /// Sorted by name.
    pub(super) values: Rc<[(String, String)]>,
    /// Names whose value depends on the Compose version.
    version_dependent: BTreeSet<String>,
    unreadable: Option<Unreadable>,
    /// The variables that the files refer to. The reading is right for every service that sets none of them.
    asked: RefCell<HashSet<String>>,
}

impl Reading {
    /// Whether the files give nothing and block nothing, whatever the service sets itself.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
            && self.version_dependent.is_empty()
            && self.unreadable.is_none()
            && self.asked.borrow().is_empty()
    }

    pub(super) fn is_right_for(&self, explicit: &Explicit) -> bool {
        let asked = self.asked.borrow();
        !explicit.keys().any(|name| asked.contains(name))
    }

    /// The values of the files, without the names that the service sets itself. Fails if Compose cannot parse a
    /// file, or if a value depends on the Compose version.
    pub(super) fn for_service(
        &self,
        sources: &Sources<'_>,
    ) -> Result<Rc<[(String, String)]>, Blocker> {
        if let Some(unreadable) = &self.unreadable {
            let (listed, _) = sources.files[unreadable.file];
            return Err(Blocker::at(
                listed.path,
                Reason::BadEnvFile,
                unreadable.message.clone(),
                unreadable.hint,
            ));
        }
        let is_named = |name: &String| sources.explicit.contains_key(name);
        if let Some(name) = self.version_dependent.iter().find(|&name| !is_named(name)) {
            let message = format!(
                "the value of {name} depends on the Compose version: its env file refers to a variable that is set in two places"
            );
            let hint = format!("set {name} in `environment`");
            let (listed, _) = sources.files[0];
            let reason = Reason::VersionDependent;
            return Err(Blocker::at(listed.path, reason, message, hint));
        }
        if !self.values.iter().any(|(name, _)| is_named(name)) {
            return Ok(Rc::clone(&self.values));
        }
        let values = self.values.iter();
        Ok(values
            .filter(|(name, _)| !is_named(name))
            .cloned()
            .collect())
    }
}

/// Reads env files as both eras of Compose do.
pub(super) fn variables(sources: &Sources<'_>) -> Reading {
    let mut reading = Reading::default();
    let eras = [Era::Old, Era::New].map(|era| read_in(era, sources, &reading.asked));
    let (old, new) = match eras {
        [Ok(old), Ok(new)] => (old, new),
        [Err(error), _] | [_, Err(error)] => {
            reading.unreadable = Some(error);
            return reading;
        }
    };
    let differs = |name: &&String| old.get(*name) != new.get(*name);
    let names = old.keys().chain(new.keys());
    reading.version_dependent = names.filter(differs).cloned().collect();
    reading.values = old.into_iter().collect();
    reading
}

fn read_in(
    era: Era,
    sources: &Sources<'_>,
    asked: &RefCell<HashSet<String>>,
) -> Result<BTreeMap<String, String>, Unreadable> {
    let explicit = sources.explicit;
    let mut found = BTreeMap::<String, String>::new();
    for (at, (listed, text)) in sources.files.iter().enumerate() {
        let lookup = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            let here = || (sources.here)(name);
            match era {
                Era::Old => found.get(name).cloned().or_else(here),
                Era::New => here().or_else(|| explicit.get(name).cloned().flatten()),
            }
        };
        let set_already = |name: &str| match era {
            Era::Old => None,
            Era::New => {
                let empty = || explicit.contains_key(name).then(String::new);
                found.get(name).cloned().or_else(empty)
            }
        };
        let unreadable = |message, hint| Unreadable {
            file: at,
            message,
            hint,
        };
        let is_raw = listed.format.is_some();
        let given = read_over(text, is_raw, &lookup, &set_already).map_err(|error| {
            unreadable(
                format!("cannot parse {}: {error}", listed.shown()),
                "fix this line: `docker compose config` must accept the file",
            )
        })?;
        if given.iter().any(|(name, _)| name.is_empty()) {
            return Err(unreadable(
                format!(
                    "{} contains a variable without a name (Compose also reads a bare name at the very end of the file, without a line break, this way)",
                    listed.shown()
                ),
                "add the name, or a line break at the end of the file",
            ));
        }
        if given
            .iter()
            .any(|(name, _)| quoted(name).len() > LONGEST_KEY)
        {
            return Err(unreadable(
                format!(
                    "{} contains a variable whose name is too long for a YAML key",
                    listed.shown()
                ),
                "use a shorter name",
            ));
        }
        found.extend(given);
    }
    found.retain(|name, _| !explicit.contains_key(name));
    Ok(found)
}

/// The variables that an env file sets; `set_already` gives those of the files before it.
pub(in crate::rewrite) fn read_over(
    text: &str,
    is_raw: bool,
    lookup: Lookup<'_>,
    set_already: Lookup<'_>,
) -> Result<Vec<(String, String)>, String> {
    if is_raw {
        raw(text, lookup)
    } else {
        dotenv::parse_over(text, lookup, set_already).map_err(|error| error.to_string())
    }
}

/// `format: raw`: each line is a name, `=`, and a value without quotes or interpolation.
fn raw(text: &str, lookup: Lookup<'_>) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (line, lookup(line)),
        };
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(format!("line {}: invalid variable name", index + 1));
        }
        found.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(found)
}
