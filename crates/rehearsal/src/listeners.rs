//! The addresses of both APIs. Each can be closed, so that connections are refused, and opened again.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

use super::request::Peer;

/// How long to retry when the port is still in use.
const RETRY: Duration = Duration::from_secs(10);

/// The addresses of both APIs, and which of them are closed.
pub(super) struct Listeners {
    pub port: u16,
    socket: PathBuf,
    /// Reserves the port while nobody listens on it.
    _reserved: OwnedFd,
    states: Mutex<States>,
    changed: Condvar,
}

#[derive(Default)]
struct States {
    portainer: State,
    engine: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The listener was told to end.
    Closing,
    Closed,
}

impl Listeners {
    /// Opens both.
    pub fn open(socket: &Path) -> io::Result<(Self, TcpListener, UnixListener)> {
        let (reserved, port) = reserve_port()?;
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let unix = UnixListener::bind(socket)?;
        let listeners = Self {
            port,
            socket: socket.to_owned(),
            _reserved: reserved,
            states: Mutex::default(),
            changed: Condvar::new(),
        };
        Ok((listeners, tcp, unix))
    }

    /// Closes one. Connections are refused when this returns.
    pub fn close(&self, peer: Peer) {
        let mut states = self.states();
        if *states.of(peer) == State::Open {
            *states.of(peer) = State::Closing;
        }
        drop(states);
        self.wake(peer);
        let mut states = self.states();
        while *states.of(peer) == State::Closing {
            states = self
                .changed
                .wait(states)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes a listener by connecting to it, so that it checks whether it must end.
    pub fn wake(&self, peer: Peer) {
        match peer {
            Peer::Portainer => drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))),
            Peer::Engine => drop(UnixStream::connect(&self.socket)),
        }
    }

    /// Whether the listener must end.
    pub fn is_closing(&self, peer: Peer) -> bool {
        *self.states().of(peer) != State::Open
    }

    /// Records that the listener has ended.
    pub fn closed(&self, peer: Peer) {
        *self.states().of(peer) = State::Closed;
        self.changed.notify_all();
    }

    /// Listens on Portainer's port again, if it was closed.
    pub fn reopen_portainer(&self) -> io::Result<Option<TcpListener>> {
        let mut states = self.states();
        if *states.of(Peer::Portainer) != State::Closed {
            return Ok(None);
        }
        let listener = listen_again(self.port)?;
        *states.of(Peer::Portainer) = State::Open;
        Ok(Some(listener))
    }

    /// Listens on the engine's socket again, if it was closed.
    pub fn reopen_engine(&self) -> io::Result<Option<UnixListener>> {
        let mut states = self.states();
        if *states.of(Peer::Engine) != State::Closed {
            return Ok(None);
        }
        std::fs::remove_file(&self.socket)?;
        let listener = UnixListener::bind(&self.socket)?;
        *states.of(Peer::Engine) = State::Open;
        Ok(Some(listener))
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl States {
    fn of(&mut self, peer: Peer) -> &mut State {
        match peer {
            Peer::Portainer => &mut self.portainer,
            Peer::Engine => &mut self.engine,
        }
    }
}

/// Listens on a port again.
///
/// Retries, because a child process that another thread is starting holds a copy of the old listener until its `exec`.
fn listen_again(port: u16) -> io::Result<TcpListener> {
    let started = Instant::now();
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && started.elapsed() < RETRY => {
                thread::sleep(Duration::from_millis(5));
            }
            result => return result,
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
