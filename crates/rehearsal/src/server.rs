//! The listener and connection threads. Dropping [`Server`] ends them all.

use std::{
    io::{self, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixListener,
    },
    path::PathBuf,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};
use rustls::{ServerConnection, StreamOwned};

use super::{
    engine,
    faults::{FaultKind, Peer},
    http::{self, JSON, Response, TEXT},
    peer, portainer,
    request::Request,
    shared::{Shared, lock},
    world::{Ending, millis},
};

/// The pause between two bytes of a [`FaultKind::SlowDrip`].
const DRIP: Duration = Duration::from_millis(1);

/// Both APIs.
pub(super) struct Server {
    pub shared: Arc<Shared>,
    pub port: u16,
    pub socket: PathBuf,
    /// Reserves the port while nobody listens on it.
    _reserved: OwnedFd,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and on `socket`.
    pub fn start(shared: Shared, socket: PathBuf) -> io::Result<Self> {
        let (reserved, port) = reserve_port()?;
        let server = Self {
            shared: Arc::new(shared),
            port,
            socket,
            _reserved: reserved,
            threads: Mutex::default(),
        };
        server.revive()?;
        Ok(server)
    }

    /// Listens on the addresses on which nobody listens.
    pub fn revive(&self) -> io::Result<()> {
        if !self.shared.listens(Peer::Portainer) {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
            let accept = TcpListener::accept;
            self.listen(Peer::Portainer, listener, accept, serve_portainer)?;
        }
        if !self.shared.listens(Peer::Engine) {
            // Fails at the start, when there is none.
            let _ = std::fs::remove_file(&self.socket);
            let listener = UnixListener::bind(&self.socket)?;
            let accept = UnixListener::accept;
            self.listen(Peer::Engine, listener, accept, |mut stream, shared| {
                serve(&mut stream, shared, Peer::Engine, 0)
            })?;
        }
        Ok(())
    }

