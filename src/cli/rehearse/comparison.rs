//! What two ways into Portainer did to the same stack.

use rehearsal::World;

use crate::{
    cli::{Console, style::Meaning},
    stack::Stack,
};

/// What a run did to the containers that existed before it.
#[derive(Default)]
pub(super) struct Outcome {
    succeeded: bool,
    untouched: usize,
    /// Those that were stopped and started.
    restarted: usize,
    /// Those that another container replaced.
    recreated: usize,
    /// Those that nothing replaced.
    removed: usize,
}

impl Outcome {
    pub(super) fn new(before: &World, after: &World, stack: &Stack, succeeded: bool) -> Self {
        let mut outcome = Self {
            succeeded,
            ..Self::default()
        };
        for old in before.project(stack.name().as_str()) {
            let count = match after.container(&old.name) {
                None => &mut outcome.removed,
                Some(now) if now.id != old.id => &mut outcome.recreated,
                Some(now) if now.started != old.started => &mut outcome.restarted,
                Some(_) => &mut outcome.untouched,
            };
            *count += 1;
        }
        outcome
    }
}

/// Prints a table with a column for each way: what it did to the containers, and how much the stack loses.
pub(super) fn show(ways: &[(&str, Outcome, usize)], console: &Console) {
    console.heading("Both ways compared");
    let row = |name: &str, cell: &dyn Fn(&Outcome, usize) -> String| {
        let cells = ways
            .iter()
            .map(|(_, outcome, losses)| cell(outcome, *losses));
        let cells = std::iter::once(name.to_owned()).chain(cells);
        cells.map(|cell| (Meaning::Plain, cell)).collect::<Vec<_>>()
    };
    let ended = |succeeded| if succeeded { "succeeded" } else { "failed" };
    let head: Vec<&str> = ways.iter().map(|(way, ..)| *way).collect();
    let all = [
        row("kept running", &|of, _| of.untouched.to_string()),
        row("restarted", &|of, _| of.restarted.to_string()),
        row("recreated", &|of, _| of.recreated.to_string()),
        row("removed", &|of, _| of.removed.to_string()),
        row("losses", &|_, losses| losses.to_string()),
        row("result", &|of, _| ended(of.succeeded).to_owned()),
    ];
    let is_told = |row: &Vec<(Meaning, String)>| row[1..].iter().any(|(_, cell)| cell != "0");
    let rows = all.into_iter().filter(is_told).collect();
    console.table(&[&[""], head.as_slice()].concat(), rows);
}
