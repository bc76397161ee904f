//! Runs a program with a time limit.

use std::{
    io::{self, Read},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use crate::{backoff::Backoff, engine::left_until};

/// The exit status and the output of a program.
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Why a program did not exit by itself.
pub(super) enum RunError {
    /// It could not be run.
    Failed(io::Error),
    /// It exceeded the time limit and was killed.
    TimedOut,
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Runs `program` without input. `prepare` sets its environment.
pub(super) fn run(
    program: &Path,
    arguments: &[&str],
    limit: Duration,
    prepare: impl FnOnce(&mut Command),
) -> Result<Output, RunError> {
    let deadline = Instant::now() + limit;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    prepare(&mut command);
    let mut child = command.spawn()?;
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    let output = collect(&mut child, stdout, stderr, deadline);
    if output.is_err() {
        // Both fail if it has exited in the meantime.
        child.kill().ok();
        child.wait().ok();
    }
    output
}

fn collect(
    child: &mut Child,
    stdout: Option<Receiver<io::Result<Vec<u8>>>>,
    stderr: Option<Receiver<io::Result<Vec<u8>>>>,
    deadline: Instant,
) -> Result<Output, RunError> {
    let left = || left_until(deadline);
    let receive = |pipe: Option<Receiver<io::Result<Vec<u8>>>>| match pipe {
        None => Ok(Vec::new()),
        Some(pipe) => match pipe.recv_timeout(left()) {
            Ok(read) => read.map_err(RunError::from),
            Err(_) => Err(RunError::TimedOut),
        },
    };
    let stdout = receive(stdout)?;
    let stderr = receive(stderr)?;
    // Both pipes are closed, so it exits soon.
    let mut backoff = Backoff::new(Duration::from_micros(100), Duration::from_millis(50));
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Output {
                status,
                stdout,
                stderr,
            });
        }
        if left().is_zero() {
            return Err(RunError::TimedOut);
        }
        thread::sleep(backoff.pause().min(left()));
    }
}

/// Reads `pipe` to its end on a separate thread: a full pipe would block the program.
fn drain(mut pipe: impl Read + Send + 'static) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.read_to_end(&mut bytes).map(|_| bytes);
        // Nobody receives it after the time limit.
        sender.send(read).ok();
    });
    receiver
}
