//! What every procedure runs on: the stack's lock, Portainer and the engine, events, and the state of a stopped run.
//!
//! **Architecture Invariant:** a procedure reaches Portainer and the engine only through a [`Run`], and a `Run` exists
//! only while the stack is locked. So every step that writes proves that it holds the lock.

use anyhow::Result;

use crate::{engine::Engine, model::Container, portainer::Portainer, stack::Lock};

mod snapshot;
mod state;

pub use snapshot::Subject;
pub use state::{State, restore_command};

/// Portainer and the engine, which only a [`Run`] can use.
pub struct Peers {
    portainer: Portainer,
    engine: Engine,
}

/// What a run reports while it works.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step: its verb, and what it acts on.
    Step(&'static str, String),
    /// A warning; the run continues.
    Warning(String),
    /// A step that may take a while; it ends with the next event that is shown.
    Waiting(String),
    /// The stack's containers after a success.
    Containers(&'a [Container]),
    /// A new state of the stack. Shown only if the run is interrupted.
    State(&'a State),
}

/// Receives the events of a run.
pub type Listener<'a> = dyn FnMut(Event) + 'a;

/// A run that stopped before its end.
#[derive(Debug)]
pub struct Stopped {
    /// Why it stopped.
    pub error: anyhow::Error,
    /// The state of the stack.
    pub state: State,
}

/// One run of a procedure on one stack.
pub struct Run<'a> {
    pub portainer: &'a Portainer,
    pub engine: &'a Engine,
    lock: Lock,
    listener: &'a mut Listener<'a>,
    state: State,
}

impl Peers {
    pub fn new(portainer: Portainer, engine: Engine) -> Self {
        Self { portainer, engine }
    }
}

impl Stopped {
    /// A run that stopped before it could touch anything.
    pub fn untouched(error: anyhow::Error) -> Self {
        let state = State::untouched();
        Self { error, state }
    }
}

/// Runs `procedure` on a locked stack, with [`State::untouched`] as the first state.
///
/// An error of the procedure stops the run in the state that the procedure set last.
pub fn under_lock<'a>(
    lock: Result<Lock>,
    peers: &'a Peers,
    listener: &'a mut Listener<'a>,
    procedure: impl FnOnce(&mut Run<'a>) -> Result<()>,
) -> Result<(), Stopped> {
    let lock = lock.map_err(|error| Stopped {
        error,
        state: State::new("this run changed nothing"),
    })?;
    let mut run = Run {
        portainer: &peers.portainer,
        engine: &peers.engine,
        lock,
        listener,
        state: State::untouched(),
    };
    procedure(&mut run).map_err(|error| Stopped {
        error,
        state: run.state,
    })
}

impl Run<'_> {
    /// The proof that this run alone works on the stack.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Sets the state of the stack. Call it before each request that changes something, and again after it.
    pub fn set_state(&mut self, state: State) {
        self.state = state;
        (self.listener)(Event::State(&self.state));
    }

    /// Reports a step: its verb, and what it acts on.
    pub fn step(&mut self, verb: &'static str, object: impl Into<String>) {
        (self.listener)(Event::Step(verb, object.into()));
    }

    /// Reports a warning.
    pub fn warn(&mut self, warning: impl Into<String>) {
        (self.listener)(Event::Warning(warning.into()));
    }

    /// Reports a step that may take a while.
    pub fn wait(&mut self, step: impl Into<String>) {
        (self.listener)(Event::Waiting(step.into()));
    }

    /// Reports the stack's containers.
    pub fn show(&mut self, containers: &[Container]) {
        (self.listener)(Event::Containers(containers));
    }
}
