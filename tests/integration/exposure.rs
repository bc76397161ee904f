//! What another user of this host sees of a run: nothing of the API key (B31).

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::{chown, fchown},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use crate::bench::{Bench, PLAIN};

/// Another user.
const USER: u32 = 65_534;

const REFUSED: [&str; 3] = [
    "belongs to another user, 65534",
    "neither a request nor the API key was sent",
    "--tls pin",
];

/// A listener in the place of Portainer that stores what it receives. It answers the first `answers` connections, and
/// belongs to `USER` from the next one on.
struct Listener {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Listener {
    fn at(address: &str, answers: usize) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let store = received.clone();
        if answers == 0 {
            fchown(&listener, Some(USER), None).expect("root");
        }
        thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                let limit = Some(Duration::from_secs(2));
                client.set_read_timeout(limit).expect("a time limit");
                // The program has looked at the owner before it sends, and connects again only after the answer.
                let change_owner = || {
                    if number + 1 == answers {
                        fchown(&listener, Some(USER), None).expect("root");
                    }
                };
                serve(client, (number < answers).then_some(change_owner), &store);
            }
        });
        Self { address, received }
    }

    fn received(&self) -> String {
        let received = self.received.lock().expect("a lock");
        String::from_utf8_lossy(&received).into_owned()
    }
}

/// Answers a request after `before`, or stores everything that is sent.
fn serve(mut client: TcpStream, before: Option<impl FnOnce()>, store: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = client.read(&mut bytes) {
        if let Some(before) = before {
            before();
            let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n[]";
            client.write_all(answer).expect("written");
            return;
        }
        let mut store = store.lock().expect("a lock");
        store.extend(&bytes[..read]);
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b31_a_listener_of_another_user_receives_nothing() {
    let bench = Bench::web(PLAIN);
    for bind in [
        "127.0.0.1:0",
        "127.0.0.9:0",
        "0.0.0.0:0",
        "[::]:0",
        "[::1]:0",
    ] {
        let listener = Listener::at(bind, 0);
        let port = listener.address.port();
        let host = match bind {
            "[::1]:0" => "[::1]",
            "127.0.0.9:0" => "127.0.0.9",
            "0.0.0.0:0" => "0.0.0.0",
            _ => "127.0.0.1",
        };
        for scheme in ["https", "http"] {
            if (scheme, host) == ("http", "0.0.0.0") {
                continue;
            }
            let url = format!("{scheme}://{host}:{port}");
            for command in [&["web"][..], &["adopt", "web"], &["plan", "web"]] {
                let args = [command, &["--base-url", &url]].concat();
                bench.fails(&args, &REFUSED);
            }
            let run = bench.run(&["list", "--base-url", &url]);
            assert!(run.all().contains(REFUSED[0]), "{run:#?}");
            let run = bench.run(&["doctor", "--base-url", &url]).code(1);
            assert!(run.out.contains("failed   TLS "), "{run:#?}");
            assert!(run.out.contains("belongs to user 65534"), "{run:#?}");
        }
        assert_eq!(listener.received(), "", "{bind}");
    }
    assert!(bench.nothing_was_changed());
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b31_the_other_address_of_localhost_is_checked() {
    let bench = Bench::on_disk(PLAIN);
    let url = bench.base_url();
    let port = url.rsplit_once(':').expect("a port").1;
    let listener = Listener::at(&format!("[::1]:{port}"), 0);
    let local = format!("https://localhost:{port}");
    let run = bench.run(&["web", "--base-url", &local]);
    assert_eq!(listener.received(), "", "{run:#?}");
    assert!(run.code == 0 || run.err.contains(REFUSED[0]), "{run:#?}");
    bench.run(&["web", "--base-url", &url]).code(0);
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b31_each_connection_is_checked() {
    let bench = Bench::web(PLAIN);
    let listener = Listener::at("127.0.0.1:0", 1);
    let url = format!("http://{}", listener.address);
    let run = bench.fails(&["web", "--base-url", &url], &REFUSED);
    run.says("state: ");
    assert_eq!(listener.received(), "");
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b31_a_certificate_protects_whoever_listens() {
    let bench = Bench::on_disk(PLAIN);
    let portainer = bench.base_url().replace("https://", "");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    fchown(&listener, Some(USER), None).expect("root");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(&portainer).expect("Portainer");
            for (mut from, mut to) in [(&client, &server), (&server, &client)]
                .map(|(from, to)| (from.try_clone().expect("it"), to.try_clone().expect("it")))
            {
                thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    let pem = bench.root().join("portainer.pem");
    fs::write(&pem, bench.certificate_pem()).expect("a file");
    let file = pem.to_str().expect("UTF-8");
    let with_file = || bench.run(&["web", "--base-url", &url, "--tls", file]);
    bench.fails(&["web", "--base-url", &url], &REFUSED);
    // The other user could write another certificate into it.
    chown(&pem, Some(USER), None).expect("root");
    with_file().fails(&REFUSED);
    chown(&pem, Some(0), None).expect("root");
    with_file().code(0);
}

#[test]
fn b31_doctor_says_who_listens() {
    let bench = Bench::new();
    let id = rustix::process::geteuid().as_raw();
    let run = bench.run("doctor");
    let said = format!(" belongs to user {id}");
    run.says(&[
        "ok       TLS ",
        "certificates are not verified; 127.0.0.1:",
        &said,
        "--tls pin is stricter",
    ]);
    // Nobody is there, and nothing was received.
    let run = bench.run("doctor --base-url http://127.0.0.1:1");
    run.says("TLS              not checked: Portainer could not be read");
}
