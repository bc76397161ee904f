//! The output of `<tool> inspect`. Tools differ, so any field may be `null` or absent.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    engine::wire::{Mount, nullable},
    model,
};

/// A container in the output.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Container {
    id: String,
    #[serde(default, deserialize_with = "nullable")]
    name: String,
    #[serde(default, deserialize_with = "nullable")]
    config: Config,
    #[serde(default, deserialize_with = "nullable")]
    state: State,
    #[serde(default, deserialize_with = "nullable")]
    network_settings: NetworkSettings,
    #[serde(default, deserialize_with = "nullable")]
    mounts: Vec<Mount>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    #[serde(default, deserialize_with = "nullable")]
    image: String,
    #[serde(default, deserialize_with = "nullable")]
    labels: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    #[serde(default, deserialize_with = "nullable")]
    status: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NetworkSettings {
    /// From `80/tcp` to the published ports; `null` if the port is only exposed.
    #[serde(default, deserialize_with = "nullable")]
    ports: BTreeMap<String, Option<Vec<Binding>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Binding {
    #[serde(default, deserialize_with = "nullable")]
    host_ip: String,
    #[serde(default, deserialize_with = "nullable")]
    host_port: String,
}

impl From<Container> for model::Container {
    fn from(wire: Container) -> Self {
        Self {
            id: wire.id,
            names: vec![wire.name],
            image: wire.config.image,
            // Replaced by the status that `ps` reports, if it reports one.
            status: wire.state.status.clone(),
            state: wire.state.status,
            labels: wire.config.labels,
            ports: published(wire.network_settings.ports),
            mounts: wire.mounts.into_iter().map(model::Mount::from).collect(),
        }
    }
}

fn published(wire: BTreeMap<String, Option<Vec<Binding>>>) -> Vec<model::PublishedPort> {
    let mut ports = Vec::new();
    for (inside, bindings) in wire {
        let (port, protocol) = inside.split_once('/').unwrap_or((&inside, "tcp"));
        let Ok(container_port) = port.parse() else {
            continue;
        };
        for binding in bindings.unwrap_or_default() {
            let Ok(host_port) = binding.host_port.parse() else {
                continue;
            };
            ports.push(model::PublishedPort {
                address: binding.host_ip,
                host_port,
                container_port,
                protocol: protocol.to_owned(),
            });
        }
    }
    ports
}
