//! Containers as the Engine API lists them. Engines differ, so any field but the ID may be `null` or absent.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde_json::{Result, Value, json};

use crate::model::Container;

/// The container of an entry of `GET /containers/json`, in the shape of an inspect object.
pub(super) fn listed(entry: &Value) -> Result<Container> {
    if !entry["Id"].is_string() {
        return Err(serde_json::Error::custom("a container has no ID"));
    }
    let texts = |list: &'static str| items(&entry[list]).filter_map(Value::as_str);
    // Other names are aliases of links: `/other/alias`.
    let name = texts("Names").find(|name| !name.trim_start_matches('/').contains('/'));
    let mut ports: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for port in items(&entry["Ports"]) {
        let number = |key: &str| port[key].as_u64().filter(|port| *port != 0);
        // The second is absent if the port is only exposed.
        if let (Some(inside), Some(outside)) = (number("PrivatePort"), number("PublicPort")) {
            let protocol = port["Type"].as_str().unwrap_or("tcp");
            let binding = json!({ "HostIp": port["IP"], "HostPort": outside.to_string() });
            let bindings = ports.entry(format!("{inside}/{protocol}"));
            bindings.or_default().push(binding);
        }
    }
    let (state, status) = (entry["State"].as_str(), entry["Status"].as_str());
    // A list words it, and shows it nowhere else.
    let is_starting = status.is_some_and(|status| status.contains("health: starting"));
    Ok(Container(json!({
        "Id": entry["Id"],
        "Name": name,
        "Status": status,
        "State": {
            "Status": state,
            "Running": matches!(state, Some("running" | "paused" | "restarting")),
            "Paused": state == Some("paused"),
            "Restarting": state == Some("restarting"),
            "Health": { "Status": is_starting.then_some("starting") },
        },
        "Config": { "Image": entry["Image"], "Labels": entry["Labels"] },
        "Mounts": entry["Mounts"],
        "NetworkSettings": { "Ports": ports, "Networks": entry["NetworkSettings"]["Networks"] },
    })))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
