//! SIGINT, SIGTERM and SIGHUP: the run ends at once and reports the state of the stack.

use std::sync::{Arc, Mutex, PoisonError};

use super::{console::Console, events::show_roll_back};
use crate::run::State;

/// The exit code of an interrupted run: 128 + SIGINT, as in shells.
const INTERRUPTED: i32 = 130;

/// The state of the stack, for the thread that handles a signal.
pub(super) struct Interrupt {
    state: Arc<Mutex<State>>,
}

impl Interrupt {
    /// Handles the signals from now on. If that is impossible, a signal ends the program without a report.
    pub(super) fn watch(console: &Arc<Console>) -> Self {
        let state = Arc::new(Mutex::new(State::untouched()));
        let (console, noted) = (Arc::clone(console), Arc::clone(&state));
        let _ = ctrlc::set_handler(move || {
            // Held until the exit: the run waits here before its next change.
            let state = noted.lock().unwrap_or_else(PoisonError::into_inner);
            console.done();
            console.warning("interrupted");
            console.state(&state.to_string());
            show_roll_back(&console, &state);
            std::process::exit(INTERRUPTED);
        });
        Self { state }
    }

    /// Keeps a new state of the stack.
    pub(super) fn note(&self, state: &State) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(state);
    }
}
