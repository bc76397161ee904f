mod objects;
mod restoring;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    sync::{Arc, Mutex},
};

use tempfile::TempDir;

use super::*;
use crate::{
    engine::{Choice, ClientConfig, Engine},
    parallel::lock,
    trace::Trace,
};

/// What the fake engine does with a request.
enum Reply {
    /// Responds with a status, an `Api-Version` header unless it is empty, and a body.
    Respond(u16, &'static str, String),
    Hang,
}

fn response(status: u16, body: impl Into<String>) -> Reply {
    Reply::Respond(status, "", body.into())
}

/// A fake engine on its own socket.
struct Fake {
    folder: TempDir,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Responds with `respond`, which receives `METHOD path`.
    fn new(respond: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("sock")).unwrap();
        let fake = Self {
            folder,
            requests: Arc::default(),
        };
        let requests = Arc::clone(&fake.requests);
        let respond = Arc::new(respond);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (respond, requests) = (Arc::clone(&respond), Arc::clone(&requests));
                thread::spawn(move || serve(&stream.unwrap(), &*respond, &requests));
            }
        });
        fake
    }

    /// An engine of this API version. `respond` does not receive the ping.
    fn speaking(
        version: &'static str,
        respond: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |request| match request {
            "GET /_ping" => Reply::Respond(200, version, "OK".to_owned()),
            other => respond(other),
        })
    }

    fn engine(&self) -> Engine {
        self.engine_within(Duration::from_secs(30), Duration::from_secs(30))
    }

    fn engine_within(&self, read: Duration, removal: Duration) -> Engine {
        engine_on(&self.folder.path().join("sock"), read, removal)
    }

    fn requests(&self) -> Vec<String> {
        lock(&self.requests).clone()
    }
}

fn engine_on(socket: &std::path::Path, read: Duration, removal: Duration) -> Engine {
    Engine::open(Options {
        tool: "docker".to_owned(),
        choice: Choice::Api,
        client: ClientConfig {
            docker_host: Some(format!("unix://{}", socket.display())),
            ..ClientConfig::default()
        },
        read_timeout: read,
        connect_timeout: Duration::from_secs(5),
        change_timeout: removal,
        trace: Trace::off(),
    })
}

