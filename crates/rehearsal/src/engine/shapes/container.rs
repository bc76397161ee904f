//! Containers in lists and inspections.

use serde_json::{Map, Value, json};

use super::time;
use crate::world::{Attachment, Container, Mount, MountType, Port, World};

/// An entry of `/containers/json`.
pub(in crate::engine) fn listed(world: &World, container: &Container) -> Value {
    let mut mounts = container.mounts.iter().collect::<Vec<_>>();
    mounts.sort_by(|one, other| one.target.cmp(&other.target));
    let named = world.image(&container.image);
    let is_current = named.is_some_and(|image| image.id == container.image_id);
    let mut networks = attachments(world, container);
    for (_, attachment) in networks.as_object_mut().into_iter().flatten() {
        attachment["Aliases"] = Value::Null;
    }
    json!({
        "Id": container.id,
        "Names": [format!("/{}", container.name)],
        // The engine shows the ID if the name belongs to another image now.
        "Image": if is_current { &container.image } else { &container.image_id },
        "ImageID": container.image_id,
        "Command": command(&container.command),
        "Created": container.created,
        "Ports": listed_ports(container),
        "Labels": container.labels,
        "State": container.state,
        "Status": container.status(world.now),
        "HostConfig": { "NetworkMode": container.network_mode },
        "NetworkSettings": { "Networks": networks },
        "Mounts": mounts.into_iter().map(mount).collect::<Value>(),
    })
}

