//! Makes one text with the meaning of several Compose files, from what a Compose program prints for them.
//!
//! `config` resolves everything: `extends`, `include`, override files, paths and variables. [`combine`] puts the
//! variables back where they give the same value. Values that are only in an env file become variables of the
//! result: they are in `stack.env`, not in the text. The result is a candidate: it means the same only if `config`
//! prints the same for it.
//!
//! Invariant: pure.

mod compare;
mod variables;
mod yaml;

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value};

pub use self::compare::{
    Difference, differences, expected, is_local, unintended, without_fragments,
};
use self::variables::Variables;
pub use self::yaml::written;
use super::{faithful, portainer::STACK_ENV};
use composefile::interpolate::{Lookup, escaped};

/// What a Compose program prints for the files of a stack, and the variables with which it reads them.
pub struct Resolved<'a> {
    /// `config` of all profiles, as JSON. Compose writes each `$` of a value as `$$`.
    pub config: &'a Value,
    /// The same with `--no-interpolate`: the variables are not replaced. `None` if Compose cannot print it.
    pub model: Option<&'a Value>,
    /// The name of the project.
    pub project: &'a str,
    /// The variables of the env files that Compose reads for the project.
    pub env: &'a [(String, String)],
    /// The path of the one env file that Compose reads for the project, absolute. `None` if there are several.
    pub env_file: Option<&'a str>,
    /// The variables of the shell.
    pub shell: Lookup<'a>,
    /// The values of all env files that Compose may read. They are hidden if it is unknown where variables stood.
    pub values: &'a [String],
}

/// What not to try, because `config` differed there for an earlier candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Avoid {
    /// Do not read `stack.env` as an env file of a service.
    pub env_files: bool,
    /// Write every value as Compose resolved it, unless a variable certainly gives the same value.
    pub all: bool,
    /// The keys in which every value is written as Compose resolved it: `services.web.ports`.
    pub keys: BTreeSet<String>,
}

/// A candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combined {
    /// The Compose file.
    pub text: String,
    /// `stack.env`.
    pub env: String,
    /// The variables whose values are written into the text, each with the first key that contains its value.
    pub written: Vec<(String, String)>,
    /// The scalars of the text that hold such values, as they are written there.
    pub secret: BTreeSet<String>,
}

/// Makes one text from what Compose printed.
pub fn combine(resolved: &Resolved, avoid: &Avoid) -> Combined {
    let mut combining = Combining {
        resolved,
        avoid,
        variables: Variables::new(resolved),
        written: Vec::new(),
        secret: BTreeSet::new(),
    };
    let mut root = combining.root();
    // Variables that are not in `.env` would reach the services that read `.env` as an env file.
    if !avoid.env_files && combining.variables.has_changed() {
        let avoid = Avoid {
            env_files: true,
            ..avoid.clone()
        };
        return combine(resolved, &avoid);
    }
    tidy(&mut root, resolved.project);
    Combined {
        text: yaml::written(&Value::Object(root)),
        env: combining.variables.stack_env(),
        written: combining.written,
        secret: combining.secret,
    }
}

struct Combining<'a, 'r> {
    resolved: &'a Resolved<'r>,
    avoid: &'a Avoid,
    variables: Variables<'a>,
    written: Vec<(String, String)>,
    secret: BTreeSet<String>,
}

