//! Runs a program to its end, or to a time limit.

use std::{
    io::{self, Read},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

/// What a program left behind.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Why a program did not end by itself.
pub(super) enum Stopped {
    /// It could not be run.
    Failed(io::Error),
    /// It took longer than the limit and was ended.
    Late,
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Runs `program` without input; `prepare` sets its environment.
pub(super) fn run(
    program: &Path,
    arguments: &[&str],
    limit: Duration,
    prepare: impl FnOnce(&mut Command),
) -> Result<Ended, Stopped> {
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
    let ended = collect(&mut child, stdout, stderr, deadline);
    if ended.is_err() {
        // It may have ended in the meantime, which is as good.
        child.kill().ok();
        child.wait().ok();
    }
    ended
}

fn collect(
    child: &mut Child,
    stdout: Option<Receiver<io::Result<Vec<u8>>>>,
    stderr: Option<Receiver<io::Result<Vec<u8>>>>,
    deadline: Instant,
) -> Result<Ended, Stopped> {
    let left = || deadline.saturating_duration_since(Instant::now());
    let receive = |pipe: Option<Receiver<io::Result<Vec<u8>>>>| match pipe {
        None => Ok(Vec::new()),
        Some(pipe) => match pipe.recv_timeout(left()) {
            Ok(read) => read.map_err(Stopped::from),
            Err(_) => Err(Stopped::Late),
        },
    };
    let stdout = receive(stdout)?;
    let stderr = receive(stderr)?;
    // With both pipes closed its end is near.
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended {
                status,
                stdout,
                stderr,
            });
        }
        if left().is_zero() {
            return Err(Stopped::Late);
        }
        thread::sleep(pause.min(left()));
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Reads `pipe` to its end on a thread of its own: a full pipe would stop the program.
fn drain(mut pipe: impl Read + Send + 'static) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.read_to_end(&mut bytes).map(|_| bytes);
        // Nobody waits any more after the time limit.
        sender.send(read).ok();
    });
    receiver
}
