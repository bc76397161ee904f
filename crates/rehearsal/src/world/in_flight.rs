//! The requests that Portainer is working on: they go through their phases as the clock advances (M21).

use std::time::Duration;

use super::{
    clock::millis,
    errors::Refused,
    record::{Record, Status},
    state::{Era, World},
    work::{Ending, InFlight, Kind, Phase, Work},
};

/// Between a failed `up` and its `down`, in milliseconds.
const GAP: i64 = 100;
/// The `down` after a failed `up`, in milliseconds.
const DOWN: i64 = 300;

/// The error of an `up` that was told to fail.
pub(super) const SIMULATED: &str = "dependency failed to start: simulated failure";

impl World {
    /// Sets the clock, which never goes backward, and finishes the requests and deployments that are due.
    pub(crate) fn advance(&mut self, now: i64) {
        let now = if self.stands_still { self.now } else { now };
        self.advance_requests(now);
        self.now = self.now.max(now);
    }

    /// Whether Portainer is working on a request or a deployment.
    pub fn is_busy(&self) -> bool {
        self.in_flight.iter().any(InFlight::is_open)
    }

    /// Ends the current phase of each request and deployment that Portainer is working on after `time`.
    pub fn end_work_in(&mut self, time: Duration) {
        let end = self.now.saturating_add(millis(time));
        for one in self.in_flight.iter_mut().filter(|one| one.is_open()) {
            one.until = end;
        }
    }

    /// The command lines of the Compose processes in Portainer's container (M21). Newer versions use a library.
    pub(crate) fn compose_processes(&self) -> Vec<String> {
        let by_program = self.in_flight.iter().filter(|_| self.era == Era::Sync);
        by_program.filter_map(InFlight::process).collect()
    }

    /// The outcome of a request that has ended: the ID of its stack, or the error response. Forgets the request.
    pub(crate) fn take_outcome(&mut self, ticket: u64) -> Option<Result<u64, Refused>> {
        let at = self.in_flight.iter().position(|one| one.ticket == ticket)?;
        let Phase::Ended(outcome) = self.in_flight[at].phase.clone() else {
            return None;
        };
        self.in_flight.remove(at);
        Some(outcome)
    }

    /// Starts to work on a request.
    pub(super) fn submit(&mut self, work: Work, ending: Ending) -> u64 {
        let (phase, after) = if work.kind == Kind::Delete {
            (Phase::Down(None), Some(ending.after))
        } else {
            (Phase::Waiting, None)
        };
        let ticket = self.work_on(work, ending, phase, after);
        self.deploy_next();
        self.advance_requests(self.now);
        ticket
    }

    /// Adds a request in a phase that ends after so many milliseconds; `None` is never. Returns its ticket.
    pub(super) fn work_on(
        &mut self,
        work: Work,
        ending: Ending,
        phase: Phase,
        after: Option<i64>,
    ) -> u64 {
        self.next.ticket += 1;
        self.in_flight.push(InFlight {
            ticket: self.next.ticket,
            work,
            ending,
            phase,
            until: after.map_or(i64::MAX, |after| self.now + after),
        });
        self.next.ticket
    }

    /// Ends every phase that is over at `now`, in the order of their ends.
    pub(super) fn advance_requests(&mut self, now: i64) {
        let is_over = |world: &Self, at: &usize| world.in_flight[*at].until <= now;
        while let Some(at) = self.next_end().filter(|at| is_over(self, at)) {
            let mut one = self.in_flight.remove(at);
            self.now = self.now.max(one.until);
            let is_answered = matches!(one.phase, Phase::Background { .. });
            self.end_phase(&mut one);
            if !is_answered {
                self.in_flight.insert(at, one);
            }
            self.deploy_next();
        }
    }

    /// The position of the request whose phase ends first.
    fn next_end(&self) -> Option<usize> {
        let all = self.in_flight.iter().enumerate();
        let open = all.filter(|(_, one)| one.is_open());
        open.min_by_key(|(_, one)| one.until).map(|(at, _)| at)
    }

