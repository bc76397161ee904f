//! Both APIs, called with raw HTTP.

use std::{
    net::TcpStream,
    os::unix::net::UnixStream,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rehearsal::{Call, Era, FaultKind, Options, Peer, Rehearsal, Rule, World};
use serde_json::{Value, json};

use crate::client::{Client, Response};

const KEY: &str = "ptr_test";
const CREATE: &str = "/api/stacks/create/standalone/string?endpointId=1";

fn start(world: World) -> Rehearsal {
    Rehearsal::start(world, &Options::default()).unwrap()
}

fn empty() -> Rehearsal {
    start(World::new(KEY))
}

fn get(client: &mut Client, path: &str) -> Response {
    client
        .send("GET", path, &[("X-API-Key", KEY)], b"")
        .unwrap()
}

fn web() -> Vec<u8> {
    let body = json!({
        "name": "web",
        "stackFileContent": "services:\n  a:\n    image: busybox\n",
        "env": [],
        "fromAppTemplate": false,
    });
    body.to_string().into_bytes()
}

fn create(client: &mut Client, body: &[u8]) -> std::io::Result<Response> {
    client.send("POST", CREATE, &[("X-API-Key", KEY)], body)
}

fn is_deployed(rehearsal: &Rehearsal) -> bool {
    rehearsal.world(|world| !world.project("web").is_empty())
}

#[test]
fn requests_are_recorded_with_their_connection() {
    let rehearsal = empty();
    let mut client = Client::portainer(&rehearsal);
    let headers = [("X-API-Key", KEY), ("User-Agent", "test/1")];
    client.send("GET", "/api/stacks", &headers, b"").unwrap();
    create(&mut client, &web()).unwrap();
    get(&mut Client::portainer(&rehearsal), "/api/stacks/1");
    let requests = rehearsal.requests();
    let shown = requests.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        shown,
        [
            "Portainer GET /api/stacks → 200",
            "Portainer POST /api/stacks/create/standalone/string?endpointId=1 → 200",
            "Portainer GET /api/stacks/1 → 200",
        ]
    );
    assert_eq!(requests[0].header("user-agent"), Some("test/1"));
    assert_eq!(requests[0].header("x-api-key"), Some(KEY));
    assert_eq!(requests[1].call, Call::Create);
    assert_eq!(requests[1].body, web());
    assert_eq!(requests[0].port, requests[1].port);
    assert_ne!(requests[0].port, requests[2].port);
    assert!(!format!("{requests:?}").contains(KEY));
    rehearsal.forget_requests();
    assert_eq!(rehearsal.requests(), []);
}

#[test]
fn bodies_may_be_chunked_announced_or_large() {
    let rehearsal = empty();
    let mut client = Client::portainer(&rehearsal);
    let body = String::from_utf8(web()).unwrap();
    let (one, two) = body.split_at(10);
    let chunked = format!(
        "POST {CREATE} HTTP/1.1\r\nX-API-Key: {KEY}\r\nTransfer-Encoding: chunked\r\n\r\n\
         a\r\n{one}\r\n{:x};extension\r\n{two}\r\n0\r\nTrailer: x\r\n\r\n",
        two.len()
    );
    assert_eq!(client.raw(chunked.as_bytes(), false).unwrap().status, 200);
    assert!(is_deployed(&rehearsal));
    let expecting = format!(
        "POST {CREATE} HTTP/1.1\r\nX-API-Key: {KEY}\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        body.len()
    );
    assert_eq!(client.raw(expecting.as_bytes(), true).unwrap().status, 100);
    assert_eq!(client.raw(body.as_bytes(), false).unwrap().status, 409);
    let text = format!(
        "services:\n  a:\n    image: busybox\n#{}",
        "x".repeat(20 << 20)
    );
    let large = json!({ "name": "large", "stackFileContent": text }).to_string();
    assert_eq!(create(&mut client, large.as_bytes()).unwrap().status, 200);
}

