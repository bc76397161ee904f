//! Turns `.env` into `stack.env`, and writes the variables of other env files, and of `runs`, into `environment` (M09–M11).
//!
//! They do not go to `stack.env`, because every service that names that file would get them.

use std::collections::BTreeMap;

use composefile::{
    document::{Entry, Node},
    interpolate::escaped,
    reader::Reader,
    services::Service,
};

use crate::rewrite::{
    faithful::{
        Finding,
        findings::{Findings, NewValue},
        listed::{Listed, listed},
        reading,
        runs::Runs,
    },
    portainer::STACK_ENV,
};

/// Handles `env_file` of every service, and writes the variables of `runs`.
pub(super) fn env_files<'d>(reader: &Reader<'d, '_>, runs: &Runs, found: &mut Findings<'d>) {
    for &service in &reader.services {
        let own = runs.services.get(service.name);
        let kept = own.map(|own| &own.variables);
        let files = listed(reader, service);
        if let Err(blocker) = rewrite(reader, service, &files, kept, found) {
            found.blockers.push(blocker);
        }
    }
}

fn rewrite<'d>(
    reader: &Reader<'d, '_>,
    service: Service<'d>,
    files: &[Listed<'d>],
    kept: Option<&BTreeMap<String, String>>,
    found: &mut Findings<'d>,
) -> Result<(), Finding> {
    let mut existing = Vec::new();
    for listed in files {
        match reader.env_file_text(&listed.file) {
            Some(text) => existing.push((listed, text)),
            None if listed.is_required => return Err(listed.missing(service)),
            None => {}
        }
    }
    let has_variables = reader.env.iter().any(|(name, _)| !name.is_empty());
    let (staying, gone): (Vec<_>, Vec<_>) = files
        .iter()
        .partition(|listed| listed.is_own(reader) && reader.env_text.is_some() && has_variables);
    for listed in &staying {
        if listed.path.as_str() != Some(STACK_ENV) {
            found.set(listed.path, STACK_ENV);
        }
    }
    let others = existing.iter().any(|(listed, _)| !listed.is_own(reader));
    let mut values = if others {
        reading::variables(reader, service, &existing)?
    } else {
        BTreeMap::new()
    };
    if !staying.is_empty() {
        // What `stack.env` gives need not be written.
        let sent = |name: &str| reader.variables.get(name).copied();
        values.retain(|name, value| sent(name) != Some(value));
    }
    values.extend(
        kept.into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    if gone.is_empty() && values.is_empty() || !found.is_simple(service) {
        return Ok(());
    }
    let mut dropped = None;
    if staying.is_empty() {
        dropped = service.node.entry("env_file");
    } else if let Some(list) = service.node.entry("env_file").filter(|_| !gone.is_empty()) {
        let kept = NewValue::Word(STACK_ENV.to_owned());
        found.replace(service.node, list, &[("env_file".to_owned(), kept)]);
    }
    write(reader, service, &values, dropped, found);
    Ok(())
}

/// Writes values into the `environment` of a service, and removes the key that is `dropped`.
fn write<'d>(
    reader: &Reader<'d, '_>,
    service: Service<'d>,
    values: &BTreeMap<String, String>,
    dropped: Option<Entry<'d>>,
    found: &mut Findings<'d>,
) {
    let text = |value: &String| NewValue::Text(escaped(value));
    let entries = values.iter();
    let entries = entries.map(|(name, value)| (name.clone(), text(value)));
    let new = (
        "environment".to_owned(),
        NewValue::Mapping(entries.collect()),
    );
    let mut own = service.node.own_entries();
    let present = own.find(|entry| entry.name() == Some("environment"));
    match (present, dropped) {
        _ if values.is_empty() => {}
        (None, Some(dropped)) => return found.replace(service.node, dropped, &[new]),
        (None, None) => found.insert(service.node, &[new]),
        (Some(present), _) if present.value.is_null() => {
            found.replace(service.node, present, &[new]);
        }
        (Some(present), _) => extend(reader, present.value, values, found),
    }
    if let Some(dropped) = dropped {
        found.remove(service.node, dropped);
    }
}

/// Adds values to an `environment`, or writes them in place of its own.
fn extend<'d>(
    reader: &Reader<'d, '_>,
    environment: Node<'d>,
    values: &BTreeMap<String, String>,
    found: &mut Findings<'d>,
) {
    let name = |item: Node<'d>| {
        let text = reader.read(item.as_str()?).ok()?;
        Some(text.split('=').next()?.to_owned())
    };
    let (mut entries, mut items) = (Vec::new(), Vec::new());
    for (variable, value) in values {
        let new = (variable.clone(), NewValue::Text(escaped(value)));
        let item = escaped(&format!("{variable}={value}"));
        let mut own = environment.own_entries();
        let mut own_items = environment.own_items();
        if let Some(entry) = own.find(|entry| entry.name() == Some(variable)) {
            found.replace(environment, entry, &[new]);
        } else if let Some(own) = own_items.find(|own| name(*own).as_ref() == Some(variable)) {
            found.replace_value(own, &NewValue::Text(item));
        } else if environment.is_sequence() {
            items.push(item);
        } else {
            entries.push(new);
        }
    }
    if !items.is_empty() {
        found.insert_items(environment, &items);
    }
    if !entries.is_empty() {
        found.insert(environment, &entries);
    }
}
