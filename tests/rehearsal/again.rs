//! Containers that are recreated from their inspection, as a restore does.

use rehearsal::{LocalCompose, Rehearsal};
use serde_json::{Map, Value, json};

use crate::{
    client::Client,
    engine::{FOLDER, everything, get, post, send},
};

fn inspect_all(client: &mut Client) -> Vec<Value> {
    let listed = get(client, "/containers/json?all=1");
    let ids = listed.as_array().unwrap().iter();
    let ids = ids.map(|one| one["Id"].as_str().unwrap().to_owned());
    let mut all = ids
        .map(|id| get(client, &format!("/containers/{id}/json")))
        .collect::<Vec<_>>();
    all.sort_by_key(|one| one["Name"].as_str().unwrap().to_owned());
    all
}

/// The inspections without what the engine chooses: IDs, times, addresses and unspecified host ports.
fn lasting(inspected: &[Value], names: &Map<String, Value>) -> Vec<Value> {
    let lasting = inspected.iter().map(|one| {
        let mut one = one.clone();
        for key in [
            "Created",
            "ResolvConfPath",
            "HostnamePath",
            "HostsPath",
            "LogPath",
        ] {
            one[key] = Value::Null;
        }
        for key in ["StartedAt", "FinishedAt", "ExitCode", "Health", "Pid"] {
            one["State"][key] = Value::Null;
        }
        for key in ["EndpointID", "IPAddress", "MacAddress"] {
            one["NetworkSettings"][key] = Value::Null;
        }
        // Recreated by image ID, because the name may belong to a newer image.
        one["Config"]["Image"] = Value::Null;
        one["NetworkSettings"]["Ports"]["9090/tcp"] = Value::Null;
        let networks = one["NetworkSettings"]["Networks"].as_object_mut().unwrap();
        for (_, network) in networks {
            for key in ["EndpointID", "NetworkID", "Gateway", "IPPrefixLen"] {
                network[key] = Value::Null;
            }
            if network["IPAMConfig"]["IPv4Address"].is_null() {
                network["IPAddress"] = Value::Null;
                network["MacAddress"] = Value::Null;
            }
        }
        // Recreated containers name their anonymous volumes.
        one["HostConfig"]["Mounts"] = Value::Null;
        for mount in one["Mounts"].as_array_mut().unwrap() {
            mount["Mode"] = Value::Null;
        }
        let mounts = one["Mounts"].as_array_mut().unwrap();
        mounts.sort_by_key(|mount| mount["Destination"].as_str().unwrap().to_owned());
        let mut text = one.to_string();
        for (id, name) in names {
            let name = name.as_str().unwrap();
            text = text.replace(id, name).replace(&id[..12], name);
        }
        serde_json::from_str(&text).unwrap()
    });
    lasting.collect()
}

fn names(inspected: &[Value]) -> Map<String, Value> {
    let names = inspected
        .iter()
        .map(|one| (one["Id"].as_str().unwrap().to_owned(), one["Name"].clone()));
    names.collect()
}

