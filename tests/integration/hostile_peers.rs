//! Addresses, lists, settings and sockets that are not what they should be.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixListener,
    path::Path,
    thread,
};

use serde_json::json;
use testbed::Call;

use crate::bench::{Bench, PLAIN, Run, done, fifo, set_mode};

#[test]
fn base_urls() {
    let bench = Bench::web(PLAIN);
    let served = bench.base_url();
    let plain = served.replace("https", "http");
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    for (url, words) in [
        (format!("{served}/portainer"), "status 404"),
        (plain, "hint: "),
        (format!("https://127.0.0.1:{closed}"), "Connection refused"),
        (format!("https://[::1]:{closed}"), "[::1]"),
        ("https://manager.invalid".to_owned(), "manager.invalid"),
    ] {
        let args = ["web", "--base-url", &url, "--timeout", "20s"];
        bench.stops(&args, &[words]);
    }
}

#[test]
fn records_that_lack_fields_or_have_odd_ones() {
    let largest = "18446744073709551615";
    for (record, deletes) in [
        (json!({"Id": -7, "EndpointId": 1}), Some("-7")),
        (json!({"Id": u64::MAX, "EndpointId": 1}), Some(largest)),
        (json!({"Id": "1/../../x", "EndpointId": 1}), None),
        (json!({"Id": 1, "EndpointId": 1e30}), None),
        (json!({"Id": 1, "EndpointId": -1}), None),
        (
            json!({"Id": 5, "EndpointId": 1, "Env": 7, "Status": "x", "AutoUpdate": [], "ResourceControl": 1, "GitConfig": "\u{1b}[2J"}),
            Some("5"),
        ),
        (json!({"Id": "7", "EndpointId": 1}), Some("7")),
    ] {
        let bench = Bench::web(PLAIN);
        let mut record = record;
        record["Name"] = json!("web");
        let list = json!([null, 1, "web", [], {"Name": "web"}, record]).to_string();
        bench.always(Call::List, done(200, &list));
        bench.run("web").hides("\u{1b}");
        let sent = bench.calls(Call::Delete);
        let path = deletes.map(|id| format!("/api/stacks/{id}?endpointId=1"));
        assert_eq!(sent.first().map(|request| request.path.clone()), path);
    }
}

#[test]
fn c09_a_settings_file_that_cannot_be_trusted_or_parsed() {
    let bench = Bench::web(PLAIN);
    let config = bench.root().join("config");
    fs::create_dir(&config).expect("a folder");
    let file = config.join("stacklift.toml");
    let stops = |words: &[&str]| {
        let mut command = bench.command("web");
        command
            .env("XDG_CONFIG_HOME", &config)
            .env_remove("STACKLIFT_TIMEOUT")
            .env_remove("STACKLIFT_BASE_URL");
        let run = Run::of(&mut command).fails(words);
        run.says(&["stacklift.toml", "\nNothing was changed.\nhint: "]);
        assert!(bench.requests().is_empty());
        assert!(bench.backups("web").is_empty());
    };
    for (text, words) in [
        (&b"endpoint = "[..], "cannot parse the settings file"),
        (b"\xff\xfe", "failed to read the settings file"),
        (b"\0", "cannot parse the settings file"),
        (b"endpoint = \"one\"\n", "invalid endpoint"),
        (b"base-url = \"http://manager.example\"\n", "base-url"),
        (b"timeout = \"for ever\"\n", "timeout"),
        (b"tool = \"../docker\"\n", "tool"),
        (b"key = \"\x1b[31m\"\n", "cannot parse the settings file"),
        (b"base-ulr = \"x\"\n", "did you mean `base-url`?"),
        (&b"# x\n".repeat(1 << 20), "is larger than"),
    ] {
        fs::write(&file, text).expect("settings");
        stops(&[words]);
    }
    fs::write(&file, "endpoint = 1\n").expect("settings");
    for mode in [0o666, 0o620, 0o602] {
        set_mode(&file, mode);
        stops(&[
            "refusing to read the settings file",
            "not writable by others",
        ]);
    }
    fs::remove_file(&file).expect("removed");
    fs::create_dir(&file).expect("a folder");
    stops(&["not a regular file"]);
    fs::remove_dir(&file).expect("removed");
    fifo(&file);
    stops(&["not a regular file"]);
}

#[test]
fn key_files_that_are_none() {
    let bench = Bench::web(PLAIN);
    for (path, words) in [
        ("/no/such/file", "No such file"),
        ("/", "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
    ] {
        let run = bench.with_key_file("web", path);
        run.fails(&[words, "Nothing was changed", "hint: "]);
        assert!(bench.requests().is_empty());
    }
}

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
