//! The `ports` of a service in the long syntax.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::values::text;

/// The ports of an item in the long syntax.
pub(super) fn long(name: &str, item: &Value) -> Result<Vec<Value>, String> {
    if let Some(text) = text(item) {
        return short(&text).ok_or_else(|| format!("services.{name}.ports: invalid port {item}"));
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
