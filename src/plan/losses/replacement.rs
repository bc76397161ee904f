//! What a container has and its successor of the same service will not have (B01).

use std::collections::BTreeMap;

use composefile::{document::Node, interpolate::occurrences, services::services};

use crate::{
    compose::{Service, dialect::Fields},
    finding::Kind,
    model::{Container, is_id, tagged},
    plan::{
        Facts, fates,
        losses::{mounts, networks, ports, settings},
    },
    text::listed,
};

/// Compares a container with its service: the losses, and what is unknown of them. Losses that a container has only if it is
/// recreated begin with `if_recreated`.
pub fn losses(
    facts: &Facts,
    container: &Container,
    service: &Service,
    if_recreated: &str,
) -> (Vec<(Kind, String)>, Vec<String>) {
    let mut losses = Vec::new();
    losses.extend(will_start(facts, container));
    let name = networks::name_after(container, service, facts.tool);
    if let Some(name) = name.filter(|name| name != container.name()) {
        let message = format!("{if_recreated}renamed to {name}");
        losses.push((Kind::Edited, message));
    }
    losses.extend(other_image(facts, container, service));
    let (mounts, unknown) = mounts::losses(facts, container, service);
    losses.extend(mounts);
    losses.extend(ports::changed(facts, container, service));
    losses.extend(variables(facts, container, service));
    let networks = networks::differences(container, service, facts.tool);
    let networks = networks
        .into_iter()
        .filter(|(kind, _)| facts.is_adoption() || *kind != Kind::Connected);
    let is_edited = facts.is_edited_on_disk(container, service);
    losses.extend(is_edited.then(|| unset(facts, service)).flatten());
    losses.extend(networks.map(|(kind, what)| {
        let is_edit = is_edited && kind == Kind::Other;
        let kind = if is_edit { Kind::Edited } else { kind };
        (kind, format!("{if_recreated}{what}"))
    }));
    let (edited, reset) = settings::changed(facts, container, service, is_edited);
    let reset_to = "settings reset to those of the Compose file";
    let settings = [
        (Kind::Other, reset_to, reset),
        (Kind::Edited, "other settings", edited),
    ];
    let settings = settings.into_iter().filter(|(.., names)| !names.is_empty());
    losses.extend(
        settings.map(|(kind, what, names)| {
            (kind, format!("{if_recreated}{what}: {}", names.join(", ")))
        }),
    );
    (losses, unknown)
}

/// N08, M05.
fn will_start(facts: &Facts, container: &Container) -> Option<(Kind, String)> {
    let message = match container.state() {
        "running" => return None,
        "paused" if facts.is_replaced_by_portainer(container) => {
            "is paused, and Compose cannot start it"
        }
        "paused" => "is paused and will run afterwards",
        _ => "is stopped and will be started",
    };
    Some((Kind::Starts, message.to_owned()))
}

/// The name of its image now refers to another image or to none, or the text names another image.
fn other_image(facts: &Facts, container: &Container, service: &Service) -> Option<(Kind, String)> {
    let after = service.image.as_ref()?;
    let id = |name: &str| facts.host.image(name)?["Id"].as_str();
    let now = container.image_name();
    let found = id(after);
    if found == Some(container.image_id()) {
        return None;
    }
    let built = format!("{}_{}", service.project, service.name);
    // A restore names an image by its ID if the name refers to another one by then.
    if full_name(now) == full_name(after) || now == container.image_id() {
        let message = fates::newer_image(after);
        return found.map(|_| (Kind::Image, message));
    }
    // Older versions of Compose name the image by its ID, and built images with an underscore.
    let is_unknown = now.is_empty()
        || now.starts_with("sha256:")
        || is_id(now)
        || (!service.names_image() && now == built)
        || facts.is_changed_by_text(&service.name, |own| own.get("image"));
    let message = format!("image {after} instead of {now}");
    (!is_unknown).then_some((Kind::Edited, message))
}

/// The name of an image without the parts that have a default: the registry, `library/` and `:latest`.
fn full_name(name: &str) -> String {
    let mut short = name;
    for default in ["docker.io/", "index.docker.io/", "localhost/", "library/"] {
        short = short.strip_prefix(default).unwrap_or(short);
    }
    tagged(short)
}

