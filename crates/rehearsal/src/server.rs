//! The listener and connection threads. Dropping [`Server`] ends them all.

use std::{
    io::{self, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::{fd::AsFd, unix::net::UnixListener},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use rustls::{ServerConnection, StreamOwned};

use super::{
    apis::{Apis, lock},
    calls::Peer,
    engine,
    http::{self, Response},
    peer,
    portainer::{self, Perform},
    request::Request,
    world::Work,
};

/// Both APIs.
pub(super) struct Server {
    pub apis: Arc<Apis>,
    pub port: u16,
    pub socket: PathBuf,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Server {
    /// Listens on a port of 127.0.0.1, where 0 is any free one, and on `socket`.
    pub fn start(apis: Apis, port: u16, socket: PathBuf) -> io::Result<Self> {
        let mut server = Self {
            apis: Arc::new(apis),
            port,
            socket,
            threads: Mutex::default(),
        };
        server.port = server.listen_to_portainer()?;
        server.revive()?;
        Ok(server)
    }

    /// Listens on the addresses on which nobody listens.
    pub fn revive(&self) -> io::Result<()> {
        if !self.apis.listens(Peer::Portainer) {
            self.listen_to_portainer()?;
        }
        if !self.apis.listens(Peer::Engine) {
            // Fails at the start, when there is none.
            let _ = std::fs::remove_file(&self.socket);
            let listener = UnixListener::bind(&self.socket)?;
            let accept = UnixListener::accept;
            self.listen(Peer::Engine, listener, accept, |mut stream, apis| {
                serve(&mut stream, apis, Peer::Engine, 0)
            })?;
        }
        Ok(())
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

impl Drop for Server {
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
        let keeps_alive = request.keeps_alive();
        (apis.exchange)(stream.get_mut(), apis, request)?;
        if !keeps_alive {
            break;
        }
    }
    Ok(())
}

/// Answers a request as the real ones do.
pub(super) fn answer(
    stream: &mut dyn Write,
    apis: &Arc<Apis>,
    mut request: Request,
) -> io::Result<()> {
    let perform = |work: Work| apis.world().perform(&work);
    let response = respond(apis, &request, &perform);
    request.status = Some(response.status);
    let bytes = response.into_bytes(&request);
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