#[test]
fn a_long_list_is_sent_completely_in_chunks() {
    let rehearsal = empty();
    rehearsal.world(|world| {
        world.add_endpoint(2, "edge");
        for number in 0..1000 {
            world.add_record(&format!("stack-{number}"), 1 + number % 2, "services: {}");
        }
    });
    let mut client = Client::portainer(&rehearsal);
    let list = get(&mut client, "/api/stacks");
    assert_eq!(list.header("transfer-encoding"), Some("chunked"));
    let names = |list: &Value| {
        let names = list
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["Name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let expected = (0..1000)
        .map(|number| format!("stack-{number}"))
        .collect::<Vec<_>>();
    assert_eq!(names(&list.json()), expected);
    let filtered = get(
        &mut client,
        "/api/stacks?filters=%7B%22EndpointID%22%3A2%7D",
    );
    assert_eq!(filtered.json().as_array().unwrap().len(), 500);
}

#[test]
fn a_standard_user_sees_a_filtered_list() {
    let rehearsal = empty();
    let public = rehearsal.world(|world| {
        world.add_user("ptr_user", "user");
        world.add_record("hidden", 1, "services: {}");
        let public = world.add_record("public", 1, "services: {}");
        world.records.get_mut(&public).unwrap().control.public = true;
        public
    });
    let mut client = Client::portainer(&rehearsal);
    let user = [("X-API-Key", "ptr_user")];
    let list = client
        .send("GET", "/api/stacks", &user, b"")
        .unwrap()
        .json();
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["Id"], public);
    assert_eq!(
        client
            .send("GET", "/api/stacks/1", &user, b"")
            .unwrap()
            .status,
        403
    );
    assert_eq!(
        client
            .send("GET", "/api/users/me", &user, b"")
            .unwrap()
            .json()["Role"],
        2
    );
    assert_eq!(get(&mut client, "/api/users/me").json()["Role"], 1);
}

#[test]
fn m22_only_administrators_may_manage_stacks() {
    let rehearsal = empty();
    let own = rehearsal.world(|world| {
        world.add_user("ptr_user", "user");
        let endpoint = world.endpoints.get_mut(&1).unwrap();
        endpoint.forbids_stacks = true;
        let own = world.add_record("own", 1, "services: {}");
        world.records.get_mut(&own).unwrap().created_by = "user".to_owned();
        own
    });
    let mut client = Client::portainer(&rehearsal);
    let user = [("X-API-Key", "ptr_user")];
    let mut ask = |method: &str, path: &str, body: &[u8]| {
        let response = client.send(method, path, &user, body).unwrap();
        (response.status, response.json())
    };
    let (_, environment) = ask("GET", "/api/endpoints/1", b"");
    let setting = "allowStackManagementForRegularUsers";
    assert_eq!(environment["SecuritySettings"][setting], false);
    let (_, listed) = ask("GET", "/api/stacks", b"");
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let path = format!("/api/stacks/{own}");
    let text = br#"{"name":"new","stackFileContent":"services: {}","env":[]}"#;
    let create = "/api/stacks/create/standalone/string?endpointId=1";
    for (method, path, body) in [
        ("GET", path.clone(), &b""[..]),
        ("GET", format!("{path}/file"), b""),
        ("POST", create.to_owned(), text),
        ("PUT", format!("{path}?endpointId=1"), text),
        ("POST", format!("{path}/stop?endpointId=1"), b"{}"),
        ("DELETE", format!("{path}?endpointId=1"), b""),
    ] {
        let (status, error) = ask(method, &path, body);
        assert_eq!(status, 403, "{method} {path}");
        let message = error["message"].as_str().unwrap();
        let ending = " is disabled for non-admin users";
        assert!(message.ends_with(ending), "{message}");
    }
}

#[test]
fn m17_the_manager_passes_on_the_engines_id() {
    let rehearsal = empty();
    let mut portainer = Client::portainer(&rehearsal);
    let mut engine = Client::over(UnixStream::connect(rehearsal.socket()).unwrap());
    let own = engine.send("GET", "/v1.41/info", &[], b"").unwrap().json()["ID"].clone();
    assert_eq!(
        get(&mut portainer, "/api/endpoints/1/docker/info").json()["ID"],
        own
    );
    rehearsal.world(|world| world.add_endpoint(2, "edge"));
    assert_ne!(
        get(&mut portainer, "/api/endpoints/2/docker/info").json()["ID"],
        own
    );
    assert_eq!(
        get(&mut portainer, "/api/endpoints/3/docker/info").status,
        404
    );
}

#[test]
fn the_engine_rejects_unsupported_api_versions() {
    let mut world = World::new(KEY);
    world.engine.min_api = "1.24".to_owned();
    let rehearsal = start(world);
    let mut engine = Client::over(UnixStream::connect(rehearsal.socket()).unwrap());
    let ping = engine.send("HEAD", "/_ping", &[], b"").unwrap();
    assert_eq!(
        (ping.status, ping.header("api-version")),
        (200, Some("1.41"))
    );
    let old = engine
        .send("GET", "/v1.23/containers/json", &[], b"")
        .unwrap();
    assert_eq!(old.status, 400);
    assert!(
        old.text().contains("client version 1.23 is too old"),
        "{}",
        old.text()
    );
    let new = engine
        .send("GET", "/v1.99/containers/json", &[], b"")
        .unwrap();
    assert_eq!(new.status, 400);
    assert_eq!(
        engine
            .send("GET", "/containers/json", &[], b"")
            .unwrap()
            .text(),
        "[]\n"
    );
    assert_eq!(
        engine
            .send("DELETE", "/v1.41/containers/x?force=1", &[], b"")
            .unwrap()
            .status,
        404
    );
    assert!(
        rehearsal
            .requests()
            .iter()
            .all(|request| request.peer == Peer::Engine)
    );
}

#[test]
fn the_engine_removes_anonymous_volumes_on_request() {
    for (query, left) in [("force=1&v=1", 1), ("force=1", 2)] {
        let mut world = World::new(KEY);
        let text = "services:\n  a:\n    image: x\n    volumes: [/x, 'd:/d']\nvolumes:\n  d:\n";
        world.add_stack("/s/web", [("docker-compose.yml", text)]);
        world.start_by_hand("web", "/s/web").unwrap();
        let rehearsal = start(world);
        let mut engine = Client::over(UnixStream::connect(rehearsal.socket()).unwrap());
        let refused = engine
            .send("DELETE", "/containers/web-a-1", &[], b"")
            .unwrap();
        assert_eq!(refused.status, 409);
        let path = format!("/containers/web-a-1?{query}");
        assert_eq!(engine.send("DELETE", &path, &[], b"").unwrap().status, 204);
        assert_eq!(
            rehearsal.world(|world| world.dangling().len()),
            left,
            "{query}"
        );
    }
}

#[test]
fn n01_a_create_answers_at_once_and_settles_later() {
    let options = Options {
        era: Era::Async,
        ..Options::default()
    };
    let rehearsal = Rehearsal::start(World::new(KEY), &options).unwrap();
    rehearsal.world(|world| {
        world.deploy_polls = 1;
        world.deploy_millis = None;
    });
    let mut client = Client::portainer(&rehearsal);
    let created = create(&mut client, &web()).unwrap().json();
    assert_eq!((&created["Id"], &created["Status"]), (&json!(1), &json!(3)));
    let delete = client.send(
        "DELETE",
        "/api/stacks/1?endpointId=1",
        &[("X-API-Key", KEY)],
        b"",
    );
    assert_eq!(delete.unwrap().status, 409);
    assert_eq!(get(&mut client, "/api/stacks/1").json()["Status"], 3);
    assert!(!is_deployed(&rehearsal));
    let settled = get(&mut client, "/api/stacks/1").json();
    assert_eq!(settled["Status"], 1);
    assert_eq!(settled["DeploymentStatus"].as_array().unwrap().len(), 2);
    assert!(is_deployed(&rehearsal));
}

#[test]
fn n02_remove_volumes_takes_the_data() {
    for (query, left) in [("", 1), ("&removeVolumes=true", 0)] {
        let mut world = World::new(KEY);
        let text = "services:\n  a:\n    image: x\n    volumes: ['d:/d']\nvolumes:\n  d:\n";
        world.add_stack("/s/web", [("docker-compose.yml", text)]);
        world.start_by_hand("web", "/s/web").unwrap();
        world.add_record("web", 1, text);
        let options = Options {
            era: Era::Async,
            ..Options::default()
        };
        let rehearsal = Rehearsal::start(world, &options).unwrap();
        let path = format!("/api/stacks/1?endpointId=1{query}");
        let mut client = Client::portainer(&rehearsal);
        let deleted = client
            .send("DELETE", &path, &[("X-API-Key", KEY)], b"")
            .unwrap();
        assert_eq!(deleted.status, 204);
        assert_eq!(rehearsal.world(|world| world.volumes.len()), left);
    }
}

#[test]
fn n03_a_list_can_be_204() {
    let rehearsal = empty();
    rehearsal
        .faults()
        .once(Call::List, FaultKind::Body(204, Vec::new()));
    let list = get(&mut Client::portainer(&rehearsal), "/api/stacks");
    assert_eq!((list.status, list.header("content-length")), (204, None));
}

#[test]
fn the_start_moves_the_world_to_the_current_time() {
    let rehearsal = start(World::with_examples(KEY, "/opt/stacks").unwrap());
    let summary = rehearsal.world(|world| world.summary().to_string());
    let minio = summary.lines().find(|line| line.contains("  minio  "));
    assert!(
        minio.is_some_and(|line| line.ends_with("Up 2 days (healthy)")),
        "{summary}"
    );
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let age = now.abs_diff(rehearsal.world(|world| world.now).unsigned_abs() / 1000);
    assert!(age < 60, "{age}");
}

#[test]
fn faults_before_a_request_prevent_its_effect() {
    for kind in [
        FaultKind::Status(503, "<html>busy</html>".to_owned()),
        FaultKind::CloseBefore,
    ] {
        let rehearsal = empty();
        rehearsal.faults().once(Call::Create, kind.clone());
        let mut client = Client::portainer(&rehearsal);
        match (create(&mut client, &web()), &kind) {
            (Ok(response), FaultKind::Status(status, body)) => {
                assert_eq!((response.status, response.text()), (*status, body.as_str()));
                assert_eq!(
                    response.header("content-type"),
                    Some("text/html; charset=utf-8")
                );
            }
            (Err(_), FaultKind::CloseBefore) => client = Client::portainer(&rehearsal),
            (outcome, _) => panic!("{kind:?}: {outcome:?}"),
        }
        assert!(!is_deployed(&rehearsal), "{kind:?}");
        assert_eq!(
            create(&mut client, &web()).unwrap().status,
            200,
            "{kind:?}: used up"
        );
    }
}

#[test]
fn faults_after_a_request_only_damage_the_response() {
    let garbled = FaultKind::Body(200, b"null".to_vec());
    for kind in [
        garbled,
        FaultKind::Garbage,
        FaultKind::Empty,
        FaultKind::CutOff,
        FaultKind::CloseAfter,
        FaultKind::SlowDrip,
    ] {
        let rehearsal = empty();
        rehearsal.faults().set(Call::Create, kind.clone());
        let outcome = create(&mut Client::portainer(&rehearsal), &web());
        match (&outcome, &kind) {
            (Ok(response), FaultKind::Body(..)) => assert_eq!(response.text(), "null"),
            (Ok(response), FaultKind::Empty) => assert_eq!(response.text(), ""),
            (Ok(response), FaultKind::Garbage) => {
                assert!(serde_json::from_slice::<Value>(&response.body).is_err());
            }
            (Ok(response), FaultKind::SlowDrip) => assert_eq!(response.json()["Id"], 1),
            (Err(_), FaultKind::CutOff | FaultKind::CloseAfter) => {}
            _ => panic!("{kind:?}: {outcome:?}"),
        }
        assert!(is_deployed(&rehearsal), "{kind:?}");
        rehearsal.faults().clear();
        assert_eq!(
            create(&mut Client::portainer(&rehearsal), &web())
                .unwrap()
                .status,
            409
        );
    }
}

#[test]
fn faults_can_be_limited_by_path_and_count() {
    let rehearsal = start(World::with_examples(KEY, "/opt/stacks").unwrap());
    let id = rehearsal.world(|world| world.project("mongo")[0].id.clone());
    let stays = FaultKind::Status(500, "driver failed to remove root filesystem".to_owned());
    rehearsal
        .faults()
        .add(Rule::new(Call::EngineRemove, stays).path(&id));
    rehearsal
        .faults()
        .add(Rule::new(Call::List, FaultKind::Empty).after(1).times(1));
    let mut engine = Client::over(UnixStream::connect(rehearsal.socket()).unwrap());
    let mut remove = |name: &str| {
        let path = format!("/containers/{name}?force=1");
        engine.send("DELETE", &path, &[], b"").unwrap().status
    };
    assert_eq!((remove(&id), remove("minio")), (500, 204));
    let mut portainer = Client::portainer(&rehearsal);
    let lengths = (0..3).map(|_| get(&mut portainer, "/api/stacks").body.len());
    let lengths = lengths.collect::<Vec<_>>();
    assert!(
        lengths[0] > 2 && lengths[1] == 0 && lengths[2] == lengths[0],
        "{lengths:?}"
    );
}

#[test]
fn dropping_the_rehearsal_closes_hanging_connections_and_leaves_nothing() {
    let rehearsal = empty();
    rehearsal.faults().set(Call::List, FaultKind::Hang);
    rehearsal
        .faults()
        .set(Call::EngineList, FaultKind::HangAfter);
    let (socket, url) = (rehearsal.socket().to_owned(), rehearsal.base_url());
    let mut portainer = Client::portainer(&rehearsal);
    let mut engine = Client::over(UnixStream::connect(&socket).unwrap());
    let waiting = std::thread::spawn(move || {
        let list = portainer.send("GET", "/api/stacks", &[("X-API-Key", KEY)], b"");
        (
            list.is_err(),
            engine.send("GET", "/containers/json", &[], b"").is_err(),
        )
    });
    while rehearsal.requests().is_empty() {
        std::thread::yield_now();
    }
    let before = Instant::now();
    drop(rehearsal);
    assert!(before.elapsed() < Duration::from_mins(1));
    assert_eq!(waiting.join().unwrap(), (true, true));
    assert!(!socket.parent().unwrap().exists());
    assert!(TcpStream::connect(url.strip_prefix("https://").unwrap()).is_err());
}
