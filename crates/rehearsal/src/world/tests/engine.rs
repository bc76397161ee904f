//! The calls of the engine, as observed on a real engine with API 1.41.

use serde_json::{Value, json};

use super::*;

pub(super) fn engine() -> (World, String) {
    let mut world = world();
    world.add_image("busybox:1.36");
    let engine = world.engine.id.clone();
    (world, engine)
}

pub(super) fn make(world: &mut World, name: &str, body: &Value) -> Result<String, EngineError> {
    let engine = world.engine.id.clone();
    let mut whole = json!({ "Image": "busybox:1.36" });
    for (key, value) in body.as_object().unwrap() {
        whole[key] = value.clone();
    }
    world.create_container(&engine, Some(name), &whole)
}

pub(super) fn error(status: u16, message: &str) -> EngineError {
    EngineError::new(status, message)
}

/// Asserts that a create with each body fails with this message and creates nothing.
#[track_caller]
fn refused(cases: &[(&str, Value, u16, &str)]) {
    let (mut world, engine) = engine();
    make(&mut world, "r1", &json!({})).unwrap();
    let before = world.clone();
    for (name, body, status, message) in cases {
        let refused = world
            .create_container(&engine, Some(name), body)
            .unwrap_err();
        assert_eq!(refused.status, *status, "{body}: {refused:?}");
        assert!(refused.message.starts_with(message), "{body}: {refused:?}");
    }
    assert_eq!(world.containers, before.containers);
    assert_eq!(world.volumes, before.volumes);
}

fn with_host(host: &Value) -> Value {
    json!({ "Image": "busybox:1.36", "HostConfig": host })
}

#[test]
fn rejects_invalid_bodies_names_and_images() {
    let wrapper = "ContainerConfigWrapper";
    let not_object =
        format!("json: cannot unmarshal array into Go value of type runconfig.{wrapper}");
    let not_list = format!(
        "json: cannot unmarshal string into Go struct field {wrapper}.Env of type []string"
    );
    let plain = || with_host(&json!({}));
    let image = |image: &str| json!({ "Image": image });
    refused(&[
        (
            "r1",
            plain(),
            409,
            "Conflict. The container name \"/r1\" is already in use by container \"",
        ),
        (
            "-bad x",
            plain(),
            400,
            "Invalid container name (-bad x), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed",
        ),
        ("n", plain(), 400, "Invalid container name (n)"),
        ("n1", image("nosuch"), 404, "No such image: nosuch:latest"),
        ("n1", image("sha256:01"), 404, "No such image: sha256:01"),
        ("n1", json!({}), 400, "Config cannot be empty in order to"),
        ("n1", json!([]), 500, &not_object),
        ("n1", json!({ "Image": "x", "Env": "x" }), 500, &not_list),
    ]);
}

#[test]
fn rejects_invalid_mounts() {
    let bind = json!({ "Type": "bind", "Source": "/none", "Target": "/x" });
    refused(&[
        (
            "n1",
            with_host(&json!({ "Mounts": [bind] })),
            400,
            "invalid mount config for type \"bind\": bind source path does not exist: /none",
        ),
        (
            "n1",
            with_host(&json!({ "Binds": ["vol1:/b", "/c:/b"] })),
            400,
            "Duplicate mount point: /b",
        ),
        (
            "n1",
            with_host(&json!({ "VolumesFrom": ["nix"] })),
            400,
            "No such container: nix",
        ),
    ]);
}

#[test]
fn rejects_options_that_conflict_with_the_network() {
    let host = json!({ "NetworkMode": "container:r1" });
    let joined = |key: &str, value: Value| {
        let mut body = with_host(&host);
        body[key] = value;
        body
    };
    let two = json!({ "EndpointsConfig": { "two": {}, "one": {} } });
    refused(&[
        (
            "n1",
            joined("Hostname", json!("x")),
            400,
            "conflicting options: hostname and the network mode",
        ),
        (
            "n1",
            joined("ExposedPorts", json!({ "80/tcp": {} })),
            400,
            "conflicting options: port exposing and the container type network mode",
        ),
        (
            "n1",
            joined("NetworkingConfig", two),
            400,
            "Container cannot be connected to network endpoints: one, two",
        ),
        (
            "n1",
            with_host(&json!({ "PidMode": "container:nix" })),
            400,
            "No such container: nix",
        ),
    ]);
}

#[test]
fn volumes_are_created_on_demand_and_only_anonymous_ones_are_removed_with_the_container() {
    let (mut world, _) = engine();
    world.add_image("redis:7");
    let id = make(
        &mut world,
        "web",
        &json!({
            "Image": "redis:7",
            "Volumes": { "/own": {}, "/named": {} },
            "HostConfig": {
                "Binds": ["named:/named", "/srv/new:/srv:ro"],
                "Mounts": [
                    { "Type": "volume", "Source": "long", "Target": "/long", "ReadOnly": true },
                    { "Type": "volume", "Target": "/unnamed" },
                    { "Type": "tmpfs", "Target": "/memory" },
                ],
            },
        }),
    )
    .unwrap();
    let shown = world.containers[&id].mounts.iter().map(|mount| {
        let name = mount.name.as_deref().filter(|_| !mount.anonymous);
        let target = mount.target.as_str();
        (
            target,
            name.unwrap_or_default(),
            mount.own,
            mount.read_only,
            mount.mode.as_str(),
        )
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("/named", "named", false, false, "z"),
            ("/srv", "", false, true, "ro"),
            ("/long", "long", false, true, "z"),
            ("/unnamed", "", true, false, "z"),
            ("/memory", "", false, false, ""),
            ("/own", "", true, false, ""),
            ("/data", "", true, false, ""),
        ]
    );
    assert!(world.has_path("/srv/new"));
    assert_eq!(world.volumes.len(), 5);
    world.remove_container(&id, AnonymousVolumes::Remove);
    let left = world.volumes.iter().map(|volume| volume.name.as_str());
    assert_eq!(left.collect::<Vec<_>>(), ["named", "long"]);
}

