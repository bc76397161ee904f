//! The files that `env_file` names.

use std::{borrow::Cow, collections::HashMap};

use composefile::{
    document::{Entry, Node},
    reader::Reader,
    services::{Service, one_or_many},
};

use super::{Finding, Kind};

/// One env file that a service names.
#[derive(Clone)]
pub(super) struct Listed<'d> {
    /// The service's `env_file`.
    pub(super) entry: Entry<'d>,
    /// The item of the list, or the one scalar.
    pub(super) item: Node<'d>,
    /// The node of the path.
    pub(super) path: Node<'d>,
    /// The path after interpolation: Compose reads each of them once.
    pub(super) named: String,
    /// The absolute path.
    pub(super) file: String,
    pub(super) required: bool,
    /// `raw`, or a format that Compose does not have; `None` is the default.
    pub(super) format: Option<String>,
}

impl Listed<'_> {
    /// The file, for people: as written if the text contains a variable, whose value must not be shown.
    pub(super) fn shown(&self) -> &str {
        let written = self.path.as_str().unwrap_or_default();
        if written.contains('$') {
            written
        } else {
            &self.file
        }
    }

    /// The blocker for a file that must exist.
    pub(super) fn missing(&self, service: Service<'_>) -> Finding {
        let (file, service) = (self.shown(), service.name);
        let message = format!("the env file {file} of service {service} does not exist");
        let hint = "create it: Compose rejects the stack without it";
        Finding::at(self.path, Kind::MissingEnvFile, message, hint)
    }
}

/// The env files that a service names, in order. Leaves out paths that cannot be interpolated, which
/// block the rewrite like every such text.
pub(super) fn listed<'d>(reader: &Reader<'_, '_>, service: Service<'d>) -> Vec<Listed<'d>> {
    let Some(entry) = service.node.entry("env_file") else {
        return Vec::new();
    };
    let read = |item: Node<'d>| {
        let path = if item.is_mapping() {
            item.get("path")?
        } else {
            item
        };
        let named = reader.read(path.as_str()?).ok()?;
        let word = |key: &str| reader.read(item.get(key)?.as_str()?).ok();
        let format = word("format").filter(|format| !matches!(&**format, "" | ".env"));
        Some(Listed {
            entry,
            item,
            path,
            file: reader.base().local(&named),
            named: named.into_owned(),
            required: word("required").as_deref() != Some("false"),
            format: format.map(Cow::into_owned),
        })
    };
    let items = one_or_many(entry.value).into_iter();
    items.filter_map(read).collect()
}

/// Each path once: in the place of its first mention, with the options of its last.
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
