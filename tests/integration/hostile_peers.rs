//! Addresses, lists, settings and sockets that are not what they should be.

use std::{
    fmt::Write as _,
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    process::Command,
    thread,
};

use rehearsal::{Call, FaultKind};
use serde_json::json;

use crate::bench::{Bench, PLAIN, Run};

fn started() -> Bench {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench
}

/// Asserts that a run stopped with everything as it was, and says so.
#[track_caller]
fn stopped(bench: &Bench, run: Run, words: &[&str]) {
    run.code(1)
        .says(&["error: ", "state: this run changed nothing", "hint: "])
        .says(words);
    assert_eq!(bench.containers("web").len(), 1);
    assert!(bench.nothing_was_changed());
}

#[test]
fn base_urls() {
    let bench = started();
    let served = bench.rehearsal.base_url();
    let port = served.rsplit(':').next().expect("a port").to_owned();
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    for (url, words) in [
        (format!("{served}/portainer"), "status 404"),
        (format!("{served}/api"), "status 404"),
        (format!("http://127.0.0.1:{port}"), "hint: "),
        (format!("https://127.0.0.1:{closed}"), "Connection refused"),
        (format!("https://[::1]:{closed}"), "[::1]"),
        ("https://manager.invalid".to_owned(), "manager.invalid"),
    ] {
        let run = bench.run(&["web", "--base-url", &url, "--timeout", "20s"]);
        stopped(&bench, run, &[words, "failed to list Portainer's stacks"]);
    }
    for wrong in [
        "",
        "localhost:9443",
        "//localhost",
        "https:///x",
        "https://h:0x1",
        "https://h:70000",
        "https://[::1",
        "https://h/?x",
        "http://192.0.2.1:9000",
        "https://\u{1b}[31m",
        "file:///etc/passwd",
    ] {
        let run = bench.run(&["web", "--base-url", wrong]).code(2);
        assert!(run.err.contains("--base-url"), "{run:#?}");
    }
    assert_eq!(bench.containers("web").len(), 1);
    // A path is kept, with its slash or without.
    for end in ["", "/", "//"] {
        bench.rehearsal.forget_requests();
        let url = format!("{served}/a/b{end}");
        bench.run(&["web", "--base-url", &url]).code(1);
        assert_eq!(bench.rehearsal.requests()[0].path, "/a/b/api/stacks");
    }
}

#[test]
fn lists_that_are_none() {
    let cases: [(u16, &[u8]); 10] = [
        (200, b"{\"message\":\"ok\"}"),
        (200, b"{\"Stacks\":[]}"),
        (200, b"[{\"Id\":1,\"Name\":\"web\",\"EndpointId\":1}"),
        (200, b"[{\"Id\":1,\"Name\":\"web\",\"Endpoi"),
        (200, b"\"\""),
        (200, b"[]["),
        (200, b"[1,]"),
        (200, b"\xff\xfe["),
        (200, b"<!DOCTYPE html><title>Log in</title>"),
        (201, b""),
    ];
    for (status, body) in cases {
        let bench = started();
        bench
            .rehearsal
            .faults()
            .set(Call::List, FaultKind::Body(status, body.to_vec()));
        let run = bench.run(&["web"]);
        stopped(&bench, run, &["stacks"]);
    }
    for kind in [
        FaultKind::CutOff,
        FaultKind::Garbage,
        FaultKind::Empty,
        FaultKind::CloseAfter,
    ] {
        let bench = started();
        bench.record("web", 1);
        bench.rehearsal.faults().set(Call::List, kind);
        let run = bench.run(&["web"]);
        stopped(&bench, run, &[]);
    }
}

#[test]
fn entries_that_are_nested_deeply_are_no_match() {
    let bench = started();
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let kind = FaultKind::Body(200, deep.into_bytes());
    bench.rehearsal.faults().once(Call::List, kind);
    bench.run(&["web"]).code(0);
}

