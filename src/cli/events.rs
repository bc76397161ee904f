//! What a run reports, on the console.

use super::{Console, style::Meaning};
use crate::{
    plan::{Fate, ServicePlan},
    run::{Declined, Event, State, Stopped},
};

/// Shows an event.
pub(super) fn show(console: &Console, event: &Event) {
    let is_shown = match event {
        Event::State(_) => false,
        Event::Detail(..) => console.is_verbose(),
        _ => true,
    };
    if is_shown {
        console.done();
    }
    match event {
        Event::Step(verb, object) => console.step(verb, object),
        Event::Detail(verb, object) if is_shown => console.step(verb, object),
        Event::Services(services) => show_services(services, console),
        Event::Line(line) => console.told(line),
        Event::Done(verb, object) => console.outcome(verb, object),
        Event::Warning(text) => console.warning(text),
        Event::Waiting(step) => console.waiting(step),
        Event::Containers(containers) => console.containers(containers),
        Event::Detail(..) | Event::State(_) => {}
    }
}

/// Shows what happens to each service, those with the same fate together.
fn show_services(services: &[ServicePlan], console: &Console) {
    let mut rows: Vec<(Vec<&str>, &ServicePlan)> = Vec::new();
    for service in services {
        match rows
            .iter_mut()
            .find(|(_, first)| first.fate == service.fate)
        {
            Some((names, _)) => names.push(&service.service),
            None => rows.push((vec![&service.service], service)),
        }
    }
    let names: Vec<String> = rows.iter().map(|(names, _)| names.join(", ")).collect();
    let widest = names.iter().map(|names| super::columns::width(names)).max();
    let widest = widest.unwrap_or_default().min(20);
    for ((services, first), names) in rows.iter().zip(&names) {
        let one = services.len() == 1;
        let (meaning, symbol, what) = match &first.fate {
            Fate::Unchanged if one => (Meaning::Kept, '=', "keeps running"),
            Fate::Unchanged => (Meaning::Kept, '=', "keep running"),
            Fate::Recreated(_) => (Meaning::Changed, '~', "recreated"),
            Fate::Restarted(_) => (Meaning::Changed, '~', "restarted"),
            Fate::Started(_) => (Meaning::Added, '+', "started"),
            Fate::Removed(_) => (Meaning::Removed, '-', "removed"),
            Fate::LeftBehind(_) => (Meaning::Plain, '>', "left as it is"),
            Fate::Unknown(_) => (Meaning::Unknown, '?', "unknown"),
        };
        let reason = first.fate.reason();
        let reason = reason.map(|reason| format!(": {reason}"));
        let start = format!("  {symbol}  {}  ", super::columns::pad(names, widest));
        console.row(
            &(meaning, start),
            &(what.to_owned() + &reason.unwrap_or_default()),
        );
    }
}

/// Shows why a run stopped, the state of the stack, and how to roll back.
pub(super) fn show_stopped(console: &Console, stopped: &Stopped) {
    let state = &stopped.state;
    if !stopped.error.is::<Declined>() {
        console.error(&stopped.error, Some(state));
    } else if *state == State::untouched() {
        console.canceled("Canceled. Nothing was changed.");
    } else {
        console.canceled("Canceled.");
        console.state(state);
    }
    show_roll_back(console, state);
}

/// Shows how to roll back, if that is possible.
pub(super) fn show_roll_back(console: &Console, state: &State) {
    if let Some(command) = state.roll_back() {
        console.advice(&format!("to roll back, run: {command}"), Some(state));
    }
}