fn variables(facts: &Facts, container: &Container, service: &Service) -> Vec<(Kind, String)> {
    let old_image = image_env(facts, container.image_id());
    let found = service
        .image
        .as_ref()
        .and_then(|image| image_env(facts, image));
    let new_image = found.or_else(|| old_image.clone());
    let (mut lost, mut changed) = (Vec::new(), Vec::new());
    for (name, value) in container.env() {
        if facts.is_changed_by_text(&service.name, |service| service.environment.get(name)) {
            continue;
        }
        match service.environment.get(name) {
            Some(new) if new != value => changed.push(name),
            Some(_) => {}
            None => {
                let (Some(old), Some(new)) = (&old_image, &new_image) else {
                    continue;
                };
                if old.get(name).is_some_and(|old| *old == value) {
                    continue;
                }
                match new.get(name) {
                    None => lost.push(name),
                    Some(new) if *new != value => changed.push(name),
                    Some(_) => {}
                }
            }
        }
    }
    let told = [("no longer set", lost), ("with another value", changed)].into_iter();
    let told = told.filter(|(_, names)| !names.is_empty());
    let told = told.map(|(what, names)| format!("variables {what}: {}", names.join(", ")));
    let told = told.chain(new_variables(facts, container, service));
    told.map(|message| (Kind::Variables, message)).collect()
}

/// The variables that an adoption adds.
fn new_variables(facts: &Facts, container: &Container, service: &Service) -> Option<String> {
    let is_new = |name: &&str| {
        container.env().all(|(own, _)| own != *name)
            && !facts.is_changed_by_text(&service.name, |service| service.environment.get(*name))
    };
    let names = service.environment.keys().map(String::as_str);
    let names: Vec<&str> = names.filter(is_new).collect();
    (facts.is_adoption() && !names.is_empty())
        .then(|| format!("new variables: {}", names.join(", ")))
}

/// The variables in the text of an edited service that have no value: the shell that started its container may have had them.
fn unset(facts: &Facts, service: &Service) -> Option<(Kind, String)> {
    let document = facts.document?;
    let written = services(document);
    let written = written.iter().find(|one| one.name == service.name)?;
    let nodes = written.node.mappings();
    let nodes = nodes.flat_map(|part| document.nodes().filter(move |node| part.holds(*node)));
    let used = nodes.filter_map(Node::as_str).flat_map(occurrences);
    let used = used.filter(|one| one.operator.is_empty());
    let names = listed(&facts.sent.of_shell(used.map(|one| one.name)));
    let message = format!("the values of {names}, if the shell had any: .env does not set them");
    (!names.is_empty()).then_some((Kind::Other, message))
}

/// The variables of a container that neither the text nor its image gives it, with their values. `None` if they are unknown.
pub fn foreign_variables<'c>(
    facts: &Facts,
    container: &'c Container,
    service: &Service,
) -> Option<Vec<(&'c str, &'c str)>> {
    let is_of_image = of_image(facts, container)?;
    let is_foreign = |(name, value): &(&str, &str)| match service.environment.get(*name) {
        Some(new) => new != value,
        None => !is_of_image(name, value),
    };
    Some(container.env().filter(is_foreign).collect())
}

/// The variables of a container that neither its configuration, which Compose printed and whose hash it has, nor its image gives
/// it (N34). `None` if they are unknown.
pub fn unhashed_variables<'c>(
    facts: &Facts,
    container: &'c Container,
    hashed: &Fields,
) -> Option<Vec<(&'c str, &'c str)>> {
    let is_of_image = of_image(facts, container)?;
    let given = hashed.get("environment");
    // A name without a value gives none.
    let is_given = |name: &str| given.is_some_and(|given| !given[name].is_null());
    let all = container.env();
    Some(
        all.filter(|(name, value)| !is_given(name) && !is_of_image(name, value))
            .collect(),
    )
}

/// Whether a variable of a container is from its image, or from the one that Compose created it with: *Recreate* in Portainer copies
/// the variables of that one (N05). If it is gone, a name of the other image counts.
fn of_image(facts: &Facts, container: &Container) -> Option<impl Fn(&str, &str) -> bool> {
    let image = image_env(facts, container.image_id())?;
    let created_with = facts.label(container, "image");
    let created_with = created_with.filter(|id| *id != container.image_id());
    let is_other = created_with.is_some();
    let earlier = created_with.and_then(|id| image_env(facts, id));
    Some(move |name: &str, value: &str| {
        image.get(name) == Some(&value)
            || match &earlier {
                Some(earlier) => earlier.get(name) == Some(&value),
                None => is_other && image.contains_key(name),
            }
    })
}

/// The variables of an image; `None` if those of a container cannot be distinguished from them.
pub fn image_env<'f>(facts: &'f Facts, image: &str) -> Option<BTreeMap<&'f str, &'f str>> {
    let image = facts.host.image(image)?;
    let env = image["Config"]["Env"].as_array().into_iter().flatten();
    let pairs = env.filter_map(|item| item.as_str()?.split_once('='));
    Some(pairs.collect())
}

#[cfg(test)]
mod tests;