#[test]
fn an_anonymous_volume_that_is_mounted_by_name_keeps_its_data() {
    let mut world = running(TEXT);
    let volume = anonymous(&world, "app-a-1");
    let content = world.volume(&volume).unwrap().content.clone();
    world.down("app");
    let mount = json!({ "Type": "volume", "Source": volume, "Target": "/scratch" });
    let body = json!({ "Image": "busybox", "HostConfig": { "Mounts": [mount] } });
    let id = make(&mut world, "again", &body).unwrap();
    world.start_container(&id).unwrap();
    assert_eq!(anonymous(&world, "again"), volume);
    world.remove_container(&id, AnonymousVolumes::Remove);
    assert_eq!(world.volume(&volume).unwrap().content, content);
}

#[test]
fn a_failed_start_reports_the_reason() {
    let (mut world, engine) = engine();
    let subnet = json!({ "Config": [{ "Subnet": "10.5.0.0/24", "Gateway": "10.5.0.1" }] });
    let network = json!({ "Name": "inner", "IPAM": subnet });
    world.create_network(&engine, &network).unwrap();
    let on = |address: &str| {
        json!({
            "HostConfig": { "NetworkMode": "inner" },
            "NetworkingConfig": { "EndpointsConfig": {
                "inner": { "IPAMConfig": { "IPv4Address": address } },
            } },
        })
    };
    let published =
        json!({ "HostConfig": { "PortBindings": { "80/tcp": [{ "HostPort": "8080" }] } } });
    for (name, body) in [("one1", &on("10.5.0.9")), ("two2", &published)] {
        let id = make(&mut world, name, body).unwrap();
        assert_eq!(world.start_container(&id), Ok(Effect::Changed));
        assert_eq!(world.start_container(&id), Ok(Effect::Unchanged));
    }
    let idle = make(&mut world, "idle", &json!({})).unwrap();
    let joins = |mode: &str| json!({ "HostConfig": { "NetworkMode": mode } });
    let cases = [
        (on("10.5.0.9"), error(403, "Address already in use")),
        (
            on("10.9.0.9"),
            error(
                500,
                "Invalid address 10.9.0.9: It does not belong to any of this network's subnets",
            ),
        ),
        (joins("nonet"), error(404, "network nonet not found")),
        (joins("container:nix"), error(404, "No such container: nix")),
        (
            joins("container:idle"),
            error(
                409,
                &format!("cannot join network of a non running container: {idle}"),
            ),
        ),
    ];
    for (body, expected) in cases {
        let id = make(&mut world, "late", &body).unwrap();
        assert_eq!(world.start_container(&id), Err(expected.clone()));
        let container = &world.containers[&id];
        assert_eq!(
            (container.state.as_str(), container.exit_code),
            ("created", 128)
        );
        assert_eq!(container.error, expected.message);
        world.remove_container(&id, AnonymousVolumes::Keep);
    }
    let id = make(&mut world, "late", &published).unwrap();
    let refused = world.start_container(&id).unwrap_err();
    assert_eq!(refused.status, 500);
    assert!(
        refused
            .message
            .ends_with("Bind for 0.0.0.0:8080 failed: port is already allocated"),
        "{refused:?}"
    );
    let holder = world.container("two2").unwrap().id.clone();
    world.stop_container(&holder, 0).unwrap();
    assert_eq!(
        world.start_container(&id),
        Ok(Effect::Changed),
        "the port is free now"
    );
    assert_eq!(world.containers[&id].error, "");
}

#[test]
fn a_container_survives_the_removal_of_its_image() {
    let (mut world, _) = engine();
    let id = make(&mut world, "web", &json!({})).unwrap();
    let old = world.containers[&id].image_id.clone();
    let new = renew_image(&mut world, "busybox:1.36");
    assert_ne!(new, old);
    assert_eq!(world.image("busybox:1.36").unwrap().id, new);
    let by_id = make(&mut world, "by-id", &json!({ "Image": old })).unwrap();
    assert_eq!(world.containers[&by_id].image_id, old);
    assert_eq!(world.remove_image(&old).unwrap().id, old);
    let refused = make(&mut world, "gone", &json!({ "Image": old })).unwrap_err();
    assert_eq!(refused, error(404, &format!("No such image: {old}")));
    assert_eq!(
        world.start_container(&id),
        Ok(Effect::Changed),
        "the container does not need its image to start"
    );
}

#[test]
fn the_engine_adds_its_defaults_and_the_image_its_own() {
    let (mut world, _) = engine();
    let body = json!({
        "Env": ["A=1"],
        "HostConfig": { "Memory": 1024, "IpcMode": "host", "Unknown": 1, "CapAdd": ["NET_ADMIN"] },
    });
    let id = make(&mut world, "web", &body).unwrap();
    let container = &world.containers[&id];
    let host = &container.host_config;
    assert_eq!(container.env[0], "A=1");
    assert!(container.env[1].starts_with("PATH="));
    assert_eq!(container.command, ["sh"]);
    assert_eq!(container.config["Hostname"], id[..12]);
    assert_eq!(host["MemorySwap"], 2048);
    assert_eq!(host["SecurityOpt"], json!(["label=disable"]));
    assert_eq!(
        host["LogConfig"],
        json!({ "Type": "json-file", "Config": {} })
    );
    assert_eq!(host["CapAdd"], json!(["NET_ADMIN"]));
    assert_eq!(host.get("Unknown"), None);
}
