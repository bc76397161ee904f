mod hostile;
mod objects;
mod restoring;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tempfile::TempDir;

use super::*;
use crate::engine::{Choice, ClientConfig, Engine};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the fake engine does with a request.
enum Reply {
    /// Responds with a status, an `Api-Version` header unless it is empty, and a body.
    Respond(u16, &'static str, String),
    Hang,
}

fn json(status: u16, body: impl Into<String>) -> Reply {
    Reply::Respond(status, "", body.into())
}

/// A fake engine on its own socket.
struct Fake {
    folder: TempDir,
    requests: Arc<Mutex<Vec<String>>>,
    /// The body of each request that has one.
    bodies: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

impl Fake {
    /// Responds with `respond`, which receives `METHOD path`.
    fn new(respond: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("sock")).unwrap();
        let fake = Self {
            folder,
            requests: Arc::default(),
            bodies: Arc::default(),
            connections: Arc::default(),
        };
        let (requests, connections) = (Arc::clone(&fake.requests), Arc::clone(&fake.connections));
        let bodies = Arc::clone(&fake.bodies);
        let respond = Arc::new(respond);
        thread::spawn(move || {
            for stream in listener.incoming() {
                *lock(&connections) += 1;
                let (respond, requests) = (Arc::clone(&respond), Arc::clone(&requests));
                let bodies = Arc::clone(&bodies);
                thread::spawn(move || serve(&stream.unwrap(), &*respond, &requests, &bodies));
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

    fn bodies(&self) -> Vec<String> {
        lock(&self.bodies).clone()
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

fn serve(
    mut stream: &UnixStream,
    respond: &dyn Fn(&str) -> Reply,
    requests: &Mutex<Vec<String>>,
    bodies: &Mutex<Vec<String>>,
) {
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
            lock(bodies).push(String::from_utf8(body).unwrap());
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
    Container {
        id: id.to_owned(),
        names: vec![format!("web-{id}")],
        ..Container::default()
    }
}

const FILTER: &str = "filters=%7B%22label%22%3A%5B%22com.docker.compose.project%3Dweb%22%5D%7D";

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
            "GET /version" => json(200, oldest.unwrap()),
            _ => json(200, "[]"),
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
        _ => json(200, "[]"),
    });
    assert_eq!(fake.engine().list("web").unwrap(), []);
}

#[test]
fn many_requests_share_one_connection_and_one_ping() {
    let fake = Fake::speaking("1.41", |_| json(200, "[]"));
    let engine = fake.engine();
    for _ in 0..5 {
        engine.list("web").unwrap();
    }
    assert_eq!(fake.requests().len(), 6);
    assert_eq!(*lock(&fake.connections), 1);
}

#[test]
fn null_and_absent_fields_are_empty() {
    let fake = Fake::speaking("1.41", |_| {
        json(
            200,
            r#"[{"Id":"b","Names":null,"Image":null,"State":null,"Status":null,"Ports":null,"Mounts":null,
                 "Labels":{"com.docker.compose.project":"web"}},
                {"Id":"a","Labels":{"com.docker.compose.project":"web"}},
                {"Id":"c","Labels":null},
                {"Id":"d","Labels":{"com.docker.compose.project":"web2"}}]"#,
        )
    });
    let ids: Vec<_> = fake
        .engine()
        .list("web")
        .unwrap()
        .into_iter()
        .map(|found| found.id)
        .collect();
    // `c` and `d` do not have the label of the project.
    assert_eq!(ids, ["a", "b"]);
    let fake = Fake::speaking("1.41", |_| json(200, "null"));
    assert_eq!(fake.engine().list("web").unwrap(), []);
}

#[test]
fn an_image_keeps_the_name_that_the_container_was_created_with() {
    let fake = Fake::speaking("1.41", |request| {
        if request.starts_with("GET /v1.41/containers/json") {
            return json(
                200,
                r#"[{"Id":"a","Image":"sha256:77","Labels":{"com.docker.compose.project":"web"}},
                    {"Id":"b","Image":"web:2","Labels":{"com.docker.compose.project":"web"}}]"#,
            );
        }
        assert_eq!(request, "GET /v1.41/containers/a/json");
        json(200, r#"{"Config":{"Image":"web:1"}}"#)
    });
    let images: Vec<_> = fake
        .engine()
        .list("web")
        .unwrap()
        .into_iter()
        .map(|found| found.image)
        .collect();
    assert_eq!(images, ["web:1", "web:2"]);
}

#[test]
fn the_removal_by_another_client_is_waited_for() {
    let inspections = Mutex::new(0);
    let fake = Fake::speaking("1.41", move |request| {
        if request.starts_with("DELETE") {
            return json(409, r#"{"message":"any text"}"#);
        }
        *lock(&inspections) += 1;
        match *lock(&inspections) {
            // The engine kills it first.
            1 => json(200, r#"{"State":{"Status":"running"}}"#),
            2 => json(200, r#"{"State":{"Status":"removing"}}"#),
            _ => json(404, "{}"),
        }
    });
    fake.engine().remove(&[container("a")]).unwrap();
    assert_eq!(fake.requests().len(), 5);
}

#[test]
fn waiting_for_another_removal_has_a_time_limit() {
    let fake = Fake::speaking("1.41", |request| {
        if request.starts_with("DELETE") {
            return json(
                409,
                r#"{"message":"removal of container a is already in progress"}"#,
            );
        }
        json(200, r#"{"State":{"Status":"removing"}}"#)
    });
    let engine = fake.engine_within(Duration::from_secs(30), Duration::from_millis(150));
    let error = engine.remove(&[container("a")]).unwrap_err();
    assert_eq!(
        Failure::details_of(&error),
        Some("web-a: Docker returned 409: removal of container a is already in progress")
    );
}

#[test]
fn the_error_names_the_remaining_containers_with_the_reason() {
    let fake = Fake::speaking("1.41", |request| match request {
        "DELETE /v1.41/containers/b?force=1" => json(500, r#"{"message":"driver\u001b failed"}"#),
        "DELETE /v1.41/containers/c?force=1" => json(500, r#"{"message":"could not kill"}"#),
        "GET /v1.41/containers/b/json" => json(200, "{}"),
        // It was removed despite the error.
        "GET /v1.41/containers/c/json" => json(404, "{}"),
        _ => json(204, ""),
    });
    let error = fake
        .engine()
        .remove(&[container("a"), container("b"), container("c")])
        .unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to remove the containers: not removed: web-b (1 of 3)"
    );
    assert_eq!(
        Failure::details_of(&error),
        Some("web-b: Docker returned 500: driver\\u{1b} failed")
    );
}

#[test]
fn containers_are_removed_in_parallel() {
    let pending = Arc::new(std::sync::Barrier::new(MAX_CONCURRENT));
    let fake = Fake::speaking("1.41", move |_| {
        // Opens when the maximum of concurrent requests is reached.
        pending.wait();
        json(204, "")
    });
    let containers: Vec<_> = (0..MAX_CONCURRENT * 2)
        .map(|at| container(&at.to_string()))
        .collect();
    fake.engine().remove(&containers).unwrap();
    assert!(*lock(&fake.connections) <= MAX_CONCURRENT + 1);
}

#[test]
fn a_listener_that_accepts_no_connection_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let listener = UnixListener::bind(&socket).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _first = UnixStream::connect(&socket).unwrap();
    let engine = engine_on(
        &socket,
        Duration::from_millis(150),
        Duration::from_millis(150),
    );
    let error = engine.id().unwrap_err();
    assert!(format!("{error:#}").contains("within"), "{error:#}");
}

#[test]
fn a_redirect_is_not_followed() {
    let fake = Fake::speaking("1.41", |_| json(301, "moved"));
    let text = format!("{:#}", fake.engine().id().unwrap_err());
    assert!(text.ends_with("Docker returned 301: moved"), "{text}");
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn reserved_characters_are_encoded() {
    assert_eq!(percent_encoded("a-Z_0.~"), "a-Z_0.~");
    assert_eq!(
        percent_encoded("{\"ü&=+ %\"}"),
        "%7B%22%C3%BC%26%3D%2B%20%25%22%7D"
    );
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
