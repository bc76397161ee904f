//! The env files and label files of the services: which they are, and what a service gets from them.
#![deny(clippy::disallowed_methods)]

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    rc::Rc,
};

use super::{Reason, Refusal, splice::quoted};
use composefile::{
    document::{Entry, Node, NodeMap},
    dotenv::parse_over as compose_dotenv_over,
    interpolate::{Lookup, interpolate},
    services::{Service, one_or_many},
};

/// YAML takes no key of more than 1024 characters in front of its colon.
const LONGEST_KEY: usize = 1000;

/// One env file or label file that a service names.
#[derive(Clone)]
pub(super) struct Listed<'d> {
    /// The service's `env_file` or `label_file`, where it is written.
    pub(super) entry: Entry<'d>,
    /// The item, or the one scalar.
    pub(super) item: Node<'d>,
    /// The node of the path.
    pub(super) path: Node<'d>,
    /// The path, read: compose takes each of them once.
    named: String,
    /// The file, absolute.
    pub(super) file: String,
    pub(super) required: bool,
    /// `raw`, or what compose does not know; `None` is its own.
    pub(super) format: Option<String>,
}

impl Listed<'_> {
    /// The file, for people: as it is written where it holds a variable, whose value is not to be shown.
    pub(super) fn shown(&self) -> &str {
        let written = self.path.as_str().unwrap_or_default();
        if written.contains('$') {
            written
        } else {
            &self.file
        }
    }
}

/// What becomes of an env file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is the stack's `.env`, and becomes `stack.env`.
    Own,
    /// It holds nothing, or is optional and not there.
    Nothing,
    /// Its variables go to `environment:`.
    Carried,
    /// It has to be there and is not.
    Missing,
}

/// What a service's `env_file` or `label_file` names, in its order. A path that cannot be read is refused
/// with every other such text.
pub(super) fn listed<'d>(
    service: Service<'d>,
    key: &str,
    here: Lookup<'_>,
    absolute: &dyn Fn(&str) -> String,
) -> Vec<Listed<'d>> {
    let Some(entry) = service.node.entry(key) else {
        return Vec::new();
    };
    let read = |item: Node<'d>| {
        let path = if item.is_mapping() {
            item.get("path")?
        } else {
            item
        };
        let named = interpolate(path.as_str()?, here).ok()?;
        let word = |key: &str| interpolate(item.get(key)?.as_str()?, here).ok();
        Some(Listed {
            entry,
            item,
            path,
            file: absolute(&named),
            named: named.into_owned(),
            required: word("required").as_deref() != Some("false"),
            format: word("format")
                .filter(|format| !matches!(&**format, "" | ".env"))
                .map(Cow::into_owned),
        })
    };
    one_or_many(entry.value)
        .into_iter()
        .filter_map(read)
        .collect()
}

/// Each path once, where it stands first, as it is written last.
pub(super) fn unique<'l, 'd>(listed: impl Iterator<Item = &'l Listed<'d>>) -> Vec<&'l Listed<'d>> {
    let mut found: Vec<&Listed<'d>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for one in listed {
        let place = *places.entry(&one.named).or_insert(found.len());
        match found.get_mut(place) {
            Some(known) => *known = one,
            None => found.push(one),
        }
    }
    found
}

/// How compose finds what a variable in an env file is.
#[derive(Clone, Copy)]
enum Era {
    /// Up to 2.2x: earlier env files, then where compose runs.
    Old,
    /// Since then: where compose runs, then the service's own `environment`.
    New,
}

/// What a service says itself in `environment`, read, or in `labels`; `None` is a name without value.
pub(super) type Explicit = HashMap<String, Option<String>>;

/// What a service gets: everything its files say, and what it says itself.
pub(super) struct Sources<'a> {
    /// The files in their order; a file that is not there is left out.
    pub(super) files: &'a [(&'a Listed<'a>, &'a str)],
    pub(super) explicit: &'a Explicit,
    /// Where compose runs.
    pub(super) here: Lookup<'a>,
}

