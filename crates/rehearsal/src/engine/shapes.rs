//! The engine's JSON in API version 1.41.

pub(super) mod container;
pub(super) mod image;
pub(super) mod network;
pub(super) mod volume;

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use crate::world::World;

/// A time in the engine's format. The year 1 means never.
fn time(seconds: i64) -> String {
    let time = DateTime::from_timestamp(seconds, 0).filter(|_| seconds > 0);
    time.map_or_else(
        || "0001-01-01T00:00:00Z".to_owned(),
        |time| time.to_rfc3339_opts(SecondsFormat::Nanos, true),
    )
}

pub(super) fn version(world: &World) -> Value {
    let engine = &world.engine;
    json!({
        "Platform": { "Name": "Docker Engine - Community" },
        "Components": [{
            "Name": "Engine",
            "Version": engine.version,
            "Details": { "ApiVersion": engine.api, "MinAPIVersion": engine.min_api, "Os": "linux" },
        }],
        "Version": engine.version,
        "ApiVersion": engine.api,
        "MinAPIVersion": engine.min_api,
        "GitCommit": "5d6db84",
        "GoVersion": "go1.19.7",
        "Os": "linux",
        "Arch": "amd64",
        "KernelVersion": "6.1.0",
        "BuildTime": "2023-04-04T18:18:40.000000000+00:00",
    })
}

pub(super) fn info(world: &World, engine: &str) -> Value {
    let here = || {
        let all = world.containers.values();
        all.filter(|container| container.engine == engine)
    };
    let running = here().filter(|container| container.is_running()).count();
    let mut info: Value = serde_json::from_str(include_str!("info.json")).unwrap_or_default();
    info["ID"] = json!(engine);
    info["Containers"] = json!(here().count());
    info["ContainersRunning"] = json!(running);
    info["ContainersPaused"] = json!(here().filter(|one| one.state == "paused").count());
    info["ContainersStopped"] = json!(here().count() - running);
    info["Images"] = json!(world.images.len());
    info["SystemTime"] = json!(time(world.now / 1000));
    info["ServerVersion"] = json!(world.engine.version);
    info
}
