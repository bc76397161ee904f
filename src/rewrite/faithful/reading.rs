//! What a service gets from its env files.

use std::{borrow::Cow, collections::BTreeMap};

use composefile::{document::Node, dotenv, reader::Reader, services::Service};

use super::{Finding, Kind, blocker::FIX_LINE, listed::Listed, write::quoted};

/// YAML limits a key before its colon to 1024 characters, including quotes.
const LONGEST_KEY: usize = 1000;

/// The values that a service gets from its files, in this order, without the names that it sets itself. A file may refer to
/// variables of Compose's environment, of the files before it, and of the service, in the order of Compose since 2.30: what
/// another version reads is for Compose to judge.
pub(super) fn variables(
    reader: &Reader<'_, '_>,
    service: Service<'_>,
    files: &[(&Listed<'_>, &str)],
) -> Result<BTreeMap<String, String>, Finding> {
    let explicit = explicit(reader, service);
    let mut found = BTreeMap::<String, String>::new();
    for (listed, text) in files {
        let lookup = |name: &str| {
            let of_service = || explicit.get(name).cloned().flatten();
            reader.here(name).or_else(of_service)
        };
        let set_already = |name: &str| {
            let empty = || explicit.contains_key(name).then(String::new);
            found.get(name).cloned().or_else(empty)
        };
        if !listed.is_plain {
            return Err(Finding::not_simple(Some(listed.path)));
        }
        let given = dotenv::parse_over(text, &lookup, &set_already).map_err(|error| {
            let message = format!("cannot parse {}: {error}", listed.shown());
            Finding::at(listed.path, Kind::BadEnvFile, message, FIX_LINE)
        })?;
        let is_key = |name: &String| !name.is_empty() && quoted(name).len() <= LONGEST_KEY;
        if !given.iter().all(|(name, _)| is_key(name)) {
            return Err(Finding::not_simple(Some(listed.path)));
        }
        found.extend(given);
    }
    found.retain(|name, _| !explicit.contains_key(name));
    Ok(found)
}

/// `environment` of a service, interpolated; `None` is a name without a value.
fn explicit(reader: &Reader<'_, '_>, service: Service<'_>) -> BTreeMap<String, Option<String>> {
    let environment = service.node.get("environment").into_iter();
    let items = environment.clone().flat_map(Node::items);
    let items = items.filter_map(|item| {
        let text = reader.read(item.as_str()?).unwrap_or_default();
        Some(match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (text.to_string(), reader.here(&text)),
        })
    });
    let entries = environment.flat_map(Node::entries).filter_map(|entry| {
        let name = entry.name()?;
        let value = match entry.value.as_str() {
            Some(value) => reader.read(value).ok().map(Cow::into_owned),
            None => reader.here(name),
        };
        Some((name.to_owned(), value))
    });
    items.chain(entries).collect()
}
