//! The `ports` and `expose` of a service.

use serde_json::{Map, Value};

use super::{
    container::Port,
    values::{many, text, texts},
};

/// All ports of a service. The engine chooses the host port for a published port 0.
pub(super) fn of(written: &Map<String, Value>, name: &str) -> Result<Vec<Port>, String> {
    let mut ports = Vec::new();
    for item in many(written.get("ports")) {
        let read = match text(item) {
            Some(item) => short(&item),
            None => long(item),
        };
        ports.extend(read.ok_or_else(|| format!("services.{name}.ports: invalid port {item}"))?);
    }
    for item in texts(written.get("expose")) {
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

fn long(item: &Value) -> Option<Vec<Port>> {
    let field = |key: &str| item.get(key).and_then(text);
    let target = field("target")?.parse().ok()?;
    let range = field("published").unwrap_or_else(|| "0".to_owned());
    let published = Some(range.split('-').next()?.parse().ok()?);
    let address = field("host_ip").unwrap_or_default();
    let protocol = field("protocol").unwrap_or_else(|| "tcp".to_owned());
    Some(vec![Port::new(&address, published, target, &protocol)])
}

/// `[[address:]published:]target[/protocol]`. The numbers may be ranges. One target gets the first of several published ports.
fn short(item: &str) -> Option<Vec<Port>> {
    let (numbers, protocol) = item.split_once('/').unwrap_or((item, "tcp"));
    let (rest, target) = numbers.rsplit_once(':').unwrap_or(("", numbers));
    let (address, published) = rest.rsplit_once(':').unwrap_or(("", rest));
    let address = address.trim_matches(['[', ']']);
    let targets = range(target)?;
    let published = match published {
        "" => vec![0; targets.len()],
        text => range(text)?,
    };
    let port = |(published, target)| Port::new(address, Some(published), target, protocol);
    let fits = targets.len() == 1 || published.len() == targets.len();
    fits.then(|| published.into_iter().zip(targets).map(port).collect())
}

fn range(text: &str) -> Option<Vec<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?..=last.parse().ok()?).collect())
}
