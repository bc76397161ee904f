//! The connection to Portainer: TLS, proxies, redirects.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread::{self, JoinHandle},
};

use crate::bench::{Bench, PLAIN, Run};

/// A server for one request: its URL, and the first line of that request.
fn server(answer: &'static [u8]) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut line = String::new();
        let read = BufReader::new(&client).read_line(&mut line);
        read.expect("a line");
        let _ = client.write_all(answer);
        line
    });
    (url, asked)
}

#[test]
fn a_proxy_is_honoured_but_never_for_loopback() {
    let bench = Bench::on_disk(PLAIN);
    let (proxy, asked) = server(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
    let run = |args: &str| {
        let mut command = bench.command(args);
        command.envs(["HTTPS_PROXY", "https_proxy"].map(|name| (name, &proxy)));
        Run::of(&mut command)
    };
    run("web").code(0);
    let url = "https://manager.example:9443";
    let warning = format!("warning: TLS verification is off for {url}");
    run(&format!("web --base-url {url}")).fails(&warning);
    let line = asked.join().expect("the proxy");
    assert_eq!(line, "CONNECT manager.example:9443 HTTP/1.1\r\n");
}

#[test]
fn plain_http_is_for_loopback_only() {
    let bench = Bench::on_disk(PLAIN);
    let (url, asked) = server(b"HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n");
    bench.fails(&["web", "--base-url", &url], "status 503");
    assert_eq!(asked.join().expect("it"), "GET /api/stacks HTTP/1.1\r\n");
    let other = "web --base-url http://manager.example";
    bench.run(other).code(2);
}
