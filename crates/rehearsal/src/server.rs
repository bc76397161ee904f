//! The listener and connection threads. Dropping [`Server`] ends them all.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{
    deployer::Deployer,
    engine,
    faults::{Call, FaultKind},
    http::{self, Buffer, Incoming, Response},
    listeners::Listeners,
    portainer,
    request::{Peer, Request},
    shared::{Connection, Registered, Shared, lock},
    world::{Ending, World},
};

/// The pause between two bytes of a [`FaultKind::SlowDrip`].
const DRIP: Duration = Duration::from_millis(1);

/// Both listeners.
pub(super) struct Server {
    pub shared: Arc<Shared>,
    tls: Arc<ServerConfig>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and on `socket`.
    pub fn start(
        world: World,
        tls: Arc<ServerConfig>,
        socket: &Path,
        deployer: Option<Deployer>,
    ) -> io::Result<Self> {
        let (listeners, tcp, unix) = Listeners::open(socket)?;
        let server = Self {
            shared: Arc::new(Shared::new(world, listeners, deployer)),
            tls,
            threads: Mutex::default(),
        };
        server.listen(Some(tcp), Some(unix));
        Ok(server)
    }

    /// The port of Portainer.
    pub fn port(&self) -> u16 {
        self.shared.listeners.port
    }

    /// Listens again on the addresses that were closed.
    pub fn revive(&self) -> io::Result<()> {
        let listeners = &self.shared.listeners;
        self.listen(listeners.reopen_portainer()?, listeners.reopen_engine()?);
        Ok(())
    }

