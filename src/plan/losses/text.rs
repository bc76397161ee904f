//! What the text that is sent loses: the difference of what Compose reads in the files on disk and in what is sent (B01).
//!
//! Only a migration loses something with the text. What is not read is unknown, and a warning says so.

use std::collections::BTreeSet;

use composefile::{dotenv, path::clean};
use serde_json::{Map, Value};

use crate::{
    compose::{Content, Place, Project, Service, dialect::Fields},
    finding::{Finding, Kind},
    plan::Facts,
    rewrite::{combine::differences, env::stack_env},
};

/// What is said of every path that Portainer resolves in its own container or in its directory of the stack (M12).
pub const INSIDE: &str = "a path inside Portainer";

/// Keys whose files Compose has read already: what they contain is in other keys.
const READ: [&str; 2] = ["env_file", "label_file"];

/// The top-level keys whose members services use, and a word for one.
const SECTIONS: [(&str, &str); 4] = [
    ("secrets", "secret"),
    ("configs", "config"),
    ("volumes", "volume"),
    ("networks", "network"),
];

/// The losses of the text: services first, then what they use, then the files.
pub fn losses(facts: &Facts) -> Vec<Finding> {
    let mut losses = Vec::new();
    if let (Ok(on_disk), Ok(sent)) = (&facts.projects.on_disk, &facts.projects.sent) {
        let text = Text {
            facts,
            on_disk,
            sent,
        };
        losses.extend(text.services());
        losses.extend(text.sections());
        losses.extend(text.unset());
        let (here, there) = (on_disk.name(), sent.name());
        losses.extend((here != there).then(|| {
            let message = format!(
                "the project is named {there} instead of {here}, with new volumes and networks"
            );
            Finding::of_stack(&message).on("Compose file")
        }));
    }
    let ignored = facts.files.iter().filter(|file| **file != facts.file);
    losses.extend(ignored.map(|file| {
        let message = format!("{file} is ignored");
        Finding::of_stack(&message).on("Compose file")
    }));
    if dotenv::parse(&stack_env(facts.sent.env), &|_| None).is_err() {
        let message = "the deployment would fail, because Portainer cannot parse it";
        let loss = Finding::of_stack(message).on(".env");
        losses.push(loss.of_kind(Kind::BadEnvFile));
    }
    losses
}

struct Text<'a, 'f> {
    facts: &'a Facts<'f>,
    on_disk: &'a Project,
    sent: &'a Project,
}

impl Text<'_, '_> {
    fn services(&self) -> Vec<Finding> {
        let mut losses = Vec::new();
        for before in &self.on_disk.services {
            let name = &before.name;
            let messages = match self.sent.service(name) {
                Some(after) => self.service(before, after),
                // The losses of its containers say so.
                None if self.facts.of_service(name).next().is_some() => continue,
                None if self.facts.defines(name) => {
                    vec!["will not start: no profile of it is active in Portainer".to_owned()]
                }
                None => {
                    vec!["will not start: the rewritten Compose file does not define it".to_owned()]
                }
            };
            let loss = |message: &String| Finding::of_service(name, Kind::Other, message);
            losses.extend(messages.iter().map(loss));
        }
        losses
    }

    fn service(&self, before: &Service, after: &Service) -> Vec<String> {
        let (before, old_mounts) = comparable(self.on_disk, &before.fields);
        let (after, new_mounts) = comparable(self.sent, &after.fields);
        let mut told = mounts(&old_mounts, &new_mounts);
        told.extend(self.keys(&before, &after));
        // M11
        let build = &after["build"];
        let more = build["additional_contexts"].as_object();
        let more = more.into_iter().flat_map(Map::values);
        let read = std::iter::once(&build["context"]).chain(more);
        let read = read.filter_map(Value::as_str);
        let read = read.filter(|path| path.starts_with('/'));
        told.extend(read.map(|path| {
            let path = self.facts.below_dir(path);
            format!("Portainer may be unable to read the build directory {path}")
        }));
        told
    }

    /// The definitions of secrets, configs, volumes and networks.
    fn sections(&self) -> Vec<Finding> {
        let mut losses = Vec::new();
        for (section, noun) in SECTIONS {
            let of = |project: &Project, key: &str| definition(project, section, key);
            let all = self.on_disk.others.get(section);
            let all = all.and_then(Value::as_object).into_iter();
            for key in all.flat_map(Map::keys) {
                if let (Some(before), Some(after)) = (of(self.on_disk, key), of(self.sent, key)) {
                    let subject = format!("{noun} {key}");
                    let told = self.keys(&before, &after).into_iter();
                    losses.extend(told.map(|told| Finding::of_stack(&told).on(subject.as_str())));
                }
            }
        }
        losses
    }

    /// The secrets and configs whose content is a variable that is not sent.
    fn unset(&self) -> impl Iterator<Item = Finding> {
        let variables = self.facts.sent.variables();
        let unset = self.sent.placed_files().filter_map(|(_, file)| {
            let Content::Variable(name) = &file.content else {
                return None;
            };
            let noun = file.section.trim_end_matches('s');
            let told = (format!("{noun} {}", file.key), name.clone());
            (!variables.contains_key(name)).then_some(told)
        });
        let unset: BTreeSet<_> = unset.collect();
        unset.into_iter().map(|(subject, name)| {
            let message = format!("its content is the variable {name}, which .env does not set");
            Finding::of_stack(&message).on(subject)
        })
    }

