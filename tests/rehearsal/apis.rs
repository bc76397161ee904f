//! Both APIs, called with raw HTTP.

use std::{
    net::TcpStream,
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use rehearsal::{Call, Era, FaultKind, Options, Rehearsal, World};
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
fn a_long_list_is_sent_completely_in_chunks() {
    let rehearsal = empty();
    rehearsal.world(|world| {
        for number in 0..1000 {
            world.add_record(&format!("stack-{number}"), 1, "services: {}");
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
}

#[test]
fn the_engine_removes_anonymous_volumes_on_request() {
    for (query, left) in [("force=1&v=1", 1), ("force=1", 2)] {
        let mut world = World::new(KEY);
        let text =
            "services:\n  a:\n    image: x\n    volumes: [/x, 'data:/d']\nvolumes:\n  data:\n";
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
fn n02_remove_volumes_takes_the_data() {
    for (query, left) in [("", 1), ("&removeVolumes=true", 0)] {
        let mut world = World::new(KEY);
        let text = "services:\n  a:\n    image: x\n    volumes: ['data:/d']\nvolumes:\n  data:\n";
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
