//! What a text of a snapshot names. A restore needs no Compose program.

use std::collections::{BTreeMap, BTreeSet};

use composefile::{
    document::{Document, Node},
    interpolate::interpolate,
    services::{MountSpec, services},
};

use crate::{
    model::{Condition, shared_modes},
    plan::Sent,
};

fn document(sent: Sent<'_>) -> Document<'_> {
    Document::parse(sent.text).unwrap_or_default()
}

/// The names of the external volumes that the services of a text mount.
pub(super) fn external_volumes(sent: Sent) -> BTreeSet<String> {
    let document = document(sent);
    let mounts = services(&document).into_iter();
    let mounts = mounts.filter_map(|service| service.node.get("volumes"));
    let keys = mounts
        .flat_map(Node::items)
        .filter_map(|item| match item.get("source") {
            Some(source) => source.as_str(),
            None => MountSpec::parse(item.as_str()?)?.source,
        });
    let keys: BTreeSet<&str> = keys.collect();
    let variables = sent.variables();
    let lookup = |name: &str| variables.get(name).cloned();
    let all = document.get("volumes").into_iter().flat_map(Node::entries);
    let external = all.filter_map(|entry| {
        let key = entry.name().filter(|key| keys.contains(key))?;
        let external = entry.value.get("external")?;
        let is_external = external.is_mapping() || external.as_str() == Some("true");
        let name = external.get("name").or_else(|| entry.value.get("name"));
        let name = name.and_then(Node::as_str).unwrap_or(key);
        is_external.then(|| interpolate(name, &lookup).map_or(name.to_owned(), Into::into))
    });
    external.collect()
}

/// The services without whose health the deployment of a text fails.
pub(super) fn needed_healthy(sent: Sent) -> BTreeSet<String> {
    let document = document(sent);
    let services = services(&document).into_iter();
    let needs = services.filter_map(|service| service.node.get("depends_on"));
    let needed = needs.flat_map(Node::entries).filter_map(|entry| {
        let condition = Condition::named(entry.value.get("condition")?.as_str()?);
        let required = entry.value.get("required").and_then(Node::as_bool);
        let is_needed = condition == Condition::Healthy && required != Some(false);
        entry.name().filter(|_| is_needed).map(str::to_owned)
    });
    needed.collect()
}

/// The namespaces that a service of a text shares: the field of Docker's `HostConfig`, and `service:…` or `container:…`.
pub(super) fn shared_namespaces(sent: Sent, service: &str) -> BTreeMap<&'static str, String> {
    let document = document(sent);
    let services = services(&document).into_iter();
    let found = services.filter(|other| other.name == service);
    let modes = found.flat_map(|service| shared_modes(move |key| service.node.get(key)?.as_str()));
    modes
        .map(|(field, mode)| (field, mode.to_owned()))
        .collect()
}