/// Where a value is: `services`, the name of the service, and the keys below it.
type Place<'p> = &'p [&'p str];

impl Combining<'_, '_> {
    fn root(&mut self) -> Map<String, Value> {
        let (config, model) = (self.resolved.config, self.resolved.model);
        let mut root = Map::new();
        for (key, value) in config.as_object().into_iter().flatten() {
            if key == "name" || key.starts_with("x-") {
                continue;
            }
            let Some(entries) = value.as_object() else {
                root.insert(key.clone(), value.clone());
                continue;
            };
            let models = model.and_then(|model| model.get(key));
            let mut section = Map::new();
            for (name, value) in entries {
                let model = models.and_then(|models| models.get(name));
                let value = match value.as_object() {
                    Some(service) if key == "services" => self.service(name, service, model),
                    _ => self.value(value, model, &[key, name]),
                };
                section.insert(name.clone(), value);
            }
            root.insert(key.clone(), Value::Object(section));
        }
        root
    }

    fn service(
        &mut self,
        name: &str,
        service: &Map<String, Value>,
        model: Option<&Value>,
    ) -> Value {
        let mut written = Map::new();
        for (key, value) in service {
            let model = model.and_then(|model| model.get(key));
            match key.as_str() {
                // Their values are among the labels and in the environment, which follows.
                "label_file" | "env_file" | "environment" => {}
                "command" | "entrypoint" if value.is_null() => {}
                _ => {
                    let value = self.value(value, model, &["services", name, key]);
                    written.insert(key.clone(), value);
                }
            }
        }
        if let Some(Value::Object(environment)) = service.get("environment") {
            let own = model.map(|model| named(model.get("environment")));
            let reads_own = model.is_some_and(|model| self.reads_only_own(model));
            if reads_own && !self.avoid.env_files {
                written.insert("env_file".to_owned(), Value::from(vec![STACK_ENV]));
            }
            let mut values = Map::new();
            for (variable, value) in environment {
                let said = own.as_ref().and_then(|own| own.get(variable));
                if said.is_none() && reads_own && !self.avoid.env_files {
                    continue;
                }
                let value = self.variable(name, variable, value, said, own.is_some());
                values.insert(variable.clone(), value);
            }
            if !values.is_empty() {
                written.insert("environment".to_owned(), Value::Object(values));
            }
        }
        Value::Object(written)
    }

    /// Whether the one env file of a service is that of the project.
    fn reads_only_own(&self, model: &Value) -> bool {
        let (Some(own), Some(Value::Array(files))) =
            (self.resolved.env_file, model.get("env_file"))
        else {
            return false;
        };
        let is_own = |file: &Value| {
            let path = file.get("path").unwrap_or(file);
            path.as_str() == Some(own) && file.get("format").is_none()
        };
        matches!(files.as_slice(), [file] if is_own(file))
    }

    /// The value of a variable of a service. `said` is the value in the files, if they name the variable.
    fn variable(
        &mut self,
        service: &str,
        name: &str,
        value: &Value,
        said: Option<&Value>,
        is_known: bool,
    ) -> Value {
        let Some(plain) = plain(value) else {
            return value.clone();
        };
        let is_literal = said.is_some_and(|said| !said.is_null() && names_in(said).is_empty());
        // Without the model, anything may come from an env file.
        if plain.is_empty() || (is_known && is_literal) {
            return value.clone();
        }
        if let Some(said) = said.and_then(Value::as_str)
            && let Some(kept) = self.variables.expression(said, &plain)
        {
            return Value::from(kept);
        }
        if let Some(moved) = self.variables.moved(service, name, &plain) {
            return Value::from(moved);
        }
        let place = ["services", service, "environment", name];
        self.give_up([name.to_owned()].into(), value, &place);
        value.clone()
    }

    /// A value with the variables of the model, where they give the same value.
    fn value(&mut self, value: &Value, model: Option<&Value>, place: Place) -> Value {
        let Some(model) = model else {
            if self.resolved.model.is_none() {
                self.hide_values(value, place);
            }
            return value.clone();
        };
        match (value, model) {
            (Value::Object(map), Value::Array(items)) if names_variables(items) => {
                self.list(map, items, place)
            }
            (Value::Object(map), Value::Object(_) | Value::Array(_)) => {
                let model = named(Some(model));
                let mut written = Map::new();
                for (key, value) in map {
                    let place = [place, &[key]].concat();
                    written.insert(key.clone(), self.value(value, model.get(key), &place));
                }
                Value::Object(written)
            }
            (Value::Array(items), Value::Array(models)) if items.len() == models.len() => {
                let pairs = items.iter().zip(models);
                let values = pairs.map(|(value, model)| self.value(value, Some(model), place));
                Value::Array(values.collect())
            }
            (_, Value::String(said)) => self.scalar(value, said, place),
            _ => {
                self.give_up(names_in(model), value, place);
                value.clone()
            }
        }
    }

    /// A mapping that the files write as a list of `NAME=VALUE` with variables in names: it stays a list.
    fn list(&mut self, map: &Map<String, Value>, items: &[Value], place: Place) -> Value {
        let mut left: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        let mut written = Vec::new();
        let mut literal = Vec::new();
        for (key, value) in map {
            let key = key.replace("$$", "$");
            let item = match plain(value) {
                Some(value) => format!("{key}={value}"),
                None => key,
            };
            let variables = &self.variables;
            let mut all = left.iter();
            match all.position(|said| variables.expression(said, &item).is_some()) {
                Some(at) => written.push(Value::from(left.remove(at))),
                None => literal.push(Value::from(escaped(&item))),
            }
        }
        for said in left {
            self.give_up(names(said), &Value::Array(literal.clone()), place);
        }
        written.extend(literal);
        Value::Array(written)
    }

    fn scalar(&mut self, value: &Value, said: &str, place: Place) -> Value {
        let names = names(said);
        if names.is_empty() {
            return value.clone();
        }
        let plain = plain(value);
        if let Some(plain) = &plain
            && let Some(kept) = self.variables.expression(said, plain)
        {
            return Value::from(kept);
        }
        // Compose converts values: to ports, sizes, durations, the words of a command. It also makes paths absolute.
        let is_path = plain.as_ref().is_some_and(|plain| plain.starts_with('/'));
        let key = place[..place.len().min(3)].join(".");
        if !is_path
            && !self.avoid.all
            && !self.avoid.keys.contains(&key)
            && self.variables.are_known(said)
        {
            return Value::from(said);
        }
        self.give_up(names, value, place);
        value.clone()
    }

    /// Notes that the values of variables are written into the text.
    fn give_up(&mut self, names: BTreeSet<String>, value: &Value, place: Place) {
        if names.is_empty() {
            return;
        }
        for name in names {
            if !self.written.iter().any(|(other, _)| *other == name) {
                self.written.push((name, place.join(".")));
            }
        }
        scalars(value, &mut |scalar| {
            if !scalar.is_empty() && !is_mount(place) {
                self.secret.insert(faithful::word(scalar));
            }
        });
    }

    /// Hides the scalars that may contain the value of a variable.
    fn hide_values(&mut self, value: &Value, place: Place) {
        let values = self.resolved.values;
        scalars(value, &mut |scalar| {
            let plain = scalar.replace("$$", "$");
            let is_in = |value: &String| !value.is_empty() && plain.contains(value.as_str());
            if values.iter().any(is_in) && !is_mount(place) {
                self.secret.insert(faithful::word(scalar));
            }
        });
    }
}

/// Whether a place is in the `volumes` of a service: paths stay visible.
fn is_mount(place: Place) -> bool {
    matches!(place, ["services", _, "volumes", ..])
}

/// The text of a scalar, without the escapes of `$`. `None` for a collection and for null.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.replace("$$", "$")),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The entries of a mapping, or of a list of `NAME=VALUE`.
fn named(value: Option<&Value>) -> Cow<'_, Map<String, Value>> {
    match value {
        Some(Value::Object(map)) => Cow::Borrowed(map),
        Some(Value::Array(items)) => {
            let texts = items.iter().filter_map(Value::as_str);
            let entries = texts.map(|item| match item.split_once('=') {
                Some((name, value)) => (name.to_owned(), Value::from(value)),
                None => (item.to_owned(), Value::Null),
            });
            Cow::Owned(entries.collect())
        }
        _ => Cow::default(),
    }
}

