//! The engine's API, called with raw HTTP.

use std::os::unix::net::UnixStream;

use rehearsal::{Call, FaultKind, LocalCompose, Options, Rehearsal, World};
use serde_json::{Value, json};

use crate::client::{Client, Response};

pub const FOLDER: &str = "/opt/stacks/everything";

fn start(world: World) -> (Rehearsal, Client) {
    let rehearsal = Rehearsal::start(world, &Options::default()).unwrap();
    let client = Client::over(UnixStream::connect(rehearsal.socket()).unwrap());
    (rehearsal, client)
}

/// A rehearsal in which the stack `everything` is running.
pub fn everything(version: LocalCompose) -> (Rehearsal, Client) {
    let mut world = World::new("ptr_test");
    world.local_compose = version;
    world.add_everything(FOLDER).unwrap();
    start(world)
}

pub fn send(client: &mut Client, method: &str, path: &str, body: &Value) -> Response {
    let headers = [("Content-Type", "application/json")];
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    client
        .send(method, &format!("/v1.41{path}"), &headers, &bytes)
        .unwrap()
}

pub fn post(client: &mut Client, path: &str, body: &Value) -> u16 {
    send(client, "POST", path, body).status
}

pub fn get(client: &mut Client, path: &str) -> Value {
    let response = send(client, "GET", path, &Value::Null);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    response.json()
}

#[test]
fn an_inspection_contains_what_a_real_engine_shows() {
    let (_rehearsal, mut client) = everything(LocalCompose::V2_26);
    let front = get(&mut client, "/containers/everything-front-1/json");
    let (config, host) = (&front["Config"], &front["HostConfig"]);
    assert_eq!(config["Hostname"], "front-host");
    assert_eq!(
        config["ExposedPorts"],
        json!({ "80/tcp": {}, "443/udp": {}, "9090/tcp": {}, "9000": {} })
    );
    assert_eq!(
        config["Healthcheck"],
        json!({
            "Test": ["CMD", "true"], "Interval": 10_000_000_000_u64, "Timeout": 2_000_000_000_u64,
            "StartPeriod": 90_000_000_000_u64, "Retries": 3,
        })
    );
    assert_eq!(
        (&config["StopSignal"], &config["StopTimeout"]),
        (&json!("SIGINT"), &json!(3))
    );
    assert_eq!(host["Binds"], json!([format!("{FOLDER}/www:/www:ro")]));
    assert_eq!(host["Tmpfs"], json!({ "/run": "size=1m" }));
    assert_eq!(
        host["PortBindings"]["80/tcp"],
        json!([{ "HostIp": "", "HostPort": "8088" }])
    );
    assert_eq!(
        host["PortBindings"]["9090/tcp"],
        json!([{ "HostIp": "", "HostPort": "" }])
    );
    assert_eq!(
        (&host["Memory"], &host["MemorySwap"]),
        (&json!(67_108_864), &json!(134_217_728))
    );
    assert_eq!(
        host["Ulimits"][0],
        json!({ "Name": "nofile", "Hard": 2048, "Soft": 1024 })
    );
    assert_eq!(host["Devices"][0]["PathInContainer"], "/dev/mynull");
    assert_eq!(
        host["RestartPolicy"],
        json!({ "Name": "unless-stopped", "MaximumRetryCount": 0 })
    );
    assert_eq!(front["State"]["Health"]["Status"], "healthy");
    let id = front["Id"].as_str().unwrap();
    let inner = &front["NetworkSettings"]["Networks"]["everything_inner"];
    assert_eq!(inner["IPAMConfig"], json!({ "IPv4Address": "172.28.5.10" }));
    assert_eq!(
        (&inner["IPAddress"], &inner["IPPrefixLen"]),
        (&json!("172.28.5.10"), &json!(24))
    );
    assert_eq!(
        inner["Aliases"],
        json!([
            "everything-front-1",
            "front",
            "front-inner",
            id[..12],
            "front-host"
        ])
    );
    let ports = &front["NetworkSettings"]["Ports"];
    assert_eq!(
        ports["80/tcp"],
        json!([{ "HostIp": "0.0.0.0", "HostPort": "8088" }, { "HostIp": "::", "HostPort": "8088" }])
    );
    assert_eq!(ports["9000/tcp"], Value::Null);
    let side = get(&mut client, "/containers/everything-side-1/json");
    assert_eq!(side["HostConfig"]["NetworkMode"], format!("container:{id}"));
    assert_eq!(side["Config"]["Hostname"], "front-host");
    assert_eq!(side["NetworkSettings"]["Networks"], json!({}));
    let job = get(&mut client, "/containers/everything-job-1/json");
    assert_eq!(
        (&job["Path"], &job["Args"]),
        (&json!("sh"), &json!(["-c", "true all"]))
    );
    assert_eq!(job["State"]["Status"], "exited");
    assert_eq!(job["NetworkSettings"]["Ports"], json!({}));
    let changes = get(&mut client, "/containers/everything-front-1/changes");
    assert_eq!(changes[1], json!({ "Path": "/etc/motd", "Kind": 1 }));
    assert_eq!(
        get(&mut client, "/containers/everything-side-1/changes"),
        Value::Null
    );
    let inner = get(&mut client, "/networks/everything_inner");
    assert_eq!(inner["Internal"], true);
    assert_eq!(
        inner["IPAM"]["Config"],
        json!([{ "Subnet": "172.28.5.0/24", "Gateway": "172.28.5.1" }])
    );
    assert_eq!(inner["Containers"][id]["IPv4Address"], "172.28.5.10/24");
    let store = get(&mut client, "/images/redis:7/json");
    assert_eq!(store["Config"]["Volumes"], json!({ "/data": {} }));
}

