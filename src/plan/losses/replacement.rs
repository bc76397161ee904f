//! What a container has and its successor of the same service will not have (B01).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    plan::{
        ContainerLoss, Facts,
        facts::services::{Given, SentService},
        losses::limits,
        losses::mounts,
        losses::ports,
        losses::reported::Reported,
    },
    snapshot::Inspected,
};

/// Compares a container with its service: the losses, and what is unknown of them.
pub fn losses(
    facts: &Facts,
    container: Inspected,
    service: &SentService,
    reported: Reported,
) -> (Vec<ContainerLoss>, Vec<String>) {
    let mut losses = Vec::new();
    losses.extend(will_start(container));
    losses.extend(other_name(facts, container, service));
    losses.extend(other_image(facts, container, service, reported));
    let mut unknown = Vec::new();
    if !service.is_partial() {
        let (mounts, doubts) = mounts::losses(facts, container, service, reported);
        losses.extend(mounts);
        unknown = doubts;
        losses.extend(ports::lost(container, service, reported));
    }
    let told_variables = reported.variables(service.name);
    losses.extend(variables(facts, container, service, &told_variables));
    losses.extend(networks(facts, container, service));
    let limits = limits::changed(container, service);
    if !limits.is_empty() {
        losses.push(ContainerLoss::Limits(limits));
    }
    (losses, unknown)
}

/// N08.
fn will_start(container: Inspected) -> Option<ContainerLoss> {
    let state = match container.state() {
        "running" => return None,
        "paused" => "paused",
        _ => container.text("/State/Status"),
    };
    let state = state.to_owned();
    Some(ContainerLoss::WillStart { state })
}

/// Its successor does not keep a name that it was given by hand, by an old version of Compose, or by a `container_name` that
/// changed.
fn other_name(facts: &Facts, container: Inspected, service: &SentService) -> Option<ContainerLoss> {
    let name = name_after(facts, container, service)?;
    (name != container.name()).then_some(ContainerLoss::Name(name))
}

/// The name of its successor, if it is known.
fn name_after(facts: &Facts, container: Inspected, service: &SentService) -> Option<String> {
    match service.given(&["container_name"]) {
        Given::Is(name) => Some(name),
        Given::No => {
            let number = container.compose_label(facts.tool, "container-number")?;
            Some(format!(
                "{}-{}-{number}",
                service.stack.project, service.name
            ))
        }
        Given::Unknown => None,
    }
}

/// The name of its image now refers to another image or to none, or the text names another image.
fn other_image(
    facts: &Facts,
    container: Inspected,
    service: &SentService,
    reported: Reported,
) -> Option<ContainerLoss> {
    let after = service.image()?;
    let id = |name: &str| facts.images.get(name)?.as_ref()?["Id"].as_str();
    let now = container.image_name();
    let found = id(&after);
    if found == Some(container.image_id()) {
        return None;
    }
    let given = service.node(&["image"]);
    let built = format!("{}_{}", service.stack.project, service.name);
    if full_name(now) == full_name(&after) {
        return found.map(|_| ContainerLoss::Image(after));
    }
    // Older versions of Compose name the image by its ID, and built images with an underscore.
    let is_unknown = is_image_id(now)
        || (given.is_none() && now == built)
        || given.is_some_and(|node| reported.names(service, node))
        || service.is_partial();
    (!is_unknown).then(|| ContainerLoss::OtherImage {
        now: now.to_owned(),
        after,
    })
}

fn is_image_id(name: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.is_empty() || name.starts_with("sha256:") || (name.len() == 64 && is_hex(name))
}

/// The name of an image without the parts that have a default: the registry, `library/` and `:latest`.
fn full_name(name: &str) -> String {
    let mut short = name;
    for default in ["docker.io/", "index.docker.io/", "localhost/", "library/"] {
        short = short.strip_prefix(default).unwrap_or(short);
    }
    let last = short.rsplit('/').next().unwrap_or_default();
    if last.contains([':', '@']) {
        short.to_owned()
    } else {
        format!("{short}:latest")
    }
}

fn variables(
    facts: &Facts,
    container: Inspected,
    service: &SentService,
    reported: &BTreeSet<&str>,
) -> Vec<ContainerLoss> {
    let Some(given) = service.environment() else {
        return Vec::new();
    };
    let old_image = image_env(facts, container.image_id());
    let new_image = service
        .image()
        .and_then(|reference| image_env(facts, &reference))
        .or_else(|| old_image.clone());
    let (mut lost, mut changed) = (Vec::new(), Vec::new());
    for (name, value) in env(container.at("/Config/Env")) {
        match given.get(name) {
            Some(Given::Is(new)) if new != value => changed.push(name.to_owned()),
            Some(_) => {}
            None => {
                let (Some(old), Some(new)) = (&old_image, &new_image) else {
                    continue;
                };
                if old.get(name).is_some_and(|old| *old == value) || reported.contains(name) {
                    continue;
                }
                match new.get(name) {
                    None => lost.push(name.to_owned()),
                    Some(new) if *new != value => changed.push(name.to_owned()),
                    Some(_) => {}
                }
            }
        }
    }
    let lost = (!lost.is_empty()).then_some(ContainerLoss::Variables(lost));
    let changed = (!changed.is_empty()).then_some(ContainerLoss::Values(changed));
    lost.into_iter().chain(changed).collect()
}

/// The variables of a container that neither the text nor its image gives it, with their values.
pub fn foreign_variables<'c>(
    facts: &Facts,
    container: Inspected<'c>,
    service: &SentService,
) -> Vec<(&'c str, &'c str)> {
    let (Some(given), Some(image)) = (
        service.environment(),
        image_env(facts, container.image_id()),
    ) else {
        return Vec::new();
    };
    let is_foreign = |(name, value): &(&str, &str)| match given.get(*name) {
        Some(Given::Is(new)) => new != value,
        Some(Given::Unknown | Given::No) => false,
        None => image.get(name) != Some(value),
    };
    env(container.at("/Config/Env"))
        .filter(is_foreign)
        .collect()
}

/// Whether the variables of a container cannot be distinguished from those of its image.
pub fn is_image_unknown(facts: &Facts, container: Inspected) -> bool {
    image_env(facts, container.image_id()).is_none()
}

fn image_env<'f>(facts: &'f Facts, image: &str) -> Option<BTreeMap<&'f str, &'f str>> {
    let image = facts.images.get(image)?.as_ref()?;
    Some(env(image.pointer("/Config/Env")).collect())
}

fn env(list: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|item| item.as_str()?.split_once('='))
}

fn networks(facts: &Facts, container: Inspected, service: &SentService) -> Vec<ContainerLoss> {
    let Some(given) = service.networks() else {
        return Vec::new();
    };
    // Engines before 25 list a hostname that was set among the aliases.
    let after = name_after(facts, container, service);
    let own = [service.name, container.name()]
        .into_iter()
        .chain(container.hostname())
        .chain(after.as_deref())
        .collect::<Vec<_>>();
    let mut losses = Vec::new();
    for (network, endpoint) in container.networks() {
        let Some(aliases) = given.get(network) else {
            losses.push(ContainerLoss::Network(network.clone()));
            continue;
        };
        let names: Vec<String> = container
            .aliases(endpoint)
            .into_iter()
            .filter(|alias| !own.contains(alias) && !aliases.iter().any(|given| given == alias))
            .map(str::to_owned)
            .collect();
        if !names.is_empty() {
            losses.push(ContainerLoss::Aliases {
                network: network.clone(),
                names,
            });
        }
    }
    losses
}

#[cfg(test)]
mod tests;