    /// The keys whose values differ, by how they do.
    fn keys(&self, before: &Value, after: &Value) -> Vec<String> {
        let mut told: Vec<(&str, Vec<String>)> = Vec::new();
        for (path, old, new) in differences(before, after) {
            let place = place(&path);
            let variable = place.strip_prefix("environment.");
            let (what, name) = match (old, new, variable) {
                (Some(old), Some(new), _) if self.is_replaced(old, new) => {
                    ("the rewrite changes what is not a path", &*place)
                }
                (_, None, Some(name)) => ("variables no longer set", name),
                (_, Some(_), Some(name)) => ("variables with another value", name),
                (_, None, None) => ("settings no longer set", &*place),
                (_, Some(new), None) if *new == INSIDE => {
                    ("paths that will be inside Portainer", &*place)
                }
                (_, Some(_), None) => ("settings with another value", &*place),
            };
            let name = name.to_owned();
            match told.iter_mut().find(|(known, _)| *known == what) {
                Some((_, names)) => names.push(name),
                None => told.push((what, vec![name])),
            }
        }
        let told = told.into_iter();
        told.map(|(what, names)| format!("{what}: {}", names.join(", ")))
            .collect()
    }

    /// Whether a text only differs because `./` is replaced in it (C32).
    fn is_replaced(&self, old: &Value, new: &Value) -> bool {
        let Some(old) = old.as_str().filter(|old| old.contains("./")) else {
            return false;
        };
        let mut replaced = old.replace("./", &format!("{}/", self.facts.dir)).into();
        find_paths(self.sent, &mut replaced);
        replaced == *new
    }
}

/// A service without its mounts, and its mounts.
fn comparable(project: &Project, fields: &Fields) -> (Value, Vec<Value>) {
    let mut fields = fields.clone();
    fields.retain(|key, _| !READ.contains(&key.as_str()) && !key.starts_with("x-"));
    for key in ["environment", "labels"] {
        let own = fields.entry(key).or_insert(Value::Null);
        if own.is_null() {
            *own = Map::new().into();
        }
        if let Value::Object(own) = own {
            // A name without a value sets nothing.
            own.retain(|_, value| !value.is_null());
        }
    }
    let mut service = Value::Object(fields);
    find_paths(project, &mut service);
    let mounts = match service["volumes"].take() {
        Value::Array(mounts) => mounts,
        _ => Vec::new(),
    };
    (service, mounts)
}

/// A member of a top-level key, without the name that follows from the project's.
fn definition(project: &Project, section: &str, key: &str) -> Option<Value> {
    let mut found = project.others.get(section)?.get(key)?.clone();
    find_paths(project, &mut found);
    if found["name"] == format!("{}_{key}", project.name()) {
        found["name"].take();
    }
    Some(found)
}

/// Writes every absolute path as the place to which it leads.
fn find_paths(project: &Project, value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with('/') => {
            *text = match project.place(text) {
                Place::Absolute(path) => path,
                Place::Folder(_) | Place::Unknown => INSIDE.to_owned(),
            };
        }
        Value::Array(items) => items.iter_mut().for_each(|item| find_paths(project, item)),
        Value::Object(map) => map
            .values_mut()
            .for_each(|value| find_paths(project, value)),
        _ => {}
    }
}

/// The mounts that have another source or other options, or that are gone.
fn mounts(before: &[Value], after: &[Value]) -> Vec<String> {
    let target = |mount: &Value| mount["target"].as_str().map(clean);
    let changed = before.iter().filter_map(|old| {
        let (at, now) = (target(old)?, source(old));
        let Some(new) = after.iter().find(|new| target(new).as_ref() == Some(&at)) else {
            return Some(format!("{now} is no longer mounted at {at}"));
        };
        let then = source(new);
        if then != now {
            return Some(format!("{then} is mounted at {at} instead of {now}"));
        }
        (old != new).then(|| format!("the mount at {at} has other options"))
    });
    changed.collect()
}

/// What a mount shows in the container.
fn source(mount: &Value) -> String {
    let kind = mount["type"].as_str().unwrap_or_default();
    match (kind, mount["source"].as_str()) {
        ("volume", Some(key)) => format!("volume {key}"),
        ("volume", None) => "an anonymous volume".to_owned(),
        (_, Some(source)) => source.to_owned(),
        (kind, None) => format!("a {kind}"),
    }
}

/// A path of keys, such as `labels.owner` or `command[0]`.
fn place(path: &[String]) -> String {
    let is_index = |key: &str| key.parse::<usize>().is_ok();
    path.iter().fold(String::new(), |place, key| match key {
        key if is_index(key) => format!("{place}[{key}]"),
        key if place.is_empty() => key.clone(),
        key => format!("{place}.{key}"),
    })
}

#[cfg(test)]
mod tests;