/// Recreates a container from its inspection, in the simplest way.
fn recreate(client: &mut Client, old: &Value, renamed: &Map<String, Value>) -> Value {
    let short = &old["Id"].as_str().unwrap()[..12];
    let mut body = old["Config"].clone();
    body["Image"] = old["Image"].clone();
    let mut host = old["HostConfig"].clone();
    let mode = host["NetworkMode"].as_str().unwrap().to_owned();
    if body["Hostname"] == short || mode.starts_with("container:") {
        body["Hostname"] = json!("");
    }
    let listed = host["Mounts"].as_array().cloned().unwrap_or_default();
    let named = old["Mounts"].as_array().unwrap().iter().filter_map(|one| {
        let target = &one["Destination"];
        let is_listed = listed.iter().any(|mount| mount["Target"] == *target);
        let from = !host["VolumesFrom"].is_null();
        (one["Type"] == "volume" && (is_listed || host["Binds"].is_null()) && !from).then(|| {
            json!({ "Type": "volume", "Source": one["Name"], "Target": target, "ReadOnly": one["RW"] == false })
        })
    });
    let other = listed.iter().filter(|mount| mount["Type"] != "volume");
    host["Mounts"] = other.cloned().chain(named).collect();
    let text = renamed.iter().fold(host.to_string(), |text, (old, new)| {
        text.replace(old, new.as_str().unwrap())
    });
    body["HostConfig"] = serde_json::from_str(&text).unwrap();
    let networks = old["NetworkSettings"]["Networks"].as_object().unwrap();
    let endpoints = networks.iter().map(|(name, one)| {
        let aliases = one["Aliases"].as_array().cloned().unwrap_or_default();
        let given = aliases
            .into_iter()
            .filter(|alias| *alias != *short && *alias != old["Config"]["Hostname"]);
        let endpoint = json!({
            "Aliases": given.collect::<Value>(),
            "IPAMConfig": one["IPAMConfig"],
        });
        (name.clone(), endpoint)
    });
    let (first, others) = endpoints.partition::<Map<_, _>, _>(|(name, _)| *name == mode);
    body["NetworkingConfig"] = json!({ "EndpointsConfig": first });
    let name = old["Name"].as_str().unwrap().trim_start_matches('/');
    let response = send(
        client,
        "POST",
        &format!("/containers/create?name={name}"),
        &body,
    );
    assert_eq!(response.status, 201, "{name}: {}", response.text());
    let id = response.json()["Id"].clone();
    for (network, endpoint) in others {
        let body = json!({ "Container": id, "EndpointConfig": endpoint });
        assert_eq!(
            post(client, &format!("/networks/{network}/connect"), &body),
            200
        );
    }
    id
}

/// The services, dependencies first.
const ORDER: [&str; 7] = ["store", "front", "side", "job", "reader", "idle", "host"];

#[test]
fn recreated_containers_match_their_inspections_and_compose_keeps_them() {
    for version in [LocalCompose::V2_26, LocalCompose::V5_6] {
        let (rehearsal, mut client) = everything(version);
        let before = inspect_all(&mut client);
        let contents = |rehearsal: &Rehearsal| rehearsal.world(|world| world.volumes.clone());
        let (data, networks) = (contents(&rehearsal), get(&mut client, "/networks"));
        rehearsal.world(|world| world.down("everything"));
        for network in networks.as_array().unwrap() {
            if network["Labels"].as_object().unwrap().is_empty() {
                continue;
            }
            let mut body = network.clone();
            body["CheckDuplicate"] = json!(true);
            assert_eq!(post(&mut client, "/networks/create", &body), 201);
        }
        let mut renamed = Map::new();
        for service in ORDER {
            let name = format!("/everything-{service}-1");
            let old = before.iter().find(|one| one["Name"] == name).unwrap();
            let id = recreate(&mut client, old, &renamed);
            renamed.insert(old["Id"].as_str().unwrap().to_owned(), id.clone());
            let path = format!("/containers/{}", id.as_str().unwrap());
            let start = post(&mut client, &format!("{path}/start"), &Value::Null);
            assert_eq!(start, 204, "{service}");
            if service == "idle" {
                let stop = post(&mut client, &format!("{path}/stop"), &Value::Null);
                assert_eq!(stop, 204);
            }
        }
        let after = inspect_all(&mut client);
        let was = lasting(&before, &names(&before));
        let is = lasting(&after, &names(&after));
        assert_eq!((was.len(), is.len()), (ORDER.len(), ORDER.len()));
        for (was, is) in was.iter().zip(&is) {
            assert_eq!(was, is, "{version:?}");
        }
        assert_eq!(contents(&rehearsal), data, "{version:?}: the same volumes");
        let would = rehearsal.world(|world| world.up_would_change("everything", FOLDER));
        assert_eq!(would, Ok(Vec::new()), "{version:?}");
    }
}
