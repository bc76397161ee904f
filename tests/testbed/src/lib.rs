#![doc = include_str!("../README.md")]

mod access;
mod deploy;
mod engine;
mod exchange;
mod faults;
mod git;
mod late;
mod rights;

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    ops::Deref,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use rehearsal::*;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

use self::late::Lates;
pub use self::{
    access::{Access, stop},
    deploy::Program,
    engine::EngineApi,
    faults::{FaultKind, Faults, Rule},
    git::{CloneError, Fetch, Git, GitRepository},
    rights::STACKS,
};

/// How often a thread looks whether it is its turn.
const TICK: Duration = Duration::from_millis(5);

/// A running rehearsal, and what disturbs it.
pub struct Rehearsal {
    inner: rehearsal::Rehearsal,
    between: Arc<Between>,
    /// Reserves the port while nobody listens on it.
    _reserved: OwnedFd,
}

/// Options of a rehearsal.
#[derive(Default)]
pub struct Options {
    /// The generation of Portainer to simulate.
    pub era: Era,
    /// Where to create the directory of the engine's socket; the default is the system's temporary directory.
    pub folder: Option<PathBuf>,
    /// Deploys onto a real engine instead of the world.
    pub program: Option<Program>,
    /// Whether the engines are real. Portainer then lists every container that it is asked for by ID, because the world does
    /// not have them.
    pub has_real_engines: bool,
}

/// A change of the world, of the Git repositories, and of who may use what.
type Change = Box<dyn FnOnce(&mut World, &mut Git, &mut Access) + Send>;

/// What stands between the clients and the APIs.
#[derive(Default)]
struct Between {
    faults: Faults,
    /// Changes of the world, each made during the next request of a call.
    changes: Mutex<Vec<(Call, Change)>>,
    git: Mutex<Git>,
    access: Mutex<Access>,
    engine: Mutex<EngineApi>,
    lates: Lates,
    program: Option<Program>,
    has_real_engines: bool,
    ended: Mutex<bool>,
    ending: Condvar,
}

impl Rehearsal {
    /// Starts both APIs over `world`.
    ///
    /// # Errors
    /// If the directory, the certificate or a listener cannot be created.
    pub fn start(world: World, options: Options) -> anyhow::Result<Self> {
        let (reserved, port) = reserve_port()?;
        let between = Arc::new(Between {
            program: options.program,
            has_real_engines: options.has_real_engines,
            ..Between::default()
        });
        let shared = Arc::clone(&between);
        let options = rehearsal::Options {
            era: options.era,
            folder: options.folder,
            port,
            exchange: Some(Arc::new(move |stream, apis, request| {
                exchange::exchange(&shared, apis, stream, request)
            })),
            ..rehearsal::Options::default()
        };
        Ok(Self {
            inner: rehearsal::Rehearsal::start(world, &options)?,
            between,
            _reserved: reserved,
        })
    }

    /// The faults to inject.
    pub fn faults(&self) -> &Faults {
        &self.between.faults
    }

    /// Changes the world during the next request of `call`: after the request has taken effect, and before its response.
    pub fn world_with(&self, call: Call, change: impl FnOnce(&mut World) + Send + 'static) {
        self.change_with(call, |world, _, _| change(world));
    }

    /// The same of the world, the Git repositories and who may use what.
    pub fn change_with(
        &self,
        call: Call,
        change: impl FnOnce(&mut World, &mut Git, &mut Access) + Send + 'static,
    ) {
        lock(&self.between.changes).push((call, Box::new(change)));
    }

    /// Reads or changes the Git repositories.
    pub fn git<R>(&self, access: impl FnOnce(&mut Git) -> R) -> R {
        access(&mut lock(&self.between.git))
    }

    /// Changes the API of the engine.
    pub fn engine_api(&self, change: impl FnOnce(&mut EngineApi)) {
        change(&mut lock(&self.between.engine));
    }

    /// Reads or changes who may use what.
    pub fn access<R>(&self, access: impl FnOnce(&mut Access) -> R) -> R {
        access(&mut lock(&self.between.access))
    }

    /// Moves the clock of the world forward, and waits for the requests that end until then.
    pub fn skip(&self, time: Duration) {
        self.world(|world| world.ahead += millis(time));
        self.settle();
    }

    /// Whether Portainer is working on a request or a deployment.
    pub fn is_busy(&self) -> bool {
        let is_deploying = |world: &mut World| {
            let mut records = world.records.values();
            records.any(|record| record.status == Status::Deploying)
        };
        self.between.lates.any() || self.world(is_deploying)
    }

    /// Ends the current phase of each request that Portainer is working on after `time`.
    pub fn end_work_in(&self, time: Duration) {
        let end = self.world(|world| world.now + millis(time));
        self.between.lates.end_at(end);
        self.settle();
    }

    /// Waits for the requests whose end has come.
    pub fn settle(&self) {
        while self.between.lates.is_any_due(self.world(|world| world.now)) {
            self.between.pause(TICK);
        }
    }

    /// Clears the list of requests.
    pub fn forget_requests(&self) {
        self.apis().log().clear();
    }
}

impl Deref for Rehearsal {
    type Target = rehearsal::Rehearsal;

    fn deref(&self) -> &rehearsal::Rehearsal {
        &self.inner
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        *lock(&self.between.ended) = true;
        self.between.ending.notify_all();
    }
}

impl Between {
    /// Sleeps. Returns true if the rehearsal ended in the meantime.
    fn pause(&self, time: Duration) -> bool {
        let ended = lock(&self.ended);
        let waited = self.ending.wait_timeout_while(ended, time, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Makes the change that belongs to this request of `call`, if there is one.
    fn change(&self, apis: &Apis, call: Call) {
        let mut changes = lock(&self.changes);
        if let Some(at) = changes.iter().position(|(with, _)| *with == call) {
            let (_, change) = changes.remove(at);
            // The world is always locked first.
            let mut world = apis.world();
            change(&mut world, &mut lock(&self.git), &mut lock(&self.access));
        }
    }
}

/// Binds a socket to a free port without listening. `SO_REUSEADDR` lets the listener bind the same port.
fn reserve_port() -> anyhow::Result<(OwnedFd, u16)> {
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

/// The error response to a failed `compose down`.
fn failed_down(reason: &str) -> Refused {
    Refused::same(500, &format!("failed to remove a stack: {reason}\n"))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Locks a mutex, also after a thread panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
