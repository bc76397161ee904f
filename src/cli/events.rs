//! What a run reports, on the console.

use super::{Console, style::Meaning};
use crate::run::{Declined, Effect, Event, State, Stopped};

/// Shows an event.
pub(super) fn show(console: &Console, event: &Event) {
    if !matches!(event, Event::State(_)) {
        console.done();
    }
    match event {
        Event::Step(verb, object) => console.step(verb, object),
        Event::Planned(effect, object) => {
            let meaning = match effect {
                Effect::Keeps => Meaning::Kept,
                Effect::Adds => Meaning::Added,
                Effect::Changes => Meaning::Changed,
                Effect::Removes => Meaning::Removed,
                Effect::Unknown => Meaning::Unknown,
            };
            console.step_that(meaning, "plan", object);
        }
        Event::Warning(text) => console.warning(text),
        Event::Waiting(step) => console.waiting(step),
        Event::Containers(containers) => console.containers(containers),
        Event::State(_) => {}
    }
}

/// Shows why a run stopped, the state of the stack, and how to roll back.
pub(super) fn show_stopped(console: &Console, stopped: &Stopped) {
    let state = &stopped.state;
    if !stopped.error.is::<Declined>() {
        console.error(&stopped.error, Some(&state.to_string()));
    } else if *state == State::untouched() {
        console.canceled("Canceled. Nothing was changed.");
    } else {
        console.canceled("Canceled.");
        console.state(&state.to_string());
    }
    show_roll_back(console, state);
}

/// Shows how to roll back, if that is possible.
pub(super) fn show_roll_back(console: &Console, state: &State) {
    if let Some(command) = state.roll_back() {
        console.hint(&format!("to roll back, run: {command}"));
    }
}