/// The command line as the engine shows it: words with spaces are quoted.
fn command(words: &[String]) -> String {
    let shown = words.iter().map(|word| {
        if word.contains(char::is_whitespace) {
            format!("'{word}'")
        } else {
            word.clone()
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn listed_ports(container: &Container) -> Value {
    if !container.is_running() {
        return json!([]);
    }
    let entries = container.ports.iter().flat_map(|port| {
        let Some(bound) = port.bound else {
            return vec![json!({ "PrivatePort": port.target, "Type": port.protocol })];
        };
        let entry = |address: &str| {
            json!({
                "IP": address,
                "PrivatePort": port.target,
                "PublicPort": bound,
                "Type": port.protocol,
            })
        };
        addresses(port).into_iter().map(entry).collect()
    });
    entries.collect()
}

/// The addresses of a published port. An empty address means IPv4 and IPv6.
fn addresses(port: &Port) -> Vec<&str> {
    match port.address.as_str() {
        "" => vec!["0.0.0.0", "::"],
        address => vec![address],
    }
}

/// `/containers/<id>/json`
pub(in crate::engine) fn inspected(world: &World, container: &Container) -> Value {
    let command = container.command.split_first();
    let folder = format!("/var/lib/docker/containers/{}", container.id);
    let mut config = container.config.clone();
    config["Env"] = json!(container.env);
    config["Labels"] = json!(container.labels);
    json!({
        "Id": container.id,
        "Created": time(container.created),
        "Path": command.map_or("", |(path, _)| path.as_str()),
        "Args": command.map_or(&[][..], |(_, args)| args),
        "State": state(container, world.now),
        "Image": container.image_id,
        "ResolvConfPath": format!("{folder}/resolv.conf"),
        "HostnamePath": format!("{folder}/hostname"),
        "HostsPath": format!("{folder}/hosts"),
        "LogPath": format!("{folder}/{}-json.log", container.id),
        "Name": format!("/{}", container.name),
        "RestartCount": 0,
        "Driver": "overlay2",
        "Platform": "linux",
        "MountLabel": "",
        "ProcessLabel": "",
        "AppArmorProfile": "docker-default",
        "ExecIDs": null,
        "HostConfig": container.host_config,
        "GraphDriver": { "Data": null, "Name": "overlay2" },
        "Mounts": container.mounts.iter().map(mount).collect::<Value>(),
        "Config": config,
        "NetworkSettings": network_settings(world, container),
    })
}

fn state(container: &Container, now: i64) -> Value {
    let running = container.is_running();
    let mut state = json!({
        "Status": container.state,
        "Running": running,
        "Paused": container.state == "paused",
        "Restarting": false,
        "OOMKilled": false,
        "Dead": false,
        "Pid": if running { 4242 } else { 0 },
        "ExitCode": container.exit_code,
        "Error": container.error,
        "StartedAt": time(container.started),
        "FinishedAt": time(container.finished),
    });
    if let Some(health) = container.health(now).filter(|_| container.started != 0) {
        state["Health"] = json!({ "Status": health, "FailingStreak": 0, "Log": [] });
    }
    state
}

fn network_settings(world: &World, container: &Container) -> Value {
    let networks = attachments(world, container);
    let mut settings = json!({
        "Bridge": "",
        "SandboxID": "",
        "HairpinMode": false,
        "LinkLocalIPv6Address": "",
        "LinkLocalIPv6PrefixLen": 0,
        "Ports": published(container),
        "SandboxKey": "",
        "SecondaryIPAddresses": null,
        "SecondaryIPv6Addresses": null,
        "EndpointID": "",
        "Gateway": "",
        "GlobalIPv6Address": "",
        "GlobalIPv6PrefixLen": 0,
        "IPAddress": "",
        "IPPrefixLen": 0,
        "IPv6Gateway": "",
        "MacAddress": "",
    });
    // The engine repeats the default bridge at the top level, for old clients.
    if let Some(bridge) = networks.get("bridge") {
        for key in [
            "EndpointID",
            "Gateway",
            "IPAddress",
            "IPPrefixLen",
            "MacAddress",
        ] {
            settings[key] = bridge[key].clone();
        }
    }
    settings["Networks"] = networks;
    settings
}

fn published(container: &Container) -> Value {
    let mut found = Map::new();
    for port in container.ports.iter().filter(|_| container.is_running()) {
        let key = format!("{}/{}", port.target, port.protocol);
        let entry = found.entry(key).or_insert(Value::Null);
        let Some(number) = port.bound else {
            continue;
        };
        let shown = addresses(port).into_iter();
        let shown =
            shown.map(|address| json!({ "HostIp": address, "HostPort": number.to_string() }));
        let mut all = entry.as_array().cloned().unwrap_or_default();
        all.extend(shown);
        *entry = Value::Array(all);
    }
    Value::Object(found)
}

fn mount(mount: &Mount) -> Value {
    let mut shown = json!({ "Type": mount.kind });
    if let Some(name) = &mount.name {
        shown["Name"] = json!(name);
    }
    shown["Source"] = json!(mount.source);
    shown["Destination"] = json!(mount.target);
    if mount.name.is_some() {
        shown["Driver"] = json!("local");
    }
    shown["Mode"] = json!(mount.mode);
    shown["RW"] = json!(!mount.read_only);
    let propagation = if mount.kind == MountType::Bind {
        "rprivate"
    } else {
        ""
    };
    shown["Propagation"] = json!(propagation);
    shown
}

fn attachments(world: &World, container: &Container) -> Value {
    let shown = container
        .networks
        .iter()
        .map(|(name, attachment)| (name.clone(), attached(world, attachment)));
    Value::Object(shown.collect())
}

fn attached(world: &World, attachment: &Attachment) -> Value {
    let live = attachment.live.as_ref();
    let network = || {
        let id = &attachment.network_id;
        world.networks.iter().find(|network| network.id == *id)
    };
    let network = live.and_then(|_| network());
    let pool = |field: &str| network.map_or("", |network| network.pool(field));
    let prefix = pool("Subnet").rsplit('/').next().unwrap_or_default();
    let aliases = match attachment.aliases.as_slice() {
        [] => Value::Null,
        aliases => json!(aliases),
    };
    json!({
        "IPAMConfig": attachment.ipam,
        "Links": attachment.links,
        "Aliases": aliases,
        "NetworkID": attachment.network_id,
        "EndpointID": live.map_or("", |live| &live.endpoint),
        "Gateway": pool("Gateway"),
        "IPAddress": live.map_or("", |live| &live.address),
        "IPPrefixLen": prefix.parse().unwrap_or(0),
        "IPv6Gateway": "",
        "GlobalIPv6Address": "",
        "GlobalIPv6PrefixLen": 0,
        "MacAddress": live.map_or("", |live| &live.mac),
        "DriverOpts": attachment.driver_opts,
    })
}
