//! Runs a program with a time limit.

use std::{
    io::{self, Read},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use crate::{
    backoff::Backoff,
    engine::{MAX_OUTPUT, left_until},
};

/// The variables that hold the API key of Portainer, or name its file (B13).
const KEY_VARIABLES: [&str; 2] = ["STACKMGR_API_KEY", "STACKMGR_API_KEY_FILE"];

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
    /// Its output exceeded [`MAX_OUTPUT`], and it was killed.
    TooLarge,
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Runs `program` without input and without the API key. `prepare` sets its environment.
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
    for name in KEY_VARIABLES {
        command.env_remove(name);
    }
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
    stdout: Option<Drained>,
    stderr: Option<Drained>,
    deadline: Instant,
) -> Result<Output, RunError> {
    let left = || left_until(deadline);
    let receive = |pipe: Option<Drained>| match pipe {
        None => Ok(Vec::new()),
        Some(pipe) => match pipe.recv_timeout(left()) {
            Ok(Ok(bytes)) if bytes.len() as u64 > MAX_OUTPUT => Err(RunError::TooLarge),
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

/// The whole output of a pipe, or more than [`MAX_OUTPUT`] of it.
type Drained = Receiver<io::Result<Vec<u8>>>;

/// Reads `pipe` on a separate thread, to its end or over the limit: a full pipe would block the program.
fn drain(pipe: impl Read + Send + 'static) -> Drained {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.take(MAX_OUTPUT + 1).read_to_end(&mut bytes);
        let read = read.map(|_| bytes);
        // Nobody receives it after the time limit.
        sender.send(read).ok();
    });
    receiver
}
