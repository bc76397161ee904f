//! The state that all threads of a rehearsal share.

use std::{
    collections::BTreeMap,
    net::{Shutdown, TcpStream},
    os::unix::net::UnixStream,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    deployer::Deployer,
    faults::{Call, Faults},
    listeners::Listeners,
    request::{Peer, Request},
    world::World,
};

/// How often a thread looks whether its request has ended.
pub(super) const TICK: Duration = Duration::from_millis(5);

/// A change of the world.
type Change = Box<dyn FnOnce(&mut World) + Send>;

/// The state that all threads of a rehearsal share.
pub(super) struct Shared {
    world: Mutex<World>,
    pub faults: Faults,
    /// Changes of the world, each made during the next request of a call.
    changes: Mutex<Vec<(Call, Change)>>,
    pub listeners: Listeners,
    /// Performs changes on a real engine instead of the world.
    pub deployer: Option<Deployer>,
    log: Mutex<Vec<Request>>,
    stopped: Mutex<bool>,
    stopping: Condvar,
    connections: Mutex<BTreeMap<u64, Connection>>,
    next: AtomicU64,
    ended: AtomicBool,
    /// How far the clock of the world is ahead, in milliseconds.
    ahead: AtomicI64,
}

/// A client's connection.
pub(super) enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    fn is_to(&self, peer: Peer) -> bool {
        matches!(
            (self, peer),
            (Self::Tcp(_), Peer::Portainer) | (Self::Unix(_), Peer::Engine)
        )
    }

    fn shut(&self) {
        // Fails if the connection is closed already.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Shared {
    pub fn new(mut world: World, listeners: Listeners, deployer: Option<Deployer>) -> Self {
        world.rebase(clock());
        Self {
            world: Mutex::new(world),
            faults: Faults::default(),
            changes: Mutex::default(),
            listeners,
            deployer,
            log: Mutex::default(),
            stopped: Mutex::default(),
            stopping: Condvar::new(),
            connections: Mutex::default(),
            next: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            ahead: AtomicI64::new(0),
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
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.ahead.fetch_add(millis, Ordering::SeqCst);
    }

    pub fn log(&self) -> MutexGuard<'_, Vec<Request>> {
        lock(&self.log)
    }

    /// Blocks until the rehearsal ends.
    pub fn wait_for_end(&self) {
        let mut stopped = lock(&self.stopped);
        while !*stopped {
            stopped = self
                .stopping
                .wait(stopped)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps. Returns true if the rehearsal ended in the meantime.
    pub fn pause(&self, time: Duration) -> bool {
        let waited = self
            .stopping
            .wait_timeout_while(lock(&self.stopped), time, |stopped| !*stopped);
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

    /// Whether the listener of `peer` must end.
    pub fn is_over(&self, peer: Peer) -> bool {
        self.ended.load(Ordering::SeqCst) || self.listeners.is_closing(peer)
    }

    /// Refuses new connections and breaks those that are open.
    pub fn die(&self, peer: Peer) {
        self.listeners.close(peer);
        for connection in lock(&self.connections).values() {
            if connection.is_to(peer) {
                connection.shut();
            }
        }
    }

    /// Ends the rehearsal: breaks every connection and tells the listeners to end.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        *lock(&self.stopped) = true;
        self.stopping.notify_all();
        for connection in lock(&self.connections).values() {
            connection.shut();
        }
        self.listeners.wake(Peer::Portainer);
        self.listeners.wake(Peer::Engine);
    }
}

/// A connection that the end of the rehearsal closes.
pub(super) struct Registered(Arc<Shared>, u64);

impl Registered {
    pub fn new(shared: &Arc<Shared>, connection: Connection) -> Self {
        let id = shared.next.fetch_add(1, Ordering::SeqCst);
        let mut connections = lock(&shared.connections);
        if shared.ended.load(Ordering::SeqCst) {
            connection.shut();
        }
        connections.insert(id, connection);
        drop(connections);
        Self(Arc::clone(shared), id)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(connection) = lock(&self.0.connections).remove(&self.1) {
            connection.shut();
        }
    }
}

/// Locks a mutex, also after a thread panicked while it held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds since 1970.
fn clock() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
