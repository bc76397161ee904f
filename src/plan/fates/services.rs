//! The fate of every service of an adoption, in the order of the text.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    compose::{Project, Service},
    finding::Finding,
    model::{Container, Deployment},
    plan::{
        Facts, Fate, Plan, PortainerCompose, ServicePlan,
        fates::{self, Deciding, dependents, redefined::Redefined, steering::Steering},
        service::{NOT_STARTED, stop_grace},
    },
    text::{counted, listed, printable, shell_word},
};

/// A service, or a container with a row of its own; its containers; and their fate.
type Planning<'a> = (String, Vec<&'a Container>, Fate);

/// The fate of every service.
pub fn services(facts: &Facts, project: &Project) -> Vec<ServicePlan> {
    let redefined = Redefined::new(facts);
    let mut containers: BTreeMap<&str, Vec<&Container>> = BTreeMap::new();
    let all = facts.host.inspected();
    let (one_off, own): (Vec<_>, Vec<_>) =
        all.partition(|container| container.is_one_off(facts.tool));
    for container in own {
        let service = container.compose_label(facts.tool, "service");
        let of_service = containers.entry(service.unwrap_or_default());
        of_service.or_default().push(container);
    }
    let deciding = Deciding {
        facts,
        sent: project,
        portainer: facts.portainer,
    };
    let mut found: Vec<Planning> = Vec::new();
    for service in &project.services {
        let name = service.name.as_str();
        let own = containers.remove(name).unwrap_or_default();
        let fate = if !own.is_empty() {
            let fates = own.iter().map(|&one| deciding.fate(one, service));
            let fate = worst(fates.chain(missing_replicas(service, own.len())));
            let is_as_on_disk = |one: &&Container| deciding.is_as_on_disk(one, service);
            match (named(facts, name), fate) {
                (Some(named), Fate::Recreated(why)) if !own.iter().all(is_as_on_disk) => {
                    Fate::Recreated(format!("{why}, and {named}"))
                }
                (Some(named), _) => Fate::Recreated(named),
                (None, fate) => fate,
            }
        } else if facts.host.listed.is_none() || facts.host.containers.is_none() {
            Fate::unknown("its containers could not be read")
        } else if service.replicas() == 0 {
            continue;
        } else {
            Fate::Started(starts(facts, name))
        };
        let fate = redefined.fate(&own, fate);
        found.push((name.to_owned(), own, fate));
    }
    dependents::follow(&mut found, &deciding);
    let mut found = scale_down(found, &deciding);
    let orphan = Steering::new(facts, project).orphan();
    for (service, own) in containers {
        let fate = if facts.defines(service) {
            Fate::LeftBehind("profile not active in Portainer".to_owned())
        } else {
            orphan.clone()
        };
        found.push((printable(service).into_owned(), own, fate));
    }
    for container in one_off {
        let fate = Fate::LeftBehind("started by `compose run`".to_owned());
        let name = printable(container.name()).into_owned();
        found.push((name, vec![container], fate));
    }
    let plans = found.into_iter().map(|(service, own, fate)| {
        let sent = project.service(&service);
        let needs = sent.into_iter().flat_map(|sent| sent.depends_on.keys());
        let is_newer =
            |one: &&Container| sent.is_some_and(|service| deciding.has_newer_image(one, service));
        let is_as_sent =
            |one: &&Container| sent.is_some_and(|service| deciding.is_as_sent(one, service));
        ServicePlan {
            tells_image: matches!(fate, Fate::Recreated(_)) && own.iter().all(is_newer),
            is_as_sent: own.iter().all(is_as_sent),
            asked: sent.map(Service::replicas),
            needs: needs.cloned().collect(),
            service,
            containers: own
                .iter()
                .map(|container| container.name().to_owned())
                .collect(),
            restarting: own
                .iter()
                .any(|container| container.is_in_loop(facts.host.at)),
            stop_grace: match fate {
                Fate::Recreated(_) | Fate::Restarted(_) | Fate::Unknown(_) => stop_grace(&own),
                _ => None,
            },
            fate,
        }
    });
    plans.collect()
}

/// How a service without containers is started: perhaps with volumes that an earlier adoption named.
fn starts(facts: &Facts, service: &str) -> String {
    let own = facts.runs.services.get(service).into_iter();
    let named = own.flat_map(|own| &own.volumes);
    let existing = named.filter(|(_, name)| facts.host.has_volume(name));
    let told = existing.map(|(path, name)| format!("the existing volume {name:.12} at {path}"));
    match told.collect::<Vec<_>>().as_slice() {
        [] => NOT_STARTED.to_owned(),
        some => format!("{NOT_STARTED}, with {}", listed(some)),
    }
}

/// The fate of a service that has `now` containers, if the text asks for more.
fn missing_replicas(service: &Service, now: usize) -> Option<Fate> {
    let after = service.replicas();
    (after > now).then(|| {
        let what = format!("has {now} of {after} containers; the others will be started");
        Fate::Started(what)
    })
}

