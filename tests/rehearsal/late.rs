//! Requests that Portainer continues after their client has disconnected (M21).

use std::{
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use rehearsal::{Call, FaultKind, Options, Rehearsal, World};
use serde_json::{Value, json};

use crate::client::{Client, Response};

const KEY: &str = "ptr_test";

fn rehearsal() -> Rehearsal {
    let mut world = World::new(KEY);
    world.add_portainer();
    Rehearsal::start(world, &Options::default()).unwrap()
}

const CREATE: &str = "/api/stacks/create/standalone/string?endpointId=1";

fn web() -> Vec<u8> {
    let text = "services:\n  a:\n    image: busybox\n";
    let body = json!({ "name": "web", "stackFileContent": text, "env": [] });
    body.to_string().into_bytes()
}

fn send(client: &mut Client, method: &str, path: &str, body: &[u8]) -> Response {
    let headers = [("X-API-Key", KEY)];
    client.send(method, path, &headers, body).unwrap()
}

/// The command lines in Portainer's container.
fn processes(rehearsal: &Rehearsal) -> Vec<String> {
    let mut client = Client::over(UnixStream::connect(rehearsal.socket()).unwrap());
    let top = client
        .send("GET", "/v1.41/containers/portainer/top", &[], b"")
        .unwrap();
    assert_eq!(top.status, 200);
    let top = top.json();
    let titles = top["Titles"].as_array().unwrap();
    let at = titles.iter().position(|title| title == "CMD").unwrap();
    let rows = top["Processes"].as_array().unwrap().iter();
    rows.map(|row| row[at].as_str().unwrap().to_owned())
        .collect()
}

fn wait_for(rehearsal: &Rehearsal, last: &str) {
    let started = Instant::now();
    loop {
        let seen = processes(rehearsal);
        if seen.last().is_some_and(|line| line.ends_with(last)) {
            return;
        }
        assert!(started.elapsed() < Duration::from_mins(5), "{seen:?}");
    }
}

/// Ends what Portainer does, and lets it do the next thing until it is told to end that.
fn end_phase(rehearsal: &Rehearsal) {
    rehearsal.world(|world| {
        world.end_work_in(Duration::ZERO);
        world.pass(Duration::ZERO);
        world.end_work_in(Duration::from_hours(1));
    });
}

fn is_listed(rehearsal: &Rehearsal) -> bool {
    let mut client = Client::portainer(rehearsal);
    let list = send(&mut client, "GET", "/api/stacks", b"");
    list.json() != Value::Array(Vec::new())
}

#[test]
fn m21_a_create_continues_without_its_client() {
    for (kind, created) in [("late-success:1000", true), ("late-failure:1000", false)] {
        let rehearsal = rehearsal();
        assert_eq!(processes(&rehearsal).len(), 1);
        let kind: FaultKind = kind.parse().unwrap();
        rehearsal.faults().once(Call::Create, kind);
        let mut client = Client::portainer(&rehearsal);
        let headers = [("X-API-Key", KEY)];
        client.begin("POST", CREATE, &headers, &web()).unwrap();
        wait_for(&rehearsal, "docker-compose.yml --project-name web up -d");
        drop(client);
        assert!(!is_listed(&rehearsal));
        end_phase(&rehearsal);
        if !created {
            // Between `up` and `down`, there is no process.
            assert_eq!(processes(&rehearsal).len(), 1);
            end_phase(&rehearsal);
            wait_for(&rehearsal, "--project-name web down --remove-orphans");
            end_phase(&rehearsal);
        }
        assert_eq!(is_listed(&rehearsal), created);
        let containers = rehearsal.world(|world| world.project("web").len());
        assert_eq!(containers, usize::from(created));
    }
}

#[test]
fn a_client_that_waits_receives_the_late_response() {
    let rehearsal = rehearsal();
    let late = |text: &str| text.parse::<FaultKind>().unwrap();
    for (call, kind, status) in [
        (Call::Create, "late-failure:0.05", 500),
        (Call::Create, "late-success:0.05", 200),
        (Call::List, "late-failure:0.05", 500),
        (Call::List, "late-success:0.05", 200),
    ] {
        rehearsal.faults().once(call, late(kind));
        let mut client = Client::portainer(&rehearsal);
        let started = Instant::now();
        let response = match call {
            Call::Create => send(&mut client, "POST", CREATE, &web()),
            _ => send(&mut client, "GET", "/api/stacks", b""),
        };
        assert_eq!(response.status, status, "{kind}");
        assert!(started.elapsed() >= Duration::from_millis(50), "{kind}");
    }
}

#[test]
fn a_delay_must_be_a_number_of_seconds() {
    for wrong in [
        "late-success:",
        "late-failure:-1",
        "late-failure:x",
        "hang:3",
    ] {
        assert!(wrong.parse::<FaultKind>().is_err(), "{wrong}");
    }
}
