//! Runs a program with a time limit, an output limit and without the settings of this program.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, ErrorKind, Read, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Output, Stdio},
    sync::{
        Mutex,
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, getpgrp, getrlimit, kill_process_group,
    set_dumpable_behavior, setrlimit, setsid,
};

use crate::{backoff::Backoff, disk, parallel::lock};

/// What the names of this program's variables start with. One of them is the API key (B13).
const OWN_PREFIXES: [&[u8]; 2] = [b"STACKMGR_", b"STACKLIFT_"];

/// The first argument of this program where it becomes that of a user.
const AS_USER: &str = "--as-user";

/// Its exit code if it cannot.
const NOT_RUN: u8 = 126;

/// How long a killed program is waited for.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// The most bytes of memory that a program and each one that it starts may use (B43): without what it reserves, as every Go
/// program does. Compose 2.40 needs 150 MiB for a file of 300 kB, and 1 GiB on a host with 256 processors.
pub const MEMORY: u64 = 1536 << 20;

/// What a program may use besides [`MEMORY`].
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The time until it must have exited.
    pub time: Duration,
    /// The most bytes of each of its output streams.
    pub output: u64,
}

/// Why a program did not exit by itself.
pub enum RunError {
    /// It could not be run.
    Failed(io::Error),
    /// It exceeded the time limit. It was killed, together with the programs that it started.
    TimedOut,
    /// Its output exceeded the limit, and it was killed.
    TooLarge,
}

/// The names of the variables that are set for this program, or that look so.
pub fn own_variables() -> impl Iterator<Item = OsString> {
    let names = env::vars_os().map(|(name, _)| name);
    names.filter(|name| {
        let mut prefixes = OWN_PREFIXES.iter();
        prefixes.any(|prefix| name.as_bytes().starts_with(prefix))
    })
}

/// The outcome of a run for a trace: `exit 1`.
pub fn outcome(output: &Result<Output, RunError>, limits: Limits) -> String {
    match output {
        Ok(output) => match output.status.code() {
            Some(code) => format!("exit {code}"),
            None => output.status.to_string(),
        },
        Err(RunError::TimedOut) => format!("timed out after {:.0?}: killed", limits.time),
        Err(RunError::TooLarge) => "too much output: killed".to_owned(),
        Err(RunError::Failed(error)) => error.to_string(),
    }
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Keeps the system from writing the memory of this process, which contains the API key, to a core dump. Programs that this
/// one starts are not affected.
pub fn forbid_core_dumps() {
    // It cannot fail with this value.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
}

/// Finds a program in the absolute directories of `path`, a value of `PATH`, as a shell does (B33).
pub fn find_in(path: Option<&OsStr>, name: &str) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    };
    absolute(path?).map(|dir| dir.join(name)).find(is_program)
}

/// The same with the `PATH` of this process.
pub fn find(name: &str) -> Result<PathBuf, RunError> {
    find_in(env::var_os("PATH").as_deref(), name)
        .ok_or_else(|| RunError::Failed(io::Error::new(ErrorKind::NotFound, "not found on PATH")))
}

/// The folder with the configuration of `docker`.
pub fn docker_config() -> Option<PathBuf> {
    let given = env::var_os("DOCKER_CONFIG").filter(|given| !given.is_empty());
    given.map(PathBuf::from).or_else(|| {
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        home.map(|home| home.join(".docker"))
    })
}

/// Whether a program is a native binary, and no script.
pub fn is_native(program: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    fs::File::open(program)?.take(4).read_to_end(&mut magic)?;
    Ok(magic == b"\x7fELF")
}

/// The directories of `PATH` that do not depend on the working directory, which may belong to another user.
fn absolute(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    env::split_paths(path).filter(|dir| dir.is_absolute())
}

/// Runs `program` without input and without the settings of this program. `prepare` sets its environment. The `PATH` of the
/// program has only absolute directories.
pub fn run(
    program: &Path,
    arguments: &[&str],
    limits: Limits,
    prepare: impl FnOnce(&mut Command),
) -> Result<Output, RunError> {
    let deadline = Instant::now() + limits.time;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A container command runs its plugins as separate processes.
        .process_group(0);
    if let Some(path) = env::var_os("PATH") {
        command.env("PATH", path);
    }
    prepare(&mut command);
    for name in own_variables() {
        command.env_remove(name);
    }
    let mut prepared = command.get_envs().filter(|(name, _)| *name == "PATH");
    let path = prepared
        .next()
        .and_then(|(_, path)| path.map(OsStr::to_owned));
    // A directory of PATH contains no colon.
    if let Some(Ok(path)) = path.map(|path| env::join_paths(absolute(&path))) {
        command.env("PATH", path);
    }
    let mut child = spawn(&mut command)?;
    let stdout = child.stdout.take().map(|pipe| drain(pipe, limits.output));
    let stderr = child.stderr.take().map(|pipe| drain(pipe, limits.output));
    let output = collect(&mut child, [stdout, stderr], limits.output, deadline);
    if output.is_err() {
        // Both fail if it has exited in the meantime.
        kill_process_group(Pid::from_child(&child), Signal::KILL).ok();
        // One that waits for a file system ends later, or never.
        let (ended, wait) = mpsc::channel();
        thread::spawn(move || ended.send(child.wait()).ok());
        wait.recv_timeout(AFTER_KILL).ok();
    }
    output
}

