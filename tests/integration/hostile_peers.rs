//! Sockets of Docker that are not what they should be.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixListener,
    path::Path,
    thread,
};

use crate::bench::{Bench, PLAIN, Run, set_mode};

/// Answers every connection to a socket with `bytes`; without, it never answers.
fn socket(path: &Path, bytes: Option<&'static [u8]>) {
    let listener = UnixListener::bind(path).expect("a socket");
    // Ends with the process: it waits for connections that nobody makes any more.
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            match bytes {
                Some(bytes) => {
                    let _ = stream.read(&mut [0; 4096]);
                    let _ = stream.write_all(bytes);
                }
                None => held.push(stream),
            }
        }
    });
}

#[test]
fn engine_sockets_that_are_none() {
    let page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 17\r\n\r\n<html>\x1b[2J</html>";
    let bench = Bench::web(PLAIN);
    fs::write(bench.root().join("file"), "").expect("a file");
    let noise = b"\x00\xff\x1b[31m\r\n\r\n";
    let forbidden = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nforbidden";
    let endless = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{";
    for (name, bytes, words) in [
        ("page", Some(&page[..]), "is this the socket of Docker?"),
        ("noise", Some(noise), "invalid HTTP response from Docker"),
        ("closes", Some(b""), "cannot reach Docker"),
        ("refuses", Some(forbidden), "403"),
        ("endless", Some(endless), "cannot reach Docker"),
        ("hangs", None, "no response from Docker"),
        ("absent", None, "check that Docker is running"),
        ("file", None, "check that Docker is running"),
    ] {
        let path = bench.root().join(name);
        if !["absent", "file"].contains(&name) {
            socket(&path, bytes);
        }
        let socket = format!("unix://{}", path.display());
        let run = bench.run_with("web --timeout 2s", "DOCKER_HOST", socket);
        // A failing listing is tolerated (C52): the run continues, and says that the containers are unknown.
        let unknown = "the stack's containers are unknown: what they will lose";
        run.succeeds(&["warning: ", words, unknown]).hides("\u{1b}");
        bench.world(|world| world.records.clear());
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_an_engine_socket_that_this_user_may_not_use() {
    let bench = Bench::web(PLAIN);
    for folder in [bench.root(), &bench.dir("web"), bench.home()] {
        set_mode(folder, 0o1777);
    }
    // The rehearsal's folder is its owner's alone.
    let unknown = "the stack's containers are unknown: what they will lose";
    Run::of(&mut bench.as_user("web", 65_534)).succeeds(&[
        "cannot reach Docker",
        "Permission denied",
        unknown,
    ]);
}
