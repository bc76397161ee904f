//! SIGINT, SIGTERM and SIGHUP: the run ends at once and reports the state of the stack.

use std::{
    collections::BTreeMap,
    panic,
    sync::{Arc, Mutex},
};

use super::{
    console::Console,
    events::{show, show_interrupted},
    signals::{await_handler, on_signal},
};
use crate::{
    compose,
    parallel::lock,
    run::{Event, State},
};

/// Handles the signals of a command that changes nothing. If that is impossible, a signal ends the program at once.
pub(super) fn watch_reading(console: &Arc<Console>) {
    Interrupt::watch_with(console, |_, _| ());
}

/// Removes the spinner before the message of a panic. After a signal, the handler ends the process instead.
pub(super) fn clean_up_after_panics(console: &Arc<Console>) {
    let shown = Arc::clone(console);
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |about| {
        await_handler();
        shown.panicked();
        print(about);
    }));
}

/// The console of a run that can be interrupted.
pub(super) struct Interrupt {
    console: Arc<Console>,
    /// The stack; empty if the command works on one stack.
    stack: String,
    /// The states of the stacks that are worked on, for the thread that handles a signal.
    states: Arc<Mutex<States>>,
}

/// The states of stacks, by their names.
pub(super) type States = BTreeMap<String, State>;

impl Interrupt {
    /// Handles the signals from now on. If that is impossible, a signal ends the program without a report.
    pub(super) fn watch(console: &Arc<Console>) -> Self {
        Self::watch_with(console, |console, states| {
            let untouched = State::untouched();
            let state = states.values().next().unwrap_or(&untouched);
            show_interrupted(console, state, "the same command again");
        })
    }

    /// The same, with what is shown before the program ends.
    pub(super) fn watch_with(
        console: &Arc<Console>,
        report: impl Fn(&Console, &States) + Send + 'static,
    ) -> Self {
        let states = Arc::<Mutex<States>>::default();
        let (shown, noted) = (Arc::clone(console), Arc::clone(&states));
        let _ = on_signal(move |code| {
            // Held until the exit: each run waits before its next event, and with it before its next change.
            let states = lock(&noted);
            shown.end_line();
            shown.warning("interrupted");
            report(&shown, &states);
            compose::remove_folders();
            std::process::exit(code);
        });
        Self {
            console: Arc::clone(console),
            stack: String::new(),
            states,
        }
    }

    /// The same for one of several stacks, which this run has not changed. `note` runs before a signal can be handled again.
    pub(super) fn begin(&self, stack: &str, console: &Arc<Console>, note: impl FnOnce()) -> Self {
        let mut noted = lock(&self.states);
        noted.insert(stack.to_owned(), State::untouched());
        note();
        Self {
            console: Arc::clone(console),
            stack: stack.to_owned(),
            states: Arc::clone(&self.states),
        }
    }

    /// The run on the stack has ended. `note` runs before a signal can be handled again.
    pub(super) fn end(&self, note: impl FnOnce()) {
        let mut noted = lock(&self.states);
        noted.remove(&self.stack);
        note();
    }

    /// Shows an event, and keeps the state that it reports.
    pub(super) fn show(&self, event: &Event) {
        let mut noted = lock(&self.states);
        if let Event::State(state) = event {
            noted.insert(self.stack.clone(), (*state).clone());
        }
        show(&self.console, event);
    }
}
