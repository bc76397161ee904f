//! What a migration does to the containers of each service.

use crate::{
    compose::Project,
    model::Container,
    plan::{Facts, Fate, ServicePlan, service::NOT_STARTED},
};

/// The services with containers, then those that get some. `project` is `None` if it is unknown what is sent.
pub fn services(facts: &Facts, project: Option<&Project>) -> Vec<ServicePlan> {
    let mut listed: Vec<&Container> = facts.host.listed().iter().collect();
    listed.sort_by_key(|container| container.name());
    let mut services: Vec<ServicePlan> = Vec::new();
    for container in listed {
        let Some(service) = container.compose_label(facts.tool, "service") else {
            continue;
        };
        let fate = fate(facts, project, container, service);
        let is_running = container.status() == "running";
        let stop_grace = is_running.then(|| stop_grace(facts, container, &fate));
        let mut known = services.iter_mut();
        if let Some(one) = known.find(|other| other.service == service && other.fate == fate) {
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
    services.extend(
        project
            .into_iter()
            .flat_map(|project| starts(facts, project)),
    );
    services
}

fn fate(facts: &Facts, project: Option<&Project>, container: &Container, service: &str) -> Fate {
    // B10
    if container.compose_label(facts.tool, "project") != Some(facts.name) {
        return Fate::unknown("Portainer adopts its container");
    }
    if container.compose_label(facts.tool, "oneoff") == Some("True") {
        return Fate::Removed("started by `compose run`".to_owned());
    }
    let is_active = project.is_none_or(|project| project.service(service).is_some());
    if facts.document.is_none() {
        Fate::unknown("the Compose file cannot be parsed")
    } else if !facts.defines(service) {
        Fate::Removed("not in the Compose file".to_owned())
    } else if is_active {
        Fate::Recreated("every container of the stack is removed first".to_owned())
    } else {
        Fate::Removed("profile not active in Portainer".to_owned())
    }
}

/// How long a running container may take to stop, in seconds; 0 if it is killed. Portainer stops the containers of a
/// Portainer stack (M04) and those that it adopts (B10).
fn stop_grace(facts: &Facts, container: &Container, fate: &Fate) -> u32 {
    let is_stopped = facts.record.is_some() || matches!(fate, Fate::Unknown(_));
    if !is_stopped {
        return 0;
    }
    let mut objects = facts.host.inspected();
    let own = objects.find(|other| other.name() == container.name());
    own.and_then(Container::stop_grace).unwrap_or(10)
}

/// The active services without a container; none if the containers cannot be read.
fn starts(facts: &Facts, project: &Project) -> Vec<ServicePlan> {
    if facts.host.listed.is_none() || facts.host.containers.is_none() {
        return Vec::new();
    }
    let has = |name: &str| facts.of_service(name).next().is_some();
    let services = project.services.iter();
    let started = services.filter(|service| service.replicas() > 0 && !has(&service.name));
    let started = started.map(|service| ServicePlan {
        service: service.name.clone(),
        fate: Fate::Started(NOT_STARTED.to_owned()),
        ..ServicePlan::default()
    });
    started.collect()
}
