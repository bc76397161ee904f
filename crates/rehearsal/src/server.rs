//! The listener and connection threads. Dropping [`Rehearsal`] ends them all.

use std::{
    io::{self, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::{fd::AsFd, unix::net::UnixListener},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use anyhow::Context as _;
use rustls::{ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::{
    apis::{Apis, Exchange, lock},
    calls::Peer,
    engine,
    http::{self, Response},
    peer,
    portainer::{self, Perform},
    request::Request,
    tls::Certificate,
    world::{Era, Work, World},
};

const CANNOT_LISTEN: &str = "failed to listen on 127.0.0.1 and on the socket of the engine";

/// A running rehearsal. Dropping it ends its threads and removes its directory.
pub struct Rehearsal {
    apis: Arc<Apis>,
    port: u16,
    socket: PathBuf,
    key: String,
    threads: Mutex<Vec<JoinHandle<()>>>,
    _folder: TempDir,
}

/// Options of a rehearsal.
#[derive(Clone, Default)]
pub struct Options {
    /// The generation of Portainer to simulate.
    pub era: Era,
    /// Where to create the directory of the engine's socket; the default is the system's temporary directory.
    pub folder: Option<PathBuf>,
    /// The port of Portainer; 0 is any free one.
    pub port: u16,
    /// Whether Portainer only serves the user of this process.
    pub is_private: bool,
    /// How requests are answered, if not as the real ones do.
    pub exchange: Option<Exchange>,
}

impl Rehearsal {
    /// Starts both APIs over `world`.
    ///
    /// # Errors
    /// If the directory, the certificate or a listener cannot be created.
    pub fn start(mut world: World, options: &Options) -> anyhow::Result<Self> {
        world.era = options.era;
        let mut builder = tempfile::Builder::new();
        builder.prefix("stacklift-rehearsal-");
        let folder = match &options.folder {
            Some(parent) => builder.tempdir_in(parent),
            None => builder.tempdir(),
        }
        .context("failed to create a directory for the rehearsal")?;
        let key = world.secret.clone();
        let exchange = options.exchange.clone();
        let exchange = exchange.unwrap_or_else(|| Arc::new(answer));
        let apis = Apis::new(world, Certificate::new()?, options.is_private, exchange);
        let mut rehearsal = Self {
            apis: Arc::new(apis),
            port: options.port,
            socket: folder.path().join("engine.sock"),
            key,
            threads: Mutex::default(),
            _folder: folder,
        };
        rehearsal.port = rehearsal.listen_to_portainer().context(CANNOT_LISTEN)?;
        rehearsal.revive()?;
        Ok(rehearsal)
    }

    /// Portainer's base URL: `https://127.0.0.1:<port>`.
    pub fn base_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The path of the engine's unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The API key of Portainer's administrator.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Portainer's certificate in PEM.
    pub fn certificate_pem(&self) -> String {
        lock(&self.apis.certificate).pem.clone()
    }

    /// Replaces Portainer's certificate for new connections.
    ///
    /// # Errors
    /// If the certificate cannot be created.
    pub fn renew_certificate(&self) -> anyhow::Result<()> {
        *lock(&self.apis.certificate) = Certificate::new()?;
        Ok(())
    }

    /// Both APIs.
    pub fn apis(&self) -> &Arc<Apis> {
        &self.apis
    }

    /// Reads or changes the world. Requests wait until `access` returns.
    pub fn world<R>(&self, access: impl FnOnce(&mut World) -> R) -> R {
        access(&mut self.apis.world())
    }

    /// The requests so far, in the order of their responses.
    pub fn requests(&self) -> Vec<Request> {
        self.apis.log().clone()
    }

    /// Restarts an API that [`Apis::die`] ended, on the same address.
    ///
    /// # Errors
    /// If the address cannot be bound again.
    pub fn revive(&self) -> anyhow::Result<()> {
        if !self.apis.listens(Peer::Portainer) {
            self.listen_to_portainer().context(CANNOT_LISTEN)?;
        }
        if !self.apis.listens(Peer::Engine) {
            self.listen_to_engine().context(CANNOT_LISTEN)?;
        }
        Ok(())
    }

    fn listen_to_engine(&self) -> io::Result<()> {
        // Fails at the start, when there is none.
        let _ = std::fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket)?;
        let accept = UnixListener::accept;
        self.listen(Peer::Engine, listener, accept, |mut stream, apis| {
            serve(&mut stream, apis, Peer::Engine, 0)
        })
    }

    fn listen_to_portainer(&self) -> io::Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
        let port = listener.local_addr()?.port();
        self.listen(
            Peer::Portainer,
            listener,
            TcpListener::accept,
            serve_portainer,
        )?;
        Ok(port)
    }

    /// Serves each connection of a listener in a thread, until the listener is closed.
    fn listen<L: AsFd + Send + 'static, S: AsFd + Send + 'static, A: 'static>(
        &self,
        peer: Peer,
        listener: L,
        accept: fn(&L) -> io::Result<(S, A)>,
        serve: fn(S, &Arc<Apis>) -> io::Result<()>,
    ) -> io::Result<()> {
        let number = self.apis.listen(peer, &listener)?;
        let apis = Arc::clone(&self.apis);
        let accept_all = move || {
            thread::scope(|scope| {
                loop {
                    match accept(&listener) {
                        Ok((stream, _)) => {
                            if let Some(connection) = apis.connect(number, &stream) {
                                let apis = &apis;
                                scope.spawn(move || {
                                    // A client may disconnect at any time.
                                    let _ = serve(stream, apis);
                                    apis.disconnect(connection);
                                });
                            }
                        }
                        Err(_) if apis.is_open(number) => {}
                        Err(_) => break,
                    }
                }
            });
        };
        lock(&self.threads).push(thread::spawn(accept_all));
        Ok(())
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        self.apis.die(Peer::Portainer);
        self.apis.die(Peer::Engine);
        for thread in lock(&self.threads).drain(..) {
            // A listener that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

fn serve_portainer(stream: TcpStream, apis: &Arc<Apis>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if apis.is_private && !peer::is_own(&stream)? {
        return Ok(());
    }
    let port = stream.peer_addr()?.port();
    let tls = Arc::clone(&lock(&apis.certificate).config);
    let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    serve(&mut stream, apis, Peer::Portainer, port)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Answers the requests of a connection. An error breaks it off, without the end that TLS requires.
fn serve(
    stream: &mut (impl Read + Write),
    apis: &Arc<Apis>,
    peer: Peer,
    port: u16,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = http::read_request(&mut stream, peer, port)? {
        (apis.exchange)(stream.get_mut(), apis, request)?;
    }
    Ok(())
}

/// Answers a request as the real ones do.
fn answer(stream: &mut dyn Write, apis: &Arc<Apis>, mut request: Request) -> io::Result<()> {
    let perform = |work: Work| apis.world().perform(&work);
    let response = respond(apis, &request, &perform);
    request.status = Some(response.status);
    let bytes = response.into_bytes();
    // First the log: a client that has the response finds the request in it.
    apis.log().push(request);
    stream.write_all(&bytes)?;
    stream.flush()
}

/// The response to a request. A change of a Portainer stack is performed with `perform`.
pub fn respond(apis: &Apis, request: &Request, perform: Perform) -> Response {
    match request.peer {
        Peer::Portainer => portainer::respond(apis, request, perform),
        Peer::Engine => engine::respond(&mut apis.world(), request),
    }
}
