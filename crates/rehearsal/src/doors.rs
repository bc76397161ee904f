//! Where the fronts are entered: each can be closed, so that connections are refused, and opened again.

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

use super::Peer;

/// How long it is tried to listen again.
const PATIENCE: Duration = Duration::from_secs(10);

/// The addresses of both fronts, and which of them are closed.
pub(super) struct Doors {
    pub port: u16,
    pub socket: PathBuf,
    /// Keeps the port while nobody listens on it, so that no other program takes it.
    _kept: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    manager: Door,
    engine: Door,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Door {
    #[default]
    Open,
    /// The listener is asked to end.
    Closing,
    Closed,
}

impl Doors {
    /// Both open.
    pub fn open(socket: &Path) -> io::Result<(Self, TcpListener, UnixListener)> {
        let (kept, port) = keep_a_port()?;
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let unix = UnixListener::bind(socket)?;
        let doors = Self {
            port,
            socket: socket.to_owned(),
            _kept: kept,
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        Ok((doors, tcp, unix))
    }

    /// Closes one; on return connections are refused.
    pub fn close(&self, peer: Peer) {
        let mut state = self.state();
        if *state.door(peer) == Door::Open {
            *state.door(peer) = Door::Closing;
        }
        drop(state);
        self.knock(peer);
        let mut state = self.state();
        while *state.door(peer) == Door::Closing {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes a listener, so that it looks whether it is over.
    pub fn knock(&self, peer: Peer) {
        match peer {
            Peer::Manager => drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))),
            Peer::Engine => drop(UnixStream::connect(&self.socket)),
        }
    }

    /// Whether the listener is to end.
    pub fn is_closing(&self, peer: Peer) -> bool {
        *self.state().door(peer) != Door::Open
    }

    /// The listener has ended.
    pub fn closed(&self, peer: Peer) {
        let mut state = self.state();
        *state.door(peer) = Door::Closed;
        self.changed.notify_all();
    }

    /// The manager's door again, if it was closed.
    pub fn reopen_manager(&self) -> io::Result<Option<TcpListener>> {
        let mut state = self.state();
        if *state.door(Peer::Manager) != Door::Closed {
            return Ok(None);
        }
        let listener = listen_again(self.port)?;
        *state.door(Peer::Manager) = Door::Open;
        Ok(Some(listener))
    }

    /// The engine's door again, if it was closed.
    pub fn reopen_engine(&self) -> io::Result<Option<UnixListener>> {
        let mut state = self.state();
        if *state.door(Peer::Engine) != Door::Closed {
            return Ok(None);
        }
        std::fs::remove_file(&self.socket)?;
        let listener = UnixListener::bind(&self.socket)?;
        *state.door(Peer::Engine) = Door::Open;
        Ok(Some(listener))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn door(&mut self, peer: Peer) -> &mut Door {
        match peer {
            Peer::Manager => &mut self.manager,
            Peer::Engine => &mut self.engine,
        }
    }
}

/// Listens on a port that was listened on before. A program that another thread starts at that moment
/// holds a copy of the old listener until it runs: so this is tried for a while.
fn listen_again(port: u16) -> io::Result<TcpListener> {
    let started = Instant::now();
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && started.elapsed() < PATIENCE =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// A socket that is bound to a free port and does not listen: another may, since both allow it.
fn keep_a_port() -> io::Result<(OwnedFd, u16)> {
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
