//! Listeners and connections: a thread each, ended by [`Server`]'s drop.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{
    Peer, Request,
    doors::Doors,
    engine,
    faults::{Call, Faults, Kind},
    http::{self, Answer, Buffer, Incoming},
    manager,
    world::World,
};

/// How long a slow drip waits between two bytes.
const DRIP: Duration = Duration::from_millis(1);

/// What all threads of a rehearsal share.
pub(super) struct Shared {
    world: Mutex<World>,
    pub faults: Faults,
    log: Mutex<Vec<Request>>,
    stopped: Mutex<bool>,
    stopping: Condvar,
    connections: Mutex<BTreeMap<u64, Connection>>,
    next: AtomicU64,
    ended: AtomicBool,
    doors: Doors,
}

enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    fn is_to(&self, peer: Peer) -> bool {
        matches!(
            (self, peer),
            (Self::Tcp(_), Peer::Manager) | (Self::Unix(_), Peer::Engine)
        )
    }

    fn shut(&self) {
        // A connection that is gone already is what is wanted.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Shared {
    fn new(mut world: World, doors: Doors) -> Self {
        world.rebase(clock());
        Self {
            world: Mutex::new(world),
            faults: Faults::default(),
            log: Mutex::default(),
            stopped: Mutex::default(),
            stopping: Condvar::new(),
            connections: Mutex::default(),
            next: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            doors,
        }
    }

    /// The world at this moment: its clock is set and what is due has happened.
    pub fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        world.advance(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        world
    }

    pub fn log(&self) -> MutexGuard<'_, Vec<Request>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_end(&self) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            stopped = self
                .stopping
                .wait(stopped)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits; true where the rehearsal ended meanwhile.
    fn pause(&self, time: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .stopping
            .wait_timeout_while(stopped, time, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether the listener of `peer` is to end.
    fn is_over(&self, peer: Peer) -> bool {
        self.ended.load(Ordering::SeqCst) || self.doors.is_closing(peer)
    }

    /// From here on nobody is there: connections are refused, and those that there are break off.
    fn die(&self, peer: Peer) {
        self.doors.close(peer);
        for connection in self.connections().values() {
            if connection.is_to(peer) {
                connection.shut();
            }
        }
    }

    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stopping.notify_all();
        for connection in self.connections().values() {
            connection.shut();
        }
    }
}

/// Milliseconds since 1970.
fn clock() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Both listeners; dropping it ends every thread.
pub(super) struct Server {
    pub shared: Arc<Shared>,
    tls: Arc<ServerConfig>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and on `socket`.
    pub fn start(world: World, tls: Arc<ServerConfig>, socket: &Path) -> io::Result<Self> {
        let (doors, tcp, unix) = Doors::open(socket)?;
        let server = Self {
            shared: Arc::new(Shared::new(world, doors)),
            tls,
            threads: Mutex::default(),
        };
        server.listen(Some(tcp), Some(unix));
        Ok(server)
    }

    /// The manager's port.
    pub fn port(&self) -> u16 {
        self.shared.doors.port
    }

    /// Whoever is gone is there again, on the same address.
    pub fn revive(&self) -> io::Result<()> {
        let doors = &self.shared.doors;
        self.listen(doors.reopen_manager()?, doors.reopen_engine()?);
        Ok(())
    }

    fn listen(&self, tcp: Option<TcpListener>, unix: Option<UnixListener>) {
        let mut threads = lock(&self.threads);
        if let Some(tcp) = tcp {
            let (shared, tls) = (Arc::clone(&self.shared), Arc::clone(&self.tls));
            threads.push(thread::spawn(move || accept_manager(tcp, &shared, &tls)));
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
        // The listeners then see that it is over.
        self.shared.doors.knock(Peer::Manager);
        self.shared.doors.knock(Peer::Engine);
        for thread in lock(&self.threads).drain(..) {
            // A listener that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept_manager(listener: TcpListener, shared: &Arc<Shared>, tls: &Arc<ServerConfig>) {
    let mut threads = Vec::new();
    for stream in listener.incoming() {
        if shared.is_over(Peer::Manager) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let (shared, tls) = (Arc::clone(shared), Arc::clone(tls));
        threads.retain(|thread: &JoinHandle<()>| !thread.is_finished());
        threads.push(thread::spawn(move || {
            // A client that breaks off is its own affair.
            let _ = serve_manager(stream, &shared, tls);
        }));
    }
    drop(listener);
    shared.doors.closed(Peer::Manager);
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve_manager(
    stream: TcpStream,
    shared: &Arc<Shared>,
    tls: Arc<ServerConfig>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let port = stream.peer_addr()?.port();
    let registered = Registered::new(shared, Connection::Tcp(stream.try_clone()?));
    let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    serve(&mut stream, shared, Peer::Manager, port)?;
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
        let Ok(mut stream) = stream else { continue };
        let shared = Arc::clone(shared);
        threads.retain(|thread: &JoinHandle<()>| !thread.is_finished());
        threads.push(thread::spawn(move || {
            let Ok(copy) = stream.try_clone() else { return };
            let _registered = Registered::new(&shared, Connection::Unix(copy));
            let _ = serve(&mut stream, &shared, Peer::Engine, 0);
        }));
    }
    drop(listener);
    shared.doors.closed(Peer::Engine);
    for thread in threads {
        let _ = thread.join();
    }
}

/// A connection that the end of the rehearsal shuts.
struct Registered<'a>(&'a Shared, u64);

impl<'a> Registered<'a> {
    fn new(shared: &'a Shared, connection: Connection) -> Self {
        let id = shared.next.fetch_add(1, Ordering::SeqCst);
        let mut connections = shared.connections();
        if shared.ended.load(Ordering::SeqCst) {
            connection.shut();
        }
        connections.insert(id, connection);
        drop(connections);
        Self(shared, id)
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0.connections().remove(&self.1) {
            connection.shut();
        }
    }
}

/// Whether the connection goes on after an answer.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    /// Ends as HTTP ends.
    End,
    /// Breaks off.
    Break,
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
            Next::GoOn => {}
            Next::End => return Ok(()),
            Next::Break => return Err(io::ErrorKind::ConnectionAborted.into()),
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
        Peer::Manager => manager::call(&incoming),
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
        Some(Kind::CloseBefore) => {
            log(incoming, None);
            return Ok(Next::Break);
        }
        Some(Kind::Hang) => {
            log(incoming, None);
            shared.wait_for_end();
            return Ok(Next::Break);
        }
        Some(Kind::Die) => {
            log(incoming, None);
            shared.die(peer);
            return Ok(Next::Break);
        }
        Some(Kind::Status(status, ref body)) => {
            let answer = refusal(status, body);
            return finish(stream, answer, incoming, &log);
        }
        _ => {}
    }
    let answer = work(shared, peer, call, &incoming);
    match fault {
        Some(Kind::CloseAfter) => {
            log(incoming, None);
            Ok(Next::Break)
        }
        Some(Kind::HangAfter) => {
            log(incoming, None);
            shared.wait_for_end();
            Ok(Next::Break)
        }
        Some(Kind::DieAfter) => {
            log(incoming, None);
            shared.die(peer);
            Ok(Next::Break)
        }
        Some(Kind::CutOff) => {
            log(incoming, Some(answer.status));
            let mut whole = answer.head(true);
            let body = answer.into_bytes();
            whole.extend_from_slice(&body[..body.len() / 2]);
            stream.write_all(&whole)?;
            stream.flush()?;
            Ok(Next::Break)
        }
        Some(Kind::SlowDrip) => {
            log(incoming, Some(answer.status));
            let mut whole = Vec::new();
            answer.write(&mut whole, false, true)?;
            for byte in whole {
                stream.write_all(&[byte])?;
                stream.flush()?;
                if shared.pause(DRIP) {
                    return Ok(Next::Break);
                }
            }
            Ok(Next::GoOn)
        }
        Some(Kind::Garbage) => {
            let garbage = Answer::new(
                answer.status,
                "application/json",
                *b"\0\xff<{]garbage\x1b[31m",
            );
            finish(stream, garbage, incoming, &log)
        }
        Some(Kind::Empty) => finish(
            stream,
            Answer::new(answer.status, "application/json", ""),
            incoming,
            &log,
        ),
        Some(Kind::Body(status, body)) => finish(stream, typed(status, body), incoming, &log),
        _ => finish(stream, answer, incoming, &log),
    }
}

/// Logs and writes an answer; logged first, so that who has the answer finds the request.
fn finish(
    stream: &mut impl Write,
    answer: Answer,
    incoming: Incoming,
    log: &impl Fn(Incoming, Option<u16>),
) -> io::Result<Next> {
    let (head_only, keep_alive) = (incoming.method == "HEAD", incoming.keep_alive);
    log(incoming, Some(answer.status));
    answer.write(stream, head_only, keep_alive)?;
    Ok(if keep_alive { Next::GoOn } else { Next::End })
}

fn refusal(status: u16, body: &str) -> Answer {
    let mut answer = typed(status, body.as_bytes().to_vec());
    if (300..400).contains(&status) {
        answer.headers.push(("Location", "/login".to_owned()));
    }
    answer
}

fn typed(status: u16, body: Vec<u8>) -> Answer {
    if status == 204 {
        return Answer::no_content();
    }
    let content_type = match body.trim_ascii_start().first() {
        Some(b'<') => "text/html; charset=utf-8",
        Some(b'{' | b'[') => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    Answer::new(status, content_type, body)
}

fn work(shared: &Arc<Shared>, peer: Peer, call: Call, incoming: &Incoming) -> Answer {
    match peer {
        Peer::Manager => manager::answer(shared, call, incoming),
        Peer::Engine => engine::answer(&mut shared.world(), incoming),
    }
}
