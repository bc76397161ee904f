//! The operations that create and change containers, networks and volumes, on a real engine.

use std::fs;

use serde_json::{Map, Value, json};

use crate::engine::{Choice, Client, Engine, Restoring, api::Version};

use super::{
    engine,
    host::{Compose, Host, IMAGE, PROJECT, docker},
};

/// Runs a test with the API adapter.
fn with(test: fn(&Host, &Engine, &Restoring<'_>)) {
    let (host, engine) = (Host::new(), engine(Choice::Api));
    test(&host, &engine, &engine.restoring().unwrap());
}

/// The body to create a container of the test that sleeps.
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

fn version(engine: &Engine) -> Version {
    let Client::Api(api) = &engine.client else {
        panic!("expected the API adapter");
    };
    api.version().unwrap()
}

/// The body to recreate the container `inspected`, and the networks to connect it to afterwards.
fn body_of(inspected: &Value, version: Version) -> (Value, Map<String, Value>) {
    let mut networks = inspected["NetworkSettings"]["Networks"]
        .as_object()
        .unwrap()
        .clone();
    let id = text(&inspected["Id"]);
    for endpoint in networks.values_mut() {
        let aliases = endpoint["Aliases"].as_array().cloned().unwrap_or_default();
        let own = |alias: &Value| id[..12] == *alias.as_str().unwrap();
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
    // Some versions of Compose mount volumes with `Binds`.
    body["HostConfig"]["Binds"] = Value::Null;
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
#[ignore = "needs a container engine: run scripts/test"]
fn a_container_is_recreated_with_its_networks_and_volumes() {
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

        let (body, later) = body_of(&before, version(engine));
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
#[ignore = "needs a container engine: run scripts/test"]
fn a_container_is_created_from_an_image_id() {
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
        // The tag moves to another image.
        docker(&["commit", &first, &tag]);
        let second = create("second", &tag).unwrap();
        assert_ne!(inspect(engine, &second)["Image"], old);
        let third = create("third", &old).unwrap();
        assert_eq!(inspect(engine, &third)["Image"], old);

        let missing = format!("sha256:{}", "0".repeat(64));
        let error = create("fourth", &missing).unwrap_err();
        let text = format!("{error:#}").to_lowercase();
        assert!(text.contains("returned 404: no such image"), "{text}");
    });
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn an_operation_without_effect_is_not_an_error() {
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

        let found = restoring.container_by_name(&name).unwrap().unwrap();
        assert_eq!(found["Id"], id);
        // The engine also accepts the prefix of an ID.
        assert_eq!(restoring.container_by_name(&id[..9]).unwrap(), None);

        restoring.remove_container(&id).unwrap();
        restoring.remove_container(&id).unwrap();
        restoring.stop(&id, None).unwrap();
        assert!(restoring.start(&id).is_err());
    });
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_container_name_in_use_is_rejected() {
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
            )) && text.contains("returned 409"),
            "{text}"
        );
    });
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_container_is_connected_running_or_not() {
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
            docker(&["network", "disconnect", &back, &id]);
            assert_eq!(networks(), std::slice::from_ref(&front));
        }
        restoring.connect(&front, &id, &json!({})).unwrap_err();
        restoring
            .connect(&host.name("no-such"), &id, &json!({}))
            .unwrap_err();
    });
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_container_on_the_network_of_another_has_no_hostname_or_ports() {
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
        // The inspect JSON has the hostname of the owner, which is rejected.
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
#[ignore = "needs a container engine: run scripts/test"]
fn networks_and_volumes_are_recreated_and_existing_ones_stay_unchanged() {
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
#[ignore = "needs a container engine: run scripts/test"]
fn compose_accepts_a_recreated_container() {
    with(|host, engine, restoring| {
        let compose = Compose::new();
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
        let (body, later) = body_of(&before, version(engine));
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