fn serve(mut stream: &UnixStream, respond: &dyn Fn(&str) -> Reply, requests: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let lines = reader.by_ref().lines().map_while(Result::ok);
        let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
        let Some(first) = head.first() else {
            return;
        };
        let request = first.trim_end_matches(" HTTP/1.1").to_owned();
        let header = |name: &str| head.iter().find_map(|line| line.strip_prefix(name));
        let length = header("content-length: ").map_or(0, |length| length.parse().unwrap());
        assert_eq!(
            header("transfer-encoding: "),
            None,
            "not every engine accepts a chunked body"
        );
        if length > 0 {
            assert_eq!(header("content-type: "), Some("application/json"));
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
        }
        lock(requests).push(request.clone());
        let Reply::Respond(status, version, body) = respond(&request) else {
            thread::sleep(Duration::from_mins(1));
            return;
        };
        let version = match version {
            "" => String::new(),
            version => format!("Api-Version: {version}\r\n"),
        };
        let length = match status {
            204 => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let response = format!("HTTP/1.1 {status} Reason\r\n{version}{length}\r\n{body}");
        if stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

fn container(id: &str) -> Container {
    Container(json!({ "Id": id, "Name": format!("web-{id}") }))
}

const FILTER: &str = "filters=%7B%22label%22%3A%5B%22com.docker.compose.project%3Dweb%22%5D%7D";

#[test]
fn what_is_remembered_is_read_once() {
    let fake = Fake::speaking("1.41", |_| response(200, "[]"));
    let engine = fake.engine();
    let read = || engine.list_all().expect("a list");
    read();
    engine.remembering(|| {
        for _ in 0..3 {
            read();
        }
    });
    read();
    let all = fake.requests();
    let lists = all.iter().filter(|one| one.contains("/containers/json"));
    assert_eq!(lists.count(), 3);
}

#[test]
fn requests_use_the_lower_version() {
    for (newest, oldest, used) in [
        ("1.41", None, "1.41"),
        ("1.51", None, "1.51"),
        ("1.52", Some(r#"{"MinAPIVersion":"1.44"}"#), "1.51"),
        ("2.0", Some(r#"{"MinAPIVersion":"1.51"}"#), "1.51"),
        ("2.0", Some("{}"), "1.51"),
    ] {
        let fake = Fake::speaking(newest, move |request| match request {
            "GET /version" => response(200, oldest.unwrap()),
            _ => response(200, "[]"),
        });
        fake.engine().list("web").unwrap();
        let mut expected = vec!["GET /_ping".to_owned()];
        expected.extend(oldest.map(|_| "GET /version".to_owned()));
        expected.push(format!("GET /v{used}/containers/json?all=1&{FILTER}"));
        assert_eq!(fake.requests(), expected);
    }
}

#[test]
fn a_failing_engine_still_reports_its_version() {
    let fake = Fake::new(|request| match request {
        "GET /_ping" => Reply::Respond(500, "1.41", "swarm is locked".to_owned()),
        _ => response(200, "[]"),
    });
    assert_eq!(fake.engine().list("web").unwrap(), []);
}

#[test]
fn null_and_absent_fields_are_empty() {
    let fake = Fake::speaking("1.41", |_| {
        response(
            200,
            r#"[{"Id":"b","Names":null,"Image":null,"State":null,"Status":null,"Ports":null,"Mounts":null,
                 "Labels":{"com.docker.compose.project":"web"}},
                {"Id":"a","Labels":{"com.docker.compose.project":"web"}},
                {"Id":"c","Labels":null},
                {"Id":"d","Labels":{"com.docker.compose.project":"web2"}}]"#,
        )
    });
    let found = fake.engine().list("web").unwrap();
    let ids: Vec<_> = found.iter().map(Container::id).collect();
    // `c` and `d` do not have the label of the project.
    assert_eq!(ids, ["a", "b"]);
    let fake = Fake::speaking("1.41", |_| response(200, "null"));
    assert_eq!(fake.engine().list("web").unwrap(), []);
}

#[test]
fn a_listed_container_is_read_like_an_inspected_one() {
    let container = wire::listed(&json!({
        "Id": "a", "Names": ["/db-1/alias", "/web-1"], "Image": "web:1", "State": "paused",
        "Status": "Up 2 seconds (health: starting)",
        "Ports": [
            {"PrivatePort": 80, "PublicPort": 8080, "Type": "tcp", "IP": "::"},
            {"PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"},
            {"PrivatePort": 443, "Type": "tcp"},
        ],
        "Mounts": [{"Type": "volume", "Name": "data", "Destination": "/data"}],
        "NetworkSettings": {"Networks": {"lan": {"IPAddress": "172.30.0.9"}}},
    }));
    let container = container.unwrap();
    assert_eq!(container.name(), "web-1");
    assert_eq!(container.state(), "paused");
    assert_eq!(container.health(), Some("starting"));
    let ports = container.published_ports().into_iter();
    let ports: Vec<_> = ports.map(|port| (port.address, port.published)).collect();
    assert_eq!(ports, [("0.0.0.0", "8080"), ("::", "8080")]);
    assert_eq!(container.volumes(), [("data", "/data")]);
    assert!(container.has_address("lan", "172.30.0.9"));
}

#[test]
fn an_image_keeps_the_name_that_the_container_was_created_with() {
    let fake = Fake::speaking("1.41", |request| {
        if request.starts_with("GET /v1.41/containers/json") {
            return response(
                200,
                r#"[{"Id":"a","Image":"sha256:77","Labels":{"com.docker.compose.project":"web"}},
                    {"Id":"b","Image":"web:2","Labels":{"com.docker.compose.project":"web"}}]"#,
            );
        }
        assert_eq!(request, "GET /v1.41/containers/a/json");
        response(200, r#"{"Config":{"Image":"web:1"}}"#)
    });
    let found = fake.engine().list("web").unwrap();
    let images: Vec<_> = found.iter().map(Container::image_name).collect();
    assert_eq!(images, ["web:1", "web:2"]);
}

#[test]
fn the_removal_by_another_client_is_waited_for() {
    let inspections = Mutex::new(0);
    let fake = Fake::speaking("1.41", move |request| {
        if request.starts_with("DELETE") {
            return response(409, r#"{"message":"any text"}"#);
        }
        *lock(&inspections) += 1;
        match *lock(&inspections) {
            // The engine kills it first.
            1 => response(200, r#"{"State":{"Status":"running"}}"#),
            2 => response(200, r#"{"State":{"Status":"removing"}}"#),
            _ => response(404, "{}"),
        }
    });
    fake.engine().remove(&[container("a")]).unwrap();
    assert_eq!(fake.requests().len(), 5);
}

#[test]
fn a_listener_that_accepts_no_connection_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let listener = UnixListener::bind(&socket).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _first = UnixStream::connect(&socket).unwrap();
    let limit = Duration::from_millis(150);
    let error = engine_on(&socket, limit, limit).id().unwrap_err();
    assert!(format!("{error:#}").contains("within"), "{error:#}");
}

#[test]
fn only_a_container_that_may_be_going_is_waited_for() {
    let refused = Instant::now();
    let deadline = refused + Duration::from_mins(5);
    assert_eq!(wait_until("removing", refused, deadline), Some(deadline));
    let killed = Some(refused + KILL_TIMEOUT);
    assert_eq!(wait_until("running", refused, deadline), killed);
    assert_eq!(wait_until("dead", refused, deadline), None);
    assert_eq!(wait_until("exited", refused, deadline), None);
    assert_eq!(wait_until("", refused, deadline), None);
}

#[test]
fn a_log_is_read_with_and_without_headers() {
    let framed = b"\x01\0\0\0\0\0\0\x04one\n\x02\0\0\0\0\0\0\x03two";
    assert_eq!(unframed(framed), b"one\ntwo");
    assert_eq!(unframed(b"of a terminal\r\n"), b"of a terminal\r\n");
    // The last piece is not complete.
    assert_eq!(unframed(b"\x02\0\0\0\0\0\0\x09two"), b"two");
}
