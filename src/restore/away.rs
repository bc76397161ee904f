//! How long a container did not run, from the events of the engine.
//!
//! Invariant: pure.
#![deny(clippy::disallowed_methods)]

use std::time::Duration;

use crate::{engine::ContainerEvent, snapshot::Inspected};

/// How long a container that ran before did not run: from its end to the start of the one that runs now. `None` if that is
/// unknown.
pub fn away(old: Inspected, now: Inspected, events: &[ContainerEvent]) -> Option<Duration> {
    let time = |container: Inspected, started: bool, from: Duration| {
        let found = events.iter().find(|event| {
            event.id == container.id() && event.started == started && event.at >= from
        });
        found.map(|event| event.at)
    };
    let ended = time(old, false, Duration::ZERO)?;
    time(now, true, ended)?.checked_sub(ended)
}
