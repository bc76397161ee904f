//! Whether a snapshot shows a stack that ran whole, or what a failed run left behind (B15).
//!
//! Invariant: pure.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::Snapshot;
use crate::model::Container;

/// Whether `now`, taken after a run that failed, shows the whole stack after all, because somebody restarted it.
///
/// Compared with `before`, the last snapshot of the whole stack: each service has as many containers as then, and as
/// many that run: one in a restart loop does not (B28). Without one, every container must run.
pub fn is_whole(now: &Snapshot, before: Option<&Snapshot>) -> bool {
    let containers = now.containers.known();
    containers
        .is_some_and(|containers| runs_as_before(containers, now.taken_at(), before, &now.tool))
}

/// The same for containers that were inspected at this time.
pub fn runs_as_before(
    now: &[Container],
    at: DateTime<Utc>,
    before: Option<&Snapshot>,
    tool: &str,
) -> bool {
    let before = before.and_then(|before| Some((before, before.containers.known()?)));
    let Some((before, containers)) = before else {
        return !now.is_empty() && now.iter().all(Container::is_running);
    };
    let now = count(now, at, tool);
    let before = count(containers, before.taken_at(), &before.tool);
    before.iter().all(|(service, wanted)| {
        now.get(service)
            .is_some_and(|now| now.all >= wanted.all && now.running >= wanted.running)
    })
}

/// Whether the containers of `now` have the configurations of those of `before`: nobody deployed the stack in between.
pub fn is_same_deployment(now: &[Container], before: &Snapshot) -> bool {
    let labels = ["service", "config-hash"].map(|name| before.label(name));
    let hashes = |of: &[Container]| -> BTreeSet<[String; 2]> {
        let labeled = of.iter().map(|one| {
            labels
                .each_ref()
                .map(|label| one.label(label).unwrap_or_default().to_owned())
        });
        labeled.collect()
    };
    hashes(now) == hashes(before.containers.items())
}

/// How many containers a service has, and how many of them run.
#[derive(Default)]
struct Count {
    all: usize,
    running: usize,
}

fn count<'a>(
    containers: &'a [Container],
    at: DateTime<Utc>,
    tool: &str,
) -> BTreeMap<&'a str, Count> {
    let mut counts = BTreeMap::<_, Count>::new();
    for container in containers {
        let service = container.compose_label(tool, "service");
        let count = counts
            .entry(service.unwrap_or(container.name()))
            .or_default();
        count.all += 1;
        count.running += usize::from(container.is_running() && !container.is_in_loop(at));
    }
    counts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::Known;

    fn of(containers: &[(&str, bool)]) -> Snapshot {
        let fixture = include_str!("../../tests/fixtures/snapshot-1.json");
        let mut snapshot: Snapshot = serde_json::from_str(fixture).expect("a snapshot");
        let label = snapshot.label("service");
        let containers = containers.iter().map(|(service, runs)| {
            let labels = json!({label.as_str(): service});
            Container(json!({"Config": {"Labels": labels}, "State": {"Running": runs}}))
        });
        snapshot.containers = Known::Known(containers.collect());
        snapshot
    }

    #[test]
    fn b15_what_a_failed_run_left_is_not_whole() {
        let before = of(&[("a", true), ("a", true), ("job", false)]);
        for (now, whole) in [
            (&[("a", true), ("a", true), ("job", false)][..], true),
            (
                &[("a", true), ("a", true), ("job", true), ("b", false)],
                true,
            ),
            (&[("a", true), ("a", false), ("job", false)], false),
            (&[("a", true), ("job", false)], false),
            (&[("a", true), ("a", true)], false),
            (&[], false),
        ] {
            assert_eq!(is_whole(&of(now), Some(&before)), whole, "{now:?}");
        }
    }

    #[test]
    fn b28_a_container_in_a_restart_loop_is_as_before_only_if_it_was_before() {
        let looping = |mut snapshot: Snapshot| {
            let Known::Known(containers) = &mut snapshot.containers else {
                unreachable!("`of` knows them");
            };
            containers[0]["State"]["Restarting"] = true.into();
            snapshot
        };
        let stack = || of(&[("a", true), ("b", true)]);
        assert!(!is_whole(&looping(stack()), Some(&stack())));
        assert!(is_whole(&looping(stack()), Some(&looping(stack()))));
        assert!(is_whole(&stack(), Some(&looping(stack()))));
        // Between two restarts, it runs.
        let mut runs = looping(stack());
        if let Known::Known(all) = &mut runs.containers {
            all[0]["State"]["Restarting"] = false.into();
            all[0]["RestartCount"] = 9.into();
        }
        assert!(!is_whole(&runs, Some(&stack())));
    }

    #[test]
    fn without_an_earlier_snapshot_everything_must_run() {
        assert!(is_whole(&of(&[("a", true)]), None));
        assert!(!is_whole(&of(&[("a", true), ("b", false)]), None));
        assert!(!is_whole(&of(&[]), None));
        let mut unknown = of(&[]);
        unknown.containers = Known::Unknown("no".to_owned());
        assert!(!is_whole(&unknown, None));
    }
}
