//! The engine's JSON, in the shapes of API 1.41.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

use super::filters::Filters;
use crate::rehearsal::world::{
    Attachment, Container, Mount, MountKind, Network, Port, Volume, World, image_id,
};

/// A time as the engine writes it; the year 1 stands for never.
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
    info["ContainersStopped"] = json!(here().count() - running);
    info["Images"] = json!(world.images.len());
    info["SystemTime"] = json!(time(world.now / 1000));
    info["ServerVersion"] = json!(world.engine.version);
    info
}

/// An entry of `/containers/json`.
pub(super) fn listed(world: &World, container: &Container) -> Value {
    let ports = container.ports.iter().map(|port| match port.published {
        Some(published) if container.is_running() => json!({
            "IP": port.address,
            "PrivatePort": port.target,
            "PublicPort": published,
            "Type": port.protocol,
        }),
        _ => json!({ "PrivatePort": port.target, "Type": port.protocol }),
    });
    json!({
        "Id": container.id,
        "Names": [format!("/{}", container.name)],
        "Image": container.image,
        "ImageID": image_id(&container.image),
        "Command": container.command.join(" "),
        "Created": container.created,
        "Ports": ports.collect::<Value>(),
        "Labels": container.labels,
        "State": container.state,
        "Status": container.status(world.now / 1000),
        "HostConfig": { "NetworkMode": container.network_mode },
        "NetworkSettings": { "Networks": attachments(world, container) },
        "Mounts": mounts(container),
    })
}

/// `/containers/<id>/json`
pub(super) fn inspected(world: &World, container: &Container) -> Value {
    let running = container.is_running();
    let anonymous = container.mounts.iter().filter(|mount| mount.anonymous);
    let volumes = anonymous.map(|mount| (mount.target.clone(), json!({})));
    let exposed = container
        .ports
        .iter()
        .map(|port| (port_key(port), json!({})));
    let short = &container.id[..12.min(container.id.len())];
    let command = container.command.split_first();
    json!({
        "Id": container.id,
        "Created": time(container.created),
        "Path": command.map_or("", |(path, _)| path.as_str()),
        "Args": command.map_or(&[][..], |(_, args)| args),
        "State": {
            "Status": container.state,
            "Running": running,
            "Paused": false,
            "Restarting": false,
            "OOMKilled": false,
            "Dead": false,
            "Pid": if running { 4242 } else { 0 },
            "ExitCode": container.exit_code,
            "Error": "",
            "StartedAt": time(container.started),
            "FinishedAt": time(container.finished),
        },
        "Image": image_id(&container.image),
        "ResolvConfPath": format!("/var/lib/docker/containers/{}/resolv.conf", container.id),
        "HostnamePath": format!("/var/lib/docker/containers/{}/hostname", container.id),
        "HostsPath": format!("/var/lib/docker/containers/{}/hosts", container.id),
        "LogPath": format!("/var/lib/docker/containers/{0}/{0}-json.log", container.id),
        "Name": format!("/{}", container.name),
        "RestartCount": 0,
        "Driver": "overlay2",
        "Platform": "linux",
        "MountLabel": "",
        "ProcessLabel": "",
        "AppArmorProfile": "docker-default",
        "ExecIDs": null,
        "HostConfig": host_config(container),
        "GraphDriver": { "Data": null, "Name": "overlay2" },
        "Mounts": mounts(container),
        "Config": {
            "Hostname": short,
            "Domainname": "",
            "User": "",
            "AttachStdin": false,
            "AttachStdout": true,
            "AttachStderr": true,
            "ExposedPorts": exposed.collect::<Map<_, _>>(),
            "Tty": false,
            "OpenStdin": false,
            "StdinOnce": false,
            "Env": container.env,
            "Cmd": container.command,
            "Image": container.image,
            "Volumes": volumes.collect::<Map<_, _>>(),
            "WorkingDir": "",
            "Entrypoint": null,
            "OnBuild": null,
            "Labels": container.labels,
        },
        "NetworkSettings": {
            "Bridge": "",
            "SandboxID": "",
            "HairpinMode": false,
            "Ports": published(container, running),
            "SandboxKey": "",
            "Networks": attachments(world, container),
        },
    })
}

fn host_config(container: &Container) -> Value {
    let binds = container
        .mounts
        .iter()
        .filter(|mount| !mount.anonymous && mount.kind != MountKind::Tmpfs);
    let binds = binds.map(|mount| {
        let source = mount.name.as_ref().unwrap_or(&mount.source);
        format!(
            "{source}:{}:{}",
            mount.target,
            if mount.read_only { "ro" } else { "rw" }
        )
    });
    json!({
        "Binds": binds.collect::<Vec<_>>(),
        "ContainerIDFile": "",
        "LogConfig": { "Type": "json-file", "Config": {} },
        "NetworkMode": container.network_mode,
        "PortBindings": published(container, true),
        "RestartPolicy": { "Name": container.restart, "MaximumRetryCount": 0 },
        "AutoRemove": false,
        "VolumeDriver": "",
        "VolumesFrom": null,
        "CapAdd": null,
        "CapDrop": null,
        "Dns": null,
        "ExtraHosts": null,
        "IpcMode": "private",
        "Links": null,
        "PidMode": "",
        "Privileged": false,
        "PublishAllPorts": false,
        "ReadonlyRootfs": false,
        "SecurityOpt": null,
        "ShmSize": 67_108_864,
        "Runtime": "runc",
        "Ulimits": null,
    })
}

