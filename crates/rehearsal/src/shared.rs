//! The state that all threads of a rehearsal share.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use rustix::net::{Shutdown, shutdown};

use super::{
    deployer::Deployer,
    faults::{Call, Faults, Peer},
    request::Request,
    tls::Certificate,
    world::{World, clock, millis},
};

/// How often a thread looks whether its request has ended.
pub(super) const TICK: Duration = Duration::from_millis(5);

/// A change of the world.
type Change = Box<dyn FnOnce(&mut World) + Send>;

/// The state that all threads of a rehearsal share.
pub(super) struct Shared {
    world: Mutex<World>,
    pub faults: Faults,
    /// Portainer's certificate for new connections.
    pub certificate: Mutex<Certificate>,
    /// Changes of the world, each made during the next request of a call.
    changes: Mutex<Vec<(Call, Change)>>,
    /// Performs changes on a real engine instead of the world.
    pub deployer: Option<Arc<Deployer>>,
    log: Mutex<Vec<Request>>,
    ended: Mutex<bool>,
    ending: Condvar,
    sockets: Mutex<Sockets>,
    /// How far the clock of the world is ahead, in milliseconds.
    ahead: AtomicI64,
    /// See [`super::Options`].
    pub is_private: bool,
}

/// The open sockets: the listener of each API and its connections.
#[derive(Default)]
struct Sockets {
    next: u64,
    open: BTreeMap<u64, (Peer, OwnedFd)>,
}

impl Shared {
    pub fn new(world: World, certificate: Certificate, deployer: Option<Arc<Deployer>>) -> Self {
        Self {
            world: Mutex::new(world),
            faults: Faults::default(),
            certificate: Mutex::new(certificate),
            changes: Mutex::default(),
            deployer,
            log: Mutex::default(),
            ended: Mutex::default(),
            ending: Condvar::new(),
            sockets: Mutex::default(),
            ahead: AtomicI64::new(0),
            is_private: false,
        }
    }

    /// The world, with its clock set to the current time.
    pub fn world(&self) -> MutexGuard<'_, World> {
        let mut world = lock(&self.world);
        world.advance(self.now());
        world
    }

    /// Adds a change for the next request of `call`.
    pub fn change_with(&self, call: Call, change: Change) {
        lock(&self.changes).push((call, change));
    }

    /// Makes the change that belongs to this request of `call`, if there is one.
    pub fn change(&self, call: Call) {
        let mut changes = lock(&self.changes);
        if let Some(at) = changes.iter().position(|(with, _)| *with == call) {
            let (_, change) = changes.remove(at);
            change(&mut self.world());
        }
    }

    /// Moves the clock of the world forward.
    pub fn skip(&self, time: Duration) {
        self.ahead.fetch_add(millis(time), Ordering::SeqCst);
    }

    pub fn log(&self) -> MutexGuard<'_, Vec<Request>> {
        lock(&self.log)
    }

    /// Sleeps. Returns true if the rehearsal ended in the meantime.
    pub fn pause(&self, time: Duration) -> bool {
        let ended = lock(&self.ended);
        let waited = self.ending.wait_timeout_while(ended, time, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Sleeps until the clock of the world has advanced by `millis`. Returns false if the rehearsal ended first.
    pub fn wait(&self, millis: i64) -> bool {
        let until = self.now() + millis;
        while self.now() < until {
            if self.pause(TICK) {
                return false;
            }
        }
        true
    }

    /// The time in the world, in milliseconds since 1970.
    fn now(&self) -> i64 {
        clock() + self.ahead.load(Ordering::SeqCst)
    }

    /// Registers the listener of an API. Returns its number.
    pub fn listen(&self, peer: Peer, listener: impl AsFd) -> io::Result<u64> {
        lock(&self.sockets).add(peer, listener)
    }

    /// Registers a connection that a listener accepted. Returns its number; `None` if the listener is closed.
    pub fn connect(&self, listener: u64, stream: impl AsFd) -> Option<u64> {
        let mut sockets = lock(&self.sockets);
        let (peer, _) = sockets.open.get(&listener)?;
        let peer = *peer;
        sockets.add(peer, stream).ok()
    }

    /// Forgets a connection that has ended.
    pub fn disconnect(&self, connection: u64) {
        lock(&self.sockets).open.remove(&connection);
    }

    /// Whether a listener was registered and not closed.
    pub fn is_open(&self, listener: u64) -> bool {
        lock(&self.sockets).open.contains_key(&listener)
    }

    /// Whether the API has a listener.
    pub fn listens(&self, peer: Peer) -> bool {
        lock(&self.sockets).open.values().any(|(of, _)| *of == peer)
    }

    /// Refuses new connections to an API and breaks those that are open.
    pub fn die(&self, peer: Peer) {
        lock(&self.sockets).open.retain(|_, (of, socket)| {
            if *of == peer {
                // Fails if the connection is closed already.
                let _ = shutdown(socket, Shutdown::Both);
            }
            *of != peer
        });
    }

    /// Ends the rehearsal.
    pub fn end(&self) {
        *lock(&self.ended) = true;
        self.ending.notify_all();
        self.die(Peer::Portainer);
        self.die(Peer::Engine);
    }
}

impl Sockets {
    fn add(&mut self, peer: Peer, socket: impl AsFd) -> io::Result<u64> {
        let socket = socket.as_fd().try_clone_to_owned()?;
        self.next += 1;
        self.open.insert(self.next, (peer, socket));
        Ok(self.next)
    }
}

/// Locks a mutex, also after a thread panicked while it held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
