//! B07, B12 and B13: entries of the list that cannot be parsed, limits of responses, and secrets in pieces.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::net::UnixListener,
    thread,
    time::{Duration, Instant},
};

use rehearsal::{Call, FaultKind};
use serde_json::json;

use crate::bench::{Bench, KEY, MARKED, PLAIN, Run, write_private};

/// A server that responds to each request by its method and path.
type Respond = fn(&str) -> Reply;

enum Reply {
    /// These bytes.
    Whole(&'static str),
    /// These bytes, then a byte every 50 ms, without an end.
    Drip(&'static str),
    /// These bytes, then spaces without an end.
    Endless(&'static str),
}

fn serve(stream: impl Read + Write + Send + 'static, respond: Respond) {
    // Ends with its connection.
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            let mut first = String::new();
            if stream.read_line(&mut first).unwrap_or(0) == 0 {
                return;
            }
            let mut length = 0;
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                let line = line.trim().to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            if stream.read_exact(&mut body).is_err() {
                return;
            }
            let request = first.rsplit_once(' ').expect("a request").0;
            let (start, rest, pause) = match respond(request) {
                Reply::Whole(start) => (start, None, Duration::ZERO),
                Reply::Drip(start) => (start, Some(vec![b' ']), Duration::from_millis(50)),
                Reply::Endless(start) => (start, Some(vec![b' '; 1 << 20]), Duration::ZERO),
            };
            let stream = stream.get_mut();
            if stream.write_all(start.as_bytes()).is_err() {
                return;
            }
            while let Some(rest) = &rest {
                if stream.write_all(rest).is_err() {
                    return;
                }
                thread::sleep(pause);
            }
        }
    });
}

/// The base URL of such a server in place of Portainer.
fn portainer(respond: Respond) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Ends with the process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.expect("a connection"), respond);
        }
    });
    format!("http://{address}")
}

/// Runs the program with a timeout of 2 s. It must end within a minute, although a response never does.
fn limited(bench: &Bench, args: &[&str]) -> Run {
    let started = Instant::now();
    let run = bench.run(&[args, &["--timeout", "2s"]].concat());
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_mins(1), "{elapsed:?} {run:#?}");
    run
}

#[test]
fn b07_an_id_may_be_text_of_digits() {
    for (id, path) in [
        (json!(7), "/api/stacks/7?endpointId=1"),
        (json!("7"), "/api/stacks/7?endpointId=1"),
    ] {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        let list = json!([{"Id": id, "Name": "web", "EndpointId": 1}]).to_string();
        bench
            .rehearsal
            .faults()
            .once(Call::List, FaultKind::Body(200, list.into_bytes()));
        drop(bench.run(&["web"]));
        assert_eq!(bench.calls(Call::Delete)[0].path, path);
    }
}

#[test]
fn b07_an_entry_that_may_be_the_stack_stops_the_run() {
    for (entry, reason) in [
        (json!({"Name": "web", "EndpointId": 1}), "its Id is missing"),
        (
            json!({"Id": null, "Name": "web", "EndpointId": 1}),
            "its Id is null",
        ),
        (
            json!({"Id": "a\u{1b}[2J", "Name": "web", "EndpointId": 1}),
            "its Id is \"a\\u001b[2J\"",
        ),
        (
            json!({"Id": 1, "Name": "web", "EndpointId": "1"}),
            "its EndpointId is \"1\"",
        ),
        (
            json!({"Id": 1, "Name": "web", "EndpointId": null}),
            "its EndpointId is null",
        ),
    ] {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        let list = json!([entry]).to_string();
        bench
            .rehearsal
            .faults()
            .set(Call::List, FaultKind::Body(200, list.into_bytes()));
        bench.run(&["web"]).code(1).says(&[
            "Portainer's list has an entry named web",
            reason,
            "it may be this stack",
            "state: this run changed nothing",
            "hint: ",
        ]);
        assert!(bench.nothing_was_changed());
        assert_eq!(bench.containers("web").len(), 1);
    }
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let list = json!([
        {"Name": "web"}, {"Id": null, "Name": "web", "EndpointId": 2},
        {"Id": null, "Name": "other", "EndpointId": 1}, {"Name": "other", "EndpointId": null},
    ]);
    let list = FaultKind::Body(200, list.to_string().into_bytes());
    bench.rehearsal.faults().once(Call::List, list);
    bench.run(&["web"]).code(0);
}