/// Gives rows of their own to the containers that a service no longer has, if Compose would recreate none of the service:
/// then it removes those with the highest numbers.
fn scale_down<'a>(found: Vec<Planning<'a>>, deciding: &Deciding) -> Vec<Planning<'a>> {
    let mut scaled = Vec::new();
    for (name, mut own, mut fate) in found {
        let service = deciding.sent.service(&name);
        let asked = service.map(|service| (service, service.replicas()));
        let Some((service, after)) = asked.filter(|(_, after)| *after < own.len()) else {
            scaled.push((name, own, fate));
            continue;
        };
        let (count, tool) = (own.len(), deciding.facts.tool);
        let numbers = own.iter().map(|container| container.container_number(tool));
        let numbers: Option<BTreeSet<u64>> = numbers.collect();
        // Of those with the same number, it is unknown which one is removed.
        let are_numbered = numbers.is_some_and(|numbers| numbers.len() == count);
        let compose = deciding.portainer;
        let by_number = compose.is_some_and(PortainerCompose::removes_by_number);
        let removed = match fate {
            Fate::Unchanged | Fate::Started(_) if by_number && are_numbered => {
                fates::split_surplus(&mut own, after, tool)
            }
            _ if after == 0 => own.split_off(0),
            _ => Vec::new(),
        };
        if !removed.is_empty() {
            fate = worst(own.iter().map(|&one| deciding.fate(one, service)));
        } else if !matches!(fate, Fate::Recreated(_)) {
            fate = Fate::Unknown(format!(
                "it has {count} containers, but the Compose file asks for {after}; the others are removed"
            ));
        }
        let asked = counted(after, "container");
        let surplus = Fate::Removed(format!("the Compose file asks for {asked} of {name}"));
        if after > 0 {
            scaled.push((name, own, fate));
        }
        scaled.extend(removed.into_iter().map(|other| {
            let container = printable(other.name()).into_owned();
            (container, vec![other], surplus.clone())
        }));
    }
    scaled
}

/// A service whose anonymous volumes get names has another configuration, unless the text of its Portainer stack has the
/// names already.
fn named(facts: &Facts, service: &str) -> Option<String> {
    let runs = facts.runs;
    let volumes = &runs.services.get(service)?.volumes;
    let record = facts.record.and_then(|record| record.contents);
    let is_new = |volume: &String| {
        let exists = facts.host.has_volume(volume) || !runs.created.contains(volume);
        exists && record.is_none_or(|deployed| !deployed.text.contains(volume))
    };
    let new = volumes.iter().filter(|(_, volume)| is_new(volume));
    let targets: Vec<_> = new.map(|(target, _)| target.as_str()).collect();
    let all = targets.join(", ");
    match targets.len() {
        0 => None,
        1 => Some(format!(
            "the anonymous volume at {all} gets a name; its data stays"
        )),
        _ => Some(format!(
            "the anonymous volumes at {all} get names; their data stays"
        )),
    }
}

/// The fate of a service is that of the container with the most to lose.
fn worst(fates: impl Iterator<Item = Fate>) -> Fate {
    fates.max_by_key(Fate::rank).unwrap_or(Fate::Unchanged)
}

impl Plan {
    /// Portainer recreates every container of a Git stack that it deploys again (M24).
    pub(in crate::plan) fn replace_all_from_git(&mut self, facts: &Facts) {
        let why = "Portainer recreates every container of a Git stack that it deploys again";
        for service in &mut self.services {
            let is_left = matches!(service.fate, Fate::LeftBehind(_) | Fate::Removed(_));
            if !is_left && !service.containers.is_empty() {
                service.may_stop(facts, Fate::Recreated(why.to_owned()));
            }
        }
    }

    /// The update of a Portainer stack in error removes every container of the project first (N07).
    pub(in crate::plan) fn replace_all_if_in_error(&mut self, facts: &Facts) {
        let record = facts.record.as_ref().map(|record| record.record);
        let Some(record) =
            record.filter(|record| matches!(record.deployment, Deployment::Failed(_)))
        else {
            return;
        };
        let (id, name) = (&record.id, shell_word(facts.name));
        for service in &mut self.services {
            if let Fate::LeftBehind(_) = &service.fate {
                let one = &service.service;
                let what = format!(
                    "Portainer stack {id} is in error: an update would remove the containers of {one} and not recreate them"
                );
                let hint = format!(
                    "remove those containers, or go back to a state without Portainer stack {id}: `stacklift restore {name}`"
                );
                let blocker = Finding::new(what, hint);
                self.blockers
                    .push(blocker.details(service.containers.clone()));
            } else if !matches!(service.fate, Fate::Removed(_)) && !service.containers.is_empty() {
                let why = format!(
                    "Portainer stack {id} is in error, and an update removes every container first"
                );
                service.may_stop(facts, Fate::Recreated(why));
            }
        }
    }
}
