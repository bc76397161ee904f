//! The signals that end the program: SIGINT, SIGTERM and SIGHUP.

use std::{io, thread};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

/// Calls `then` on a thread of its own when the first of them arrives, with the exit code that a shell gives: 128 and the
/// number of the signal. From now on, none ends the program by itself.
pub(super) fn on_signal(then: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            then(128 + signal);
        }
    });
    Ok(())
}
