//! The responses of the Engine API. Engines differ, so any field may be `null` or absent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    engine::wire::{ListedEndpoint, ListedMount, addresses},
    model::{Container, Mount, PublishedPort},
};

/// An entry of `GET /containers/json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedContainer {
    id: String,
    names: Option<Vec<String>>,
    image: Option<String>,
    state: Option<String>,
    status: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    ports: Option<Vec<ListedPort>>,
    mounts: Option<Vec<ListedMount>>,
    network_settings: Option<ListedNetworks>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedNetworks {
    networks: Option<BTreeMap<String, ListedEndpoint>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedPort {
    #[serde(rename = "IP")]
    address: Option<String>,
    private_port: u16,
    /// Absent if the port is only exposed.
    public_port: Option<u16>,
    r#type: Option<String>,
}

/// The response to `GET /volumes`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedVolumes {
    pub(super) volumes: Option<Vec<Value>>,
    /// Why the list is incomplete.
    pub(super) warnings: Option<Vec<String>>,
}

/// An entry of `GET /containers/<id>/changes`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedChange {
    pub(super) path: String,
    pub(super) kind: u8,
}

impl From<ListedContainer> for Container {
    fn from(listed: ListedContainer) -> Self {
        let (ports, mounts) = (listed.ports.into_iter(), listed.mounts.into_iter());
        let networks = listed.network_settings.and_then(|all| all.networks);
        Self {
            id: listed.id,
            names: listed.names.unwrap_or_default(),
            image: listed.image.unwrap_or_default(),
            state: listed.state.unwrap_or_default(),
            status: listed.status.unwrap_or_default(),
            labels: listed.labels.unwrap_or_default(),
            ports: ports.flatten().filter_map(published).collect(),
            mounts: mounts.flatten().map(Mount::from).collect(),
            addresses: addresses(networks),
        }
    }
}

fn published(listed: ListedPort) -> Option<PublishedPort> {
    Some(PublishedPort {
        address: listed.address.unwrap_or_default(),
        host_port: listed.public_port.filter(|port| *port != 0)?,
        container_port: listed.private_port,
        protocol: listed.r#type.unwrap_or_default(),
    })
}
