//! SIGINT, SIGTERM and SIGHUP: the run ends at once and reports the state of the stack.

use std::{
    panic,
    sync::{Arc, Mutex},
};

use super::{
    console::Console,
    events::{show, show_roll_back},
    signals::{await_handler, on_signal},
};
use crate::{
    compose,
    parallel::lock,
    run::{Event, State},
};

/// Handles the signals of a command that only reads. If that is impossible, a signal ends the program at once.
pub(super) fn watch_reading(console: &Arc<Console>) {
    Interrupt::watch_with(console, |_, _| ());
}

/// Removes the spinner before the message of a panic. After a signal, the handler ends the process instead: while it starts another
/// program in place of this one, no thread can be started.
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
    /// The state of the stack, for the thread that handles a signal.
    state: Arc<Mutex<State>>,
}

impl Interrupt {
    /// Handles the signals from now on. If that is impossible, a signal ends the program without a report.
    pub(super) fn watch(console: &Arc<Console>) -> Self {
        Self::watch_with(console, |console, state| {
            console.state(state);
            if state.roll_back_here().is_some() {
                console.hint("to continue, run the same command again");
            }
            show_roll_back(console, state.roll_back_here());
        })
    }

    /// The same, with what is shown before the program ends.
    pub(super) fn watch_with(
        console: &Arc<Console>,
        report: impl Fn(&Console, &State) + Send + 'static,
    ) -> Self {
        let state = Arc::new(Mutex::new(State::untouched()));
        let (shown, noted) = (Arc::clone(console), Arc::clone(&state));
        let _ = on_signal(move |code| {
            // Held until the exit: the run waits before its next event, and with it before its next change.
            let state = lock(&noted);
            shown.end_line();
            shown.warning("interrupted");
            report(&shown, &state);
            compose::remove_folders();
            std::process::exit(code);
        });
        Self {
            console: Arc::clone(console),
            state,
        }
    }

    /// Begins with another stack, which this run has not changed. `note` runs before a signal can be handled again.
    pub(super) fn begin(&self, note: impl FnOnce()) {
        let mut noted = lock(&self.state);
        *noted = State::untouched();
        note();
    }

    /// Shows an event, and keeps the state that it reports.
    pub(super) fn show(&self, event: &Event) {
        let mut noted = lock(&self.state);
        if let Event::State(state) = event {
            noted.clone_from(state);
        }
        show(&self.console, event);
    }
}
