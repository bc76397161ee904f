//! Ports, addresses and names that containers outside the stack hold (B06).

use std::{collections::BTreeMap, io::ErrorKind};

use crate::{
    compose::{Project, Service},
    finding::{Finding, Kind},
    model::{Container, cannot_share},
    plan::{
        Facts,
        losses::ports::{Publish, published},
    },
};

/// The services that get a container and that `is_asked` names, with the ports that they publish.
fn publishing(project: &Project, is_asked: impl Fn(&str) -> bool) -> Vec<(&Service, Vec<Publish>)> {
    let services = project.services.iter();
    let asked = services.filter(|service| service.replicas() > 0 && is_asked(&service.name));
    let with_ports = asked.map(|service| {
        let is_hosts = service.text(&["network_mode"]).as_deref() == Some("host");
        let ports = if is_hosts {
            Vec::new()
        } else {
            published(service)
        };
        (service, ports)
    });
    with_ports.collect()
}

/// The ports, fixed addresses and names of the services that `is_asked` names, and that one of `others` holds.
pub fn held_by(
    (others, tool): (&[&Container], &str),
    project: &Project,
    is_asked: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let all = publishing(project, |_| true);
    let mut found = twice(&all, &is_asked);
    for (service, ports) in all
        .into_iter()
        .filter(|(service, _)| is_asked(&service.name))
    {
        let held = ports.iter().filter_map(|port| holder(others, port));
        found.extend(held.map(|(other, port)| {
            let what = format!("port {port} is used by {}", other.name());
            Finding::new(what, "stop that container, or change the port")
        }));
        let held = service.fixed_addresses().into_iter().filter_map(|fixed| {
            let other = others
                .iter()
                .find(|other| other.has_address(&fixed.0, &fixed.1))?;
            Some((fixed, other.name()))
        });
        found.extend(held.map(|((network, address), other)| {
            let what = format!("the address {address} in network {network} is used by {other}");
            Finding::new(what, "stop that container, or change the address")
        }));
        for &other in others {
            let name = other.name();
            if !has_name(service, name) {
                continue;
            }
            let project = other.compose_label(tool, "project");
            let project = project.filter(|project| !project.is_empty());
            let of = project.map_or_else(
                || format!("another container of image {}", other.image_name()),
                |project| format!("a container of stack {project}"),
            );
            let what = format!("the container name {name} is used by {of}");
            found.push(Finding::new(what, "rename or remove that container"));
        }
    }
    let found = found
        .into_iter()
        .map(|finding| finding.of_kind(Kind::OnEngine));
    let short = "port, address or name in use";
    found.map(|finding| finding.short(short)).collect()
}

/// The ports and fixed addresses that two services have, of which one is asked for. A service that extends another one may
/// repeat a port.
fn twice(all: &[(&Service, Vec<Publish>)], is_asked: impl Fn(&str) -> bool) -> Vec<Finding> {
    let ports = all.iter().flat_map(|(service, ports)| {
        let fixed = ports.iter().filter_map(|port| Some((port, port.fixed()?)));
        fixed.map(move |(port, fixed)| (service.name.as_str(), port, fixed))
    });
    let ports: Vec<_> = ports.collect();
    let mut found = Vec::new();
    for (at, (one, port, fixed)) in ports.iter().enumerate() {
        let other = ports[..at].iter().find(|(name, other, others)| {
            (one, port) != (name, other)
                && (is_asked(one) || is_asked(name))
                && fixed.start() <= others.end()
                && others.start() <= fixed.end()
                && port.protocol == other.protocol
                && cannot_share(&port.address, &other.address)
        });
        found.extend(other.map(|(other, ..)| {
            let (first, protocol) = (fixed.start(), &port.protocol);
            let what = format!("port {first}/{protocol} of {one} is also published by {other}");
            Finding::new(what, "change one of the ports")
        }));
    }
    let mut used = BTreeMap::new();
    for (service, _) in all {
        let name = service.name.as_str();
        for (network, address) in service.fixed_addresses() {
            let what = format!("the address {address} of {name} in network {network}");
            let other = used.insert((network, address), name);
            let is_told = |other: &&str| *other != name && (is_asked(name) || is_asked(other));
            if let Some(other) = other.filter(is_told) {
                let what = format!("{what} is also that of {other}");
                found.push(Finding::new(what, "change one of the addresses"));
            }
        }
    }
    found
}

/// The paused containers that Portainer adopts: Compose cannot start them, and the failed create removes the stack (M06).
pub fn paused(facts: &Facts) -> Vec<String> {
    let containers = facts.host.inspected();
    let paused =
        containers.filter(|container| container.is_paused() && facts.is_adopted(container));
    paused
        .map(|container| container.name().to_owned())
        .collect()
}

/// Whether a container of a service will have this name.
pub fn has_name(service: &Service, name: &str) -> bool {
    if let Some(given) = service.text(&["container_name"]) {
        return given == name;
    }
    let number = name.strip_prefix(&service.name_of_containers());
    let number = number.filter(|text| !text.starts_with(['0', '+']));
    let number: Option<usize> = number.and_then(|text| text.parse().ok());
    // It may be billions (B43).
    number.is_some_and(|number| number <= service.replicas())
}

/// The ports of the services that `is_asked` names, and that this host cannot give, although no container has them.
pub fn used_on_host(
    facts: &Facts,
    project: &Project,
    is_asked: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let (Some(others), Some(own)) = (&facts.host.others, &facts.host.listed) else {
        return Vec::new();
    };
    let containers: Vec<&Container> = others.iter().chain(own).collect();
    let mut found = Vec::new();
    for (_, ports) in publishing(project, is_asked) {
        found.extend(ports.iter().filter_map(|publish| {
            let address = match publish.address.as_str() {
                "" => "0.0.0.0",
                address => address,
            };
            let protocol = &publish.protocol;
            let fails = |port, why| (facts.unbindable)(address, port, protocol) == Some(why);
            // Port 0 is free: only the address is looked at.
            if fails(0, ErrorKind::AddrNotAvailable) {
                let what = format!(
                    "a port is published on {address}, which is not an address of this host"
                );
                return Some(Finding::new(what, "change the address").short("no such address"));
            }
            let mut free = publish
                .fixed()
                .filter(|_| holder(&containers, publish).is_none())?;
            let port = free.find(|&port| fails(port, ErrorKind::AddrInUse))?;
            let what = format!("port {port}/{protocol} is used by a program of this host");
            let port = Finding::new(what, "stop that program, or change the port");
            Some(port.short("port in use"))
        }));
    }
    found
}

/// The container that holds one of these ports, and which: `80/tcp`.
fn holder<'a>(others: &[&'a Container], publish: &Publish) -> Option<(&'a Container, String)> {
    let fixed = publish.fixed()?;
    others.iter().find_map(|&other| {
        let published = other.published_ports();
        let held = published.iter().find_map(|one| {
            let port = one.host_port().filter(|port| fixed.contains(port))?;
            one.holds(&publish.address, port, &publish.protocol)
                .then_some(port)
        });
        Some((other, format!("{}/{}", held?, publish.protocol)))
    })
}
