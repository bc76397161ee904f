//! The table of `adopt --all` before the run, and the one after it.

use crate::{
    cli::{
        Console,
        list::text::{readiness, some},
        style::Meaning,
        table::Part,
    },
    plan::Fate,
    report::{AllEntry, AllReport, Loss, Readiness, StackResult},
    text::{bulleted, counted},
};

/// Shows what would be done with each stack, and what each would lose.
pub(super) fn show_plan(report: &AllReport, console: &Console) {
    let rows = report.stacks.iter().map(|stack| row(stack, planned(stack)));
    console.table(&["STACK", "ADOPT"], rows.collect());
    for stack in report.to_adopt() {
        let losses = &stack.adopt.losses;
        if !losses.is_empty() {
            let verb = if report.dry_run { "would" } else { "will" };
            let losses = bulleted(losses.iter().map(Loss::to_string));
            console.warning(&format!("{} {verb} lose:\n{losses}", stack.name));
        }
    }
}

/// Shows what became of each stack.
pub(super) fn show_end(report: &AllReport, console: &Console) {
    console.heading("Report");
    let rows = report.stacks.iter().map(|stack| row(stack, ended(stack)));
    console.table(&["STACK", "RESULT"], rows.collect());
}

fn row(stack: &AllEntry, cell: Part) -> Vec<Part> {
    vec![(Meaning::Name, stack.name.clone()), cell]
}

/// What would happen to a stack.
fn planned(stack: &AllEntry) -> Part {
    let way = &stack.adopt;
    match stack.result {
        StackResult::Planned => {}
        StackResult::NothingToDo => return (Meaning::Plain, "nothing to do".to_owned()),
        StackResult::Refused => return (Meaning::Failed, way.told("refused")),
        _ => return readiness(way),
    }
    let (meaning, first) = match way.readiness {
        Readiness::NothingToDo => (Meaning::Kept, "waits for an earlier request".to_owned()),
        Readiness::Blocked => (Meaning::Changed, "ready".to_owned()),
        _ => readiness(way),
    };
    let unknown = way.services_with(|fate| matches!(fate, Fate::Unknown(_)));
    let parts = [
        (!unknown.is_empty()).then(|| format!("may recreate {}", some(&unknown))),
        (!stack.pulls.is_empty()).then(|| format!("pulls {}", counted(stack.pulls.len(), "image"))),
        (!way.losses.is_empty()).then(|| counted(way.losses.len(), "loss")),
    ];
    let parts: Vec<String> = [Some(first)].into_iter().chain(parts).flatten().collect();
    (meaning, parts.join("; "))
}

/// What became of a stack, with the reason if it was not adopted.
fn ended(stack: &AllEntry) -> Part {
    let with = |word: &str, why: Option<&String>| {
        let why = why.and_then(|why| why.lines().next());
        (
            Meaning::Failed,
            why.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}")),
        )
    };
    match stack.result {
        StackResult::Planned => {
            let text = "not adopted: the run ended before this stack";
            (Meaning::Plain, text.to_owned())
        }
        StackResult::Adopted => (Meaning::Kept, "adopted".to_owned()),
        StackResult::Failed => with("failed", stack.error.as_ref()),
        StackResult::Interrupted => with("interrupted", stack.state.as_ref()),
        _ => planned(stack),
    }
}
