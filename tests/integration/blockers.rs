//! A port that is in use on this host. Transcripts show everything else that `adopt` refuses.

use std::net::TcpListener;

use crate::bench::{Bench, PLAIN};

#[test]
fn a_port_that_a_program_of_this_host_uses() {
    let bench = Bench::web(PLAIN);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let text = format!("{PLAIN}    ports: ['127.0.0.1:{port}:80']\n");
    bench.stack("web", &text, None);
    let used = format!("1. port {port}/tcp is used by a program of this host\n");
    let way_out = "stop that program, or change the port";
    let run = bench.stops("adopt web", &[&*used, way_out]);
    run.hides("2. ");
    assert!(!bench.state().join("snapshots").exists(), "no snapshot");
    bench.fails("plan web", &[&*used, way_out]);
}