    /// Serves each connection of a listener in a thread, until the listener is closed.
    fn listen<L: AsFd + Send + 'static, S: AsFd + Send + 'static, A: 'static>(
        &self,
        peer: Peer,
        listener: L,
        accept: fn(&L) -> io::Result<(S, A)>,
        serve: fn(S, &Arc<Shared>) -> io::Result<()>,
    ) -> io::Result<()> {
        let number = self.shared.listen(peer, &listener)?;
        let shared = Arc::clone(&self.shared);
        let accept_all = move || {
            thread::scope(|scope| {
                loop {
                    match accept(&listener) {
                        Ok((stream, _)) => {
                            if let Some(connection) = shared.connect(number, &stream) {
                                let shared = &shared;
                                scope.spawn(move || {
                                    // A client may disconnect at any time.
                                    let _ = serve(stream, shared);
                                    shared.disconnect(connection);
                                });
                            }
                        }
                        Err(_) if shared.is_open(number) => {}
                        Err(_) => break,
                    }
                }
            });
        };
        lock(&self.threads).push(thread::spawn(accept_all));
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.end();
        for thread in lock(&self.threads).drain(..) {
            // A listener that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

/// Binds a socket to a free port without listening. `SO_REUSEADDR` lets the listener bind the same port.
fn reserve_port() -> io::Result<(OwnedFd, u16)> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let address = SocketAddrV4::try_from(getsockname(&socket)?)?;
    Ok((socket, address.port()))
}

fn serve_portainer(stream: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if shared.is_private && !peer::is_own(&stream)? {
        return Ok(());
    }
    let port = stream.peer_addr()?.port();
    let tls = Arc::clone(&lock(&shared.certificate).config);
    let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    serve(&mut stream, shared, Peer::Portainer, port)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Answers the requests of a connection. An error breaks it off, without the end that TLS requires.
fn serve(
    stream: &mut (impl Read + Write),
    shared: &Arc<Shared>,
    peer: Peer,
    port: u16,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = http::read_request(&mut stream, peer, port)? {
        let keeps_alive = request.keeps_alive();
        exchange(stream.get_mut(), shared, request)?;
        if !keeps_alive {
            break;
        }
    }
    Ok(())
}

fn exchange(stream: &mut impl Write, shared: &Arc<Shared>, mut request: Request) -> io::Result<()> {
    let (peer, call) = (request.peer, request.call);
    let broken_off = || io::Error::from(io::ErrorKind::ConnectionAborted);
    let fault = shared.faults.take(call, &request.path);
    let response = match &fault {
        Some(FaultKind::CloseBefore | FaultKind::Hang | FaultKind::Die) => None,
        Some(FaultKind::Status(status, body)) => Some(failure(*status, body.as_bytes())),
        _ => {
            let ending = ending(fault.as_ref());
            let is_change = portainer::is_change(call);
            if !is_change && !shared.wait(ending.after) {
                return Err(broken_off());
            }
            let response = match peer {
                _ if ending.fails && !is_change => failure(500, b"simulated failure"),
                Peer::Portainer => {
                    let respond = || portainer::respond(shared, &request, ending);
                    if fault == Some(FaultKind::Repeated) {
                        respond().ok_or_else(broken_off)?;
                    }
                    respond().ok_or_else(broken_off)?
                }
                Peer::Engine => engine::respond(&mut shared.world(), &request),
            };
            shared.change(call);
            damaged(response, fault.as_ref())
        }
    };
    // First the log: a client that has the response finds the request in it.
    request.status = response.as_ref().map(|response| response.status);
    let (is_head, keeps_alive) = (request.method == "HEAD", request.keeps_alive());
    shared.log().push(request);
    let Some(response) = response else {
        match fault {
            Some(FaultKind::Hang | FaultKind::HangAfter) => drop(shared.pause(Duration::MAX)),
            Some(FaultKind::Die | FaultKind::DieAfter) => shared.die(peer),
            _ => {}
        }
        return Err(broken_off());
    };
    let body = response.body.len();
    let mut bytes = response.into_bytes(is_head, keeps_alive);
    match fault {
        Some(FaultKind::CutOff) => {
            bytes.truncate(bytes.len() - body.div_ceil(2));
            stream.write_all(&bytes)?;
            stream.flush()?;
            return Err(broken_off());
        }
        Some(FaultKind::SlowDrip) => {
            for byte in bytes {
                stream.write_all(&[byte])?;
                stream.flush()?;
                if shared.pause(DRIP) {
                    return Err(broken_off());
                }
            }
        }
        _ => stream.write_all(&bytes)?,
    }
    stream.flush()
}

/// The response that the client gets because of a fault; `None` if it gets none.
fn damaged(response: Response, fault: Option<&FaultKind>) -> Option<Response> {
    let status = response.status;
    match fault {
        Some(FaultKind::CloseAfter | FaultKind::HangAfter | FaultKind::DieAfter) => None,
        Some(FaultKind::Garbage) => Some(Response::new(status, JSON, b"\0\xff<{]garbage\x1b[31m")),
        Some(FaultKind::Empty) => Some(Response::new(status, JSON, "")),
        Some(FaultKind::Body(status, body) | FaultKind::Impatient { status, body, .. }) => {
            Some(failure(*status, body))
        }
        _ => Some(response),
    }
}

/// A response whose content type follows from its body.
fn failure(status: u16, body: &[u8]) -> Response {
    if status == 204 {
        return Response::no_content();
    }
    let content_type = match body.trim_ascii_start().first() {
        Some(b'<') => "text/html; charset=utf-8",
        Some(b'{' | b'[') => JSON,
        _ => TEXT,
    };
    let mut response = Response::new(status, content_type, body);
    if body.starts_with(b"<") {
        response.headers.push(("Server", "gateway/1.0".to_owned()));
    }
    if (300..400).contains(&status) {
        response.headers.push(("Location", "/login".to_owned()));
    }
    response
}

fn ending(fault: Option<&FaultKind>) -> Ending {
    let (delay, fails) = match fault {
        Some(FaultKind::LateSuccess(delay)) => (*delay, false),
        Some(FaultKind::LateFailure(delay)) => (*delay, true),
        Some(FaultKind::Impatient { after, fails, .. }) => (*after, *fails),
        _ => return Ending::default(),
    };
    Ending {
        after: millis(delay),
        fails,
        is_unattended: matches!(fault, Some(FaultKind::Impatient { .. })),
    }
}