fn port_key(port: &Port) -> String {
    format!("{}/{}", port.target, port.protocol)
}

fn published(container: &Container, shown: bool) -> Value {
    let mut found = Map::new();
    for port in container.ports.iter().filter(|_| shown) {
        let Some(number) = port.published else {
            continue;
        };
        let entry = found.entry(port_key(port)).or_insert_with(|| json!([]));
        if let Some(list) = entry.as_array_mut() {
            list.push(json!({ "HostIp": port.address, "HostPort": number.to_string() }));
        }
    }
    Value::Object(found)
}

fn mounts(container: &Container) -> Value {
    container.mounts.iter().map(mount).collect()
}

fn mount(mount: &Mount) -> Value {
    let mut shown = json!({
        "Type": mount.kind,
        "Source": mount.source,
        "Destination": mount.target,
        "Mode": if mount.read_only { "ro" } else { "rw" },
        "RW": !mount.read_only,
        "Propagation": if mount.kind == MountKind::Bind { "rprivate" } else { "" },
    });
    if let Some(name) = &mount.name {
        shown["Name"] = json!(name);
        shown["Driver"] = json!("local");
    }
    shown
}

fn attachments(world: &World, container: &Container) -> Value {
    let shown = container.networks.iter().map(|(name, attachment)| {
        let network = world
            .networks
            .iter()
            .find(|network| network.engine == container.engine && network.name == *name);
        (name.clone(), attached(container, attachment, network))
    });
    Value::Object(shown.collect())
}

fn attached(container: &Container, attachment: &Attachment, network: Option<&Network>) -> Value {
    let config = match attachment.address.as_str() {
        "" => Value::Null,
        address => json!({ "IPv4Address": address }),
    };
    json!({
        "IPAMConfig": config,
        "Links": null,
        "Aliases": attachment.aliases,
        "NetworkID": network.map_or("", |network| &network.id),
        "EndpointID": if container.is_running() { container.id.as_str() } else { "" },
        "Gateway": "",
        "IPAddress": attachment.address,
        "IPPrefixLen": 0,
        "IPv6Gateway": "",
        "GlobalIPv6Address": "",
        "GlobalIPv6PrefixLen": 0,
        "MacAddress": "",
        "DriverOpts": null,
    })
}

/// `/volumes`
pub(super) fn volumes(world: &World, engine: &str, filters: &Filters) -> Value {
    let is_wanted = |one: &&Volume| {
        one.engine == engine
            && filters.labels(&one.labels)
            && filters.any("name", |name| one.name.contains(name))
            && filters.any("dangling", |flag| {
                world.is_mounted(one) != matches!(flag, "true" | "1")
            })
    };
    let found = world.volumes.iter().filter(is_wanted).map(volume);
    json!({ "Volumes": found.collect::<Value>(), "Warnings": null })
}

/// `/volumes/<name>`
pub(super) fn volume(volume: &Volume) -> Value {
    json!({
        "CreatedAt": time(volume.created),
        "Driver": "local",
        "Labels": if volume.labels.is_empty() { Value::Null } else { json!(volume.labels) },
        "Mountpoint": format!("/var/lib/docker/volumes/{}/_data", volume.name),
        "Name": volume.name,
        "Options": null,
        "Scope": "local",
    })
}

/// `/networks`
pub(super) fn networks(world: &World, engine: &str, filters: &Filters) -> Value {
    let is_wanted = |one: &&Network| {
        one.engine == engine
            && filters.labels(&one.labels)
            && filters.any("name", |name| one.name.contains(name))
            && filters.any("id", |id| one.id.starts_with(id))
            && filters.any("driver", |driver| one.driver == driver)
    };
    world
        .networks
        .iter()
        .filter(is_wanted)
        .map(|one| network(world, one))
        .collect()
}

/// `/networks/<id>`
pub(super) fn network(world: &World, network: &Network) -> Value {
    let is_on = |one: &&Container| {
        one.engine == network.engine && one.is_running() && one.networks.contains_key(&network.name)
    };
    let on_it = world.containers.values().filter(is_on).map(|container| {
        let shown = json!({
            "Name": container.name, "EndpointID": container.id, "MacAddress": "",
            "IPv4Address": "", "IPv6Address": "",
        });
        (container.id.clone(), shown)
    });
    json!({
        "Name": network.name,
        "Id": network.id,
        "Created": time(network.created),
        "Scope": "local",
        "Driver": network.driver,
        "EnableIPv6": false,
        "IPAM": { "Driver": "default", "Options": null, "Config": [{ "Subnet": "172.18.0.0/16" }] },
        "Internal": false,
        "Attachable": false,
        "Ingress": false,
        "ConfigFrom": { "Network": "" },
        "ConfigOnly": false,
        "Containers": on_it.collect::<Map<_, _>>(),
        "Options": {},
        "Labels": network.labels,
    })
}

/// `/images/json`
pub(super) fn images(world: &World) -> Value {
    let shown = world.images.iter().map(|name| {
        json!({
            "Id": image_id(name), "ParentId": "", "RepoTags": [name], "RepoDigests": null,
            "Created": 1_700_000_000, "Size": 4_000_000, "VirtualSize": 4_000_000, "SharedSize": -1,
            "Labels": null, "Containers": -1,
        })
    });
    shown.collect()
}
