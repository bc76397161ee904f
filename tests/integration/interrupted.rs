//! A run that is killed.

use std::{
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use testbed::{Call, FaultKind};

use crate::bench::Bench;

/// Starts a run that waits for the answer to this call, does `meanwhile`, and kills it.
pub fn killed_at(call: Call, bench: &Bench, args: &str, fault: FaultKind, meanwhile: impl Fn()) {
    killed_running(bench.command(args), call, bench, fault, meanwhile);
}

/// The same of a command.
pub fn killed_running(
    mut command: Command,
    call: Call,
    bench: &Bench,
    fault: FaultKind,
    meanwhile: impl Fn(),
) {
    bench.once(call, fault);
    // It must wait for all of `meanwhile`, however slow this machine is.
    command.env("STACKLIFT_TIMEOUT", "10m");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    bench.wait_for(call, &mut child);
    thread::sleep(Duration::from_millis(50));
    meanwhile();
    child.kill().expect("killed");
    child.wait().expect("ended");
}
