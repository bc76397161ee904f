//! The wire shape that the Engine API and the container command share.

use std::collections::BTreeMap;

use composefile::services::MountType;
use serde::Deserialize;

use crate::model::Mount;

/// What a container has in one of `NetworkSettings.Networks`. An address is empty unless the container runs.
#[derive(Deserialize)]
pub(super) struct ListedEndpoint {
    #[serde(rename = "IPAddress")]
    v4: Option<String>,
    #[serde(rename = "GlobalIPv6Address")]
    v6: Option<String>,
}

/// The addresses, each with its network.
pub(super) fn addresses(
    networks: Option<BTreeMap<String, ListedEndpoint>>,
) -> Vec<(String, String)> {
    let all = networks.into_iter().flatten();
    let all = all.flat_map(|(network, endpoint)| {
        let addresses = [endpoint.v4, endpoint.v6].into_iter().flatten();
        addresses.map(move |address| (network.clone(), address))
    });
    all.filter(|(_, address)| !address.is_empty()).collect()
}

/// An entry of `Mounts`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedMount {
    r#type: Option<String>,
    name: Option<String>,
    source: Option<String>,
    destination: Option<String>,
}

impl From<ListedMount> for Mount {
    fn from(listed: ListedMount) -> Self {
        let kind = MountType::named(&listed.r#type.unwrap_or_default());
        let is_named = |name: &String| kind == MountType::Volume && !name.is_empty();
        Self {
            kind,
            name: listed.name.filter(is_named),
            source: listed.source.unwrap_or_default(),
            target: listed.destination.unwrap_or_default(),
        }
    }
}
