//! Images.

use serde_json::{Value, json};

use super::{super::filters::Filters, time};
use crate::world::{Image, World, tagged};

const SIZE: u32 = 4_000_000;

/// `/images/json`
pub(in crate::engine) fn images(world: &World, filters: &Filters) -> Value {
    let is_wanted = |image: &&Image| {
        filters.any("reference", |name| image.tags.contains(&tagged(name)))
            && filters.any("dangling", |flag| {
                image.tags.is_empty() == matches!(flag, "true" | "1")
            })
    };
    let shown = world.images.values().filter(is_wanted).map(|image| {
        json!({
            "Containers": -1,
            "Created": image.created,
            "Id": image.id,
            "Labels": image.config["Labels"],
            "ParentId": "",
            "RepoDigests": null,
            "RepoTags": image.tags,
            "SharedSize": -1,
            "Size": SIZE,
            "VirtualSize": SIZE,
        })
    });
    shown.collect()
}

/// `/images/<name>/json`
pub(in crate::engine) fn image(image: &Image) -> Value {
    json!({
        "Id": image.id,
        "RepoTags": image.tags,
        "RepoDigests": [],
        "Parent": "",
        "Comment": "",
        "Created": time(image.created),
        "Container": "",
        "ContainerConfig": null,
        "DockerVersion": "20.10.24",
        "Author": "",
        "Config": image.config,
        "Architecture": "amd64",
        "Os": "linux",
        "Size": SIZE,
        "VirtualSize": SIZE,
        "GraphDriver": { "Data": null, "Name": "overlay2" },
        "RootFS": { "Type": "layers", "Layers": [image.id] },
        "Metadata": { "LastTagTime": time(image.created) },
    })
}
