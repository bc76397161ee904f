//! Waits for the health or the end of a container, or until every container of a stack runs.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use chrono::Utc;

use super::compare::{Compared, Ran};
use crate::{
    backoff::Backoff,
    engine::EngineReader,
    model::{Condition, Container},
    portainer::persist,
    report::Change,
    run::{Event, Run},
    text::listed,
};

/// How long a container that was started has to run without a restart. A program that finds a wrong setting often ends after
/// more than a second.
const STEADY: Duration = Duration::from_secs(3);

/// After how many restarts a container does not come to run.
const RESTARTS: u64 = 3;
/// The same, if another container was started with it: it may wait for that one. Its pauses add up to 13 seconds.
const RESTARTS_AMONG_OTHERS: u64 = 7;

/// Until when to wait.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub deadline: Instant,
    /// Until when an unhealthy container may become healthy again.
    pub unhealthy: Instant,
    /// The option that sets the limit.
    pub option: &'static str,
}

/// Waits until the container `id` meets `condition`. Fails if it no longer can, and at the deadline.
pub fn wait_for(
    engine: &EngineReader,
    (id, name): (&str, &str),
    condition: Condition,
    limits: Limits,
) -> Result<()> {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    loop {
        let found = engine.inspect_containers([id])?;
        let Some(now) = found.first() else {
            bail!("{name} was removed meanwhile");
        };
        let waiting_for = match condition {
            Condition::Started if !now.loops(Utc::now()) => return Ok(()),
            Condition::Started => "keep running",
            Condition::Completed => match now.exit_code() {
                Some(0) => return Ok(()),
                Some(code) => bail!("{name} exited with code {code}"),
                None => "exit",
            },
            Condition::Healthy => match now.health() {
                Some("healthy") => return Ok(()),
                _ if !now.is_running() => bail!("{name} is not running"),
                Some("unhealthy") if Instant::now() >= limits.unhealthy => {
                    bail!("{name} is unhealthy")
                }
                None => bail!("{name} has no health check"),
                Some(_) => "become healthy",
            },
        };
        let left = limits.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let option = limits.option;
            bail!("{name} did not {waiting_for} in time; use {option} for a longer limit");
        }
        thread::sleep(backoff.pause().min(left));
    }
}

/// Waits until everything runs as `before`, or a container does not come to run: for the time `limit`, and longer if a health
/// check takes longer. Returns the containers of the stack. Those of a stack that `is_stopped` as a whole are no jobs.
pub fn wait_until_steady(
    run: &mut Run,
    (stack, tool): (&str, &str),
    before: Ran,
    limit: Duration,
    is_stopped: bool,
) -> Result<Vec<Container>> {
    let started = Instant::now();
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    let mut steady = (BTreeSet::new(), Instant::now());
    let mut waiting = Vec::new();
    run.wait("checking that the containers keep running");
    loop {
        let now = persist(started + limit, || run.inspect(stack))?;
        let compared = before.compare(&now, tool);
        let checks = compared.iter().filter_map(|pair| pair.health_time());
        let deadline = started + checks.fold(limit, Duration::max);
        let unfinished: Vec<String> = compared
            .iter()
            .filter(|pair| {
                (pair.has_to_run() && !pair.runs())
                    || pair.lacks_health()
                    || (!is_stopped && pair.runs_again() && pair.may_end_within(limit))
            })
            .filter(|pair| pair.may_recover())
            .map(|pair| pair.name().to_owned())
            .collect();
        let starts = starts(&compared);
        let restarts = if starts.len() > 1 {
            RESTARTS_AMONG_OTHERS
        } else {
            RESTARTS
        };
        let gives_up = compared.iter().any(|pair| pair.keeps_restarting(restarts));
        if steady.0 != starts {
            steady = (starts, Instant::now());
        }
        let is_steady = steady.0.is_empty() || steady.1.elapsed() >= STEADY;
        let is_done = unfinished.is_empty() && is_steady;
        if is_done || gives_up || Instant::now() >= deadline {
            return Ok(now);
        }
        if unfinished.is_empty() {
            run.report(Event::Watching);
        }
        if unfinished != waiting && !unfinished.is_empty() {
            waiting = unfinished;
            run.wait(format!("waiting for {}", listed(&waiting)));
        }
        thread::sleep(backoff.pause());
    }
}

/// The containers that were started since, with the times of their starts. Those in a restart loop as before start again
/// and again.
fn starts(compared: &[Compared]) -> BTreeSet<(String, String)> {
    compared
        .iter()
        .filter(|pair| pair.change != Change::Kept && !pair.looped)
        .filter_map(|pair| pair.now)
        .filter(|now| now.is_running())
        .map(|now| (now.id().to_owned(), now.text("/State/StartedAt").to_owned()))
        .collect()
}
