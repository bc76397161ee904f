//! Requests that take their time: they go through their phases as the clock advances (M21).

use std::time::Duration;

use super::{
    deployment::Deployment,
    errors::PortainerError,
    in_flight::{Accepted, Ending, InFlight, NamedVolumes, Phase, Work},
    record::Status,
    state::{Era, World},
};

/// Between a failed `up` and its `down`, in milliseconds.
const GAP: i64 = 100;
/// The `down` after a failed `up`, in milliseconds.
const DOWN: i64 = 300;

/// The error of an `up` that was told to fail.
const SIMULATED: &str = "dependency failed to start: simulated failure";

impl World {
    /// Whether Portainer is working on a request or a deployment.
    pub fn is_busy(&self) -> bool {
        !self.deploying.is_empty() || self.in_flight.iter().any(|one| !one.has_ended())
    }

    /// Ends the current phase of each request and deployment that Portainer is working on after `time`.
    pub fn end_work_in(&mut self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let end = self.now.saturating_add(millis);
        let open = self.in_flight.iter_mut();
        for one in open.filter(|one| !one.has_ended() && one.phase != Phase::Waiting) {
            one.until = end;
        }
        for pending in self.records.values_mut().flat_map(|one| &mut one.pending) {
            pending.due = Some(end);
        }
    }

    /// The command lines of the Compose processes in Portainer's container (M21). Newer versions use a library.
    pub(crate) fn compose_processes(&self) -> Vec<String> {
        if self.era == Era::Async {
            return Vec::new();
        }
        self.in_flight
            .iter()
            .filter_map(InFlight::process)
            .collect()
    }