#[test]
fn records_that_lack_fields_or_have_odd_ones() {
    for (record, deletes) in [
        (
            json!({"Id": -7, "Name": "web", "EndpointId": 1}),
            Some("/api/stacks/-7?endpointId=1"),
        ),
        (
            json!({"Id": u64::MAX, "Name": "web", "EndpointId": 1}),
            Some("/api/stacks/18446744073709551615?endpointId=1"),
        ),
        (
            json!({"Id": "1/../../x", "Name": "web", "EndpointId": 1}),
            None,
        ),
        (json!({"Id": null, "Name": "web", "EndpointId": 1}), None),
        (json!({"Id": 1, "Name": "web", "EndpointId": 1e30}), None),
        (json!({"Id": 1, "Name": "web", "EndpointId": -1}), None),
        (json!({"Id": 1, "Name": ["web"], "EndpointId": 1}), None),
        (json!({"Id": 1, "name": "web", "EndpointId": 1}), None),
        (json!({"Id": 1, "Name": "WEB", "EndpointId": 1}), None),
        (
            json!({"Id": 5, "Name": "web", "EndpointId": 1, "Env": 7, "Status": "x", "AutoUpdate": [], "ResourceControl": 1, "GitConfig": "\u{1b}[2J"}),
            Some("/api/stacks/5?endpointId=1"),
        ),
    ] {
        let bench = started();
        let list = json!([null, 1, "web", [], {"Name": "web"}, record]).to_string();
        bench
            .rehearsal
            .faults()
            .set(Call::List, FaultKind::Body(200, list.into_bytes()));
        let run = bench.run(&["web"]);
        drop(run.hides("\u{1b}").hides("panicked"));
        let sent: Vec<String> = bench
            .calls(Call::Delete)
            .into_iter()
            .map(|request| request.path)
            .collect();
        assert_eq!(sent.first().map(String::as_str), deletes);
    }
}

#[test]
fn a_list_of_100_000_records() {
    let bench = started();
    let mut list = String::from("[");
    for id in 0..100_000 {
        write!(
            list,
            "{{\"Id\":{id},\"Name\":\"other{id}\",\"EndpointId\":1,\"Env\":[]}},"
        )
        .expect("a String");
    }
    list.push_str("{\"Id\":100000,\"Name\":\"web\",\"EndpointId\":1}]");
    bench
        .rehearsal
        .faults()
        .once(Call::List, FaultKind::Body(200, list.into_bytes()));
    // A debug build on a busy machine needs its time.
    let run = bench.run(&["web", "--timeout", "5m"]);
    drop(run.says(&["Portainer stack 100000"]));
    assert_eq!(
        bench.calls(Call::Delete)[0].path,
        "/api/stacks/100000?endpointId=1"
    );
}

#[test]
fn settings_files_that_are_none() {
    let bench = started();
    let config = bench.root().join("config");
    fs::create_dir(&config).expect("a folder");
    let file = config.join("stacklift.toml");
    let run = |words: &[&str]| {
        let mut command = bench.command(&["web"]);
        command.env("XDG_CONFIG_HOME", &config);
        stopped(&bench, Run::of(&mut command), words);
        assert!(bench.rehearsal.requests().is_empty());
        assert!(bench.backups("web").is_empty());
    };
    for (text, words) in [
        (&b"endpoint = "[..], "cannot parse the settings file"),
        (b"\xff\xfe", "failed to read the settings file"),
        (b"\0", "cannot parse the settings file"),
        (b"endpoint = \"one\"\n", "invalid endpoint"),
        (
            b"endpoint = 99999999999999999999\n",
            "cannot parse the settings file",
        ),
        (b"[endpoint]\n", "invalid endpoint"),
        (b"base-url = \"http://manager.example\"\n", "base-url"),
        (b"timeout = \"for ever\"\n", "timeout"),
        (b"tool = \"../docker\"\n", "tool"),
        (b"key = \"\x1b[31m\"\n", "stacklift.toml"),
    ] {
        fs::write(&file, text).expect("settings");
        let mut command = bench.command(&["web"]);
        command
            .env("XDG_CONFIG_HOME", &config)
            .env_remove("STACKLIFT_TIMEOUT")
            .env_remove("STACKLIFT_BASE_URL");
        stopped(&bench, Run::of(&mut command), &[words, "stacklift.toml"]);
    }
    fs::write(&file, "# x\n".repeat(1 << 20)).expect("settings");
    run(&["is larger than", "stacklift.toml"]);
    fs::write(&file, "endpoint = 1\n").expect("settings");
    for mode in [0o666, 0o620, 0o602] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
        run(&["not writable by others"]);
    }
    fs::remove_file(&file).expect("removed");
    fs::create_dir(&file).expect("a folder");
    run(&["not a regular file", "stacklift.toml"]);
    fs::remove_dir(&file).expect("removed");
    let made = Command::new("mkfifo").arg(&file).status();
    assert!(made.expect("mkfifo").success());
    run(&["not a regular file", "stacklift.toml"]);
}

