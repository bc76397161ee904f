//! Waits for the health or the end of a container.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use chrono::Utc;

use crate::{backoff::Backoff, engine::Engine, model::Condition, snapshot::Inspected};

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
    engine: &Engine,
    (id, name): (&str, &str),
    condition: Condition,
    limits: Limits,
) -> Result<()> {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    loop {
        let found = engine.inspect_containers([id])?;
        let Some(now) = found.first().map(Inspected) else {
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
