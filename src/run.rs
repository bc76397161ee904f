//! What every procedure runs on: the stack's lock, Portainer and the engine, events, and the state of a stopped run.
//!
//! **Architecture Invariant:** a procedure reaches Portainer and the engine only through a [`Run`], and a `Run` exists
//! only while the stack's directory and its project are locked. So every step that writes proves that it holds the lock.

use std::{
    cell::OnceCell,
    collections::BTreeSet,
    path::Path,
    sync::Mutex,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;

use crate::{
    engine::{ContainerEvent, Engine, EngineReader},
    model::{Container, Pull, Variable, projects_of},
    parallel,
    plan::ServicePlan,
    portainer::{BaseUrl, Error, Portainer, PortainerReader},
    rewrite::env::{secret_values, secrets},
    snapshot::{Place, StackLock, Store, check_state_dir},
    text::{Mask, excerpt},
    trace::Trace,
};

mod consent;
mod held;
mod requests;
mod seen;
mod settle;
mod snapshot;
mod state;

pub use consent::{Consent, Declined, changed_before_answer};
pub use seen::RecordSeen;
pub use settle::Witness;
pub use snapshot::{Seen, Subject, look_into, read_changes, read_layer};
pub use state::{RestoreCommand, State};

use requests::Open;

/// How many lines of a container's log an error shows.
const LOG_LINES: u8 = 3;

/// How long before the first change the events begin that are asked for: clocks are read one after the other.
const MARGIN: Duration = Duration::from_secs(1);

/// Portainer and the engine, which only a [`Run`] can use.
pub struct Peers {
    portainer: Portainer,
    engine: Engine,
}

/// What a run needs besides its stack.
pub struct Setup {
    place: Place,
    /// Opened when it is first needed, because that reads the ID of the engine.
    store: OnceCell<Store>,
    /// Portainer's address.
    base_url: BaseUrl,
    /// How long the run waits for Portainer to finish.
    timeout: Duration,
    /// The command that rolls back (B14).
    restore: RestoreCommand,
    /// The settings of the other commands that are printed.
    typed: RestoreCommand,
}

/// What a procedure is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Change,
    /// It changes neither the stack nor what an earlier run left.
    Read,
}

