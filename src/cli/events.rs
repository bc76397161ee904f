//! What a run reports, on the console.

use std::iter;

use super::{Console, table::plan_rows};
use crate::{
    failure::Failure,
    run::{Declined, Event, State, Stopped},
};

/// Shows an event.
pub(super) fn show(console: &Console, event: &Event) {
    match event {
        Event::State(_) | Event::Watching => return,
        Event::Detail(..) if !console.verbose => return,
        _ => console.done(),
    }
    match event {
        Event::Step(verb, object) | Event::Detail(verb, object) => console.step(verb, object),
        Event::Note(text) => {
            let verbs = iter::once("note").chain(iter::repeat(""));
            for (verb, line) in verbs.zip(text.lines()) {
                console.step(verb, line);
            }
        }
        Event::Services(services) => {
            for (start, text) in plan_rows(services) {
                console.row(&start, &text);
            }
        }
        Event::Line(line) => console.told(line),
        Event::Done(verb, object) => console.outcome(verb, object),
        Event::Warning(text) => console.warning(text),
        Event::Waiting(step) => console.waiting(step),
        Event::Containers(containers) => console.containers(containers),
        Event::State(_) | Event::Watching => {}
    }
}

/// Shows why a run stopped, the state of the stack, and how to roll back.
pub(super) fn show_stopped(console: &Console, stopped: &Stopped) {
    let state = &stopped.state;
    console.done();
    if !stopped.error.is::<Declined>() {
        let is_told = *state != State::untouched() || !Failure::is_mistyped(&stopped.error);
        console.error(&stopped.error, is_told.then_some(state));
    } else if *state == State::untouched() {
        console.details("Canceled. Nothing was changed.");
    } else {
        console.details("Canceled.");
        console.state(state);
    }
    if let Some(command) = state.roll_back() {
        console.hint(&format!("to roll back, run `{command}`"));
    }
}

/// Shows the state of a stack whose run is interrupted. If that can be rolled back, shows how, and what to run `again` to continue.
pub(super) fn show_interrupted(console: &Console, state: &State, again: &str) {
    console.state(state);
    if let Some(command) = state.roll_back_here() {
        console.hint(&format!("to continue, run {again}"));
        console.hint(&format!("to roll back, run `{command}`"));
    }
}
