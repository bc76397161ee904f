//! Both APIs, called with raw HTTP.

use std::{
    net::TcpStream,
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use rehearsal::{Call, FaultKind, Options, Rehearsal, World};
use serde_json::Value;

use crate::client::{Client, Response};

const KEY: &str = "ptr_test";

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
