//! Networks and attachments, as observed on a real engine with API 1.41.

use serde_json::{Value, json};

use super::{
    engine::{engine, error, make},
    *,
};

fn edge_network(world: &World) -> Option<&Network> {
    world.network_on(&world.engine.id, "edge").ok()
}

#[test]
fn the_engine_adds_addresses_and_aliases() {
    let (mut world, engine) = engine();
    world
        .create_network(&engine, &json!({ "Name": "edge" }))
        .unwrap();
    let body = json!({
        "Hostname": "front",
        "HostConfig": { "NetworkMode": "edge" },
        "NetworkingConfig": { "EndpointsConfig": { "edge": { "Aliases": ["www"] } } },
    });
    let id = make(&mut world, "web", &body).unwrap();
    let on = |world: &World| world.containers[&id].networks["edge"].clone();
    assert_eq!(on(&world).aliases, ["www"]);
    assert_eq!(on(&world).network_id, "");
    world.start_container(&id).unwrap();
    let live = on(&world).live.unwrap();
    assert_eq!(on(&world).aliases, ["www", &id[..12], "front"]);
    assert_eq!(
        (live.address.as_str(), live.mac.as_str()),
        ("172.18.0.2", "02:42:ac:12:00:02")
    );
    world.stop_container(&id, 0).unwrap();
    assert_eq!(on(&world).live, None);
    assert_eq!(on(&world).network_id, edge_network(&world).unwrap().id);
    // A recreated network with the same name is a different network.
    world.remove_network(&engine, "edge").unwrap();
    let again = world
        .create_network(&engine, &json!({ "Name": "edge" }))
        .unwrap();
    let refused = world.start_container(&id).unwrap_err();
    assert_eq!(
        refused,
        error(404, &format!("network {} not found", on(&world).network_id))
    );
    world.disconnect(&engine, "edge", &id).unwrap();
    world
        .connect(&engine, &again, &id, &json!({ "Aliases": ["www"] }))
        .unwrap();
    assert_eq!(world.start_container(&id), Ok(Effect::Changed));
}

#[test]
fn a_create_with_check_duplicate_rejects_an_existing_name() {
    let (mut world, engine) = engine();
    let subnet =
        |subnet: &str| json!({ "Name": "x1", "IPAM": { "Config": [{ "Subnet": subnet }] } });
    world
        .create_network(&engine, &json!({ "Name": "edge" }))
        .unwrap();
    for (given, expected) in [
        (
            json!({ "Name": "edge", "CheckDuplicate": true }),
            error(409, "network with name edge already exists"),
        ),
        (
            json!({ "Name": "bridge" }),
            error(
                403,
                "operation is not permitted on predefined bridge network ",
            ),
        ),
        (
            subnet("172.18.3.0/24"),
            error(403, "Pool overlaps with other one on this address space"),
        ),
        (
            subnet("bad"),
            error(500, "Invalid subnet bad : invalid CIDR address: bad"),
        ),
        (
            json!({ "Name": "x1", "Driver": "nope" }),
            error(404, "plugin \"nope\" not found"),
        ),
    ] {
        assert_eq!(
            world.create_network(&engine, &given),
            Err(expected),
            "{given}"
        );
    }
    // Without the check a second network gets the same name, which is then ambiguous.
    let edge = edge_network(&world).unwrap().id.clone();
    world
        .create_network(&engine, &json!({ "Name": "edge" }))
        .unwrap();
    assert_eq!(
        world.network_on(&engine, "edge").unwrap_err(),
        error(400, "network edge is ambiguous (2 matches found on name)")
    );
    world.remove_network(&engine, &edge).unwrap();
    assert!(edge_network(&world).is_some());
}

#[test]
fn rejects_connections_with_the_messages_of_a_real_engine() {
    let (mut world, engine) = engine();
    let id = world.add_container("web", "busybox");
    world
        .create_network(&engine, &json!({ "Name": "edge" }))
        .unwrap();
    let endpoint = |address: &str| json!({ "IPAMConfig": { "IPv4Address": address } });
    for (network, container, given, expected) in [
        ("nix", "web", json!({}), error(404, "network nix not found")),
        (
            "edge",
            "nix",
            json!({}),
            error(404, "No such container: nix"),
        ),
        (
            "edge",
            "web",
            endpoint("172.18.0.9"),
            error(
                400,
                "user specified IP address is supported only when connecting to networks with user \
                 configured subnets",
            ),
        ),
        (
            "bridge",
            "web",
            json!({}),
            error(
                403,
                "endpoint with name web already exists in network bridge",
            ),
        ),
    ] {
        let outcome = world.connect(&engine, network, container, &given);
        assert_eq!(outcome, Err(expected), "{network} {container}");
    }
    world.connect(&engine, "edge", "web", &Value::Null).unwrap();
    let edge = edge_network(&world).unwrap().id.clone();
    assert_eq!(
        world.remove_network(&engine, "edge"),
        Err(error(
            403,
            &format!("error while removing network: network edge id {edge} has active endpoints")
        ))
    );
    world.disconnect(&engine, "edge", "web").unwrap();
    assert_eq!(
        world.disconnect(&engine, "edge", "web"),
        Err(error(
            500,
            &format!("container {id} is not connected to the network edge")
        ))
    );
}
