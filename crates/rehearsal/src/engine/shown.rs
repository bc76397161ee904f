//! The engine's JSON in API version 1.41: the fields that `stacklift` reads.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use crate::world::{Container, World};

/// The newest API version.
pub(super) const API: &str = "1.41";

/// A time in the engine's format. The year 1 means never.
fn time(seconds: i64) -> String {
    let time = DateTime::from_timestamp(seconds, 0).filter(|_| seconds > 0);
    time.map_or_else(
        || "0001-01-01T00:00:00Z".to_owned(),
        |time| time.to_rfc3339_opts(SecondsFormat::Nanos, true),
    )
}

pub(super) fn version(world: &World) -> Value {
    json!({
        "Version": world.engine_version,
        "ApiVersion": API,
        "MinAPIVersion": "1.12",
        "Os": "linux",
        "Arch": "amd64",
    })
}

/// `/info` of the engine with that ID.
pub(crate) fn info(world: &World, engine: &str) -> Value {
    let mut info: Value = serde_json::from_str(include_str!("info.json")).unwrap_or_default();
    info["ID"] = json!(engine);
    info["SystemTime"] = json!(time(world.now / 1000));
    info["ServerVersion"] = json!(world.engine_version);
    info
}

/// An entry of `/containers/json`.
pub(super) fn listed(world: &World, container: &Container) -> Value {
    let named = world.image(&container.image);
    let is_current = named.is_some_and(|image| image["Id"] == container.image_id);
    let ports = container.ports.as_object().into_iter().flatten();
    let ports = ports.flat_map(|(port, bindings)| {
        let (number, kind) = port.split_once('/').unwrap_or_default();
        let shown = move |address: &Value, public: Option<u16>| {
            let number = number.parse::<u16>().ok();
            json!({ "IP": address, "PrivatePort": number, "PublicPort": public, "Type": kind })
        };
        let Some(bindings) = bindings.as_array() else {
            return vec![shown(&Value::Null, None)];
        };
        let bindings = bindings.iter().map(|binding| {
            let public = binding["HostPort"].as_str();
            shown(
                &binding["HostIp"],
                public.and_then(|public| public.parse().ok()),
            )
        });
        bindings.collect()
    });
    json!({
        "Id": container.id,
        "Names": [format!("/{}", container.name)],
        // The engine shows the ID if the name belongs to another image now.
        "Image": if is_current { &container.image } else { &container.image_id },
        "ImageID": container.image_id,
        "Command": container.command.join(" "),
        "Created": container.created,
        "Ports": ports.collect::<Vec<_>>(),
        "Labels": container.labels,
        "State": container.state,
        "Status": container.status(world.now),
        "Mounts": container.mounts,
    })
}

/// `/containers/<id>/json`
pub(super) fn inspected(world: &World, container: &Container) -> Value {
    let mut config = container.config.clone();
    config["Labels"] = json!(container.labels);
    let command = container.command.split_first();
    let health = container
        .health(world.now)
        .filter(|_| container.started != 0);
    let running = container.is_running();
    let restarting = container.state == "restarting";
    json!({
        "Id": container.id,
        "Created": time(container.created),
        "Path": command.map(|(path, _)| path),
        "Args": command.map(|(_, arguments)| arguments),
        "State": {
            "Status": container.state,
            "Running": running,
            "Paused": container.state == "paused",
            "Restarting": restarting,
            "Pid": if running { container.process } else { 0 },
            "ExitCode": container.exit_code,
            "Error": container.error,
            "StartedAt": time(container.started),
            "FinishedAt": time(container.finished),
            "Health": health.map(|health| json!({ "Status": health })),
        },
        "Image": container.image_id,
        "Name": format!("/{}", container.name),
        "RestartCount": if restarting { 9 } else { 0 },
        "Platform": "linux",
        "HostConfig": container.host_config,
        "Mounts": container.mounts,
        "Config": config,
        "NetworkSettings": { "Ports": container.ports, "Networks": container.networks },
    })
}

/// `/networks/<id>`
pub(super) fn network(world: &World, network: &Value) -> Value {
    let on_it = world
        .on_network(network["Id"].as_str().unwrap_or_default())
        .map(|(container, endpoint)| {
            let shown = json!({
                "Name": container.name,
                "EndpointID": endpoint["EndpointID"],
                "IPv4Address": endpoint["IPAddress"],
            });
            (container.id.clone(), shown)
        });
    let mut shown = network.clone();
    shown["Scope"] = json!("local");
    shown["Containers"] = Value::Object(on_it.collect());
    shown
}
