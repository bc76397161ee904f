//! Services that need another one, and what happens to them if it is recreated (N05).

use std::collections::BTreeMap;

use composefile::document::Node;

use crate::{
    plan::{
        Fate, PortainerCompose, Sent,
        facts::services::{Given, SentService, with_services},
        fates::versions::Dependents,
    },
    snapshot::Inspected,
};

/// A service that another one needs.
pub struct Dependency {
    pub service: String,
    /// Whether Compose restarts the dependent with it.
    restarts: bool,
    /// Whether the dependent uses a namespace or the volumes of its container.
    pub shares: bool,
}

/// What a service needs, by `depends_on` or by what implies it.
pub fn dependencies(service: &SentService) -> Vec<Dependency> {
    let read = |node: Node<'_>| service.stack.read(node).known();
    let mut found = Vec::new();
    let mut add = |name: &str, restarts, shares| {
        found.push(Dependency {
            service: name.to_owned(),
            restarts,
            shares,
        });
    };
    for node in service.nodes("depends_on") {
        for name in node.items().filter_map(read) {
            add(&name, false, false);
        }
        for entry in node.entries() {
            let restarts = entry
                .value
                .get("restart")
                .is_some_and(|node| service.stack.read(node) != Given::Is("false".to_owned()));
            add(entry.name().unwrap_or_default(), restarts, false);
        }
    }
    for link in service.items("links").filter_map(read) {
        add(link.split(':').next().unwrap_or_default(), true, false);
    }
    for from in service.items("volumes_from").filter_map(read) {
        if !from.starts_with("container:") {
            add(from.split(':').next().unwrap_or_default(), false, true);
        }
    }
    for mode in namespaces(service).into_values() {
        if let Some(name) = mode.strip_prefix("service:") {
            add(name, true, true);
        }
    }
    found
}

/// The namespaces that a service of `sent` shares: the field of Docker's `HostConfig`, and `service:…` or `container:…`.
pub fn shared_namespaces(
    sent: Sent,
    project: &str,
    service: &str,
) -> BTreeMap<&'static str, String> {
    with_services(sent, project, |services| {
        let found = services.iter().find(|one| one.name == service);
        found.map(namespaces).unwrap_or_default()
    })
}

fn namespaces(service: &SentService) -> BTreeMap<&'static str, String> {
    let keys = [
        ("network_mode", "NetworkMode"),
        ("pid", "PidMode"),
        ("ipc", "IpcMode"),
    ];
    let given = keys.map(|(key, field)| match service.given(&[key]) {
        Given::Is(mode) => Some((field, mode)),
        Given::No | Given::Unknown => None,
    });
    let is_shared = |mode: &str| mode.starts_with("service:") || mode.starts_with("container:");
    let shared = given.into_iter().flatten();
    shared.filter(|(_, mode)| is_shared(mode)).collect()
}

/// Changes the fates of services that follow those that they need, transitively.
pub fn follow(
    found: &mut [(String, Vec<Inspected>, Fate)],
    services: &[SentService],
    portainer: Option<PortainerCompose>,
) {
    let dependents = portainer.map_or(Dependents::Unknown, PortainerCompose::dependents);
    let needs = services.iter().map(|one| (one.name, dependencies(one)));
    let needs: Vec<(&str, Vec<Dependency>)> = needs.collect();
    // Each round changes a fate to one of a higher rank, so this ends.
    while let Some((at, fate)) = next(found, &needs, dependents) {
        found[at].2 = fate;
    }
}

fn next(
    found: &[(String, Vec<Inspected>, Fate)],
    needs: &[(&str, Vec<Dependency>)],
    dependents: Dependents,
) -> Option<(usize, Fate)> {
    let mut all = found.iter().enumerate();
    all.find_map(|(at, (name, own, fate))| {
        if own.is_empty() || matches!(fate, Fate::LeftBehind(_)) {
            return None;
        }
        let (_, needed) = needs.iter().find(|(service, _)| service == name)?;
        let fates = needed.iter().filter_map(|dependency| {
            let mut all = found.iter();
            let of = all.find(|(name, ..)| *name == dependency.service)?;
            followed(dependency, of, dependents)
        });
        let followed = fates.max_by_key(Fate::rank)?;
        (followed.rank() > fate.rank()).then_some((at, followed))
    })
}

/// The fate of a dependent, because of what happens to the service that it needs.
fn followed(
    dependency: &Dependency,
    (name, own, fate): &(String, Vec<Inspected>, Fate),
    dependents: Dependents,
) -> Option<Fate> {
    let is_new = matches!(fate, Fate::Recreated(_))
        || (matches!(fate, Fate::Started(_)) && own.is_empty() && dependency.shares);
    if is_new && dependency.shares {
        return Some(Fate::Recreated(format!(
            "it shares a namespace or volumes with {name}, which is recreated"
        )));
    }
    let why = format!("it depends on {name}, which is recreated");
    let (restarts, shares) = (dependency.restarts, dependency.shares);
    match (fate, dependents) {
        (Fate::Recreated(_), Dependents::Recreated) => Some(Fate::Recreated(why)),
        (Fate::Recreated(_), Dependents::RestartedIfAsked) if restarts => {
            Some(Fate::Restarted(why))
        }
        (Fate::Recreated(_), Dependents::Unknown) => Some(Fate::Unknown(why)),
        (Fate::Unknown(_), Dependents::RestartedIfAsked) if !restarts && !shares => None,
        (Fate::Unknown(_), _) => Some(Fate::Unknown(format!(
            "it depends on {name}, which may be recreated"
        ))),
        _ => None,
    }
}
