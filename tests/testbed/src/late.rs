//! Requests that take their time: Portainer works on them, also if their client disconnects (M21).

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use rehearsal::{Apis, Era, Kind, Record, Refused, Status, Work};

use crate::{Between, TICK, deploy, failed_down, lock};

/// Between a failed `up` and its `down`, in milliseconds.
const GAP: i64 = 100;
/// The `down` after a failed `up`, in milliseconds.
const DOWN: i64 = 300;

/// The end of a phase that ends when it is its turn.
const WAITING: i64 = i64::MAX;

/// The error of an `up` that was told to fail.
const SIMULATED: &str = "dependency failed to start: simulated failure";

/// When and how a create, update or delete ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    /// Milliseconds from the start of its Compose process to its end.
    pub after: i64,
    /// Whether it fails then.
    pub fails: bool,
    /// Whether nobody waits for it.
    pub is_unattended: bool,
}

/// The late requests.
#[derive(Debug, Default)]
pub(crate) struct Lates {
    next: AtomicU64,
    /// When the phase of each ends, and the command line of its process in Portainer's container (M21).
    phases: Mutex<BTreeMap<u64, (i64, Option<String>)>>,
    /// Whether a deployment runs: Portainer deploys one stack at a time.
    is_deploying: AtomicBool,
}

impl Lates {
    /// Whether one is not waiting for its turn.
    pub fn any(&self) -> bool {
        lock(&self.phases)
            .values()
            .any(|(until, _)| *until != WAITING)
    }

    /// Whether a phase ends before this time.
    pub fn is_any_due(&self, now: i64) -> bool {
        lock(&self.phases).values().any(|(until, _)| *until <= now)
    }

    /// Ends the current phases at this time. What waits for its turn goes on waiting.
    pub fn end_at(&self, end: i64) {
        for (until, _) in lock(&self.phases).values_mut() {
            if *until != WAITING {
                *until = end;
            }
        }
    }
}

/// Performs a change of a stack. Returns its ID.
pub(crate) fn perform(
    between: &Arc<Between>,
    apis: &Arc<Apis>,
    work: Work,
    ending: Option<Ending>,
) -> Result<u64, Refused> {
    if between.program.is_some() {
        return deploy::perform(between, apis, work);
    }
    let is_background = apis.world().era == Era::Async && work.kind != Kind::Delete;
    let Some(ending) = ending else {
        let _turn = match work.kind {
            Kind::Create | Kind::Update if !is_background => Turn::wait(between),
            _ => None,
        };
        return apis.world().perform(&work);
    };
    let id = work.record.id;
    let late = Late::begin(between, apis, work, ending);
    if is_background || ending.is_unattended {
        thread::spawn(|| late.end());
        return Ok(id);
    }
    late.end()
}

/// Waits until the clock of the world has advanced by `millis`. Returns false if the rehearsal ended first.
pub(crate) fn wait(between: &Between, apis: &Apis, millis: i64) -> bool {
    let until = apis.world().now + millis;
    while apis.world().now < until {
        if between.pause(TICK) {
            return false;
        }
    }
    true
}

/// The right to deploy.
struct Turn(Arc<Between>);

impl Turn {
    fn take(between: &Arc<Between>) -> Option<Self> {
        let was_taken = between.lates.is_deploying.swap(true, Ordering::SeqCst);
        (!was_taken).then(|| Self(Arc::clone(between)))
    }