    /// The outcome of a request that has ended: the ID of its stack, or the error response. Forgets the request.
    pub(crate) fn take_outcome(
        &mut self,
        accepted: Accepted,
    ) -> Option<Result<u64, PortainerError>> {
        let ticket = match accepted {
            Accepted::InFlight(ticket) => ticket,
            Accepted::Ended(id) => return Some(Ok(id)),
        };
        let is_it = |one: &InFlight| one.ticket == ticket && one.has_ended();
        let at = self.in_flight.iter().position(is_it)?;
        match self.in_flight.remove(at).phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Advances the clock until a request has ended, and returns its outcome.
    pub(super) fn finish(&mut self, accepted: Accepted) -> Result<u64, PortainerError> {
        loop {
            if let Some(outcome) = self.take_outcome(accepted) {
                return outcome;
            }
            let Some(at) = self.next_end() else {
                return Err(PortainerError::failed("the request does not end"));
            };
            let until = self.in_flight[at].until;
            self.advance(until);
        }
    }

    /// Starts to work on a request.
    pub(super) fn submit(&mut self, work: Work, ending: Ending) -> Accepted {
        let ticket = self.next.ticket;
        self.next.ticket += 1;
        let (phase, until) = match work {
            Work::Delete { .. } => (Phase::Down(None), self.now + ending.after),
            Work::Create(_) | Work::Update { .. } => (Phase::Waiting, i64::MAX),
        };
        self.in_flight.push(InFlight {
            ticket,
            work,
            ending,
            phase,
            until,
        });
        self.deploy_next();
        self.advance_requests(self.now);
        Accepted::InFlight(ticket)
    }

    /// Ends every phase that is over at `now`, in the order of their ends.
    pub(super) fn advance_requests(&mut self, now: i64) {
        while let Some(at) = self
            .next_end()
            .filter(|at| self.in_flight[*at].until <= now)
        {
            let mut one = self.in_flight.remove(at);
            self.now = self.now.max(one.until);
            self.end_phase(&mut one);
            self.in_flight.insert(at, one);
            self.deploy_next();
        }
    }

    /// The position of the request whose phase ends first.
    fn next_end(&self) -> Option<usize> {
        let open = self.in_flight.iter().enumerate();
        let open = open.filter(|(_, one)| !one.has_ended() && one.phase != Phase::Waiting);
        open.min_by_key(|(_, one)| one.until).map(|(at, _)| at)
    }

    /// Starts the deployment that waited longest, if none is running.
    fn deploy_next(&mut self) {
        if self.in_flight.iter().any(InFlight::is_deploying) {
            return;
        }
        let waits = |one: &InFlight| one.phase == Phase::Waiting;
        let Some(at) = self.in_flight.iter().position(waits) else {
            return;
        };
        let mut one = self.in_flight.remove(at);
        let created = self
            .deployment_of(&one.work)
            .and_then(|deployment| self.create_all(&deployment));
        one.phase = Phase::Up(created);
        one.until = self.now + one.ending.after;
        self.in_flight.insert(at, one);
    }

    fn end_phase(&mut self, one: &mut InFlight) {
        let immediate = one.ending == Ending::default();
        let lasts = |millis: i64| if immediate { 0 } else { millis };
        let phase = std::mem::replace(&mut one.phase, Phase::Waiting);
        one.phase = match phase {
            Phase::Up(created) => {
                let fails = one.ending.fails;
                let started = created.and_then(|created| {
                    if fails {
                        Err(SIMULATED.to_owned())
                    } else {
                        self.start_all(&created)
                    }
                });
                match started {
                    Ok(()) => Phase::Ended(self.complete(&one.work)),
                    Err(reason) => {
                        one.until += lasts(GAP);
                        Phase::Gap(reason)
                    }
                }
            }
            Phase::Gap(reason) => {
                one.until += lasts(DOWN);
                Phase::Down(Some(reason))
            }
            Phase::Down(Some(reason)) => {
                self.down_in(one.work.endpoint(), one.work.name());
                Phase::Ended(Err(PortainerError::failed(&reason)))
            }
            Phase::Down(None) => Phase::Ended(self.deleted(&one.work, one.ending)),
            phase @ (Phase::Waiting | Phase::Ended(_)) => phase,
        };
    }

    /// Writes a change that succeeded to Portainer's database.
    pub(crate) fn complete(&mut self, work: &Work) -> Result<u64, PortainerError> {
        let now = self.seconds();
        match work.clone() {
            Work::Create(mut record) => {
                record.created = now;
                self.records.insert(record.id, *record);
            }
            Work::Update {
                id,
                endpoint,
                update,
                user,
                ..
            } => {
                let record = self.records.get_mut(&id);
                let record = record.ok_or_else(|| PortainerError::no_record(&id.to_string()))?;
                record.change(endpoint, update, user, now);
                record.status = Status::Active;
            }
            Work::Delete { id, .. } => {
                self.records.remove(&id);
            }
        }
        Ok(work.id())
    }

    /// Ends a delete: `compose down` is over. A `down` that fails leaves the networks and the stack.
    fn deleted(&mut self, work: &Work, ending: Ending) -> Result<u64, PortainerError> {
        let name = work.name();
        if ending.fails {
            self.remove_project(work.endpoint(), name);
            let network = format!("{name}_default");
            return Err(PortainerError::failed_down(&format!(
                "failed to remove network {network}: Error response from daemon: error while removing network: \
                 network {network} has active endpoints"
            )));
        }
        self.down_in(work.endpoint(), name);
        if matches!(
            work,
            Work::Delete {
                volumes: NamedVolumes::Remove,
                ..
            }
        ) {
            self.remove_volumes(work.endpoint(), name);
        }
        self.complete(work)
    }

    /// The deployment of a create or update, in Portainer's own directory.
    fn deployment_of(&self, work: &Work) -> Result<Deployment, String> {
        let (text, env) = work.contents().ok_or("a delete deploys nothing")?;
        self.by_portainer(work.endpoint(), work.id(), work.name(), text, env)
    }

    /// Runs `compose up` for a stack whose deployment runs in the background. A failure undoes nothing (N06).
    pub(super) fn deploy_in_background(&mut self, id: u64, fails: bool) -> Result<(), String> {
        debug_assert_eq!(self.era, Era::Async);
        let record = self.records.get(&id).ok_or("no such stack")?;
        let env = record.env.as_deref().unwrap_or_default();
        let deployment = self.by_portainer(record.endpoint, id, &record.name, &record.text, env)?;
        let created = self.create_all(&deployment)?;
        if fails {
            return Err(SIMULATED.to_owned());
        }
        self.start_all(&created)
    }
}
