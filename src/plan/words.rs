//! The words for what a plan interrupts: one place for `plan`, `adopt` with its question, `adopt --all` and `--compare`.
//!
//! [`downtime`] says what is down and how long, and [`Plan::interruption`] everything in one line for the question (B08).

use std::collections::BTreeMap;

use crate::{
    plan::{Fate, Plan, ServicePlan},
    text::{counted, down_for, listed, said},
};

/// What is down and how long, without a full stop: `db is down for up to 10 s, plus its start; app may be …`. Empty if every
/// container that runs keeps running.
pub fn downtime(services: &[ServicePlan]) -> Vec<String> {
    let is_replaced = |fate: &Fate| matches!(fate, Fate::Recreated(_) | Fate::Restarted(_));
    let is_unknown = |fate: &Fate| matches!(fate, Fate::Unknown(_));
    let seconds = until_stopped(services);
    let mut parts = Vec::from_iter(down(services, is_replaced, seconds, ["is", "are"]));
    parts.extend(down(services, is_unknown, seconds, ["may be", "may be"]));
    let removed = services
        .iter()
        .filter(|service| matches!(service.fate, Fate::Removed(_)));
    let removed: Vec<&str> = removed.map(|service| service.service.as_str()).collect();
    parts.extend(said(&removed, "is removed"));
    parts
}

/// How many seconds it takes at most until all services are stopped that will or may be. Compose starts none of them
/// before. It stops a service and one that depends on it one after the other, so their times add up.
fn until_stopped(services: &[ServicePlan]) -> u32 {
    let mut until: BTreeMap<&str, u32> = BTreeMap::new();
    // Each round goes at least one dependency further.
    for _ in services {
        for one in services {
            let needs = one.needs.iter();
            let before = needs.filter_map(|need| until.get(need.as_str())).max();
            let before = before.copied().unwrap_or(0);
            let seconds = until.entry(&one.service).or_default();
            *seconds = before
                .saturating_add(one.stop_grace.unwrap_or(0))
                .max(*seconds);
        }
    }
    until.into_values().max().unwrap_or(0)
}

/// The services with such a fate that run now.
fn down(
    services: &[ServicePlan],
    is_it: impl Fn(&Fate) -> bool,
    seconds: u32,
    [one, many]: [&str; 2],
) -> Option<String> {
    let running = services
        .iter()
        .filter(|service| is_it(&service.fate) && service.stop_grace.is_some());
    let names: Vec<&str> = running.map(|service| service.service.as_str()).collect();
    let (verb, start) = match names.len() {
        0 => return None,
        1 => (one, "its start"),
        _ => (many, "their start"),
    };
    let names = listed(&names);
    Some(format!("{names} {verb} {}", down_for(seconds, start)))
}

impl Plan {
    /// What the adoption interrupts, replaces, starts or loses, in one line for the question, without a full stop. `None` if
    /// every container keeps running and nothing is lost. Services of a stack that runs are started without a question.
    pub fn interruption(&self) -> Option<String> {
        let stopped = self.services.iter().filter(|service| {
            let is_touched = match service.fate {
                Fate::Recreated(_) | Fate::Unknown(_) => true,
                Fate::Started(_) => self.is_stopped,
                _ => false,
            };
            let is_stopped = service.stop_grace.is_none() && !service.containers.is_empty();
            is_touched && (self.is_stopped || is_stopped)
        });
        let stopped: Vec<&str> = stopped.map(|service| service.service.as_str()).collect();
        let mut parts = downtime(&self.services);
        parts.extend(if self.is_stopped {
            (!stopped.is_empty()).then(|| format!("Portainer starts {}", listed(&stopped)))
        } else {
            said(&stopped, "is recreated")
        });
        parts.extend(
            self.changes
                .iter()
                .filter_map(|change| change.removed(&self.services)),
        );
        parts.extend(told_losses(self.losses.len()));
        let has_containers = self
            .services
            .iter()
            .any(|service| !service.containers.is_empty());
        let again = "its last adoption failed: if this one does, every container is down until it is restored";
        let is_again = has_containers && self.failed_before();
        parts.extend(is_again.then(|| again.to_owned()));
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Refers to the list of losses that is shown before the question.
pub fn told_losses(count: usize) -> Option<String> {
    let verb = if count == 1 { "is" } else { "are" };
    (count > 0).then(|| format!("{} {verb} listed above", counted(count, "loss")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, fate: Fate, stop_grace: Option<u32>) -> ServicePlan {
        ServicePlan {
            service: name.to_owned(),
            containers: vec![format!("web-{name}-1")],
            fate,
            stop_grace,
            ..ServicePlan::default()
        }
    }

    #[test]
    fn times_to_stop_add_up_along_dependencies() {
        let of = |name, fate, grace, needs: &[&str]| ServicePlan {
            needs: needs.iter().map(|&need| need.to_owned()).collect(),
            ..service(name, fate, grace)
        };
        let unknown = || Fate::Unknown("x".to_owned());
        let chain = [
            of("c", unknown(), Some(4), &["kept"]),
            of("kept", Fate::Unchanged, None, &["b"]),
            of("b", unknown(), Some(4), &["a"]),
            of("a", Fate::Recreated("x".to_owned()), Some(4), &[]),
            of("other", unknown(), Some(10), &[]),
        ];
        let expected = [
            "a is down for up to 12 s, plus its start",
            "c, b and other may be down for up to 12 s, plus their start",
        ];
        assert_eq!(downtime(&chain), expected);
        let cycle = [of("a", unknown(), Some(u32::MAX), &["a"])];
        assert_eq!(downtime(&cycle).len(), 1);
    }

    #[test]
    fn b08_the_question_names_the_services_that_go_down() {
        let recreated = |name, grace| service(name, Fate::Recreated("x".to_owned()), grace);
        let unknown = |name, grace| service(name, Fate::Unknown("x".to_owned()), grace);
        let started = service("a", Fate::Started("x".to_owned()), None);
        let restarted = service("b", Fate::Restarted("x".to_owned()), Some(30));
        let alone = "a is down for up to 10 s, plus its start";
        let briefly = "a is down during its start";
        for (services, expected) in [
            (vec![], None),
            (vec![started], None),
            (vec![recreated("a", Some(10))], Some(alone)),
            (vec![recreated("a", Some(0))], Some(briefly)),
            (
                vec![recreated("a", Some(10)), restarted],
                Some("a and b are down for up to 30 s, plus their start"),
            ),
            (
                vec![unknown("a", Some(5)), recreated("b", None)],
                Some("a may be down for up to 5 s, plus its start; b is recreated"),
            ),
        ] {
            let plan = Plan {
                services,
                ..Plan::default()
            };
            assert_eq!(plan.interruption().as_deref(), expected);
        }
    }
}