/// What a run reports while it works.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step: its verb, and what it acts on.
    Step(&'static str, String),
    /// The same, which only `-v` shows.
    Detail(&'static str, String),
    /// What an adoption does to each service.
    Services(&'a [ServicePlan]),
    /// What to know about the plan.
    Note(String),
    /// A sentence of a plan or of a result.
    Line(String),
    /// The result: what was done, and to what.
    Done(&'static str, String),
    /// A warning; the run continues.
    Warning(String),
    /// A step that may take a while; it ends with the next event that is shown.
    Waiting(String),
    /// Everything runs. From now on, the run only watches whether that stays so.
    Watching,
    /// The stack's containers after a success.
    Containers(&'a [Container]),
    /// A new state of the stack. Shown only if the run is interrupted.
    State(&'a State),
}

impl Event<'_> {
    /// The same event, where every step is shown.
    #[must_use]
    pub fn in_full(self) -> Self {
        match self {
            Self::Detail(verb, object) => Self::Step(verb, object),
            event => event,
        }
    }
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
    /// Reads only. Changes are sent by [`Run::create`], [`Run::update`] and [`Run::delete`] (B11).
    pub portainer: &'a PortainerReader,
    pub engine: &'a Engine,
    /// Whether the API key is known to see every Portainer stack, as far as the procedure asked (B24).
    pub sees_every_stack: bool,
    setup: &'a Setup,
    changes: &'a Portainer,
    lock: StackLock,
    listener: &'a mut Listener<'a>,
    warned: BTreeSet<String>,
    /// The flags that choose what it restores, while it restores.
    pub restoring: Option<Vec<String>>,
    state: State,
    /// The requests that are not known to have finished, oldest first.
    open: Vec<Open>,
    /// Whether the journal entry of the create is prepared.
    is_prepared: bool,
    /// The ID of the snapshot that this run took or restores.
    snapshot: Option<String>,
    mark: Mark,
    /// The time just before the first change.
    since: Option<SystemTime>,
    /// When this run stopped containers.
    stops: Mutex<Vec<ContainerEvent>>,
    /// Whether there may be containers that hold volumes: this run created them, or an earlier one did not finish.
    holds_volumes: bool,
    /// The values that Portainer's words must not show.
    secrets: Vec<String>,
}

/// The mark in the store: the last run has not ended as intended (B15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    NotSet,
    Set,
    /// The run restores what a failed run left: the mark stays even if it succeeds.
    Stays,
    /// The run only reads: what an earlier one left stays as it is.
    Reads,
}

impl Peers {
    pub fn new(portainer: Portainer, engine: Engine) -> Self {
        Self { portainer, engine }
    }

    /// A client of the same Portainer, which a run alone uses, and this engine.
    pub fn again(&self, trace: Trace, engine: Engine) -> Result<Self> {
        Ok(Self::new(self.portainer.again(trace)?, engine))
    }

    /// The parts that cannot change anything.
    pub fn readers(&self) -> (&PortainerReader, &EngineReader) {
        (self.portainer.reader(), &self.engine)
    }

    /// Reads everything once during a task that plans several stacks and changes none.
    pub fn remembering<R>(&self, task: impl FnOnce() -> R) -> R {
        let (portainer, engine) = self.readers();
        portainer.remembering(|| engine.remembering(task))
    }
}

impl Setup {
    /// Refuses a state directory that is not private.
    pub fn new(
        place: Place,
        base_url: BaseUrl,
        timeout: Duration,
        restore: RestoreCommand,
        typed: RestoreCommand,
    ) -> Result<Self> {
        check_state_dir(&place.state)?;
        Ok(Self {
            place,
            store: OnceCell::new(),
            base_url,
            timeout,
            restore,
            typed,
        })
    }

    /// Locks the stack, whose directory is `dir`.
    pub fn lock(&self, dir: &Path) -> Result<StackLock> {
        self.place.lock(dir)
    }

    /// What outlives a run: snapshots, and requests without a known end (B11).
    pub fn store(&self, engine: &EngineReader) -> &Store {
        self.store
            .get_or_init(|| self.place.open(engine.id().ok().as_deref()))
    }

    /// The same, if it was opened.
    pub fn opened_store(&self) -> Option<&Store> {
        self.store.get()
    }
}

impl Stopped {
    /// A run that stopped before it could touch anything.
    pub fn untouched(error: anyhow::Error) -> Self {
        let state = State::untouched();
        Self { error, state }
    }
}

/// Runs `procedure` on a stack in the directory `dir`, which is locked with its project, with [`State::untouched`] as the first state.
///
/// An error of the procedure stops the run in the state that the procedure set last.
pub fn under_lock<'a, T>(
    dir: &Path,
    purpose: Purpose,
    peers: &'a Peers,
    setup: &'a Setup,
    listener: &'a mut Listener<'a>,
    procedure: impl FnOnce(&mut Run<'a>) -> Result<T>,
) -> Result<T, Stopped> {
    let (lock, mark) = match purpose {
        Purpose::Change => (setup.lock(dir), Mark::NotSet),
        Purpose::Read => (setup.place.lock_to_read(dir), Mark::Reads),
    };
    let lock = lock.map_err(Stopped::untouched)?;
    let mut run = Run {
        portainer: peers.portainer.reader(),
        engine: &peers.engine,
        sees_every_stack: true,
        setup,
        changes: &peers.portainer,
        lock,
        listener,
        warned: BTreeSet::new(),
        restoring: None,
        state: State::untouched(),
        open: Vec::new(),
        is_prepared: false,
        snapshot: None,
        mark,
        since: None,
        stops: Mutex::default(),
        holds_volumes: false,
        secrets: Vec::new(),
    };
    run.look_for_unanswered();
    let ended = procedure(&mut run);
    run.release_volumes();
    let ended = ended.and_then(|done| run.mark_finished().map(|()| done));
    ended.map_err(|error| {
        run.mark_failed();
        Stopped {
            error,
            state: run.complete_state(),
        }
    })
}

impl<'a> Run<'a> {
    /// What outlives the run: snapshots, and requests without a known end (B11).
    pub fn store(&self) -> &'a Store {
        self.setup.store(self.engine)
    }

    /// The proof that this run alone works on the stack.
    pub fn lock(&self) -> &StackLock {
        &self.lock
    }

    /// How long the run waits for Portainer, or for containers.
    pub fn timeout(&self) -> Duration {
        self.setup.timeout
    }

    /// Sets the state of the stack. Call it before each request that changes something, and again after it.
    pub fn set_state(&mut self, state: State) {
        self.state = state;
        self.report_state();
    }

    /// The state that was set last.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Adds to the state that the run wrote this, such as a snapshot.
    pub fn wrote(&mut self, what: String) {
        self.state.written.push(what);
        self.report_state();
    }

    /// Sends a request in this state. If it is not sent, the state is again that of before.
    pub fn sending<T>(
        &mut self,
        state: State,
        send: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.state.clone();
        self.set_state(state);
        let outcome = send(self);
        if let Err(Error::NotSent(_)) = outcome {
            self.set_state(before);
        }
        outcome
    }

    fn report_state(&mut self) {
        let state = self.complete_state();
        (self.listener)(Event::State(&state));
    }

    fn complete_state(&self) -> State {
        let (state, open) = (self.state.clone(), self.unanswered());
        let id = self.snapshot.as_deref();
        state.complete(
            (&self.setup.restore, &self.setup.typed),
            id.map(|id| (self.setup.place.name.as_str(), id)),
            &open,
            self.sees_every_stack,
        )
    }

    /// The requests whose outcome is unknown (B11).
    pub fn unanswered(&self) -> Vec<String> {
        let open = self.open.iter().filter(|open| !open.accepted);
        open.map(|open| open.entry.request.to_string()).collect()
    }

    /// `stacklift` with these arguments, for a user who goes on where this run began.
    pub fn command(&self, arguments: &[&str]) -> String {
        self.setup.typed.with(arguments)
    }

    /// The command that undoes what followed a snapshot. It names the snapshot only where `restore` would choose another one
    /// (B15).
    pub fn undo_command(&self, stack: &str, id: &str) -> String {
        let default = self.store().default_id();
        let is_default = default.is_ok_and(|one| one.as_deref() == Some(id));
        let words = ["restore", stack, "--to", id];
        self.command(if is_default { &words[..2] } else { &words })
    }

    /// The command that restores a snapshot of the stack, or its containers alone, wherever it is run.
    pub fn restore_command(&self, stack: &str, id: &str, engine_only: bool) -> String {
        self.setup.restore.to(stack, id, engine_only)
    }

    /// Marks the stack before the first change (B15).
    pub fn mark_unfinished(&mut self) -> Result<()> {
        let before = || SystemTime::now().checked_sub(MARGIN);
        self.since = self.since.or_else(before);
        let (store, restoring) = (self.store(), self.restoring.as_deref());
        if self.mark == Mark::NotSet {
            self.holds_volumes |= store.is_unfinished();
            store.mark_unfinished(restoring)?;
            self.mark = Mark::Set;
        } else if self.mark == Mark::Stays && store.is_unfinished() {
            store.mark_unfinished(restoring)?;
        }
        Ok(())
    }

    /// The stack is as it was before the first change, or as it should be after the last one: if the run ends here, the next
    /// one finds nothing unfinished (B15).
    pub fn is_whole(&mut self) -> Result<()> {
        self.mark_finished()?;
        if self.mark == Mark::Set {
            self.mark = Mark::NotSet;
        }
        Ok(())
    }

    /// The mark stays: this run does not finish what an earlier one began.
    pub fn leaves_mark(&mut self) {
        self.mark = Mark::Stays;
    }

    fn mark_failed(&self) {
        if let (Mark::Set | Mark::Stays, Some(store)) = (self.mark, self.setup.store.get()) {
            store.mark_failed();
        }
    }

    fn mark_finished(&self) -> Result<()> {
        match (self.mark, self.setup.store.get()) {
            (Mark::Stays | Mark::Reads, _) | (_, None) => Ok(()),
            (Mark::NotSet | Mark::Set, Some(store)) => store.mark_finished(),
        }
    }

    /// Hides the values of a `.env` and of `variables` in everything that Portainer says from now on, in addition to those
    /// that are hidden already. Call it before the first request whose response may contain them.
    pub fn hide(&mut self, env: Option<&str>, variables: &[Variable]) {
        self.secrets.extend(env.into_iter().flat_map(secrets));
        let values = secret_values(variables).map(str::to_owned);
        self.secrets.extend(values);
        self.portainer.hide(self.mask());
    }

    /// The same, of another secret.
    pub fn hide_secret(&mut self, secret: &str) {
        self.secrets.push(secret.to_owned());
        self.portainer.hide(self.mask());
    }

    fn mask(&self) -> Mask {
        Mask::new(self.secrets.iter().map(String::as_str))
    }

    /// Reports an event.
    pub fn report(&mut self, event: Event) {
        (self.listener)(event);
    }

    /// Reports a step: its verb, and what it acts on.
    pub fn step(&mut self, verb: &'static str, object: impl Into<String>) {
        (self.listener)(Event::Step(verb, object.into()));
    }

    /// The same, for those who want to see every step.
    pub fn detail(&mut self, verb: &'static str, object: impl Into<String>) {
        (self.listener)(Event::Detail(verb, object.into()));
    }

    /// Reports what to know about the plan.
    pub fn note_all(&mut self, texts: impl IntoIterator<Item: Into<String>>) {
        for text in texts {
            (self.listener)(Event::Note(text.into()));
        }
    }

    /// Reports a sentence of the plan.
    pub fn line(&mut self, line: impl Into<String>) {
        (self.listener)(Event::Line(line.into()));
    }

    /// Reports a warning, once.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if self.warned.insert(warning.clone()) {
            (self.listener)(Event::Warning(warning));
        }
    }

    /// Reports several warnings, or one if there is one.
    pub fn warn_all(&mut self, warnings: impl IntoIterator<Item: Into<String>>) {
        for warning in warnings {
            self.warn(warning);
        }
    }

    /// Reports a step that may take a while.
    pub fn wait(&mut self, step: impl Into<String>) {
        (self.listener)(Event::Waiting(step.into()));
    }

    /// The containers of a stack: those of its project, and of the one with the name that Portainer gives it (B10).
    pub fn containers(&self, stack: &str) -> Result<Vec<Container>> {
        of_projects(stack, |project| self.engine.list(project))
    }

    /// The same, as the engine inspects them.
    pub fn inspect(&self, stack: &str) -> Result<Vec<Container>> {
        let listed = self.containers(stack)?;
        self.engine
            .inspect_containers(listed.iter().map(Container::id))
    }

    /// The starts and ends of a stack's containers since the first change, in their order, as far as they are known.
    pub fn events(&self, stack: &str) -> Vec<ContainerEvent> {
        let of = |since| of_projects(stack, |project| self.engine.events(project, since)).ok();
        let mut events = self.since.and_then(of).unwrap_or_default();
        events.extend(parallel::lock(&self.stops).iter().cloned());
        events.sort_by_key(|event| event.at);
        events
    }

    /// Notes when this run stops a container: the engine remembers only its last events.
    pub fn note_stops(&self) -> impl Fn(&Container) + Sync + '_ {
        let stops = &self.stops;
        move |container| {
            let at = SystemTime::now().duration_since(UNIX_EPOCH);
            parallel::lock(stops).push(ContainerEvent {
                id: container.id().to_owned(),
                started: false,
                exited: false,
                at: at.unwrap_or_default(),
            });
        }
    }

    /// The last lines of a container's log, without the values that must not be shown; none if it cannot be read.
    pub fn log_tail(&self, container: &str) -> Vec<String> {
        let log = self.engine.log_tail(container, LOG_LINES);
        let shown = self.mask().hide(&log.unwrap_or_default());
        shown.lines().map(excerpt).collect()
    }

    /// Pulls an image.
    pub fn pull(&mut self, pull: &Pull) -> Result<()> {
        self.wait(format!("pulling {pull}"));
        self.engine.pull(pull)?;
        if self.state.is_untouched() {
            let what = "this run pulled images and changed nothing else";
            self.set_state(State::new(what));
        }
        self.detail("pulled", pull.to_string());
        Ok(())
    }
}

/// What is listed for each project that may have the containers of a stack.
fn of_projects<T: Clone>(stack: &str, list: impl Fn(&str) -> Result<Vec<T>>) -> Result<Vec<T>> {
    let projects = projects_of(stack);
    let lists = projects.iter().map(|project| list(project));
    Ok(lists.collect::<Result<Vec<_>>>()?.concat())
}