/// Whether an item of a list of `NAME=VALUE` has a variable in its name.
fn names_variables(items: &[Value]) -> bool {
    let mut texts = items.iter().filter_map(Value::as_str);
    texts.any(|item| item.split('=').next().unwrap_or(item).contains('$'))
}

/// The names of the variables of a text, including those in defaults.
fn names(text: &str) -> BTreeSet<String> {
    let names = faithful::names(text).into_iter();
    names.map(str::to_owned).collect()
}

/// The names of the variables of all texts in a value.
fn names_in(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    scalars(value, &mut |text| found.extend(names(text)));
    found
}

fn scalars(value: &Value, then: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => then(text),
        Value::Array(items) => items.iter().for_each(|item| scalars(item, then)),
        Value::Object(map) => map.values().for_each(|value| scalars(value, then)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Removes what Compose adds by itself, so that the text is as short as a person would write it. A name that Compose
/// derives from the project would also be wrong if the stack were renamed.
fn tidy(root: &mut Map<String, Value>, project: &str) {
    for section in ["networks", "volumes", "secrets", "configs"] {
        let entries = root.get_mut(section).and_then(Value::as_object_mut);
        for (name, entry) in entries.into_iter().flatten() {
            let Some(map) = entry.as_object_mut() else {
                continue;
            };
            let derived = format!("{project}_{name}");
            if map.get("name").and_then(Value::as_str) == Some(&derived) {
                map.shift_remove("name");
            }
            if map.get("ipam").is_some_and(is_empty) {
                map.shift_remove("ipam");
            }
            if map.is_empty() {
                *entry = Value::Null;
            }
        }
    }
    if let Some(networks) = root.get_mut("networks").and_then(Value::as_object_mut) {
        if networks.get("default").is_some_and(Value::is_null) {
            networks.shift_remove("default");
        }
        if networks.is_empty() {
            root.shift_remove("networks");
        }
    }
    let services = root.get_mut("services").and_then(Value::as_object_mut);
    for service in services.into_iter().flat_map(Map::values_mut) {
        let Some(service) = service.as_object_mut() else {
            continue;
        };
        for key in ["secrets", "configs"] {
            let list = service.get_mut(key).and_then(Value::as_array_mut);
            let files = list.into_iter().flatten();
            for mode in files.filter_map(|file| file.get_mut("mode")) {
                // Compose before 2.34 reads the text `"0440"`, which newer versions print, as 440.
                let octal = mode.as_str().filter(|text| text.starts_with('0'));
                if let Some(number) = octal.and_then(|text| u32::from_str_radix(text, 8).ok()) {
                    *mode = Value::from(number);
                }
            }
        }
        let config = service
            .get_mut("blkio_config")
            .and_then(Value::as_object_mut);
        let limits = config.into_iter().flat_map(Map::values_mut);
        let devices = limits.filter_map(Value::as_array_mut).flatten();
        for device in devices.filter_map(Value::as_object_mut) {
            // Compose prints these keys in a form that it does not read: `Path`, `Rate` and `Weight`.
            let entries = std::mem::take(device).into_iter();
            device.extend(entries.map(|(key, value)| (key.to_lowercase(), value)));
        }
        let alone = Value::from(Map::from_iter([("default".to_owned(), Value::Null)]));
        if service.get("networks") == Some(&alone) {
            service.shift_remove("networks");
        }
    }
    root.values_mut().for_each(sort);
    if let Some(services) = root.shift_remove("services") {
        root.shift_insert(0, "services".to_owned(), services);
    }
}

/// Sorts the keys, which versions of Compose print in different orders: a list or a mapping comes after what is simple, and can
/// be removed from an item of a list (B39).
fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Object(map) => {
            map.values_mut().for_each(sort);
            let mut entries: Vec<_> = std::mem::take(map).into_iter().collect();
            entries.sort_by_cached_key(|(key, value)| {
                (value.is_array() || value.is_object(), key.clone())
            });
            map.extend(entries);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
mod tests;