#[test]
fn key_files_that_are_none() {
    let bench = started();
    for (path, words) in [
        ("/no/such/file", "No such file"),
        ("/", "it is not a regular file"),
        ("/dev/null", "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
    ] {
        let mut command = bench.command(&["web"]);
        command
            .env_remove("STACKMGR_API_KEY")
            .env("STACKMGR_API_KEY_FILE", path);
        stopped(&bench, Run::of(&mut command), &[words]);
        assert!(bench.rehearsal.requests().is_empty());
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
    let answers: [(&str, Option<&'static [u8]>, &str); 6] = [
        (
            "page",
            Some(page),
            "is this the socket of a container engine?",
        ),
        (
            "noise",
            Some(b"\x00\xff\x1b[31m\r\n\r\n"),
            "invalid HTTP response from the engine",
        ),
        ("closes", Some(b""), "cannot reach the engine"),
        (
            "refuses",
            Some(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nforbidden"),
            "403",
        ),
        (
            "endless",
            Some(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{"),
            "engine",
        ),
        ("hangs", None, "no response from the engine"),
    ];
    let bench = started();
    for (name, bytes, _) in answers {
        socket(&bench.root().join(name), bytes);
    }
    fs::write(bench.root().join("file"), "").expect("a file");
    let others = [
        ("absent", "is the engine running?"),
        ("file", "is the engine running?"),
    ];
    let cases = answers.iter().map(|(name, _, words)| (*name, *words));
    for (name, words) in cases.chain(others) {
        let mut command = bench.command(&["web", "--timeout", "2s"]);
        let path = bench.root().join(name);
        command.env("DOCKER_HOST", format!("unix://{}", path.display()));
        // A failing listing is tolerated (C52): the run continues, and says that the containers are unknown.
        let run = Run::of(&mut command).code(0);
        drop(run.hides("\u{1b}").says(&[
            "warning: ",
            words,
            "the stack's containers are unknown: what they will lose",
        ]));
        bench.rehearsal.world(|world| {
            let ids: Vec<u64> = world.records.keys().copied().collect();
            for id in ids {
                world.records.remove(&id);
            }
        });
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_an_engine_socket_that_this_user_may_not_use() {
    use std::os::unix::process::CommandExt;
    let bench = started();
    let program = bench.root().join("stacklift");
    // A file that this process had open to write would be busy if another test starts a program now.
    let copied = std::process::Command::new("cp")
        .args([
            std::path::Path::new(env!("CARGO_BIN_EXE_stacklift")),
            &program,
        ])
        .status();
    assert!(copied.expect("cp").success());
    let home = bench.state();
    let home = home.parent().expect("a home");
    for folder in [bench.root(), &bench.dir("web"), home] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)).expect("a mode");
    }
    let inner = bench.command(&["web"]);
    let mut command = Command::new(&program);
    command.arg("web").env_clear().uid(65_534).gid(65_534);
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    // The rehearsal's folder is its owner's alone.
    let run = Run::of(&mut command).code(0);
    drop(run.says(&[
        "cannot reach the engine",
        "Permission denied",
        "the stack's containers are unknown: what they will lose",
    ]));
}
