//! Status and access rights of a stack, health of containers, and identity of volumes.

use std::{os::unix::net::UnixStream, time::Duration};

use rehearsal::{Health, Options, Rehearsal, World};
use serde_json::{Value, json};

use crate::client::{Client, Response};

const KEY: &str = "ptr_test";
const TEXT: &str = "services:
  db:
    image: busybox
    healthcheck: {test: [CMD, 'true']}
    volumes: [data:/data]
  web:
    image: busybox
    depends_on: {db: {condition: service_healthy}}
volumes:
  data:
";

fn start(mut world: World) -> (Rehearsal, u64) {
    let id = world
        .create(1, "app", TEXT.to_owned(), None, "admin")
        .unwrap();
    (Rehearsal::start(world, &Options::default()).unwrap(), id)
}

fn send(rehearsal: &Rehearsal, method: &str, path: &str, body: &Value) -> Response {
    let mut client = Client::portainer(rehearsal);
    let body = body.to_string();
    client
        .send(method, path, &[("X-API-Key", KEY)], body.as_bytes())
        .unwrap()
}

#[test]
fn a_stack_stops_and_starts() {
    let (rehearsal, id) = start(World::new(KEY));
    let mut seen = Vec::new();
    for (verb, endpoint) in [
        ("stop", 1),
        ("stop", 1),
        ("start", 7),
        ("start", 1),
        ("start", 1),
    ] {
        let path = format!("/api/stacks/{id}/{verb}?endpointId={endpoint}");
        let response = send(&rehearsal, "POST", &path, &json!({}));
        let containers = rehearsal.world(|world| world.project("app").len());
        seen.push((
            response.status,
            response.json()["Status"].as_u64(),
            containers,
        ));
    }
    assert_eq!(
        seen,
        [
            (200, Some(2), 0),
            (400, None, 0),
            (404, None, 0),
            (200, Some(1), 2),
            (409, None, 2),
        ]
    );
}

#[test]
fn access_rights_are_set_and_deleted_with_their_stack() {
    let (rehearsal, id) = start(World::new(KEY));
    let path = format!("/api/stacks/{id}");
    let control = || {
        let record = send(&rehearsal, "GET", &path, &json!({})).json();
        record["ResourceControl"].clone()
    };
    let number = control()["Id"].as_u64().unwrap();
    let path = format!("/api/resource_controls/{number}");
    for (body, public, users, teams, admins) in [
        (json!({ "Public": true }), true, 0, 0, false),
        (json!({ "Users": [7], "Teams": [3, 4] }), false, 1, 2, false),
        (json!({ "AdministratorsOnly": true }), false, 0, 0, true),
    ] {
        let response = send(&rehearsal, "PUT", &path, &body);
        assert_eq!(response.status, 200, "{body}");
        let shown = control();
        assert_eq!(response.json(), shown);
        let count = |list: &str| shown[list].as_array().unwrap().len();
        assert_eq!(
            (count("UserAccesses"), count("TeamAccesses")),
            (users, teams)
        );
        assert_eq!(
            (&shown["Public"], &shown["AdministratorsOnly"]),
            (&json!(public), &json!(admins))
        );
    }
    let nothing = send(&rehearsal, "PUT", &path, &json!({}));
    let unknown = send(
        &rehearsal,
        "PUT",
        "/api/resource_controls/99",
        &json!({ "Public": true }),
    );
    assert_eq!((nothing.status, unknown.status), (400, 404));
}

#[test]
fn a_container_becomes_healthy_after_a_while_or_never() {
    let mut world = World::new(KEY);
    let minute = 60_000;
    world
        .health
        .insert("app/db".to_owned(), Health::After(minute));
    let (rehearsal, id) = start(world);
    let health = || {
        let mut client = Client::over(UnixStream::connect(rehearsal.socket()).unwrap());
        let response = client.send("GET", "/containers/app-db-1/json", &[], b"");
        response.unwrap().json()["State"]["Health"]["Status"].clone()
    };
    assert_eq!(health(), "starting");
    rehearsal.skip(Duration::from_mins(1));
    assert_eq!(health(), "healthy");
    // Compose waits for the health that `depends_on` asks for.
    let outcome = rehearsal.world(|world| {
        world.health.insert("app/db".to_owned(), Health::Never);
        world.stop(id, 1).unwrap();
        world.start_again(id, 1)
    });
    assert!(
        outcome
            .unwrap_err()
            .message
            .contains("app-db-1 is unhealthy")
    );
}

#[test]
fn the_directory_of_volumes_can_be_set() {
    let mut world = World::new(KEY);
    world.volume_folder = "/tmp/volumes".to_owned();
    let (rehearsal, _) = start(world);
    let mut client = Client::over(UnixStream::connect(rehearsal.socket()).unwrap());
    let mut get = |path: &str| client.send("GET", path, &[], b"").unwrap().json();
    let at = json!("/tmp/volumes/app_data/_data");
    assert_eq!(get("/volumes/app_data")["Mountpoint"], at);
    assert_eq!(get("/containers/app-db-1/json")["Mounts"][0]["Source"], at);
}
