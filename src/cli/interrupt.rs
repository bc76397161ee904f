//! SIGINT, SIGTERM and SIGHUP: the run ends at once and says how far it came.

use std::sync::{Arc, Mutex, PoisonError};

use super::console::Console;

/// The exit code of an interrupted run, as shells write it for SIGINT.
const INTERRUPTED: i32 = 130;

/// Where a run stands, for the thread that an interrupt wakes.
pub(super) struct Interrupt {
    stands: Arc<Mutex<Stands>>,
}

struct Stands {
    state: String,
    way_back: Option<String>,
}

impl Interrupt {
    /// Watches from now on. That it cannot is no reason not to run: the default then ends the program.
    pub(super) fn watch(console: &Arc<Console>, stack: &str) -> Self {
        let stands = Arc::new(Mutex::new(Stands {
            state: "the stack is as it was: nothing was touched".to_owned(),
            way_back: None,
        }));
        let (console, stack, seen) = (Arc::clone(console), stack.to_owned(), Arc::clone(&stands));
        let _ = ctrlc::set_handler(move || {
            // Held to the end: the run cannot get further meanwhile without being seen.
            let stands = seen.lock().unwrap_or_else(PoisonError::into_inner);
            console.done();
            console.warning("interrupted");
            console.state(&stands.state);
            if let Some(id) = &stands.way_back {
                console.way_back(&stack, id);
            }
            std::process::exit(INTERRUPTED);
        });
        Self { stands }
    }

    /// Notes the state, and the snapshot to go back to.
    pub(super) fn note(&self, state: String, way_back: Option<&str>) {
        *self.stands.lock().unwrap_or_else(PoisonError::into_inner) = Stands {
            state,
            way_back: way_back.map(str::to_owned),
        };
    }
}
