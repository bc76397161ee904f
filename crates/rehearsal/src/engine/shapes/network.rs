//! Networks.

use serde_json::{Map, Value, json};

use super::{super::filters::Filters, time};
use crate::world::{Network, World};

/// `/networks`
pub(in crate::engine) fn networks(world: &World, engine: &str, filters: &Filters) -> Value {
    let is_wanted = |one: &&Network| {
        one.engine == engine
            && filters.labels(&one.labels)
            && filters.any("name", |name| {
                one.name.contains(name.trim_matches(['^', '$']))
            })
            && filters.any("id", |id| one.id.starts_with(id))
            && filters.any("driver", |driver| one.driver == driver)
            && filters.any("type", |kind| one.is_predefined() == (kind == "builtin"))
    };
    let found = world.networks.iter().filter(is_wanted);
    let shown = found.map(|one| {
        let mut network = network(world, one);
        // Only the inspection lists containers.
        network["Containers"] = json!({});
        network
    });
    shown.collect()
}

/// `/networks/<id>`
pub(in crate::engine) fn network(world: &World, network: &Network) -> Value {
    let prefix = network
        .pool("Subnet")
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let on_it = world.on_network(network).map(|(container, live)| {
        let address = match live.address.as_str() {
            "" => String::new(),
            address => format!("{address}/{prefix}"),
        };
        let shown = json!({
            "Name": container.name,
            "EndpointID": live.endpoint,
            "MacAddress": live.mac,
            "IPv4Address": address,
            "IPv6Address": "",
        });
        (container.id.clone(), shown)
    });
    json!({
        "Name": network.name,
        "Id": network.id,
        "Created": time(network.created),
        "Scope": "local",
        "Driver": network.driver,
        "EnableIPv6": network.ipv6,
        "IPAM": network.ipam,
        "Internal": network.internal,
        "Attachable": network.attachable,
        "Ingress": false,
        "ConfigFrom": { "Network": "" },
        "ConfigOnly": false,
        "Containers": on_it.collect::<Map<_, _>>(),
        "Options": network.options,
        "Labels": network.labels,
    })
}
