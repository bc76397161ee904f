//! What two ways into Portainer did to the same stack.

use rehearsal::{Action, Container, World};

use crate::{cli::Console, stack::Stack};

/// What a run did to the containers that existed before it.
pub(super) struct Outcome {
    succeeded: bool,
    untouched: usize,
    /// Those that were stopped and started.
    restarted: usize,
    /// Those that another container replaced.
    recreated: usize,
    /// Those that nothing replaced.
    removed: usize,
    /// The longest time that one did not run, in milliseconds; `None` if one that ran does not run now.
    away: Option<i64>,
}

impl Outcome {
    pub(super) fn new(before: &World, after: &World, stack: &Stack, succeeded: bool) -> Self {
        let mut outcome = Self {
            succeeded,
            untouched: 0,
            restarted: 0,
            recreated: 0,
            removed: 0,
            away: Some(0),
        };
        for old in before.project(stack.name().as_str()) {
            let now = after.container(&old.name);
            let count = match now {
                None => &mut outcome.removed,
                Some(now) if now.id != old.id => &mut outcome.recreated,
                Some(now) if now.started != old.started => &mut outcome.restarted,
                Some(_) => &mut outcome.untouched,
            };
            *count += 1;
            if old.is_running() {
                let away = now
                    .filter(|now| now.is_running())
                    .map(|now| away(before, after, now));
                outcome.away = outcome.away.zip(away).map(|(one, other)| one.max(other));
            }
        }
        outcome
    }
}

/// How long the container of this name did not run since `before`.
fn away(before: &World, after: &World, container: &Container) -> i64 {
    let events = after.events.iter().skip(before.events.len());
    let (mut ended, mut away) = (None, 0);
    for event in events.filter(|event| event.name == container.name) {
        match event.action {
            Action::Die => ended = ended.or(Some(event.at)),
            Action::Start => away += ended.take().map_or(0, |ended| event.at - ended),
            Action::Create | Action::Destroy => {}
        }
    }
    away
}

/// Prints a table: the ways, what they did, and how many losses their plans list.
pub(super) fn show(ways: &[(&str, Outcome, usize)], console: &Console) {
    let head = [
        "",
        "not touched",
        "restarted",
        "recreated",
        "removed",
        "longest time away",
        "losses",
        "result",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (way, outcome, losses) in ways {
        let away = outcome.away.map_or_else(
            || "does not run".to_owned(),
            |millis| format!("{}.{:02} s", millis / 1000, millis % 1000 / 10),
        );
        let result = if outcome.succeeded {
            "succeeded"
        } else {
            "failed"
        };
        rows.push(vec![
            (*way).to_owned(),
            outcome.untouched.to_string(),
            outcome.restarted.to_string(),
            outcome.recreated.to_string(),
            outcome.removed.to_string(),
            away,
            losses.to_string(),
            result.to_owned(),
        ]);
    }
    console.table(rows);
    console
        .line("The embedded engine stops and starts a container at once. A real one takes longer.");
}
