//! What a migration does to the containers of each service.

use crate::{
    model::Container,
    plan::{
        Facts, Fate, ServicePlan,
        adoption::NOT_STARTED,
        facts::services::{SentService, SentStack},
    },
    snapshot::Inspected,
};

/// The services with containers, then those that get some. `stack` is `None` if the text that is sent is not YAML.
pub fn services(facts: &Facts, stack: Option<&SentStack>) -> Vec<ServicePlan> {
    let mut listed: Vec<&Container> = facts.listed().iter().collect();
    listed.sort_by_key(|container| container.name());
    let mut services: Vec<ServicePlan> = Vec::new();
    for container in listed {
        let Some(service) = container.compose_label(facts.tool, "service") else {
            continue;
        };
        let fate = fate(facts, stack, container, service);
        let is_running = container.state == "running";
        let stop_grace = is_running.then(|| stop_grace(facts, container, &fate));
        let mut known = services.iter_mut();
        if let Some(one) = known.find(|one| one.service == service && one.fate == fate) {
            one.containers.push(container.name().to_owned());
            one.stop_grace = one.stop_grace.max(stop_grace);
        } else {
            services.push(ServicePlan {
                service: service.to_owned(),
                containers: vec![container.name().to_owned()],
                fate,
                stop_grace,
                ..ServicePlan::default()
            });
        }
    }
    services.extend(stack.into_iter().flat_map(|stack| starts(facts, stack)));
    services
}

fn fate(facts: &Facts, stack: Option<&SentStack>, container: &Container, service: &str) -> Fate {
    // B10
    if container.compose_label(facts.tool, "project") != Some(facts.name) {
        return Fate::unknown("Portainer adopts its container");
    }
    if container.compose_label(facts.tool, "oneoff") == Some("True") {
        return Fate::Removed("it was started by `compose run`".to_owned());
    }
    let Some(stack) = stack else {
        return Fate::unknown("the Compose file cannot be parsed");
    };
    let services = stack.services();
    let found = services.iter().find(|one| one.name == service);
    match found.map(SentService::is_active) {
        None => Fate::Removed("it is not in the Compose file".to_owned()),
        Some(false) => Fate::Removed("its profile is not active in Portainer".to_owned()),
        Some(true) => Fate::Recreated("every container of the stack is removed first".to_owned()),
    }
}

/// How long a running container may take to stop, in seconds; 0 if it is killed. Portainer stops the containers of a
/// Portainer stack (M04) and those that it adopts (B10).
fn stop_grace(facts: &Facts, container: &Container, fate: &Fate) -> u32 {
    let is_stopped = facts.record.is_some() || matches!(fate, Fate::Unknown(_));
    if !is_stopped {
        return 0;
    }
    let mut objects = facts.observed.inspected();
    let own = objects.find(|one| one.name() == container.name());
    own.and_then(Inspected::stop_grace).unwrap_or(10)
}

/// The active services without a container; none if the containers cannot be read.
fn starts(facts: &Facts, stack: &SentStack) -> Vec<ServicePlan> {
    if facts.listed.is_none() || facts.details.containers.is_none() {
        return Vec::new();
    }
    let has = |name: &str| facts.of_service(name).next().is_some();
    let mut services = stack.active();
    services.retain(|service| service.replicas() != Some(0) && !has(service.name));
    let started = services.iter().map(|service| ServicePlan {
        service: service.name.to_owned(),
        fate: Fate::Started(NOT_STARTED.to_owned()),
        ..ServicePlan::default()
    });
    started.collect()
}