/// The same as a user, with all of its IDs and without the environment of this process (B44): it has what `prepare` sets, and the
/// home of the user. Without `PATH`, it finds no other program. The user need not be able to reach the program, but must be
/// allowed to run it.
///
/// It runs in a session of its own: with the terminal of this process, the user could type there as root. Only a process that
/// lets another program replace it can begin a session first, so this program starts itself for that, see [`become_user`].
pub fn run_as(
    user: u32,
    program: &Path,
    arguments: &[&str],
    limits: Limits,
    prepare: impl FnOnce(&mut Command),
) -> Result<Output, RunError> {
    let own = Path::new("/proc/self/exe");
    let output = run(own, &[AS_USER, &user.to_string()], limits, |process| {
        process.env_clear();
        process.envs(disk::home_of(user).map(|home| ("HOME", home)));
        prepare(process);
        let dir = process.get_current_dir().unwrap_or(Path::new("/"));
        let dir = dir.to_owned();
        process.arg(dir).arg(program).args(arguments);
        // The leader of a group cannot begin a session.
        let group = getpgrp().as_raw_nonzero().get();
        process
            .current_dir("/")
            .process_group(group)
            .env_remove("PATH");
    })?;
    if output.status.code() == Some(NOT_RUN.into()) {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(RunError::Failed(io::Error::other(why)));
    }
    Ok(output)
}

/// Lets the program of [`run_as`] replace this process, if its arguments are those of [`run_as`]. Returns only if it cannot.
pub fn become_user() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    arguments.next().filter(|first| first == AS_USER)?;
    let error = replaced(arguments).unwrap_or_else(|error| error);
    writeln!(io::stderr(), "{error}").ok();
    Some(NOT_RUN.into())
}

/// Why the program did not replace this process.
fn replaced(mut arguments: impl Iterator<Item = OsString>) -> io::Result<io::Error> {
    let mut next = || arguments.next().ok_or(ErrorKind::InvalidInput);
    let (user, dir, program) = (next()?, next()?, PathBuf::from(next()?));
    let user = user.to_str().and_then(|user| user.parse().ok());
    let user = user.ok_or(ErrorKind::InvalidInput)?;
    setsid()?;
    let opened = fs::File::open(&program)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    // The interpreter of a script would open this path again.
    let path = if is_native(&path)? { &path } else { &program };
    disk::take_groups_of(user)?;
    let mut process = Command::new(path);
    process.args(arguments).arg0(&program);
    Ok(process.current_dir(dir).uid(user).exec())
}

/// Starts a program with [`MEMORY`], unless this process has less. It inherits the limit: to limit a program of another user that
/// runs, root may lack a right in a container.
fn spawn(command: &mut Command) -> io::Result<Child> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _alone = lock(&STARTING);
    let own = getrlimit(Resource::Data);
    let most = own.current.map_or(MEMORY, |own| own.min(MEMORY));
    let current = Some(most);
    setrlimit(Resource::Data, Rlimit { current, ..own })?;
    let child = command.spawn();
    setrlimit(Resource::Data, own)?;
    child
}

fn collect(
    child: &mut Child,
    [stdout, stderr]: [Option<Drained>; 2],
    most: u64,
    deadline: Instant,
) -> Result<Output, RunError> {
    let left = || deadline.saturating_duration_since(Instant::now());
    let receive = |pipe: Option<Drained>| match pipe {
        None => Ok(Vec::new()),
        Some(pipe) => match pipe.recv_timeout(left()) {
            Ok(Ok(bytes)) if bytes.len() as u64 > most => Err(RunError::TooLarge),
            Ok(read) => read.map_err(RunError::from),
            Err(_) => Err(RunError::TimedOut),
        },
    };
    let (stdout, stderr) = (receive(stdout)?, receive(stderr)?);
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

/// The whole output of a pipe, or one byte more than the limit.
type Drained = Receiver<io::Result<Vec<u8>>>;

/// Reads `pipe` on a separate thread, to its end or over the limit: a full pipe would block the program.
fn drain(pipe: impl Read + Send + 'static, most: u64) -> Drained {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.take(most + 1).read_to_end(&mut bytes).map(|_| bytes);
        // Nobody receives it after the time limit.
        sender.send(read).ok();
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b43_a_program_has_a_limit_of_memory() {
        let limits = Limits {
            time: Duration::from_mins(1),
            output: 1 << 10,
        };
        let ended = run(Path::new("/bin/sh"), &["-c", "ulimit -d"], limits, |_| ());
        let printed = ended.ok().map(|output| output.stdout);
        assert_eq!(printed.as_deref(), Some(&b"1572864\n"[..]));
    }

    #[test]
    fn a_program_is_killed_with_those_that_it_runs() {
        // The outer shell prints the process ID of the inner one, which holds the pipe open.
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("id");
        let script = format!("sh -c 'echo $$ > {}; sleep 600'; :", file.display());
        let limits = Limits {
            time: Duration::from_secs(2),
            output: 1,
        };
        let run = run(Path::new("/bin/sh"), &["-c", &script], limits, |_| ());
        assert!(matches!(run, Err(RunError::TimedOut)));
        let id = std::fs::read_to_string(file).expect("an ID");
        let status = format!("/proc/{}/stat", id.trim());
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            // A zombie that nobody waits for has ended as well.
            let state = std::fs::read_to_string(&status).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") {
                break;
            }
            assert!(Instant::now() < deadline, "it runs: {state}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}
