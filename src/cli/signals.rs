//! The signals that end the program: SIGINT, SIGTERM and SIGHUP.

use std::{io, sync::Mutex, thread};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::parallel::lock;

/// Locked from the arrival of a signal on.
static HANDLED: Mutex<()> = Mutex::new(());

/// Waits for the handler of a signal that has arrived: it ends the process, with the exit code of the signal.
pub(super) fn await_handler() {
    drop(lock(&HANDLED));
}

/// Calls `then` on a thread of its own when the first of them arrives, with the exit code that a shell gives: 128 and the
/// number of the signal. From now on, none ends the program by itself.
pub(super) fn on_signal(then: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _held = lock(&HANDLED);
            then(128 + signal);
        }
    });
    Ok(())
}