    /// Waits for it. `None` if the rehearsal ended first.
    fn wait(between: &Arc<Between>) -> Option<Self> {
        loop {
            let turn = Self::take(between);
            if turn.is_some() || between.pause(TICK) {
                return turn;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.lates.is_deploying.store(false, Ordering::SeqCst);
    }
}

/// A late request.
struct Late {
    between: Arc<Between>,
    apis: Arc<Apis>,
    ticket: u64,
    work: Work,
    ending: Ending,
    /// The containers that `compose up` starts at its end, or the reason why it fails then.
    created: Option<Result<Vec<String>, String>>,
    turn: Option<Turn>,
}

impl Late {
    fn begin(between: &Arc<Between>, apis: &Arc<Apis>, work: Work, ending: Ending) -> Self {
        let mut late = Self {
            between: Arc::clone(between),
            apis: Arc::clone(apis),
            ticket: between.lates.next.fetch_add(1, Ordering::SeqCst),
            work,
            ending,
            created: None,
            turn: None,
        };
        let end = apis.world().now.saturating_add(ending.after);
        if late.work.kind == Kind::Delete {
            late.enter(end, Some(late.down()));
        } else if apis.world().era == Era::Async {
            late.enter(end, None);
            apis.world().store_deploying(&late.work, None);
        } else {
            late.enter(WAITING, None);
            late.turn = Turn::take(between);
            if late.turn.is_some() {
                late.up();
            }
        }
        late
    }

    /// The first half of `compose up`.
    fn up(&mut self) {
        let created = self.apis.world().create(&self.work.record);
        self.created = Some(created);
        let Record { id, name, env, .. } = &self.work.record;
        let env = match env.as_deref() {
            None | Some([]) => "",
            Some(_) => " --env-file stack.env",
        };
        let process = format!(
            "docker-compose -f /data/compose/{id}/docker-compose.yml --project-name {name}{env} up -d"
        );
        let end = self.apis.world().now.saturating_add(self.ending.after);
        self.enter(end, Some(process));
    }

    fn down(&self) -> String {
        let name = &self.work.record.name;
        format!("docker-compose --project-name {name} down --remove-orphans")
    }

    /// Enters a phase.
    fn enter(&self, until: i64, process: Option<String>) {
        lock(&self.between.lates.phases).insert(self.ticket, (until, process));
        self.show_processes();
    }

    /// Newer versions use a library, which is no process.
    fn show_processes(&self) {
        let phases = lock(&self.between.lates.phases);
        let mut world = self.apis.world();
        if world.era == Era::Sync {
            let processes = phases.values().filter_map(|(_, process)| process.clone());
            world.processes = processes.collect();
        }
    }

    /// Waits for the end of the phase. Returns its time.
    fn wait(&self) -> Result<i64, Refused> {
        loop {
            let now = self.apis.world().now;
            let until = lock(&self.between.lates.phases)[&self.ticket].0;
            if until <= now {
                return Ok(until);
            }
            if self.between.pause(TICK) {
                return Err(Refused::failed("the rehearsal has ended"));
            }
        }
    }

    fn end(mut self) -> Result<u64, Refused> {
        if self.work.kind == Kind::Delete {
            self.wait()?;
            return self.deleted();
        }
        if self.apis.world().era == Era::Async {
            self.wait()?;
            self.deployed();
            return Ok(self.work.record.id);
        }
        if self.created.is_none() {
            self.turn = Turn::wait(&self.between);
            self.up();
        }
        let ended = self.wait()?;
        let created = self.created.take().unwrap_or(Ok(Vec::new()));
        let Err(reason) = self.started(created) else {
            return self.apis.world().complete(&self.work);
        };
        self.enter(ended + GAP, None);
        self.wait()?;
        self.enter(ended + GAP + DOWN, Some(self.down()));
        self.wait()?;
        Err(self.apis.world().undo(&self.work, &reason))
    }

    /// The second half of an `up`, unless it fails, whatever it deploys.
    fn started(&self, created: Result<Vec<String>, String>) -> Result<(), String> {
        let created = created?;
        if self.ending.fails {
            return Err(SIMULATED.to_owned());
        }
        self.apis.world().start_all(&created)
    }

    /// Deploys a stack in the background. A failure undoes nothing (N06).
    fn deployed(&self) {
        let id = self.work.record.id;
        let record = self.apis.world().records.get(&id).cloned();
        if let Some(record) = record.filter(|one| one.status == Status::Deploying) {
            let created = self.apis.world().create(&record);
            let outcome = self.started(created);
            self.apis.world().end_deployment(id, outcome);
        }
    }

    /// Ends a delete. A `down` that fails leaves the networks and the stack.
    fn deleted(&self) -> Result<u64, Refused> {
        let mut world = self.apis.world();
        if !self.ending.fails {
            return world.perform(&self.work);
        }
        let Record { name, endpoint, .. } = &self.work.record;
        if world.is_here(*endpoint) {
            world.remove_containers(name);
        }
        let network = format!("{name}_default");
        Err(failed_down(&format!(
            "failed to remove network {network}: Error response from daemon: error while removing network: \
             network {network} has active endpoints"
        )))
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        lock(&self.between.lates.phases).remove(&self.ticket);
        self.show_processes();
    }
}
