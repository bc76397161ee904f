//! Whose sockets are at an address of this host. Without TLS verification, the API key is only sent to the sockets of root
//! and of the caller (B31).

use std::{
    collections::BTreeSet,
    fmt,
    fs::File,
    io::{self, BufRead as _, BufReader, ErrorKind},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use ureq::unversioned::{
    resolver::{DefaultResolver, Resolver},
    transport::{ConnectionDetails, Connector, TcpConnector, Transport},
};

use super::{
    address::{BaseUrl, is_local},
    tls::Tls,
};
use crate::{
    disk::{self, Refused},
    failure::Failure,
};

/// The users whose sockets receive the connections to an address of this host. It is empty if the engine forwards the
/// port without a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owners {
    pub address: SocketAddr,
    users: BTreeSet<u32>,
}

impl Owners {
    /// Reads the sockets in the network namespace of this process. Those that listen count; if there are none, those that
    /// are connected, because a listener can be closed once it has a connection.
    fn of(address: SocketAddr) -> io::Result<Self> {
        let (ipv4, ipv6) = ("/proc/net/tcp", "/proc/net/tcp6");
        let (own, other) = match on_this_host(address.ip()) {
            IpAddr::V4(_) => (ipv4, ipv6),
            IpAddr::V6(_) => (ipv6, ipv4),
        };
        // Sockets that listen at one address and port belong to one user, also if one is of IPv4 and one of IPv6.
        let mut users = users_at(own, address, true)?;
        if users.is_empty() {
            users = users_at(other, address, true)?;
        }
        if users.is_empty() {
            users = users_at(own, address, false)?;
            users.append(&mut users_at(other, address, false)?);
        }
        Ok(Self { address, users })
    }

    pub fn is_nobody(&self) -> bool {
        self.users.is_empty()
    }

    /// Whether they are all root or the caller.
    pub fn are_trusted(&self) -> bool {
        let caller = rustix::process::geteuid().as_raw();
        self.users.iter().all(|&user| user == 0 || user == caller)
    }

    /// The failure of a request that was not sent to them.
    pub(super) fn refused(&self) -> Failure {
        Failure::new(format!(
            "the program that listens at {} belongs to another user, {self}; neither a request nor the API key was sent",
            self.address
        ))
        .hint("if that program is Portainer, as with a rootless engine, pass --tls pin with an https:// address; otherwise, stop that program: it would have received the API key")
    }
}

/// The users by number and name: `1000 (ann)`.
impl fmt::Display for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.users.iter().map(|&user| match disk::name_of(user) {
            Some(name) => format!("{user} ({name})"),
            None => user.to_string(),
        });
        f.write_str(&shown.collect::<Vec<_>>().join(", "))
    }
}

impl std::error::Error for Owners {}

/// The users of the sockets in a file of the kernel that receive the connections to an address: those that listen, or all. The
/// kernel lists those that listen first. It looks for the others in a large table, which takes it milliseconds.
fn users_at(file: &str, address: SocketAddr, listen: bool) -> io::Result<BTreeSet<u32>> {
    let file = match File::open(file) {
        // This kernel has no IPv6.
        Err(error) if error.kind() == ErrorKind::NotFound && file.ends_with('6') => {
            return Ok(BTreeSet::new());
        }
        file => file?,
    };
    let mut users = BTreeSet::new();
    for line in BufReader::with_capacity(1024, file).lines() {
        let line = line?;
        let socket = Socket::read(&line);
        if listen && socket.as_ref().is_some_and(|one| !one.listens) {
            break;
        }
        let here = socket.filter(|one| one.receives(address));
        users.extend(here.map(|user| user.user));
    }
    Ok(users)
}

/// A line of `/proc/net/tcp` or `/proc/net/tcp6`.
struct Socket {
    local: SocketAddr,
    listens: bool,
    user: u32,
}

impl Socket {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (ip, port) = fields.next()?.split_once(':')?;
        let state = fields.nth(1)?;
        let user = fields.nth(3)?;
        Some(Self {
            local: SocketAddr::new(read_ip(ip)?, u16::from_str_radix(port, 16).ok()?),
            listens: state == "0A",
            user: user.parse().ok()?,
        })
    }

    /// Whether it may receive a connection to `address`, or has received one.
    fn receives(&self, address: SocketAddr) -> bool {
        let (own, asked) = (self.local.ip(), on_this_host(address.ip()));
        // An IPv6 socket may also accept IPv4.
        let is_any = self.listens && own.is_unspecified() && (own.is_ipv6() || asked.is_ipv4());
        self.local.port() == address.port() && (own == asked || is_any)
    }
}

