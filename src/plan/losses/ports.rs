//! The ports that a service publishes, and those that a container publishes and its successor will not (B01).

use std::{net::IpAddr, ops::RangeInclusive};

use serde_json::Value;

use crate::{compose::Service, finding::Kind, model::Container, plan::Facts};

/// Stands for a port that the engine chooses.
const CHOSEN: RangeInclusive<u16> = 0..=0;

/// Published ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// The address of the host; empty for all addresses.
    pub address: String,
    /// The ports of the host; [`CHOSEN`] if the engine chooses them.
    ports: RangeInclusive<u16>,
    targets: RangeInclusive<u16>,
    pub protocol: String,
}

impl Publish {
    /// `None` if a range of ports cannot be parsed.
    fn read(address: &str, ports: &str, targets: &str, protocol: &str) -> Option<Self> {
        Some(Self {
            address: address.to_owned(),
            ports: chosen(ports)?,
            targets: range(targets)?,
            protocol: protocol.to_owned(),
        })
    }

    /// The host ports if they are fixed: from a longer range the engine chooses a free port.
    pub fn fixed(&self) -> Option<RangeInclusive<u16>> {
        let is_fixed = self.ports.len() == self.targets.len() && *self.ports.start() > 0;
        is_fixed.then(|| self.ports.clone())
    }

    /// Whether it publishes what `now`, of one target, publishes. A port that the engine chooses is as good as another.
    fn covers(&self, now: &Self) -> bool {
        let target = *now.targets.start();
        if self.protocol != now.protocol || !self.targets.contains(&target) {
            return false;
        }
        if now.ports == CHOSEN {
            return true;
        }
        let is_port = match self.fixed() {
            Some(fixed) => {
                let port = fixed.start() + (target - self.targets.start());
                now.ports == (port..=port)
            }
            None => self.ports.contains(now.ports.start()) && self.ports.contains(now.ports.end()),
        };
        is_port && covers_address(&self.address, &now.address)
    }

    /// As `docker ps` shows it.
    fn shown(&self) -> String {
        let range = |range: &RangeInclusive<u16>| match (range.start(), range.end()) {
            (start, end) if start == end => start.to_string(),
            (start, end) => format!("{start}-{end}"),
        };
        let address = match self.address.as_str() {
            "" => String::new(),
            address if address.contains(':') => format!("[{address}]:"),
            address => format!("{address}:"),
        };
        let inside = format!("{}/{}", range(&self.targets), self.protocol);
        if self.ports == CHOSEN {
            return inside;
        }
        format!("{address}{}->{inside}", range(&self.ports))
    }
}

/// Whether a port on `after` accepts what one on `now` accepts.
fn covers_address(after: &str, now: &str) -> bool {
    let parse = |address: &str| address.parse::<IpAddr>().ok();
    let is_any = |address: IpAddr| address.is_unspecified();
    after.is_empty()
        || parse(after).is_some_and(is_any)
        || !now.is_empty() && parse(after) == parse(now)
}

/// The ports of a service.
pub fn published(service: &Service) -> Vec<Publish> {
    let items = service.get("ports").and_then(Value::as_array);
    let port = |item: &Value| {
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        let target = item["target"].as_u64()?.to_string();
        let protocol = item["protocol"].as_str().unwrap_or("tcp");
        Publish::read(text("host_ip"), text("published"), &target, protocol)
    };
    items.into_iter().flatten().filter_map(port).collect()
}

/// The ports of the host; `None` if they are unknown.
fn chosen(published: &str) -> Option<RangeInclusive<u16>> {
    match published {
        "" => Some(CHOSEN),
        text => range(text),
    }
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?)
}

/// The ports that a container publishes and its successor will not, and those that only the latter will.
pub fn changed(facts: &Facts, container: &Container, service: &Service) -> Option<(Kind, String)> {
    if facts.is_changed_by_text(&service.name, |service| service.get("ports")) {
        return None;
    }
    let after = published(service);
    let mut now = bindings(container);
    let mut new = after.clone();
    new.retain(|after| !now.iter().any(|now| after.covers(now)));
    now.retain(|now| !after.iter().any(|after| after.covers(now)));
    let [lost, new] = [now, new].map(|ports| {
        let mut shown: Vec<_> = ports.iter().map(Publish::shown).collect();
        shown.sort();
        shown
    });
    let (lost, added) = (lost.join(", "), new.join(", "));
    let message = match (lost.is_empty(), added.is_empty()) {
        (false, true) => format!("ports no longer published: {lost}"),
        (false, false) => format!("ports no longer published: {lost}; new: {added}"),
        (true, false) if facts.is_adoption() => format!("new ports: {added}"),
        (true, _) => return None,
    };
    Some((Kind::Edited, message))
}

/// The ports that a container was created to publish.
fn bindings(container: &Container) -> Vec<Publish> {
    let bindings = container.port_bindings();
    let known = bindings.filter_map(|one| {
        Publish::read(one.address, one.published, one.container_port, one.protocol)
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::{Publish, covers_address, published};
    use crate::plan::{Sent, tests::read};

    /// The port that a service publishes with this item.
    fn port(item: &str) -> Vec<Publish> {
        let text = format!("services: {{web: {{image: x, ports: ['{item}']}}}}");
        let project = read(Sent::new(&text, &[])).expect("a project");
        published(&project.services[0])
    }

    #[test]
    fn ports_that_cover_others() {
        for (after, now, expected) in [
            ("8080:80", "8080:80", true),
            ("8080:80", "8081:80", false),
            ("8080:80", "8080:81", false),
            ("8080:80/udp", "8080:80", false),
            ("80", "80", true),
            ("8080:80", "80", true),
            ("80", "8080:80", false),
            ("8000-8010:80-90", "8003:83", true),
            ("8000-8010:80-90", "8003:84", false),
            ("8000-8010:80", "8003:80", true),
            ("8000-8010:80", "8000-8010:80", true),
            ("127.0.0.1:80:80", "80:80", false),
            ("80:80", "127.0.0.1:80:80", true),
            ("0.0.0.0:80:80", "80:80", true),
            ("127.0.0.1::80", "127.0.0.1::80", true),
            ("[::1]:80:80", "[0:0:0:0:0:0:0:1]:80:80", true),
        ] {
            let (after_all, now_all) = (port(after), port(now));
            let covered = after_all.iter().any(|one| one.covers(&now_all[0]));
            assert_eq!(covered, expected, "{after} {now}");
        }
        assert!(!covers_address("10.0.0.1", "10.0.0.2"));
    }
}
