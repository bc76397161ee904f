//! The `ports` and `expose` of a service.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::{
    container::Port,
    values::{many, text, texts},
};

/// All ports of a canonical service. The engine chooses the host port for a published port 0.
pub(super) fn of(service: &Map<String, Value>, name: &str) -> Result<Vec<Port>, String> {
    let mut ports = Vec::new();
    for item in many(service.get("ports")) {
        ports.push(port(item).ok_or_else(|| invalid(name, item))?);
    }
    for item in texts(service.get("expose")) {
        let (target, protocol) = item.split_once('/').unwrap_or((&item, "tcp"));
        let number = target.parse();
        let target = number.map_err(|_| format!("services.{name}.expose: {item}"))?;
        let known = |port: &Port| port.target == target && port.protocol == protocol;
        if !ports.iter().any(known) {
            ports.push(Port::new("", None, target, protocol));
        }
    }
    Ok(ports)
}

fn invalid(name: &str, item: &Value) -> String {
    format!("services.{name}.ports: invalid port {item}")
}

impl Port {
    /// A port of a container that does not run.
    pub(super) fn new(address: &str, published: Option<u16>, target: u16, protocol: &str) -> Self {
        Self {
            address: address.to_owned(),
            published,
            bound: None,
            target,
            protocol: protocol.to_owned(),
        }
    }
}

fn port(item: &Value) -> Option<Port> {
    let field = |key: &str| item.get(key).and_then(text);
    let target = field("target")?.parse().ok()?;
    let range = field("published").unwrap_or_else(|| "0".to_owned());
    let published = Some(range.split('-').next()?.parse().ok()?);
    let address = field("host_ip").unwrap_or_default();
    let protocol = field("protocol").unwrap_or_else(|| "tcp".to_owned());
    Some(Port::new(&address, published, target, &protocol))
}

/// The ports of an item in the long syntax.
pub(super) fn long(name: &str, item: &Value) -> Result<Vec<Value>, String> {
    if let Some(text) = text(item) {
        return short(&text).ok_or_else(|| invalid(name, item));
    }
    let mut port = item.clone();
    for (key, default) in [("mode", "ingress"), ("protocol", "tcp")] {
        if port.get(key).is_none() {
            port[key] = json!(default);
        }
    }
    Ok(vec![port])
}

/// `[[address:]published:]target[/protocol]`. The numbers may be ranges. One target gets all of several published ports.
fn short(item: &str) -> Option<Vec<Value>> {
    let (numbers, protocol) = item.split_once('/').unwrap_or((item, "tcp"));
    let (rest, target) = numbers.rsplit_once(':').unwrap_or(("", numbers));
    let (address, published) = rest.rsplit_once(':').unwrap_or(("", rest));
    let address = address.trim_matches(['[', ']']);
    if !address.is_empty() && address.parse::<IpAddr>().is_err() {
        return None;
    }
    let targets = range(target)?;
    let of_each = match published {
        "" => vec![String::new(); targets.len()],
        range_of_one if targets.len() == 1 => {
            range(range_of_one)?;
            vec![range_of_one.to_owned()]
        }
        text => range(text)?.iter().map(u16::to_string).collect(),
    };
    if of_each.len() != targets.len() {
        return None;
    }
    let port = |(published, target): (String, &u16)| {
        let mut port = json!({"mode": "ingress", "target": target, "protocol": protocol});
        for (key, value) in [("host_ip", address), ("published", &published)] {
            if !value.is_empty() {
                port[key] = json!(value);
            }
        }
        port
    };
    let mut pairs: Vec<_> = of_each.into_iter().zip(&targets).collect();
    // As Compose sorts them: as texts.
    pairs.sort_by_key(|(_, target)| target.to_string());
    Some(pairs.into_iter().map(port).collect())
}

fn range(text: &str) -> Option<Vec<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?..=last.parse().ok()?).collect())
}