#[test]
fn b12_a_list_that_drips_ends_at_the_limit() {
    for respond in [
        (|_| Reply::Drip("HTTP/1.1 200 OK\r\nX: ")) as Respond,
        |_| Reply::Drip("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n["),
        |_| {
            Reply::Drip(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n270f\r\n[{\"Name\":\"web\",",
            )
        },
    ] {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        let url = portainer(respond);
        limited(&bench, &["web", "--base-url", &url])
            .code(1)
            .says(&["timed out", "state: this run changed nothing"]);
        assert_eq!(bench.containers("web").len(), 1);
    }
    // Under TLS, where a read waits for a whole record.
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    for number in 0..40 {
        bench.record(&format!("other{number}"), 1);
    }
    bench
        .rehearsal
        .faults()
        .set(Call::List, FaultKind::SlowDrip);
    limited(&bench, &["web"])
        .code(1)
        .says(&["timed out", "state: this run changed nothing"]);
}

#[test]
fn b12_a_create_that_drips_ends_at_the_limit() {
    for respond in [
        (|request| match request {
            "GET /api/stacks" => Reply::Whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"),
            request if request.starts_with("POST ") => Reply::Drip("HTTP/1.1 200 OK\r\nX: "),
            _ => Reply::Whole("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        }) as Respond,
        |request| match request {
            "GET /api/stacks" => Reply::Whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"),
            request if request.starts_with("POST ") => {
                Reply::Drip("HTTP/1.1 500 no\r\nContent-Length: 9999\r\n\r\n{\"message\":")
            }
            _ => Reply::Whole("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        },
    ] {
        let bench = Bench::new();
        bench.stack("web", PLAIN, None);
        let url = portainer(respond);
        limited(&bench, &["web", "--base-url", &url])
            .code(1)
            .says(&["no response to the create", "timed out"]);
    }
}

#[test]
fn b12_a_delete_that_drips_ends_at_the_limit() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    bench.rehearsal.world(|world| {
        world.add_image("busybox:1.36");
    });
    let url = portainer(|request| match request {
        "GET /api/stacks" => Reply::Whole(
            "HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n[{\"Id\":7,\"Name\":\"web\",\"EndpointId\":1}] ",
        ),
        request if request.starts_with("DELETE ") => Reply::Drip("HTTP/1.1 204 "),
        _ => Reply::Whole("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    });
    limited(&bench, &["web", "--base-url", &url])
        .code(1)
        .says(&["failed to delete Portainer stack 7", "timed out"]);
}

#[test]
fn b12_an_engine_that_drips_ends_at_the_limit() {
    for (name, respond) in [
        (
            "head",
            (|_| Reply::Drip("HTTP/1.1 200 OK\r\nX: ")) as Respond,
        ),
        ("body", |request| match request {
            "GET /_ping" => {
                Reply::Whole("HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n")
            }
            _ => Reply::Drip("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n["),
        }),
    ] {
        let bench = Bench::new();
        bench.stack("web", PLAIN, None);
        let path = bench.root().join(name);
        let listener = UnixListener::bind(&path).expect("a socket");
        // Ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.expect("a connection"), respond);
            }
        });
        let mut command = bench.command(&["web", "--timeout", "2s"]);
        command.env("DOCKER_HOST", format!("unix://{}", path.display()));
        let started = Instant::now();
        // The failing listing is tolerated (C52).
        let run = Run::of(&mut command);
        let elapsed = started.elapsed();
        assert!(elapsed < Duration::from_mins(1), "{elapsed:?}");
        drop(run.says(&["no response from the engine", "within 2s"]));
    }
}

#[test]
fn b12_a_response_to_a_create_has_a_size_limit() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let url = portainer(|request| match request {
        "GET /api/stacks" => Reply::Whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"),
        request if request.starts_with("POST ") => {
            Reply::Endless("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        }
        _ => Reply::Whole("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    });
    bench
        .run(&["web", "--base-url", &url, "--timeout", "5m"])
        .code(1)
        .says(&["no response to the create", "the response is too large"]);
}

#[test]
fn b12_the_output_of_the_container_command_has_a_size_limit() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let bin = bench.script("docker", "exec yes 0123456789ab\n");
    let path = std::env::var("PATH").expect("a PATH");
    let mut command = bench.command(&["web", "--engine", "command", "--timeout", "5m"]);
    command.env("PATH", format!("{}:{path}", bin.display()));
    drop(Run::of(&mut command).says(&["`docker ps` printed more than 256 MiB"]));
}

#[test]
fn b13_no_child_process_gets_the_key() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let seen = bench.root().join("seen");
    let bin = bench.script("docker", &format!("env >> {}\n", seen.display()));
    let path = std::env::var("PATH").expect("a PATH");
    let key_file = bench.root().join("key");
    write_private(&key_file, KEY);
    for from_file in [false, true] {
        let mut command = bench.command(&["web", "--engine", "command"]);
        command
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("MARKER", "inherited")
            .env("STACKMGR_API_KEY_FILE", &key_file);
        if from_file {
            command.env_remove("STACKMGR_API_KEY");
        }
        drop(Run::of(&mut command));
        let env = fs::read_to_string(&seen).expect("the command ran");
        assert!(env.contains("MARKER=inherited"), "{env}");
        assert!(!env.contains("STACKMGR_"), "{env}");
        fs::remove_file(&seen).expect("removed");
    }
    fs::remove_file(&key_file).expect("removed");
}

#[test]
fn b13_pieces_and_escaped_forms_of_values_are_masked() {
    let env = "KEY=\"-----BEGIN KEY-----\nabcDEF0123\nxyz+/890==\n-----END KEY-----\"\nPASS=p\"a$s's w&rd\n";
    let bench = Bench::new();
    bench.stack("web", PLAIN, Some(env));
    let message = r#"near "abcDEF0123\nxyz+/890==", p%22a%24s%27s%20w%26rd, p\"a$s's w\u0026rd, p"a$$s's w&rd"#;
    let body = json!({"message": "failed", "details": message}).to_string();
    for body in [body, message.to_owned()] {
        bench
            .rehearsal
            .faults()
            .once(Call::Create, FaultKind::Status(500, body));
        let run = bench.run(&["web", "--force"]).code(1);
        let mut run = run.says(&["***"]);
        for piece in ["abcDEF", "xyz+", "p%22a", "w&rd", "w\\u0026rd"] {
            run = run.hides(piece);
        }
    }
}

#[test]
fn the_credentials_of_a_git_url_are_not_printed() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let git = json!({"URL": "https://me:gh-t0ken@git.example/web.git"});
    let list = json!([{"Id": 7, "Name": "web", "EndpointId": 1, "GitConfig": git}]).to_string();
    bench
        .rehearsal
        .faults()
        .once(Call::List, FaultKind::Body(200, list.into_bytes()));
    let message = "{\"message\":\"cannot clone https://me:gh-t0ken@git.example/web.git\"}";
    for call in [Call::Get, Call::Create] {
        let kind = FaultKind::Status(500, message.to_owned());
        bench.rehearsal.faults().set(call, kind);
    }
    drop(
        bench
            .run(&["web"])
            .says(&["git.example/web.git"])
            .hides("gh-t0ken"),
    );
}

#[test]
fn hints_do_not_blame_the_version_of_portainer() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    // As Go's TLS server responds to plain HTTP.
    let url = portainer(|_| {
        Reply::Whole(
            "HTTP/1.0 400 Bad Request\r\nContent-Length: 48\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
        )
    });
    bench
        .run(&["web", "--base-url", &url])
        .code(1)
        .says(&["the port expects HTTPS: use https:// in --base-url"])
        .hides("2.19");
    bench.stack("empty", "", None);
    bench
        .run(&["empty", "--force"])
        .code(1)
        .says(&[
            "Invalid stack file content",
            "fix the error that Portainer reports",
        ])
        .hides("2.19");
}

#[test]
fn b13_values_are_masked_in_everything_that_portainer_says() {
    let env = format!("TOKEN={MARKED}\na line without an equals sign\n");
    let message = format!("no {MARKED}, a line without an equals sign");
    let body = json!({"message": message}).to_string();
    for call in [
        Call::List,
        Call::Get,
        Call::File,
        Call::Info,
        Call::Delete,
        Call::Create,
    ] {
        let bench = Bench::new();
        bench.record("web", 1);
        bench.started("web", PLAIN, None);
        bench.stack("web", PLAIN, Some(&env));
        let kind = FaultKind::Status(500, body.clone());
        bench.rehearsal.faults().set(call, kind.clone());
        let run = bench.run(&["web", "--force"]).says(&["***"]);
        drop(run.hides("a line without"));
        if matches!(call, Call::Info | Call::Create) {
            continue;
        }
        bench.rehearsal.faults().clear();
        bench.run(&["web", "--force"]).code(0);
        bench.rehearsal.faults().set(call, kind);
        let wanted = if call == Call::Delete { "" } else { "***" };
        let run = bench.run(&["restore", "web"]).says(&[wanted]);
        drop(run.hides("a line without"));
    }
}
