//! The `ports` and `expose` of a service.

use serde_json::Value;

use super::{
    container::Port,
    values::{many, text},
};

/// All ports of a service. The engine chooses the host port for a published port 0.
pub(super) fn of(service: &Value, name: &str) -> Result<Vec<Port>, String> {
    let mut ports = Vec::new();
    for item in many(service.get("ports")) {
        let read = if item.is_object() {
            long(item)
        } else {
            short(&text(item).unwrap_or_default())
        };
        let bad = || {
            format!(
                "services.{name}.ports: invalid port {}",
                text(item).unwrap_or_default()
            )
        };
        ports.extend(read.ok_or_else(bad)?);
    }
    for item in many(service.get("expose")) {
        let item = text(item).unwrap_or_default();
        let (target, protocol) = item.split_once('/').unwrap_or((&item, "tcp"));
        let target = target
            .parse()
            .map_err(|_| format!("services.{name}.expose: {item}"))?;
        let known = |port: &Port| port.target == target && port.protocol == protocol;
        if !ports.iter().any(known) {
            let protocol = protocol.to_owned();
            ports.push(Port {
                address: String::new(),
                published: None,
                bound: None,
                target,
                protocol,
            });
        }
    }
    Ok(ports)
}

fn long(item: &Value) -> Option<Vec<Port>> {
    let field = |key: &str| item.get(key).and_then(text);
    let target = field("target")?.parse().ok()?;
    let published = match field("published") {
        Some(text) => text.split('-').next()?.parse().ok()?,
        None => 0,
    };
    Some(vec![Port {
        address: field("host_ip").unwrap_or_default(),
        published: Some(published),
        bound: None,
        target,
        protocol: field("protocol").unwrap_or_else(|| "tcp".to_owned()),
    }])
}

/// `[[address:]published:]target[/protocol]`. The numbers may be ranges.
fn short(item: &str) -> Option<Vec<Port>> {
    let (numbers, protocol) = item.split_once('/').unwrap_or((item, "tcp"));
    let (rest, target) = match numbers.rsplit_once(':') {
        Some((rest, target)) => (Some(rest), target),
        None => (None, numbers),
    };
    let (address, published) = match rest {
        None => ("", None),
        Some(rest) => match rest.rsplit_once(':') {
            Some((address, published)) => (address.trim_matches(['[', ']']), Some(published)),
            None => ("", Some(rest)),
        },
    };
    let targets = range(target)?;
    let published = match published {
        None | Some("") => vec![0; targets.len()],
        Some(text) => range(text)?,
    };
    if published.len() != targets.len() {
        return None;
    }
    let port = |(published, target)| Port {
        address: address.to_owned(),
        published: Some(published),
        bound: None,
        target,
        protocol: protocol.to_owned(),
    };
    Some(published.into_iter().zip(targets).map(port).collect())
}

fn range(text: &str) -> Option<Vec<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
    (first <= last && last - first < 1000).then(|| (first..=last).collect())
}
