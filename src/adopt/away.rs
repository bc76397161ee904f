//! How long a container did not run, from the events of the engine.
//!
//! Invariant: pure.
#![deny(clippy::disallowed_methods)]

use std::time::Duration;

use super::compared::Compared;
use crate::{engine::ContainerEvent, report::Change, restore};

/// How long an original container did not run, from the end of the old one to the start of the one that runs now. `None`
/// if that is unknown, or if it did not run before.
pub(super) fn away(one: &Compared, events: &[ContainerEvent]) -> Option<Duration> {
    match one.change {
        Change::Kept if one.told_change() == Change::RestartedByPolicy => {}
        Change::Kept => return Some(Duration::ZERO),
        Change::Restarted | Change::Recreated => {}
        Change::RestartedByPolicy
        | Change::Started
        | Change::Ended
        | Change::New
        | Change::Missing
        | Change::Stray => {
            return None;
        }
    }
    restore::away(one.before.filter(|old| old.is_running())?, one.now?, events)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::{Value, json};

    use super::*;
    use crate::adopt::compared::compare;

    fn container(id: &str, started: &str) -> Value {
        json!({"Id": id, "Name": "/web-a-1", "State": {"Running": true, "StartedAt": started}})
    }

    fn event(id: &str, started: bool, millis: u64) -> ContainerEvent {
        ContainerEvent {
            id: id.to_owned(),
            started,
            at: Duration::from_millis(millis),
        }
    }

    #[test]
    fn the_time_from_the_end_of_the_old_to_the_start_of_the_new() {
        let (before, now) = ([container("1", "t")], [container("2", "u")]);
        let one = compare((&before, DateTime::default()), &now, "docker")[0];
        let events = [
            event("1", false, 1000),
            event("9", true, 1100),
            event("2", true, 1500),
            event("2", true, 4000),
        ];
        assert_eq!(away(&one, &events), Some(Duration::from_millis(500)));
        // The engine remembers only its last events.
        assert_eq!(away(&one, &events[1..]), None);
        assert_eq!(away(&one, &events[..2]), None);
    }

    #[test]
    fn a_restart_and_a_container_that_is_not_touched() {
        let (before, now) = ([container("1", "t")], [container("1", "u")]);
        let events = [event("1", false, 5), event("1", true, 7)];
        let restarted = compare((&before, DateTime::default()), &now, "docker")[0];
        assert_eq!(away(&restarted, &events), Some(Duration::from_millis(2)));
        let kept = compare((&before, DateTime::default()), &before, "docker")[0];
        assert_eq!(away(&kept, &[]), Some(Duration::ZERO));
    }
}
