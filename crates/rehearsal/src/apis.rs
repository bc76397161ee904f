//! Both APIs over one world: the state that all threads of a rehearsal share.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::net::{Shutdown, shutdown};

use super::{
    calls::Peer,
    request::Request,
    tls::Certificate,
    world::{World, clock},
};

/// Answers a request on its connection. An error breaks the connection off.
pub type Exchange =
    Arc<dyn Fn(&mut dyn Write, &Arc<Apis>, Request) -> io::Result<()> + Send + Sync>;

/// Both APIs over one world.
pub struct Apis {
    world: Mutex<World>,
    log: Mutex<Vec<Request>>,
    /// Portainer's certificate for new connections.
    pub(super) certificate: Mutex<Certificate>,
    /// The listener of each API and its connections, by number.
    sockets: Mutex<BTreeMap<u64, (Peer, OwnedFd)>>,
    next_socket: AtomicU64,
    /// See [`super::Options`].
    pub(super) is_private: bool,
    pub(super) exchange: Exchange,
}

impl Apis {
    pub(super) fn new(
        world: World,
        certificate: Certificate,
        is_private: bool,
        exchange: Exchange,
    ) -> Self {
        Self {
            world: Mutex::new(world),
            log: Mutex::default(),
            certificate: Mutex::new(certificate),
            sockets: Mutex::default(),
            next_socket: AtomicU64::default(),
            is_private,
            exchange,
        }
    }

    /// The world, with its clock set to the current time.
    pub fn world(&self) -> MutexGuard<'_, World> {
        let mut world = lock(&self.world);
        if !world.stands_still {
            world.now = world.now.max(clock() + world.ahead);
        }
        world
    }

    /// The requests so far, in the order of their responses.
    pub fn log(&self) -> MutexGuard<'_, Vec<Request>> {
        lock(&self.log)
    }

    /// Registers the listener of an API. Returns its number.
    pub(super) fn listen(&self, peer: Peer, listener: impl AsFd) -> io::Result<u64> {
        self.add(&mut lock(&self.sockets), peer, listener)
    }

    /// Registers a connection that a listener accepted. Returns its number; `None` if the listener is closed.
    pub(super) fn connect(&self, listener: u64, stream: impl AsFd) -> Option<u64> {
        let mut sockets = lock(&self.sockets);
        let peer = sockets.get(&listener)?.0;
        self.add(&mut sockets, peer, stream).ok()
    }

    fn add(
        &self,
        sockets: &mut BTreeMap<u64, (Peer, OwnedFd)>,
        peer: Peer,
        socket: impl AsFd,
    ) -> io::Result<u64> {
        let number = self.next_socket.fetch_add(1, Ordering::SeqCst);
        let socket = socket.as_fd().try_clone_to_owned()?;
        sockets.insert(number, (peer, socket));
        Ok(number)
    }

    /// Forgets a connection that has ended.
    pub(super) fn disconnect(&self, connection: u64) {
        lock(&self.sockets).remove(&connection);
    }

    /// Whether a listener was registered and not closed.
    pub(super) fn is_open(&self, listener: u64) -> bool {
        lock(&self.sockets).contains_key(&listener)
    }

    /// Whether the API has a listener.
    pub(super) fn listens(&self, peer: Peer) -> bool {
        lock(&self.sockets).values().any(|(of, _)| *of == peer)
    }

    /// Refuses new connections to an API and breaks those that are open.
    pub fn die(&self, peer: Peer) {
        lock(&self.sockets).retain(|_, (of, socket)| {
            if *of == peer {
                // Fails if the connection is closed already.
                let _ = shutdown(socket, Shutdown::Both);
            }
            *of != peer
        });
    }
}

/// Locks a mutex, also after a thread panicked while it held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