/// The kernel writes each 32 bits in the order of the host.
fn read_ip(digits: &str) -> Option<IpAddr> {
    let word = |at| {
        let word = u32::from_str_radix(digits.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    if digits.len() == 8 {
        return Some(IpAddr::from(word(0)?));
    }
    let mut bytes = [0; 16];
    for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
        part.copy_from_slice(&word(index * 8)?);
    }
    Some(IpAddr::from(bytes).to_canonical())
}

/// The address that a connection reaches: the kernel connects to loopback instead of `0.0.0.0` and `::`.
fn on_this_host(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        ip @ IpAddr::V4(_) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

fn is_here(address: SocketAddr) -> bool {
    is_local(on_this_host(address.ip()))
}

impl BaseUrl {
    /// The owners of each address of this host that the URL's host name has; `None` for an owner that is unknown.
    pub fn owners(&self) -> Vec<(SocketAddr, Option<Owners>)> {
        let here = self
            .addresses()
            .into_iter()
            .filter(|address| is_here(*address));
        here.map(|address| (address, Owners::of(address).ok()))
            .collect()
    }

    /// Whether `tls` leaves it open which program receives the API key, also because another user can change the certificates.
    pub fn is_unverified(&self, tls: &Tls) -> bool {
        let can_change = |pem: &Path| match disk::open(pem) {
            Ok((_, found)) => !disk::is_ours(&found) || found.mode() & 0o022 != 0,
            // One that does not exist fails later.
            Err(error) => Refused::of(&error).is_some(),
        };
        !self.is_https()
            || match tls {
                Tls::Off => true,
                Tls::File(pem) => can_change(pem),
                _ => false,
            }
    }
}

/// Connects. With `checks`, a connection to an address of this host whose sockets belong to others fails before
/// anything is sent, with [`Owners`] as its cause.
#[derive(Debug)]
pub(super) struct OwnerConnector {
    pub(super) tcp: TcpConnector,
    pub(super) checks: bool,
}

impl<In: Transport> Connector<In> for OwnerConnector {
    type Out = <TcpConnector as Connector<In>>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let mut addresses = details.addrs.iter().copied();
        if !self.checks || chained.is_some() || !addresses.any(is_here) {
            return self.tcp.connect(details, chained);
        }
        // ureq does not say to which of several addresses it connected: so each has its own attempt.
        let mut connected = Err(ureq::Error::HostNotFound);
        for &address in &details.addrs {
            let mut addrs = DefaultResolver::default().empty();
            addrs.push(address);
            let alone = ConnectionDetails {
                addrs,
                config: details.config,
                uri: details.uri,
                request_level: details.request_level,
                resolver: details.resolver,
                now: details.now,
                timeout: details.timeout,
                current_time: details.current_time.clone(),
                run_connector: details.run_connector.clone(),
                register_shutdown: details.register_shutdown.clone(),
            };
            connected = self.tcp.connect(&alone, None);
            if connected.is_ok() {
                // After the connection: a socket that is closed in between is still there as a connected one.
                refuse_others(address)?;
                break;
            }
        }
        connected
    }
}

fn refuse_others(address: SocketAddr) -> Result<(), ureq::Error> {
    match is_here(address).then(|| Owners::of(address)) {
        Some(Ok(owners)) if !owners.are_trusted() => Err(ureq::Error::Io(io::Error::other(owners))),
        // `doctor` says if the owner is unknown.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[test]
    fn b31_the_lines_of_the_kernel_are_read() {
        // The kernel writes the words in the order of this host.
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let zero = word([0; 4]);
        let any6 = zero.repeat(4);
        let one6 = format!("{}{}", zero.repeat(3), word([0, 0, 0, 1]));
        let (home, any) = (word([127, 0, 0, 1]), zero);
        let mapped = format!("{any}{any}{}{home}", word([0, 0, 255, 255]));
        let (v4, v6) = ("127.0.0.1:9443", "[::1]:9443");
        for (local, state, address, expected) in [
            (&home, "0A", v4, true),
            (&home, "0A", "[::ffff:127.0.0.1]:9443", true),
            (&home, "0A", "0.0.0.0:9443", true),
            (&home, "0A", "127.0.0.1:9444", false),
            (&home, "0A", "127.0.0.2:9443", false),
            (&home, "01", v4, true),
            (&any, "0A", "192.0.2.1:9443", true),
            (&any, "0A", v6, false),
            (&any, "01", v4, false),
            (&any6, "0A", v4, true),
            (&any6, "0A", v6, true),
            (&one6, "0A", v6, true),
            (&one6, "0A", "[::]:9443", true),
            (&one6, "0A", v4, false),
            (&mapped, "0A", v4, true),
            (&mapped, "0A", v6, false),
        ] {
            let line = format!(
                "  12: {local}:24E3 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 65534        0 1197 1 0 100"
            );
            let socket = Socket::read(&line).expect("a socket");
            let address = address.parse().expect("an address");
            assert_eq!(socket.receives(address), expected, "{line} {address}");
            assert_eq!(socket.user, 65_534);
        }
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert!(Socket::read(head).is_none());
    }

    /// What follows the first socket that does not listen costs the kernel milliseconds.
    #[test]
    fn b31_only_the_sockets_that_listen_are_read() {
        let home = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
        let line = |state: &str, user: u32| {
            format!("  0: {home}:24E3 00000000:0000 {state} 0:0 0:0 0 {user} 0 1\n")
        };
        let lines = [
            "  sl  local_address\n",
            &line("0A", 1),
            &line("0A", 2),
            &line("01", 3),
            &line("0A", 4),
        ];
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), lines.concat()).expect("written");
        let path = file.path().to_str().expect("UTF-8");
        let address = "127.0.0.1:9443".parse().expect("an address");
        let users = |listen| users_at(path, address, listen).expect("read");
        assert_eq!(users(true), BTreeSet::from([1, 2]));
        assert_eq!(users(false), BTreeSet::from([1, 2, 3, 4]));
    }

    #[test]
    fn b31_a_listener_that_closes_is_seen_in_its_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let own = BTreeSet::from([rustix::process::geteuid().as_raw()]);
        assert_eq!(Owners::of(address).expect("the sockets").users, own);
        let _client = TcpStream::connect(address).expect("a connection");
        let _server = listener.accept().expect("a connection");
        drop(listener);
        assert_eq!(Owners::of(address).expect("the sockets").users, own);
    }
}