    fn listen(&self, tcp: Option<TcpListener>, unix: Option<UnixListener>) {
        let mut threads = lock(&self.threads);
        if let Some(tcp) = tcp {
            let (shared, tls) = (Arc::clone(&self.shared), Arc::clone(&self.tls));
            threads.push(thread::spawn(move || accept_portainer(tcp, &shared, &tls)));
        }
        if let Some(unix) = unix {
            let shared = Arc::clone(&self.shared);
            threads.push(thread::spawn(move || accept_engine(unix, &shared)));
        }
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

fn accept_portainer(listener: TcpListener, shared: &Arc<Shared>, tls: &Arc<ServerConfig>) {
    let mut threads = Vec::new();
    for stream in listener.incoming() {
        if shared.is_over(Peer::Portainer) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let (shared, tls) = (Arc::clone(shared), Arc::clone(tls));
        threads.retain(|thread: &JoinHandle<()>| !thread.is_finished());
        threads.push(thread::spawn(move || {
            // A client may disconnect at any time.
            let _ = serve_portainer(stream, &shared, tls);
        }));
    }
    drop(listener);
    shared.listeners.closed(Peer::Portainer);
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve_portainer(
    stream: TcpStream,
    shared: &Arc<Shared>,
    tls: Arc<ServerConfig>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let port = stream.peer_addr()?.port();
    let registered = Registered::new(shared, Connection::Tcp(stream.try_clone()?));
    let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    serve(&mut stream, shared, Peer::Portainer, port)?;
    stream.conn.send_close_notify();
    stream.flush()?;
    drop(registered);
    Ok(())
}

fn accept_engine(listener: UnixListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    for stream in listener.incoming() {
        if shared.is_over(Peer::Engine) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        threads.retain(|thread: &JoinHandle<()>| !thread.is_finished());
        threads.push(thread::spawn(move || {
            // A client may disconnect at any time.
            let _ = serve_engine(stream, &shared);
        }));
    }
    drop(listener);
    shared.listeners.closed(Peer::Engine);
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve_engine(mut stream: UnixStream, shared: &Arc<Shared>) -> io::Result<()> {
    let _registered = Registered::new(shared, Connection::Unix(stream.try_clone()?));
    serve(&mut stream, shared, Peer::Engine, 0)
}

/// What happens to the connection after a response.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    /// Close it as HTTP requires.
    Close,
    /// Break it off.
    Abort,
}

fn serve(
    stream: &mut (impl Read + Write),
    shared: &Arc<Shared>,
    peer: Peer,
    port: u16,
) -> io::Result<()> {
    let mut buffer = Buffer::default();
    while let Some(incoming) = http::read_request(stream, &mut buffer)? {
        match exchange(stream, shared, peer, port, incoming)? {
            Next::Continue => {}
            Next::Close => return Ok(()),
            Next::Abort => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
    Ok(())
}

fn exchange(
    stream: &mut (impl Read + Write),
    shared: &Arc<Shared>,
    peer: Peer,
    port: u16,
    incoming: Incoming,
) -> io::Result<Next> {
    let call = match peer {
        Peer::Portainer => portainer::call(&incoming),
        Peer::Engine => engine::call(&incoming),
    };
    let log = |incoming: Incoming, status: Option<u16>| {
        shared.log().push(Request {
            peer,
            call,
            method: incoming.method,
            path: incoming.target,
            status,
            headers: incoming.headers,
            body: incoming.body,
            port,
        });
    };
    let fault = shared.faults.take(call, &incoming.target);
    match fault {
        Some(FaultKind::CloseBefore) => {
            log(incoming, None);
            return Ok(Next::Abort);
        }
        Some(FaultKind::Hang) => {
            log(incoming, None);
            shared.wait_for_end();
            return Ok(Next::Abort);
        }
        Some(FaultKind::Die) => {
            log(incoming, None);
            shared.die(peer);
            return Ok(Next::Abort);
        }
        Some(FaultKind::Status(status, ref body)) => {
            let response = failure(status, body);
            return finish(stream, response, incoming, &log);
        }
        _ => {}
    }
    let ending = ending(fault.as_ref());
    let Some(response) = respond(shared, peer, call, &incoming, ending) else {
        return Ok(Next::Abort);
    };
    shared.change(call);
    match fault {
        Some(FaultKind::CloseAfter) => {
            log(incoming, None);
            Ok(Next::Abort)
        }
        Some(FaultKind::HangAfter) => {
            log(incoming, None);
            shared.wait_for_end();
            Ok(Next::Abort)
        }
        Some(FaultKind::DieAfter) => {
            log(incoming, None);
            shared.die(peer);
            Ok(Next::Abort)
        }
        Some(FaultKind::CutOff) => {
            log(incoming, Some(response.status));
            let mut whole = response.head(true);
            let body = response.into_bytes();
            whole.extend_from_slice(&body[..body.len() / 2]);
            stream.write_all(&whole)?;
            stream.flush()?;
            Ok(Next::Abort)
        }
        Some(FaultKind::SlowDrip) => {
            log(incoming, Some(response.status));
            let mut whole = Vec::new();
            response.write(&mut whole, false, true)?;
            for byte in whole {
                stream.write_all(&[byte])?;
                stream.flush()?;
                if shared.pause(DRIP) {
                    return Ok(Next::Abort);
                }
            }
            Ok(Next::Continue)
        }
        Some(FaultKind::Garbage) => {
            let garbage = Response::new(
                response.status,
                "application/json",
                *b"\0\xff<{]garbage\x1b[31m",
            );
            finish(stream, garbage, incoming, &log)
        }
        Some(FaultKind::Empty) => finish(
            stream,
            Response::new(response.status, "application/json", ""),
            incoming,
            &log,
        ),
        Some(FaultKind::Body(status, body) | FaultKind::FailureBehind(status, body)) => {
            finish(stream, typed(status, body), incoming, &log)
        }
        _ => finish(stream, response, incoming, &log),
    }
}

/// Logs a request and writes its response, in this order: a client that has the response finds the request in the log.
fn finish(
    stream: &mut impl Write,
    response: Response,
    incoming: Incoming,
    log: &impl Fn(Incoming, Option<u16>),
) -> io::Result<Next> {
    let (head_only, keep_alive) = (incoming.method == "HEAD", incoming.keep_alive);
    log(incoming, Some(response.status));
    response.write(stream, head_only, keep_alive)?;
    Ok(if keep_alive {
        Next::Continue
    } else {
        Next::Close
    })
}

fn failure(status: u16, body: &str) -> Response {
    let mut response = typed(status, body.as_bytes().to_vec());
    if (300..400).contains(&status) {
        response.headers.push(("Location", "/login".to_owned()));
    }
    response
}

/// A response whose content type follows from its body.
fn typed(status: u16, body: Vec<u8>) -> Response {
    if status == 204 {
        return Response::no_content();
    }
    let content_type = match body.trim_ascii_start().first() {
        Some(b'<') => "text/html; charset=utf-8",
        Some(b'{' | b'[') => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    Response::new(status, content_type, body)
}

fn ending(fault: Option<&FaultKind>) -> Ending {
    match fault {
        Some(FaultKind::LateSuccess(delay)) => late(*delay, false),
        Some(FaultKind::LateFailure(delay)) => late(*delay, true),
        Some(FaultKind::FailureBehind(..)) => late(Duration::ZERO, true),
        _ => Ending::default(),
    }
}

fn late(delay: Duration, fails: bool) -> Ending {
    let after = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
    Ending { after, fails }
}

/// Responds to a request; `None` if the rehearsal ended first.
fn respond(
    shared: &Arc<Shared>,
    peer: Peer,
    call: Call,
    incoming: &Incoming,
    ending: Ending,
) -> Option<Response> {
    if portainer::is_change(call) {
        return portainer::respond(shared, call, incoming, ending);
    }
    if !shared.wait(ending.after) {
        return None;
    }
    if ending.fails {
        return Some(failure(500, "simulated failure"));
    }
    match peer {
        Peer::Portainer => portainer::respond(shared, call, incoming, ending),
        Peer::Engine => Some(engine::respond(&mut shared.world(), incoming)),
    }
}
