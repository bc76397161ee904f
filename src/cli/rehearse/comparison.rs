//! What two ways into Portainer did to the same stack.

use rehearsal::{Action, Container, World};

use crate::{
    cli::{Console, style::Meaning},
    stack::Stack,
};

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

/// Prints a table with a column for each way: what it did, and how many losses its plan lists.
pub(super) fn show(ways: &[(&str, Outcome, usize)], console: &Console) {
    let row = |name: &str, cell: &dyn Fn(&Outcome, usize) -> String| {
        let cells = ways
            .iter()
            .map(|(_, outcome, losses)| cell(outcome, *losses));
        let cells = std::iter::once(name.to_owned()).chain(cells);
        cells.map(|cell| (Meaning::Plain, cell)).collect()
    };
    let away = |away: Option<i64>| {
        away.map_or_else(
            || "does not run".to_owned(),
            |millis| format!("{}.{:02} s", millis / 1000, millis % 1000 / 10),
        )
    };
    let ended = |succeeded| if succeeded { "succeeded" } else { "failed" };
    let head: Vec<&str> = ways.iter().map(|(way, ..)| *way).collect();
    let rows = vec![
        row("not touched", &|of, _| of.untouched.to_string()),
        row("restarted", &|of, _| of.restarted.to_string()),
        row("recreated", &|of, _| of.recreated.to_string()),
        row("removed", &|of, _| of.removed.to_string()),
        row("longest time away", &|of, _| away(of.away)),
        row("losses", &|_, losses| losses.to_string()),
        row("result", &|of, _| ended(of.succeeded).to_owned()),
    ];
    console.table(&[&[""], head.as_slice()].concat(), rows);
    console.text(
        Meaning::Plain,
        "The embedded engine stops and starts a container at once. A real one takes longer.",
    );
}
