//! The responses of the Engine API. Engines differ, so any field may be `null` or absent.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    engine::wire::{Mount, nullable},
    model,
};

/// An entry of `GET /containers/json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Container {
    id: String,
    #[serde(default, deserialize_with = "nullable")]
    names: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    image: String,
    #[serde(default, deserialize_with = "nullable")]
    state: String,
    #[serde(default, deserialize_with = "nullable")]
    status: String,
    #[serde(default, deserialize_with = "nullable")]
    labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "nullable")]
    ports: Vec<Port>,
    #[serde(default, deserialize_with = "nullable")]
    mounts: Vec<Mount>,
}

#[derive(Deserialize)]
struct Port {
    #[serde(rename = "IP", default, deserialize_with = "nullable")]
    address: String,
    #[serde(rename = "PrivatePort")]
    inside: u16,
    /// Absent if the port is only exposed.
    #[serde(rename = "PublicPort", default)]
    outside: Option<u16>,
    #[serde(rename = "Type", default, deserialize_with = "nullable")]
    protocol: String,
}

/// An entry of `GET /networks`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Network {
    pub(super) id: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) name: String,
}

/// The response to `GET /volumes`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Volumes {
    #[serde(default, deserialize_with = "nullable")]
    pub(super) volumes: Vec<Volume>,
    /// Why the list is incomplete.
    #[serde(default, deserialize_with = "nullable")]
    pub(super) warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Volume {
    pub(super) name: String,
}

/// An entry of `GET /containers/<id>/changes`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) kind: u8,
}

/// The response to a create request.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Created {
    pub(super) id: String,
}

impl From<Container> for model::Container {
    fn from(wire: Container) -> Self {
        Self {
            id: wire.id,
            names: wire.names,
            image: wire.image,
            state: wire.state,
            status: wire.status,
            labels: wire.labels,
            ports: wire.ports.into_iter().filter_map(published).collect(),
            mounts: wire.mounts.into_iter().map(model::Mount::from).collect(),
        }
    }
}

fn published(wire: Port) -> Option<model::PublishedPort> {
    let host_port = wire.outside.filter(|port| *port != 0)?;
    Some(model::PublishedPort {
        address: wire.address,
        host_port,
        container_port: wire.inside,
        protocol: wire.protocol,
    })
}
