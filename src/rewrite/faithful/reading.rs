//! What a service gets from its env files.

use std::collections::{BTreeMap, HashMap};

use composefile::{dotenv, interpolate::Lookup};

use super::{Finding, Kind, blocker::FIX_LINE, listed::Listed, write::quoted};

/// YAML limits a key before its colon to 1024 characters, including quotes.
const LONGEST_KEY: usize = 1000;

/// How Compose looks up a variable that an env file refers to.
#[derive(Clone, Copy)]
enum LookupOrder {
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

/// The values that a service gets from its files, without the names that it sets itself. Reads the files as both eras of
/// Compose do. Fails if Compose cannot parse a file, or if a value depends on the Compose version.
pub(super) fn variables(sources: &Sources<'_>) -> Result<BTreeMap<String, String>, Finding> {
    let old = read_in(LookupOrder::Old, sources)?;
    let new = read_in(LookupOrder::New, sources)?;
    let mut names = old.keys().chain(new.keys());
    if let Some(name) = names.find(|&name| old.get(name) != new.get(name)) {
        let message = format!(
            "the value of {name} depends on the Compose version: its env file refers to a variable that is set in two places"
        );
        let hint = format!("set {name} in `environment`");
        let (listed, _) = sources.files[0];
        let reason = Kind::VersionDependent;
        return Err(Finding::at(listed.path, reason, message, hint));
    }
    Ok(old)
}

fn read_in(order: LookupOrder, sources: &Sources<'_>) -> Result<BTreeMap<String, String>, Finding> {
    let explicit = sources.explicit;
    let mut found = BTreeMap::<String, String>::new();
    for (listed, text) in sources.files {
        let lookup = |name: &str| {
            let here = || (sources.here)(name);
            match order {
                LookupOrder::Old => found.get(name).cloned().or_else(here),
                LookupOrder::New => here().or_else(|| explicit.get(name).cloned().flatten()),
            }
        };
        let set_already = |name: &str| match order {
            LookupOrder::Old => None,
            LookupOrder::New => {
                let empty = || explicit.contains_key(name).then(String::new);
                found.get(name).cloned().or_else(empty)
            }
        };
        let unreadable =
            |message: String, hint: &str| Finding::at(listed.path, Kind::BadEnvFile, message, hint);
        let (file, is_raw) = (listed.shown(), listed.format.is_some());
        let given = read_over(text, is_raw, &lookup, &set_already)
            .map_err(|error| unreadable(format!("cannot parse {file}: {error}"), FIX_LINE))?;
        if given.iter().any(|(name, _)| name.is_empty()) {
            let message = format!(
                "{file} contains a variable without a name (Compose also reads a bare name at the very end of the file, without a line break, this way)"
            );
            let hint = "add the name, or a line break at the end of the file";
            return Err(unreadable(message, hint));
        }
        if given
            .iter()
            .any(|(name, _)| quoted(name).len() > LONGEST_KEY)
        {
            let message =
                format!("{file} contains a variable whose name is too long for a YAML key");
            return Err(unreadable(message, "use a shorter name"));
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
