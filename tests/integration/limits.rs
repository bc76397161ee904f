//! B07, B12 and B13: entries of the list that cannot be parsed, limits of responses, and secrets in pieces.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::net::UnixListener,
    thread,
    time::Duration,
};

use serde_json::json;
use testbed::{Call, FaultKind};

use crate::bench::{Bench, MARKED, PLAIN, instead};

/// The replies of a server: the first whose start is that of a request's method and path; otherwise 404.
type Replies = &'static [(&'static str, Reply)];

#[derive(Clone, Copy)]
enum Reply {
    /// These bytes.
    Whole(&'static str),
    /// These bytes, then a byte every 50 ms, without an end.
    Drip(&'static str),
    /// These bytes, then spaces without an end.
    Endless(&'static str),
}

use Reply::{Drip, Endless, Whole};

/// Serves a connection until it ends.
fn serve(stream: impl Read + Write, replies: Replies) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let lines = stream.by_ref().lines();
        let head: Vec<String> = lines
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        let Some(request) = head.first() else {
            return Ok(());
        };
        let of_length = |line: &String| {
            let line = line.to_ascii_lowercase();
            line.strip_prefix("content-length:")?.trim().parse().ok()
        };
        let length = head.iter().find_map(of_length).unwrap_or(0);
        stream.read_exact(&mut vec![0; length])?;
        let found = replies.iter().find(|(start, _)| request.starts_with(start));
        let (start, rest, pause) = match found.map_or(Whole(NONE), |(_, reply)| *reply) {
            Whole(start) => (start, None, 0),
            Drip(start) => (start, Some(vec![b' ']), 50),
            Endless(start) => (start, Some(vec![b' '; 1 << 20]), 0),
        };
        stream.get_mut().write_all(start.as_bytes())?;
        while let Some(rest) = &rest {
            stream.get_mut().write_all(rest)?;
            thread::sleep(Duration::from_millis(pause));
        }
    }
}

/// The base URL of such a server in place of Portainer.
fn portainer(replies: Replies) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Ends with the process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream?, replies));
        }
    });
    format!("http://{address}")
}

const NONE: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
const LIST: &str = "GET /api/stacks ";
const NO_STACKS: Reply = Whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]");
const A_STACK: Reply = Whole(
    "HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n[{\"Id\":7,\"Name\":\"web\",\"EndpointId\":1}] ",
);
const HEAD: Reply = Drip("HTTP/1.1 200 OK\r\nX: ");
const BODY: Reply = Drip("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n[");
const CHUNKED: Reply =
    Drip("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n270f\r\n[{\"Name\":\"web\",");
const ERROR: Reply = Drip("HTTP/1.1 500 no\r\nContent-Length: 9999\r\n\r\n{\"message\":");
const PONG: &str = "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n";
const PLAIN_HTTP: &str = "HTTP/1.0 400 Bad Request\r\nContent-Length: 48\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
const DELETED: Reply = Drip("HTTP/1.1 204 ");
const ENDLESS: Reply = Endless("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");

#[test]
fn b12_a_response_of_portainer_has_a_limit_in_time_and_size() {
    let (late, too_large) = ("timed out", "the response is too large");
    let no_change = "Nothing was changed";
    let no_response = "no response from Portainer";
    let not_deleted = "failed to delete Portainer stack 7";
    let rows: [(Replies, _, _); 7] = [
        (&[(LIST, HEAD)], late, no_change),
        (&[(LIST, BODY)], late, no_change),
        (&[(LIST, CHUNKED)], late, no_change),
        (&[(LIST, NO_STACKS), ("POST ", HEAD)], late, no_response),
        (&[(LIST, NO_STACKS), ("POST ", ERROR)], late, no_response),
        (
            &[(LIST, NO_STACKS), ("POST ", ENDLESS)],
            too_large,
            no_response,
        ),
        (&[(LIST, A_STACK), ("DELETE ", DELETED)], late, not_deleted),
    ];
    for (replies, error, state) in rows {
        let bench = Bench::on_disk(PLAIN);
        bench.world(|world| world.add_image("busybox:1.36"));
        let url = portainer(replies);
        let limit = if error == late { "2s" } else { "5m" };
        let args = ["web", "--base-url", &url, "--timeout", limit];
        bench.fails(&args, &[error, state]);
    }
    // Under TLS, where a read waits for a whole record.
    let bench = Bench::on_disk(PLAIN);
    for number in 0..40 {
        bench.record(&format!("other{number}"), 1);
    }
    bench.always(Call::List, FaultKind::SlowDrip);
    bench.fails("web --timeout 2s", &["timed out", no_change]);
}

#[test]
fn b12_an_engine_that_drips_ends_at_the_limit() {
    let rows: [(&str, Replies); 2] = [
        ("head", &[("GET ", HEAD)]),
        ("body", &[("GET /_ping", Whole(PONG)), ("GET ", BODY)]),
    ];
    for (name, replies) in rows {
        let bench = Bench::on_disk(PLAIN);
        let path = bench.root().join(name);
        let listener = UnixListener::bind(&path).expect("a socket");
        // Ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || serve(stream?, replies));
            }
        });
        let socket = format!("unix://{}", path.display());
        let run = bench.run_with("web --timeout 2s", "DOCKER_HOST", socket);
        // The failing listing is tolerated (C52).
        run.says(&["no response from Docker", "within 2s"]);
    }
}

#[test]
fn hints_do_not_blame_the_version_of_portainer() {
    let bench = Bench::on_disk(PLAIN);
    // As Go's TLS server responds to plain HTTP.
    let url = portainer(&[("", Whole(PLAIN_HTTP))]);
    let hint = "the port expects HTTPS: use https:// in --base-url";
    let run = bench.fails(&["web", "--base-url", &url], hint);
    run.hides("2.19");
}

#[test]
fn b13_values_are_masked_in_everything_that_portainer_says() {
    let env = format!("TOKEN={MARKED}\na line without an equals sign\n");
    let message = format!("no {MARKED}, a line without an equals sign");
    let body = json!({"message": message}).to_string();
    let reads = [Call::List, Call::Get, Call::File, Call::Info];
    for call in reads.into_iter().chain([Call::Delete, Call::Create]) {
        let bench = Bench::new();
        bench.record("web", 1);
        bench.started("web", PLAIN, None);
        bench.stack("web", PLAIN, Some(&env));
        let kind = instead(500, &body.clone());
        bench.always(call, kind.clone());
        let run = bench.run("web --force").says("***");
        run.hides("a line without");
        if matches!(call, Call::Info | Call::Create) {
            continue;
        }
        bench.faults().clear();
        bench.run("web --force").code(0);
        bench.always(call, kind);
        let wanted = if call == Call::Delete { "" } else { "***" };
        let run = bench.run("restore web").says(wanted);
        run.hides("a line without");
    }
}
