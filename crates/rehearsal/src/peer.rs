//! Who is at the other end of a connection on this host.

use std::{
    fs, io,
    net::{SocketAddr, TcpStream},
};

/// Whether a connection over IPv4 comes from a socket of the user of this process.
pub(super) fn is_own(stream: &TcpStream) -> io::Result<bool> {
    // 0: 0100007F:8B0E 0100007F:C350 01 00000000:00000000 00:00000000 00000000 1000 …
    let ends = [shown(stream.peer_addr()?), shown(stream.local_addr()?)];
    let sockets = fs::read_to_string("/proc/net/tcp")?;
    let user = sockets.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = ends.iter().all(|end| fields.next() == end.as_deref());
        fields.nth(4).filter(|_| is_it)?.parse().ok()
    });
    Ok(user == Some(rustix::process::geteuid().as_raw()))
}

/// An address as the kernel shows it.
fn shown(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else {
        return None;
    };
    let ip = u32::from_ne_bytes(address.ip().octets());
    Some(format!("{ip:08X}:{:04X}", address.port()))
}
