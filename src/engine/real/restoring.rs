//! The writes that bring back what ran, against a real engine.

use std::fs;

use crate::engine::{Choice, Engine, Restoring, Version};
use serde_json::{Map, Value, json};

use super::{
    engine,
    host::{Compose, Host, IMAGE, PROJECT, docker},
};

/// A test of the writes, which only the API does.
fn with(test: fn(&Host, &Engine, &Restoring<'_>)) {
    if let Some(host) = Host::find() {
        let engine = engine(Choice::Api);
        test(&host, &engine, &engine.restoring().unwrap());
    }
}

/// A body for a container of the test that sleeps.
fn sleeper(host: &Host) -> Value {
    json!({
        "Image": IMAGE,
        "Cmd": ["/bin/sleep", "600"],
        "Labels": { (PROJECT): host.project, "stacklift.test": host.project },
        "HostConfig": { "NetworkMode": "none" },
    })
}

fn inspect(engine: &Engine, id: &str) -> Value {
    let mut found = engine.inspect_containers(&[id.to_owned()]).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The body that makes a container as `inspected` again, and the networks to connect it to after that.
fn body_of(inspected: &Value, version: Version) -> (Value, Map<String, Value>) {
    let mut networks = inspected["NetworkSettings"]["Networks"]
        .as_object()
        .unwrap()
        .clone();
    let id = text(&inspected["Id"]);
    for endpoint in networks.values_mut() {
        let aliases = endpoint["Aliases"].as_array().cloned().unwrap_or_default();
        let own = |alias: &Value| id.starts_with(alias.as_str().unwrap());
        let aliases: Vec<_> = aliases.into_iter().filter(|alias| !own(alias)).collect();
        *endpoint = json!({ "Aliases": aliases, "IPAMConfig": endpoint["IPAMConfig"] });
    }
    let first = text(&inspected["HostConfig"]["NetworkMode"]);
    let mut later = networks.clone();
    later.remove(&first);
    if version < Version(1, 44) {
        networks.retain(|name, _| *name == first);
    } else {
        later.clear();
    }

    let mut body = inspected["Config"].clone();
    body["Image"] = inspected["Image"].clone();
    body["HostConfig"] = inspected["HostConfig"].clone();
    body["HostConfig"]["Mounts"] = inspected["Mounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mount| json!({ "Type": mount["Type"], "Source": mount["Name"], "Target": mount["Destination"] }))
        .collect();
    body["NetworkingConfig"] = json!({ "EndpointsConfig": networks });
    (body, later)
}

#[test]
fn a_container_comes_back_with_its_networks_and_volumes() {
    with(|host, engine, restoring| {
        let subnet = host.network("front");
        host.network("back");
        let (front, back) = (host.name("front"), host.name("back"));
        let named = host.volume("data");
        let name = host.name("web");
        let labels = [(PROJECT, &host.project), ("stacklift.test", &host.project)];
        let labels: Map<_, _> = labels
            .map(|(label, value)| (label.to_owned(), json!(value)))
            .into_iter()
            .collect();
        let mut body = sleeper(host);
        body["Labels"] = labels.into();
        body["HostConfig"] = json!({
            "NetworkMode": front,
            "Mounts": [
                { "Type": "volume", "Source": named, "Target": "/named" },
                { "Type": "volume", "Target": "/anonymous" },
            ],
        });
        let address = format!("{subnet}.77");
        body["NetworkingConfig"] = json!({ "EndpointsConfig": {
            (&front): { "Aliases": ["web", "www"], "IPAMConfig": { "IPv4Address": address } },
        } });
        let id = restoring.create_container(&name, None, &body).unwrap();
        let endpoint = json!({ "Aliases": ["api"] });
        restoring.connect(&back, &id, &endpoint).unwrap();
        restoring.start(&id).unwrap();
        let write = "echo 1 > /named/file; echo 2 > /anonymous/file";
        docker(&["exec", &name, "/bin/sh", "-c", write]);
        let before = inspect(engine, &id);

        restoring.remove_container(&id).unwrap();
        assert_eq!(restoring.container_by_name(&name).unwrap(), None);
        let volumes: Vec<_> = before["Mounts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|mount| text(&mount["Name"]))
            .collect();
        assert_eq!(engine.inspect_volumes(&volumes).unwrap().len(), 2);

        let (body, later) = body_of(&before, restoring.version().unwrap());
        let again = restoring.create_container(&name, None, &body).unwrap();
        for (network, endpoint) in &later {
            restoring.connect(network, &again, endpoint).unwrap();
        }
        restoring.start(&again).unwrap();
        let after = restoring.container_by_name(&name).unwrap().unwrap();
        assert_eq!(after["Id"], again);
        let networks = &after["NetworkSettings"]["Networks"];
        assert_eq!(networks[&front]["IPAddress"], address);
        let has = |network: &str, alias: &str| {
            let aliases = networks[network]["Aliases"].as_array().unwrap();
            assert!(aliases.contains(&json!(alias)), "{aliases:?}");
        };
        has(&front, "web");
        has(&front, "www");
        has(&back, "api");
        assert_eq!(docker(&["exec", &name, "/bin/cat", "/named/file"]), "1");
        assert_eq!(docker(&["exec", &name, "/bin/cat", "/anonymous/file"]), "2");

        docker(&["rm", "-f", &name]);
        for volume in volumes {
            docker(&["volume", "rm", &volume]);
        }
    });
}

#[test]
fn an_image_is_taken_by_its_id() {
    with(|host, engine, restoring| {
        let tag = format!("{}:latest", host.project);
        docker(&["tag", IMAGE, &tag]);
        let old = docker(&["image", "inspect", "--format", "{{.Id}}", &tag]);
        let mut body = sleeper(host);
        let mut create = |name: &str, image: &str| {
            body["Image"] = json!(image);
            restoring.create_container(&host.name(name), None, &body)
        };
        let first = create("first", &tag).unwrap();
        // The name goes on to another image.
        docker(&["commit", &first, &tag]);
        let second = create("second", &tag).unwrap();
        assert_ne!(inspect(engine, &second)["Image"], old);
        let third = create("third", &old).unwrap();
        assert_eq!(inspect(engine, &third)["Image"], old);

        let gone = format!("sha256:{}", "0".repeat(64));
        let error = create("fourth", &gone).unwrap_err();
        let text = format!("{error:#}").to_lowercase();
        assert!(text.contains("answers 404: no such image"), "{text}");
    });
}

#[test]
fn what_is_so_already_is_done() {
    with(|host, engine, restoring| {
        let name = host.name("web");
        let id = restoring
            .create_container(&name, None, &sleeper(host))
            .unwrap();
        restoring.stop(&id, Some(1)).unwrap();
        restoring.start(&id).unwrap();
        restoring.start(&id).unwrap();
        restoring.pause(&id).unwrap();
        restoring.pause(&id).unwrap();
        assert_eq!(inspect(engine, &id)["State"]["Status"], "paused");
        restoring.unpause(&id).unwrap();
        restoring.unpause(&id).unwrap();
        assert_eq!(inspect(engine, &id)["State"]["Status"], "running");
        restoring.stop(&id, Some(0)).unwrap();
        restoring.stop(&id, None).unwrap();
        assert!(restoring.pause(&id).is_err());
        assert_eq!(inspect(engine, &id)["State"]["Status"], "exited");

        let other = host.name("other");
        restoring.rename(&id, &other).unwrap();
        assert_eq!(restoring.container_by_name(&name).unwrap(), None);
        let found = restoring.container_by_name(&other).unwrap().unwrap();
        assert_eq!(found["Id"], id);
        // An engine also finds by the beginning of an id.
        assert_eq!(restoring.container_by_name(&id[..9]).unwrap(), None);

        restoring.remove_container(&id).unwrap();
        restoring.remove_container(&id).unwrap();
        restoring.stop(&id, None).unwrap();
        assert!(restoring.start(&id).is_err());
    });
}

#[test]
fn a_name_that_is_taken_is_refused() {
    with(|host, _, restoring| {
        let create =
            |name: &str| restoring.create_container(&host.name(name), None, &sleeper(host));
        create("web").unwrap();
        let error = create("web").unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.starts_with(&format!(
                "failed to create the container {}: ",
                host.name("web")
            )) && text.contains("answers 409"),
            "{text}"
        );
        let other = create("other").unwrap();
        restoring.rename(&other, &host.name("web")).unwrap_err();
    });
}

#[test]
fn a_container_is_connected_and_taken_off_running_or_not() {
    with(|host, engine, restoring| {
        host.network("front");
        host.network("back");
        let (front, back) = (host.name("front"), host.name("back"));
        let mut body = sleeper(host);
        body["HostConfig"]["NetworkMode"] = json!(front);
        let id = restoring
            .create_container(&host.name("web"), None, &body)
            .unwrap();
        let networks = || {
            let found = inspect(engine, &id);
            let networks = found["NetworkSettings"]["Networks"].as_object().unwrap();
            networks.keys().cloned().collect::<Vec<_>>()
        };
        for start in [false, true] {
            if start {
                restoring.start(&id).unwrap();
            }
            restoring.connect(&back, &id, &json!({})).unwrap();
            assert_eq!(networks(), [back.clone(), front.clone()]);
            restoring.disconnect(&back, &id).unwrap();
            restoring.disconnect(&back, &id).unwrap();
            assert_eq!(networks(), std::slice::from_ref(&front));
        }
        restoring.connect(&front, &id, &json!({})).unwrap_err();
        restoring
            .connect(&host.name("no-such"), &id, &json!({}))
            .unwrap_err();
        restoring.disconnect(&back, &host.name("no-such")).unwrap();
    });
}

#[test]
fn what_shares_a_network_names_neither_host_nor_ports() {
    with(|host, engine, restoring| {
        let owner = restoring
            .create_container(&host.name("owner"), None, &sleeper(host))
            .unwrap();
        restoring.start(&owner).unwrap();
        let mut body = sleeper(host);
        let mode = format!("container:{owner}");
        body["HostConfig"]["NetworkMode"] = json!(mode);
        let create =
            |name: &str, body: &Value| restoring.create_container(&host.name(name), None, body);
        let id = create("sharing", &body).unwrap();
        restoring.start(&id).unwrap();
        let found = inspect(engine, &id);
        assert_eq!(found["HostConfig"]["NetworkMode"], mode);
        // Inspect tells the owner's, which is refused.
        assert_eq!(found["Config"]["Hostname"], owner[..12]);
        for (field, value) in [
            ("Hostname", found["Config"]["Hostname"].clone()),
            ("ExposedPorts", json!({ "80/tcp": {} })),
        ] {
            let mut body = body.clone();
            body[field] = value;
            let error = format!("{:#}", create("refused", &body).unwrap_err());
            assert!(error.contains("conflicting options"), "{error}");
        }
    });
}

#[test]
fn networks_and_volumes_come_back_and_what_is_there_stays() {
    with(|host, engine, restoring| {
        let subnet = host.network("front");
        let front = host.name("front");
        let before = engine
            .inspect_networks(std::slice::from_ref(&front))
            .unwrap()
            .remove(0);
        docker(&["network", "rm", &front]);
        let fields = [
            "Name",
            "Driver",
            "EnableIPv6",
            "IPAM",
            "Internal",
            "Attachable",
            "Ingress",
            "Options",
            "Labels",
        ];
        let body: Map<_, _> = fields
            .map(|field| (field.to_owned(), before[field].clone()))
            .into_iter()
            .collect();
        let body = Value::from(body);
        let id = restoring.create_network(&body).unwrap();
        let after = engine.networks(&host.project).unwrap();
        assert_eq!(after.len(), 1);
        assert_eq!(after[0]["Id"], id);
        assert_eq!(after[0]["IPAM"], before["IPAM"]);
        let text = before["IPAM"].to_string();
        assert!(text.contains(&format!("{subnet}.0/24")), "{text}");
        let error = format!("{:#}", restoring.create_network(&body).unwrap_err());
        assert!(error.contains("already exists"), "{error}");
        assert_eq!(engine.networks(&host.project).unwrap().len(), 1);

        let name = host.name("data");
        let label = |value: &str| {
            json!({ "Name": name, "Driver": "local",
                    "Labels": { "stacklift.test": host.project, "old": value } })
        };
        restoring.create_volume(&label("1")).unwrap();
        restoring.create_volume(&label("2")).unwrap();
        let found = engine.inspect_volumes(&[name]).unwrap();
        assert_eq!(found[0]["Labels"]["old"], "1");
    });
}

#[test]
fn compose_knows_what_came_back_for_its_own() {
    with(|host, engine, restoring| {
        let Some(compose) = Compose::find() else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let mark = host.mark();
        let text = format!(
            "services:
  web:
    image: {IMAGE}
    command: /bin/sleep 600
    init: true
    stop_grace_period: 1s
    labels: [{mark}]
    volumes: [/anonymous, 'data:/named']
    networks:
      front: {{ aliases: [www] }}
      back: {{}}
networks:
  front: {{ labels: [{mark}] }}
  back: {{ labels: [{mark}] }}
volumes:
  data: {{ labels: [{mark}] }}
"
        );
        fs::write(folder.path().join("compose.yml"), text).unwrap();
        let up = || compose.run(folder.path(), &host.project, &["up", "-d"]);
        up();
        let id = engine.list(&host.project).unwrap()[0].id.clone();
        let before = inspect(engine, &id);
        let name = text_without_slash(&before["Name"]);
        docker(&["exec", &name, "/bin/sh", "-c", "echo 1 > /anonymous/file"]);

        restoring.remove_container(&id).unwrap();
        let (body, later) = body_of(&before, restoring.version().unwrap());
        let again = restoring.create_container(&name, None, &body).unwrap();
        for (network, endpoint) in &later {
            restoring.connect(network, &again, endpoint).unwrap();
        }
        restoring.start(&again).unwrap();
        up();
        let found = engine.list(&host.project).unwrap();
        let ids: Vec<_> = found.iter().map(|found| found.id.as_str()).collect();
        assert_eq!(ids, [again.as_str()]);
        assert_eq!(docker(&["exec", &name, "/bin/cat", "/anonymous/file"]), "1");
        docker(&["rm", "-f", &again]);
        for mount in before["Mounts"].as_array().unwrap() {
            docker(&["volume", "rm", mount["Name"].as_str().unwrap()]);
        }
    });
}

fn text_without_slash(name: &Value) -> String {
    text(name).trim_start_matches('/').to_owned()
}