    /// Starts the deployment that waited longest, if none is running.
    fn deploy_next(&mut self) {
        let deploys = |one: &InFlight| one.is_open() && one.work.kind != Kind::Delete;
        if self.in_flight.iter().any(deploys) {
            return;
        }
        let waits = |one: &InFlight| one.phase == Phase::Waiting;
        if let Some(at) = self.in_flight.iter().position(waits) {
            let deployment = self.deployment_of(&self.in_flight[at].work.record);
            let created = self.create_all(&deployment);
            let one = &mut self.in_flight[at];
            one.phase = Phase::Up(created);
            one.until = self.now + one.ending.after;
        }
    }

    fn end_phase(&mut self, one: &mut InFlight) {
        let immediate = one.ending == Ending::default();
        let lasts = |millis: i64| if immediate { 0 } else { millis };
        let phase = std::mem::replace(&mut one.phase, Phase::Waiting);
        one.phase = match phase {
            Phase::Up(created) => match self.started(created, one.ending.fails) {
                Ok(()) => Phase::Ended(self.complete(&one.work)),
                Err(reason) => {
                    one.until += lasts(GAP);
                    Phase::Gap(reason)
                }
            },
            Phase::Gap(reason) => {
                one.until += lasts(DOWN);
                Phase::Down(Some(reason))
            }
            Phase::Down(Some(reason)) => {
                let sent = &one.work.record;
                self.down_in(sent.endpoint, &sent.name);
                // A new deployment of a Git stack has replaced its clone (M24).
                let is_redeployed = sent.clone.as_ref().is_some_and(|clone| clone.recreates);
                if let Some(record) = self.records.get_mut(&sent.id).filter(|_| is_redeployed) {
                    record.text.clone_from(&sent.text);
                    record.clone.clone_from(&sent.clone);
                }
                Phase::Ended(Err(Refused::failed(&reason)))
            }
            Phase::Down(None) => Phase::Ended(self.deleted(&one.work, one.ending)),
            // A failure undoes nothing (N06).
            Phase::Background { is_after_error, .. } => {
                let id = one.work.record.id;
                if let Some(record) = self.records.get(&id).cloned() {
                    if is_after_error {
                        self.down_in(record.endpoint, &record.name);
                    }
                    let created = self.create_all(&self.deployment_of(&record));
                    let outcome = self.started(created, one.ending.fails);
                    self.end_deployment(id, outcome);
                }
                Phase::Ended(Ok(id))
            }
            phase @ (Phase::Waiting | Phase::Ended(_)) => phase,
        };
    }

    /// The second half of an `up`, unless it fails, whatever it deploys. Also fails if a container was removed in the
    /// meantime.
    pub(super) fn started(
        &mut self,
        created: Result<Vec<String>, String>,
        fails: bool,
    ) -> Result<(), String> {
        let created = created?;
        if fails {
            return Err(SIMULATED.to_owned());
        }
        created.iter().try_for_each(|id| self.start(id))
    }

    /// Writes a change that succeeded to Portainer's database. Returns the ID of the stack.
    pub(crate) fn complete(&mut self, work: &Work) -> Result<u64, Refused> {
        let mut record = work.record.clone();
        let (id, now) = (record.id, self.seconds());
        match work.kind {
            Kind::Create => record.created = now,
            Kind::Update => {
                self.record(id)?;
                record.updated = now;
                record.status = Status::Active;
            }
            Kind::Delete => {
                self.records.remove(&id);
                return Ok(id);
            }
        }
        self.records.insert(id, record);
        Ok(id)
    }

    /// Ends a delete: `compose down` is over. A `down` that fails leaves the networks and the stack.
    fn deleted(&mut self, work: &Work, ending: Ending) -> Result<u64, Refused> {
        let Record { name, endpoint, .. } = &work.record;
        if ending.fails {
            if self.is_here(*endpoint) {
                self.remove_containers(name);
            }
            let network = format!("{name}_default");
            return Err(Refused::failed_down(&format!(
                "failed to remove network {network}: Error response from daemon: error while removing network: \
                 network {network} has active endpoints"
            )));
        }
        self.down_in(*endpoint, name);
        self.complete(work)
    }
}
