//! Containers as the Engine API lists them, and as both adapters inspect them. Engines differ, so any field but the ID may be
//! `null` or absent.

use std::collections::BTreeMap;

use composefile::services::MountType;
use serde::Deserialize;
use serde_json::{Result, Value};

use crate::model::{Container, Mount, PublishedPort};

/// The container of an entry of `GET /containers/json`.
pub(super) fn listed(entry: &Value) -> Result<Container> {
    let ports = items(&entry["Ports"]).filter_map(|port| {
        let number = |key: &str| u16::deserialize(&port[key]).ok();
        Some(PublishedPort {
            address: text(&port["IP"]),
            // Absent if the port is only exposed.
            host_port: number("PublicPort").filter(|port| *port != 0)?,
            container_port: number("PrivatePort")?,
            protocol: text(&port["Type"]),
        })
    });
    Ok(Container {
        names: items(&entry["Names"]).map(text).collect(),
        image: text(&entry["Image"]),
        state: text(&entry["State"]),
        status: text(&entry["Status"]),
        ports: ports.collect(),
        ..container(entry, &entry["Labels"])?
    })
}

/// The container of an inspect object. Its status is the state.
pub(super) fn inspected(object: &Value) -> Result<Container> {
    let (config, state) = (&object["Config"], text(&object["State"]["Status"]));
    Ok(Container {
        names: vec![text(&object["Name"])],
        image: text(&config["Image"]),
        status: state.clone(),
        state,
        ports: published(&object["NetworkSettings"]["Ports"]),
        ..container(object, &config["Labels"])?
    })
}

/// What both have in common.
fn container(object: &Value, labels: &Value) -> Result<Container> {
    let networks = object["NetworkSettings"]["Networks"].as_object();
    let addresses = networks
        .into_iter()
        .flatten()
        .flat_map(|(network, endpoint)| {
            // Empty unless the container runs.
            let addresses = ["IPAddress", "GlobalIPv6Address"].map(|key| text(&endpoint[key]));
            let addresses = addresses.into_iter().filter(|address| !address.is_empty());
            addresses.map(|address| (network.clone(), address))
        });
    let labels: Option<BTreeMap<_, _>> = Option::deserialize(labels)?;
    Ok(Container {
        id: String::deserialize(&object["Id"])?,
        labels: labels.unwrap_or_default(),
        mounts: items(&object["Mounts"]).map(mount).collect(),
        addresses: addresses.collect(),
        ..Container::default()
    })
}

fn mount(entry: &Value) -> Mount {
    let kind = MountType::named(&text(&entry["Type"]));
    let name = Some(text(&entry["Name"]));
    Mount {
        kind,
        name: name.filter(|name| kind == MountType::Volume && !name.is_empty()),
        source: text(&entry["Source"]),
        target: text(&entry["Destination"]),
    }
}

/// The ports that are published: from `80/tcp` to a list of bindings, or to `null` if the port is only exposed.
fn published(ports: &Value) -> Vec<PublishedPort> {
    let ports = ports.as_object().into_iter().flatten();
    let published = ports.flat_map(|(inside, bindings)| {
        let (port, protocol) = inside.split_once('/').unwrap_or((inside, "tcp"));
        items(bindings).filter_map(move |binding| {
            Some(PublishedPort {
                address: text(&binding["HostIp"]),
                host_port: binding["HostPort"].as_str()?.parse().ok()?,
                container_port: port.parse().ok()?,
                protocol: protocol.to_owned(),
            })
        })
    });
    published.collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
