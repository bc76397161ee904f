//! The connection to Portainer: TLS, proxies, redirects.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
};

use rehearsal::{Call, FaultKind};

use crate::bench::{Bench, PLAIN, Run};

#[test]
fn tls_by_the_managers_own_certificate() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let pem = bench.root().join("manager.pem");
    fs::write(&pem, bench.rehearsal.certificate_pem()).expect("a certificate");
    let pem = pem.to_str().expect("UTF-8");
    bench.run(&["web", "--tls", pem]).code(0);
    let other = Bench::new();
    let base_url = other.rehearsal.base_url();
    bench
        .run(&["web", "--tls", pem, "--base-url", &base_url])
        .code(1)
        .says(&["certificate", "--tls", "this run changed nothing"]);
    bench
        .run(&["web", "--tls", "system"])
        .code(1)
        .says(&["certificate"]);
    fs::write(bench.root().join("empty.pem"), "").expect("a file");
    let empty = bench.root().join("empty.pem");
    bench
        .run(&["web", "--tls", empty.to_str().expect("UTF-8")])
        .code(1)
        .says(&["contains no certificate"]);
}

#[test]
fn a_proxy_is_honoured_but_never_for_loopback() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut line = String::new();
        BufReader::new(&client)
            .read_line(&mut line)
            .expect("a line");
        let _ = client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        line
    });
    let mut command = bench.command(&["web"]);
    command
        .env("HTTPS_PROXY", &proxy)
        .env("https_proxy", &proxy);
    Run::of(&mut command).code(0);
    let mut command = bench.command(&["web", "--base-url", "https://manager.example:9443"]);
    command
        .env("HTTPS_PROXY", &proxy)
        .env("https_proxy", &proxy);
    Run::of(&mut command)
        .code(1)
        .says(&["warning: TLS verification is off for https://manager.example:9443"]);
    let line = asked.join().expect("the proxy");
    assert_eq!(line, "CONNECT manager.example:9443 HTTP/1.1\r\n");
}

#[test]
fn no_redirect_is_followed() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    for status in [301, 302, 303, 307, 308] {
        bench.rehearsal.forget_requests();
        bench
            .rehearsal
            .faults()
            .once(Call::List, FaultKind::Status(status, String::new()));
        bench.run(&["web"]).code(1).says(&[
            &format!("status {status}"),
            "redirect to /login",
            "login page",
        ]);
        assert_eq!(
            bench
                .rehearsal
                .requests()
                .iter()
                .filter(|r| r.port != 0)
                .count(),
            1
        );
    }
}

#[test]
fn plain_http_is_for_loopback_only() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let answer = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut line = String::new();
        BufReader::new(&client)
            .read_line(&mut line)
            .expect("a line");
        let _ = client.write_all(b"HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n");
        line
    });
    bench
        .run(&["web", "--base-url", &url])
        .code(1)
        .says(&["status 503"]);
    assert_eq!(answer.join().expect("it"), "GET /api/stacks HTTP/1.1\r\n");
    bench
        .run(&["web", "--base-url", "http://manager.example"])
        .code(2);
}
