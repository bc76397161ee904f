//! Volumes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{super::filters::Filters, time};
use crate::world::{Volume, World};

/// `/volumes`
pub(in crate::engine) fn volumes(world: &World, engine: &str, filters: &Filters) -> Value {
    let is_wanted = |one: &&Volume| {
        one.engine == engine
            && filters.labels(&one.labels)
            && filters.any("name", |name| one.name.contains(name))
            && filters.any("driver", |driver| one.driver == driver)
            && filters.any("dangling", |flag| {
                world.is_mounted(one) != matches!(flag, "true" | "1")
            })
    };
    let found = world.volumes.iter().filter(is_wanted).map(volume);
    json!({ "Volumes": found.collect::<Value>(), "Warnings": null })
}

/// `/volumes/<name>`
pub(in crate::engine) fn volume(volume: &Volume) -> Value {
    let shown = |map: &BTreeMap<String, String>| {
        if map.is_empty() {
            Value::Null
        } else {
            json!(map)
        }
    };
    json!({
        "CreatedAt": time(volume.created),
        "Driver": volume.driver,
        "Labels": shown(&volume.labels),
        "Mountpoint": volume.mountpoint,
        "Name": volume.name,
        "Options": shown(&volume.options),
        "Scope": "local",
    })
}
