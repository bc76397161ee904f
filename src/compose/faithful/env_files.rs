//! The env files of the services: what each one is at the manager, and what a service gets from them.
#![deny(clippy::disallowed_methods)]

use std::collections::{HashMap, HashSet};

use super::{
    super::{
        document::{Entry, Node, NodeId},
        dotenv::compose_dotenv_onto,
        interpolate::{Lookup, interpolate},
        services::Service,
    },
    Reason, Refusal,
};

/// One env file that a service names.
#[derive(Clone)]
pub(super) struct Listed<'d> {
    /// The service's `env_file`, where it is written.
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
    /// `format: raw`
    pub(super) raw: bool,
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

/// The service after those it extends, the outermost base first.
pub(super) fn chain<'d>(
    service: Service<'d>,
    all: &[Service<'d>],
    here: Lookup<'_>,
) -> Vec<Service<'d>> {
    let mut found = vec![service];
    let mut seen = HashSet::from([service.name]);
    let mut at = service;
    while let Some(extends) = at.node.get("extends") {
        if extends.get("file").is_some() {
            break;
        }
        let name = extends.get("service").unwrap_or(extends).as_str();
        let name = name.and_then(|name| interpolate(name, here).ok());
        let base = all
            .iter()
            .find(|service| Some(service.name) == name.as_deref());
        match base {
            Some(&base) if seen.insert(base.name) => {
                found.push(base);
                at = base;
            }
            _ => break,
        }
    }
    found.reverse();
    found
}

/// The `env_file` of a service, in its order.
pub(super) fn listed<'d>(
    service: Service<'d>,
    here: Lookup<'_>,
    absolute: &dyn Fn(&str) -> String,
) -> Result<Vec<Listed<'d>>, Vec<Refusal>> {
    let entries = service.node.entries();
    let Some(&entry) = entries
        .iter()
        .find(|entry| entry.name() == Some("env_file"))
    else {
        return Ok(Vec::new());
    };
    if entry.value.is_null() {
        return Ok(Vec::new());
    }
    let items: Vec<_> = if entry.value.is_sequence() {
        entry.value.items().collect()
    } else {
        vec![entry.value]
    };
    let mut found = Vec::new();
    let mut refusals = Vec::new();
    for item in items {
        let path = if item.is_mapping() {
            item.get("path")
        } else {
            Some(item)
        };
        let Some((node, text)) = path.and_then(|path| Some((path, path.as_str()?))) else {
            refusals.push(Refusal::at(
                item,
                Reason::WrongType,
                format!("`env_file` of the service {} is no path", service.name),
                "compose takes a path, a list of paths, or a list of mappings with `path`",
            ));
            continue;
        };
        // A path that cannot be read is refused with every other such text.
        let Ok(read) = interpolate(text, here) else {
            continue;
        };
        let word = |key: &str| {
            let text = item.get(key)?.as_str()?;
            interpolate(text, here).ok()
        };
        found.push(Listed {
            entry,
            item,
            path: node,
            file: absolute(&read),
            named: read,
            required: word("required").as_deref() != Some("false"),
            raw: word("format").as_deref() == Some("raw"),
        });
    }
    if refusals.is_empty() {
        Ok(found)
    } else {
        Err(refusals)
    }
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

/// What a service gets: everything its files say, and what it says itself.
pub(super) struct Sources<'a> {
    /// The files in their order; a file that is not there is left out.
    pub(super) files: Vec<(&'a Listed<'a>, &'a str)>,
    /// `environment`, read; `None` is a name without value.
    pub(super) explicit: &'a HashMap<String, Option<String>>,
    /// Where compose runs.
    pub(super) here: Lookup<'a>,
}

/// The variables that the files give, but for those that `environment` names anyway. The error is a file
/// that compose cannot read, or a name on which compose programs do not agree.
pub(super) fn variables(sources: &Sources<'_>) -> Result<Vec<(String, String)>, Refusal> {
    let old = read(sources, Era::Old)?;
    let new = read(sources, Era::New)?;
    let theirs: HashMap<_, _> = new.iter().map(|(name, value)| (name, value)).collect();
    let differs = |(name, value): &&(String, String)| theirs.get(name) != Some(&value);
    if old.len() != new.len() || old.iter().any(|entry| differs(&entry)) {
        let name = old
            .iter()
            .find(differs)
            .map_or("a variable", |(name, _)| name);
        let node = sources.files.first().map(|(listed, _)| listed.path);
        let message = format!(
            "what {name} becomes depends on the version of compose: its env file asks for a variable that is set in two places"
        );
        let hint = format!("write the value of {name} into `environment:`");
        return Err(match node {
            Some(node) => Refusal::at(node, Reason::Disputed, message, hint),
            None => Refusal::of(Reason::Disputed, message, hint),
        });
    }
    Ok(old)
}

fn read(sources: &Sources<'_>, era: Era) -> Result<Vec<(String, String)>, Refusal> {
    let mut found: Vec<(String, String)> = match era {
        Era::Old => Vec::new(),
        Era::New => {
            let explicit = sources.explicit.iter();
            explicit
                .map(|(name, value)| (name.clone(), value.clone().unwrap_or_default()))
                .collect()
        }
    };
    for (listed, text) in &sources.files {
        let earlier: HashMap<String, String> = match era {
            Era::Old => found.iter().cloned().collect(),
            Era::New => HashMap::new(),
        };
        let lookup = |name: &str| match era {
            Era::Old => earlier.get(name).cloned().or_else(|| (sources.here)(name)),
            Era::New => {
                (sources.here)(name).or_else(|| sources.explicit.get(name).cloned().flatten())
            }
        };
        let result = if listed.raw {
            raw(text, &lookup, found)
        } else {
            compose_dotenv_onto(text, &lookup, found).map_err(|error| error.to_string())
        };
        found = result.map_err(|error| {
            Refusal::at(
                listed.path,
                Reason::BadEnvFile,
                format!("compose cannot read the env file {}: {error}", listed.file),
                "mend the line: `docker compose config` has to accept the file",
            )
        })?;
        if found.iter().any(|(name, _)| name.is_empty()) {
            return Err(Refusal::at(
                listed.path,
                Reason::BadEnvFile,
                format!(
                    "the last line of the env file {} is a name without a line end, which compose takes for the value of a variable without a name",
                    listed.file
                ),
                "end the line",
            ));
        }
    }
    found.retain(|(name, _)| !sources.explicit.contains_key(name));
    found.sort();
    Ok(found)
}

/// `format: raw`: each line a name and what follows its `=`, nothing replaced.
fn raw(
    text: &str,
    lookup: Lookup<'_>,
    mut found: Vec<(String, String)>,
) -> Result<Vec<(String, String)>, String> {
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
        let Some(value) = value else { continue };
        match found.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = value,
            None => found.push((name.to_owned(), value)),
        }
    }
    Ok(found)
}

/// What becomes of every env file that is named, by its item.
pub(super) type Fates = HashMap<NodeId, Fate>;
