//! Ports and names that containers outside the stack hold (B06).

use crate::{
    model::{Container, PublishedPort},
    plan::{
        Facts,
        facts::services::{Given, SentStack},
        losses::ports::{Publish, published},
    },
    snapshot::Inspected,
    text::printable,
};

/// The ports and names that the text needs and a container outside the stack holds, one per item.
pub fn held(facts: &Facts, stack: &SentStack) -> Vec<String> {
    let others: Vec<&Container> = facts.others.unwrap_or_default().iter().collect();
    held_by(&others, stack, |_| true)
}

/// The ports and names of the services that `is_asked` names, and that one of `others` holds, one per item.
pub fn held_by(
    others: &[&Container],
    stack: &SentStack,
    is_asked: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for service in stack.active() {
        if service.replicas() == Some(0) || !is_asked(service.name) {
            continue;
        }
        let host = service.given(&["network_mode"]) == Given::Is("host".to_owned());
        let ports = if host {
            Vec::new()
        } else {
            published(&service)
        };
        for publish in ports.into_iter().flatten() {
            if let Some((other, port)) = holder(others, &publish) {
                found.push(format!(
                    "service {}: port {}/{} is used by container {}",
                    printable(service.name),
                    port.host_port,
                    port.protocol,
                    printable(other.name())
                ));
            }
        }
        let names = match service.given(&["container_name"]) {
            Given::Is(name) => vec![name],
            Given::No => {
                let project = stack.project;
                let numbers = 1..=service.replicas().unwrap_or_default();
                let name = |number| format!("{project}-{}-{number}", service.name);
                numbers.map(name).collect()
            }
            Given::Unknown => Vec::new(),
        };
        for name in names {
            let mut others = others.iter();
            let Some(other) = others.find(|other| other.names.contains(&name)) else {
                continue;
            };
            found.push(format!(
                "service {}: the container name {} is used by container {}",
                printable(service.name),
                printable(&name),
                printable(other.id.get(..12).unwrap_or(&other.id))
            ));
        }
    }
    found
}

/// The paused containers that Portainer adopts: Compose cannot start them, and the failed create removes the stack (M06).
pub fn paused(facts: &Facts) -> Vec<String> {
    let containers = facts.containers.unwrap_or_default().iter().map(Inspected);
    let paused = containers.filter(|one| one.is_paused() && facts.is_adopted(*one));
    paused
        .map(|one| printable(one.name()).into_owned())
        .collect()
}

/// A warning for each port that the text needs and something on this host uses that is not a container. The engine may
/// use another network namespace, so this does not refuse the run.
pub fn ports_in_use(facts: &Facts, stack: &SentStack) -> Vec<String> {
    used_on_host(facts, stack, |_| true)
        .into_iter()
        .map(|port| format!("the create may fail: {port}"))
        .collect()
}

/// The ports of the services that `is_asked` names, and that something on this host uses that is not a container.
pub fn used_on_host(
    facts: &Facts,
    stack: &SentStack,
    is_asked: impl Fn(&str) -> bool,
) -> Vec<String> {
    let (Some(others), Some(own)) = (facts.others, facts.listed) else {
        return Vec::new();
    };
    let containers: Vec<&Container> = others.iter().chain(own).collect();
    let mut found = Vec::new();
    for service in stack.active() {
        let host = service.given(&["network_mode"]) == Given::Is("host".to_owned());
        if host || service.replicas() == Some(0) || !is_asked(service.name) {
            continue;
        }
        for publish in published(&service).into_iter().flatten() {
            let by_container = holder(&containers, &publish).is_some();
            let address = publish.address.as_deref().unwrap_or("0.0.0.0");
            let mut ports = publish.fixed().into_iter().flatten();
            let used = ports.find(|&port| (facts.port_in_use)(address, port, &publish.protocol));
            if let (Some(port), false) = (used, by_container) {
                found.push(format!(
                    "service {}: port {port}/{} of this host is in use",
                    printable(service.name),
                    printable(&publish.protocol)
                ));
            }
        }
    }
    found
}

fn holder<'a>(
    others: &[&'a Container],
    publish: &Publish,
) -> Option<(&'a Container, &'a PublishedPort)> {
    others.iter().find_map(|&other| {
        let port = other.ports.iter().find(|port| {
            publish
                .fixed()
                .is_some_and(|ports| ports.contains(&port.host_port))
                && publish.protocol == port.protocol
                && overlap(publish.address.as_deref(), &port.address)
        })?;
        Some((other, port))
    })
}

/// Whether two addresses of the host cannot both listen on one port.
fn overlap(wanted: Option<&str>, used: &str) -> bool {
    let wanted = wanted.unwrap_or_default();
    let family = |address: &str| address.contains(':');
    if wanted.is_empty() || used.is_empty() {
        return true;
    }
    if family(wanted) != family(used) {
        return false;
    }
    let is_any = |address: &str| matches!(address, "0.0.0.0" | "::");
    wanted == used || is_any(wanted) || is_any(used)
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn addresses_overlap_within_their_family() {
        for (wanted, used, expected) in [
            (None, "127.0.0.1", true),
            (None, "::", true),
            (Some("127.0.0.1"), "0.0.0.0", true),
            (Some("127.0.0.1"), "::", false),
            (Some("127.0.0.1"), "10.0.0.1", false),
            (Some("0.0.0.0"), "10.0.0.1", true),
            (Some("::1"), "::", true),
        ] {
            assert_eq!(overlap(wanted, used), expected, "{wanted:?} {used}");
        }
    }
}