#[test]
fn a_container_starts_pauses_and_stops() {
    let mut world = World::new("ptr_test");
    world.add_image("busybox:1.36");
    let (_rehearsal, mut client) = start(world);
    let body = json!({ "Image": "busybox:1.36" });
    assert_eq!(post(&mut client, "/containers/create?name=web", &body), 201);
    let state = |client: &mut Client| {
        get(client, "/containers/web/json")["State"]["Status"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (path, status, after) in [
        ("/containers/web/kill", 409, "created"),
        ("/containers/web/stop", 304, "created"),
        ("/containers/web/start", 204, "running"),
        ("/containers/web/start", 304, "running"),
        ("/containers/web/unpause", 500, "running"),
        ("/containers/web/pause", 204, "paused"),
        ("/containers/web/pause", 409, "paused"),
        ("/containers/web/start", 409, "paused"),
        ("/containers/web/unpause", 204, "running"),
        ("/containers/web/restart?t=0", 204, "running"),
        ("/containers/web/kill?signal=SIGHUP", 204, "running"),
        ("/containers/web/kill", 204, "exited"),
        ("/containers/web/wait", 200, "exited"),
        ("/containers/web/rename?name=web", 400, "exited"),
        ("/containers/nix/start", 404, "exited"),
    ] {
        assert_eq!(post(&mut client, path, &Value::Null), status, "{path}");
        assert_eq!(state(&mut client), after, "{path}");
    }
    let rename = "/containers/web/rename?name=other";
    assert_eq!(post(&mut client, rename, &Value::Null), 204);
    let removed = send(&mut client, "DELETE", "/containers/other", &Value::Null);
    assert_eq!(removed.status, 204);
}

#[test]
fn events_tell_what_happened_to_containers() {
    let mut world = World::new("ptr_test");
    world.add_image("busybox:1.36");
    let (_rehearsal, mut client) = start(world);
    let body = json!({ "Image": "busybox:1.36", "Labels": { "of": "web" } });
    for (path, body) in [
        ("/containers/create?name=web", &body),
        ("/containers/web/start", &Value::Null),
        ("/containers/web/restart?t=0", &Value::Null),
    ] {
        assert!(post(&mut client, path, body) < 300, "{path}");
    }
    let removed = send(
        &mut client,
        "DELETE",
        "/containers/web?force=1",
        &Value::Null,
    );
    assert_eq!(removed.status, 204);
    let mut events = |query: &str| {
        let path = format!("/events?{query}");
        let response = send(&mut client, "GET", &path, &Value::Null);
        assert_eq!(response.status, 200, "{path}");
        let text = response.text().to_owned();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        events.collect::<Vec<Value>>()
    };
    let actions = |events: &[Value]| {
        let actions = events
            .iter()
            .map(|event| event["Action"].as_str().unwrap().to_owned());
        actions.collect::<Vec<_>>()
    };
    let all = events("since=1");
    assert_eq!(
        actions(&all),
        ["create", "start", "die", "start", "die", "destroy"]
    );
    let first = &all[0];
    assert_eq!(first["Actor"]["Attributes"]["of"], "web");
    assert_eq!(first["Actor"]["Attributes"]["name"], "web");
    let nanoseconds = first["timeNano"].as_i64().unwrap();
    assert_eq!(first["time"], nanoseconds / 1_000_000_000);
    // {"event":["die"],"label":["of=web"]}
    let dies = events(
        "since=1.5&filters=%7B%22event%22%3A%5B%22die%22%5D%2C%22label%22%3A%5B%22of%3Dweb%22%5D%7D",
    );
    assert_eq!(actions(&dies), ["die", "die"]);
    assert!(events("since=1&filters=%7B%22label%22%3A%5B%22of%3Dx%22%5D%7D").is_empty());
    assert!(events("since=1&until=2").is_empty());
}

#[test]
fn volumes_are_created_listed_and_removed() {
    let (_rehearsal, mut client) = everything(LocalCompose::V2_26);
    let wanted =
        json!({ "Name": "extra", "Labels": { "a": "b" }, "DriverOpts": { "type": "nfs" } });
    let made = send(&mut client, "POST", "/volumes/create", &wanted);
    assert_eq!(made.status, 201);
    assert_eq!(made.json()["Options"], json!({ "type": "nfs" }));
    // A second create returns the existing volume.
    let again = send(
        &mut client,
        "POST",
        "/volumes/create",
        &json!({ "Name": "extra" }),
    );
    assert_eq!(again.json(), made.json());
    let named = |client: &mut Client, filters: &str| {
        let found = get(client, &format!("/volumes?filters={filters}"))["Volumes"].clone();
        let names = found.as_array().unwrap().iter();
        names
            .map(|one| one["Name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named(&mut client, "%7B%22label%22%3A%5B%22a%3Db%22%5D%7D"),
        ["extra"]
    );
    assert_eq!(
        named(&mut client, "%7B%22dangling%22%3A%5B%22true%22%5D%7D"),
        ["extra"]
    );
    let mut remove = |name: &str| {
        let response = send(
            &mut client,
            "DELETE",
            &format!("/volumes/{name}"),
            &Value::Null,
        );
        response.status
    };
    assert_eq!(
        (remove("everything_data"), remove("extra"), remove("extra")),
        (409, 204, 404)
    );
}

#[test]
fn every_call_has_its_own_fault() {
    let (rehearsal, mut client) = everything(LocalCompose::V2_26);
    let none = Value::Null;
    let idle = json!({ "Container": "everything-idle-1" });
    let named = json!({ "Name": "x1" });
    let image = json!({ "Image": "redis:7" });
    for (call, request, body) in [
        (
            Call::EngineCreate,
            "POST /containers/create?name=x1",
            &image,
        ),
        (
            Call::EngineStart,
            "POST /containers/everything-idle-1/start",
            &none,
        ),
        (
            Call::EngineStop,
            "POST /containers/everything-idle-1/stop",
            &none,
        ),
        (
            Call::EngineChanges,
            "GET /containers/everything-idle-1/changes",
            &none,
        ),
        (Call::EngineNetworkCreate, "POST /networks/create", &named),
        (
            Call::EngineConnect,
            "POST /networks/everything_edge/connect",
            &idle,
        ),
        (
            Call::EngineDisconnect,
            "POST /networks/everything_inner/disconnect",
            &idle,
        ),
        (
            Call::EngineNetworkRemove,
            "DELETE /networks/everything_default",
            &none,
        ),
        (Call::EngineNetworks, "GET /networks", &none),
        (Call::EngineVolumes, "GET /volumes", &none),
        (Call::EngineVolumeCreate, "POST /volumes/create", &named),
        (Call::EngineImages, "GET /images/redis:7/json", &none),
        (
            Call::EngineRename,
            "POST /containers/everything-idle-1/rename?name=y1",
            &none,
        ),
    ] {
        let (method, path) = request.split_once(' ').unwrap();
        let before = rehearsal.world(|world| world.containers.clone());
        let busy = FaultKind::Status(503, "busy".to_owned());
        rehearsal.faults().once(call, busy);
        let refused = send(&mut client, method, path, body);
        assert_eq!(refused.status, 503, "{call}");
        let same = rehearsal.world(|world| world.containers == before);
        assert!(same, "{call}: no effect");
        let response = send(&mut client, method, path, body);
        assert!(response.status < 400, "{call}: the fault applies once");
    }
}
