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
    /// Its standard output exceeded the size limit, or its standard error [`MAX_OUTPUT`], and it was killed. The beginning
    /// of the output.
    TooLarge(Vec<u8>),
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Runs `program` without input and without the API key, up to `most` bytes of standard output. `prepare` sets its
/// environment.
pub(super) fn run(
    program: &Path,
    arguments: &[&str],
    limit: Duration,
    most: u64,
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
    let stdout = child.stdout.take().map(|pipe| drain(pipe, most));
    let stderr = child.stderr.take().map(|pipe| drain(pipe, MAX_OUTPUT));
    let output = collect(&mut child, (stdout, most), (stderr, MAX_OUTPUT), deadline);
    if output.is_err() {
        // Both fail if it has exited in the meantime.
        child.kill().ok();
        child.wait().ok();
    }
    output
}

fn collect(
    child: &mut Child,
    stdout: (Option<Drained>, u64),
    stderr: (Option<Drained>, u64),
    deadline: Instant,
) -> Result<Output, RunError> {
    let left = || left_until(deadline);
    let receive = |(pipe, most): (Option<Drained>, u64)| match pipe {
        None => Ok(Vec::new()),
        Some(pipe) => match pipe.recv_timeout(left()) {
            Ok(Ok(bytes)) if bytes.len() as u64 > most => Err(RunError::TooLarge(bytes)),
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

/// The whole output of a pipe, or one byte more than its size limit.
type Drained = Receiver<io::Result<Vec<u8>>>;

/// Reads `pipe` on a separate thread, to its end or over the limit: a full pipe would block the program.
fn drain(pipe: impl Read + Send + 'static, most: u64) -> Drained {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.take(most + 1).read_to_end(&mut bytes);
        let read = read.map(|_| bytes);
        // Nobody receives it after the time limit.
        sender.send(read).ok();
    });
    receiver
}
