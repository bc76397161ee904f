//! What the text needs: images, files, volumes, networks, names and ports.

use super::refuses;
use crate::bench::{Bench, PLAIN};

#[test]
fn a_port_that_a_program_of_this_host_uses() {
    let bench = Bench::web(PLAIN);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let text = format!("{PLAIN}    ports: ['127.0.0.1:{port}:80']\n");
    bench.stack("web", &text, None);
    let why = format!(
        "port {port}/tcp is used by a program of this host\nstop that program, or change the port"
    );
    refuses(&bench, "web", &why);
}