/// A file by its place among the files, why it cannot be read, and what to do.
type Unreadable = (usize, String, &'static str);

/// What the files of a service give it.
#[derive(Default)]
pub(super) struct Reading {
    /// Sorted by name.
    pub(super) values: Rc<[(String, String)]>,
    /// Those on which compose programs do not agree.
    disputed: BTreeSet<String>,
    /// The file that compose cannot read.
    unreadable: Option<Unreadable>,
    /// All that the files ask for: the reading is right for every service that sets none of it.
    asked: RefCell<HashSet<String>>,
}

impl Reading {
    /// Whether there is nothing to give and nothing to refuse, whatever the service says itself.
    pub(super) fn is_nothing(&self) -> bool {
        self.values.is_empty()
            && self.disputed.is_empty()
            && self.unreadable.is_none()
            && self.asked.borrow().is_empty()
    }

    pub(super) fn is_right_for(&self, explicit: &Explicit) -> bool {
        let asked = self.asked.borrow();
        !explicit.keys().any(|name| asked.contains(name))
    }

    /// What the files give, but for what the service says itself. The error is a file that compose cannot
    /// read, or a name on which compose programs do not agree.
    pub(super) fn beside(&self, sources: &Sources<'_>) -> Result<Rc<[(String, String)]>, Refusal> {
        if let Some((at, message, hint)) = &self.unreadable {
            let (listed, _) = sources.files[*at];
            let reason = Reason::BadEnvFile;
            return Err(Refusal::at(listed.path, reason, message.clone(), *hint));
        }
        let is_named = |name: &String| sources.explicit.contains_key(name);
        if let Some(name) = self.disputed.iter().find(|&name| !is_named(name)) {
            let message = format!(
                "what {name} becomes depends on the version of compose: its env file asks for a variable that is set in two places"
            );
            let hint = format!("write the value of {name} into `environment:`");
            let (listed, _) = sources.files[0];
            return Err(Refusal::at(listed.path, Reason::Disputed, message, hint));
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

/// Reads label files: one sees nothing but itself and those before it.
pub(super) fn labels(sources: &Sources<'_>) -> Reading {
    let mut reading = Reading::default();
    let sources = Sources {
        explicit: &Explicit::new(),
        ..*sources
    };
    match read_in(Era::Old, &sources, &RefCell::default()) {
        Ok(found) => reading.values = found.into_iter().collect(),
        Err(error) => reading.unreadable = Some(error),
    }
    reading
}

/// Reads env files, as each era of compose does.
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
    reading.disputed = names.filter(differs).cloned().collect();
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
        let there = |name: &str| match era {
            Era::Old => None,
            Era::New => {
                let empty = || explicit.contains_key(name).then(String::new);
                found.get(name).cloned().or_else(empty)
            }
        };
        let is_raw = listed.format.is_some();
        let given = read_over(text, is_raw, &lookup, &there).map_err(|error| {
            let message = format!("compose cannot read the file {}: {error}", listed.shown());
            let hint = "mend the line: `docker compose config` has to accept the file";
            (at, message, hint)
        })?;
        if given.iter().any(|(name, _)| name.is_empty()) {
            let message = format!(
                "the file {} sets a variable without a name, for which compose also takes a last line that is a name without a line end",
                listed.shown()
            );
            return Err((at, message, "give it a name, or end the last line"));
        }
        if given
            .iter()
            .any(|(name, _)| quoted(name).len() > LONGEST_KEY)
        {
            let message = format!(
                "the file {} sets a variable whose name is too long for a key of YAML",
                listed.shown()
            );
            return Err((at, message, "give it a shorter name"));
        }
        found.extend(given);
    }
    found.retain(|name, _| !explicit.contains_key(name));
    Ok(found)
}

/// What an env file sets, over variables that are there already.
pub(in crate::rewrite) fn read_over(
    text: &str,
    is_raw: bool,
    lookup: Lookup<'_>,
    there: Lookup<'_>,
) -> Result<Vec<(String, String)>, String> {
    if is_raw {
        raw(text, lookup)
    } else {
        compose_dotenv_over(text, lookup, there).map_err(|error| error.to_string())
    }
}

/// `format: raw`: each line a name and what follows its `=`, nothing replaced.
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
            return Err(format!(
                "line {}: no name that a variable can have",
                index + 1
            ));
        }
        found.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(found)
}

/// What becomes of every env file that is named, by its item.
pub(super) type Fates = NodeMap<Fate>;
