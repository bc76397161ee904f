//! The Compose program of a host: whether it accepts a text, and the configuration that it reads from it or from the files of a
//! stack. Config hashes follow from that configuration ([`dialect`]).
//!
//! On this host it is `<tool> compose`, otherwise `docker-compose`. It only reads, and never connects to an engine or
//! fetches a file.
//!
//! Invariants: an error hides the values of [`Mask`]. No program sees the settings of `stacklift` (B13).

mod answer;
pub mod dialect;
mod folder;
mod plugin;
mod project;
mod version;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fmt,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Mutex, OnceLock},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

pub use self::{
    answer::{Doubt, Rejection, write_omitted},
    dialect::Dialect,
    folder::{ENV_FILE, Folder, compose_file, env_file, remove_all as remove_folders},
    project::{Content, Dependency, Endpoint, Mount, Place, Project, Service},
    version::ComposeVersion,
};
use crate::{
    disk,
    failure::Failure,
    parallel::lock,
    process::{self, Limits, RunError},
    text::{Mask, excerpt},
    trace::{Exchange, Trace},
};

/// What each call of the program may use.
const LIMITS: Limits = Limits {
    time: Duration::from_mins(1),
    output: 16 << 20,
};

/// The standalone program, which is no plugin of the container tool.
const STANDALONE: &str = "docker-compose";

/// Portainer's home directory, which is unknown: a path below it is none of this host.
pub const HOME: &str = "/home/of-portainer";

/// Keep the program from fetching files of `include` and `extends`.
const OFFLINE: [&str; 2] = [
    "COMPOSE_EXPERIMENTAL_GIT_REMOTE",
    "COMPOSE_EXPERIMENTAL_OCI_REMOTE",
];

/// Makes `config` print JSON.
const JSON: [&str; 2] = ["--format", "json"];

/// Why the program did not answer about the stack in a directory: the next question would take as much (B43).
static FAILED: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// A text that every Compose program accepts.
const VALID: Input = Input::Sent {
    project: "valid",
    dir: None,
    text: "services:\n  valid:\n    image: valid\n",
    env: "",
};

/// What a Compose program answers.
pub trait Program: Send + Sync {
    /// The program and its version: `docker compose 2.26.1`.
    fn name(&self) -> String;

    /// Its version.
    fn version(&self) -> ComposeVersion;

    /// What it reads in the input, or why it rejects it. [`Values::Named`] keeps the variables. An error means that this is
    /// unknown.
    fn ask(&self, input: &Input, profiles: Profiles, values: Values, mask: &Mask)
    -> Result<Answer>;

    /// What it reads. A rejection is an error.
    fn read(&self, input: &Input, profiles: Profiles, values: Values, mask: &Mask) -> Result<Read> {
        match self.ask(input, profiles, values, mask)? {
            Answer::Read(read) => Ok(read),
            Answer::Rejected(rejection) => Err(rejection.into()),
        }
    }

    /// The same program of a host, without what it answered. `trace` receives its runs.
    fn again(&self, _trace: Trace) -> Option<Box<dyn Program>> {
        None
    }
}

/// What a Compose program answers about an [`Input`].
#[derive(Debug, Clone)]
pub enum Answer {
    Read(Read),
    Rejected(Rejection),
}

/// The configuration that a program printed.
#[derive(Debug, Clone)]
pub struct Read {
    /// As it was printed.
    pub config: Value,
    /// The version of the program.
    pub printed_by: ComposeVersion,
    /// The temporary folder of what is sent, which is gone: relative paths lead there.
    pub folder: Option<String>,
}

/// The place of a Compose program, which is looked for when it is needed first.
pub struct Installation {
    tool: String,
    trace: Trace,
    found: OnceLock<Found>,
    /// Whether it is a rehearsal, which has copies of Compose files and env files, and no data.
    pub is_rehearsed: bool,
}

/// The program, or why there is none.
type Found = Result<Box<dyn Program>, NoProgram>;

/// Why no Compose program of a host can be asked: there is none, or those that were tried failed.
#[derive(Debug, Default)]
struct NoProgram {
    /// Each program that failed for another reason than that it does not exist, and the reason.
    failures: Vec<String>,
    /// Whether `docker` has no plugin of this name.
    lacks_plugin: bool,
}

/// A Compose program of this host that prints its version.
#[derive(Debug)]
pub struct Compose {
    program: PathBuf,
    /// Its first arguments.
    first: Vec<String>,
    /// The command that a user would run: `docker compose`.
    name: String,
    version: ComposeVersion,
    /// The version as the program prints it.
    printed_version: String,
    trace: Trace,
    /// What it answered about each text: it is asked once. Files on disk may change meanwhile.
    answers: Mutex<BTreeMap<Sent, Answer>>,
}

/// The project, the text and the variables of an [`Input::Sent`].
type Sent = [String; 3];

/// What the program reads.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// The text and the variables of a Portainer stack, in a folder that contains nothing else (M07). The environment
    /// is that of a container: none of this process's variables except `PATH`. Relative paths lead into that folder,
    /// which is another one than Portainer's.
    Sent {
        project: &'a str,
        /// The stack's directory: files that the text names are read with the rights of its owner (B29).
        dir: Option<&'a Path>,
        text: &'a str,
        /// `stack.env`. Portainer writes none if it is empty.
        env: &'a str,
    },
    /// The same with several Compose files, of which each overrides those before it.
    Several {
        project: &'a str,
        dir: Option<&'a Path>,
        texts: &'a [String],
        /// The names and the texts of the env files that they name.
        env_files: &'a [(String, String)],
        env: &'a str,
    },
    /// The files in a directory of this host, with the environment of this process.
    OnDisk {
        /// `None`: the name that Compose finds by itself.
        project: Option<&'a str>,
        dir: &'a Path,
        /// The Compose files, absolute or relative to `dir`. If empty, Compose finds them by itself.
        files: &'a [String],
        /// The env files, absolute or relative to `dir`. If empty, Compose reads `.env`, if it exists.
        env_files: &'a [String],
    },
}

/// The profiles whose services a configuration contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profiles {
    All,
    /// The profiles that the variables select.
    Active,
}

/// What a configuration contains in place of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Its value. Each `$` is doubled.
    Resolved,
    /// The variable, as it is written in the files.
    Named,
}

impl NoProgram {
    /// Whether a program exists, or may exist.
    fn failed(&self) -> bool {
        !self.failures.is_empty()
    }

    fn hint(&self) -> &'static str {
        if self.failed() {
            "fix that, then run the command again"
        } else {
            "install Docker Compose (package docker-compose-plugin, or docker-compose-v2 on Ubuntu), or use the container image of stacklift, which has it"
        }
    }
}

impl fmt::Display for NoProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures = self.failures.join("; ");
        match (self.failed(), self.lacks_plugin) {
            (true, _) => write!(
                f,
                "no Compose program of this host could be run ({failures})"
            ),
            (false, true) => {
                f.write_str("this host has no Compose program (Docker has no compose plugin)")
            }
            (false, false) => f.write_str("this host has no Compose program"),
        }
    }
}

impl Input<'_> {
    fn sent(&self) -> Option<Sent> {
        match *self {
            Self::Sent {
                project, text, env, ..
            } => Some([project, text, env].map(str::to_owned)),
            Self::Several { .. } | Self::OnDisk { .. } => None,
        }
    }

    /// The name of the project; `None` if Compose finds it by itself.
    pub fn project(&self) -> Option<&str> {
        match *self {
            Self::Sent { project, .. } | Self::Several { project, .. } => Some(project),
            Self::OnDisk { project, .. } => project,
        }
    }

    fn dir(&self) -> Option<&Path> {
        match *self {
            Self::Sent { dir, .. } | Self::Several { dir, .. } => dir,
            Self::OnDisk { dir, .. } => Some(dir),
        }
    }
}

impl Installation {
    /// The host with the container command `tool`. Runs nothing.
    pub fn new(tool: &str, trace: Trace) -> Self {
        Self {
            tool: tool.to_owned(),
            trace,
            found: OnceLock::new(),
            is_rehearsed: false,
        }
    }

    /// The same, without what its program answered: files that a text names may have changed.
    pub fn again(&self, trace: Trace) -> Self {
        let again = Self::new(&self.tool, trace.clone());
        let found = self.found.get().and_then(|found| found.as_ref().ok());
        if let Some(program) = found.and_then(|program| program.again(trace)) {
            again.found.set(Ok(program)).ok();
        }
        again
    }

    /// A rehearsal with this program.
    pub fn with(program: impl Program + 'static) -> Self {
        Self {
            found: OnceLock::from(Ok(Box::new(program) as Box<dyn Program>)),
            is_rehearsed: true,
            ..Self::new("", Trace::off())
        }
    }

    /// Its Compose program. The first call looks for it: up to two programs run. The error says how to get one (B46).
    pub fn compose(&self) -> Result<&dyn Program> {
        let find = || -> Found {
            let found = Compose::find(&self.tool, &self.trace);
            found.map(|found| Box::new(found) as Box<dyn Program>)
        };
        let found = self.found.get_or_init(find).as_deref();
        found.map_err(|none| Failure::new(none.to_string()).hint(none.hint()).into())
    }
}

impl Compose {
    /// The plugin of `tool`, otherwise the standalone program, if it prints its version.
    fn find(tool: &str, trace: &Trace) -> Result<Self, NoProgram> {
        let mut none = NoProgram::default();
        for command in [&[tool, "compose"][..], &[STANDALONE]] {
            match Self::at(command, trace) {
                Ok(Some(program)) => return Ok(program),
                Ok(None) => {}
                // `docker` then takes the arguments for its own.
                Err(_) if plugin::is_missing(command) => none.lacks_plugin = true,
                Err(why) => {
                    let name = command.join(" ");
                    none.failures.push(format!("`{name}`: {why}"));
                }
            }
        }
        Err(none)
    }

    /// The program of this command, if it prints its version. The error says why it does not, unless it does not exist: a
    /// command without this plugin may print a reason, too.
    fn at(command: &[&str], trace: &Trace) -> Result<Option<Self>, String> {
        if let Some(plugin) = plugin::of(command)
            && let Ok(Some(found)) = Self::of(Ok(plugin), &[], command, trace)
        {
            return Ok(Some(found));
        }
        Self::of(process::find(command[0]), &command[1..], command, trace)
    }

    /// The program of a command, which gets `first` before its other arguments.
    fn of(
        program: Result<PathBuf, RunError>,
        first: &[&str],
        command: &[&str],
        trace: &Trace,
    ) -> Result<Option<Self>, String> {
        let arguments = [first, &["version", "--short"]].concat();
        let started = Instant::now();
        let (program, output) = match program {
            Ok(program) => {
                let output = process::run(&program, &arguments, LIMITS, |_| ());
                (program, output)
            }
            Err(error) => (PathBuf::new(), Err(error)),
        };
        let version = output.as_ref().ok().and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout);
            let printed = ComposeVersion::printed(&text).filter(|_| output.status.success());
            printed.map(|(version, text)| (version, text.to_owned()))
        });
        trace.report(Exchange {
            peer: "compose",
            request: format!("run {} version --short", command.join(" ")),
            outcome: match &version {
                Some((_, printed)) => format!("found version {printed}"),
                None => format!("no Compose program ({})", process::outcome(&output, LIMITS)),
            },
            elapsed: started.elapsed(),
        });
        let Some((version, printed_version)) = version else {
            return match &output {
                Err(RunError::Failed(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
                Ok(ended) if ended.status.code().is_some() && ended.stderr.is_empty() => Ok(None),
                Ok(ended) => {
                    let stderr = String::from_utf8_lossy(&ended.stderr);
                    let said = stderr.trim().lines().next().unwrap_or_default();
                    let outcome = process::outcome(&output, LIMITS);
                    Err(excerpt(&format!("{outcome} {said}")))
                }
                Err(_) => Err(process::outcome(&output, LIMITS)),
            };
        };
        Ok(Some(Self {
            program,
            first: first.iter().map(|word| (*word).to_owned()).collect(),
            name: command.join(" "),
            version,
            printed_version,
            trace: trace.clone(),
            answers: Mutex::default(),
        }))
    }

    /// Runs `config` with `arguments`. Returns also the temporary folder in which it ran, which is gone.
    fn run_config(
        &self,
        input: &Input,
        options: &[&str],
        arguments: &[&str],
    ) -> Result<(Output, Option<PathBuf>)> {
        let mut options = options.to_vec();
        options.extend(input.project().iter().flat_map(|project| ["-p", project]));
        if let Some(why) = input.dir().and_then(|dir| lock(&FAILED).get(dir).cloned()) {
            bail!(why);
        }
        let owner = input.dir().map(disk::user_of).transpose();
        let owner = owner.context("failed to find the owner of the stack's directory")?;
        let user = owner.flatten();
        let texts: Vec<&str> = match *input {
            Input::Sent { text, .. } => vec![text],
            Input::Several { texts, .. } => texts.iter().map(String::as_str).collect(),
            Input::OnDisk { .. } => Vec::new(),
        };
        let names: Vec<String> = (0..texts.len()).map(compose_file).collect();
        let folder = match *input {
            Input::Sent { env, .. } | Input::Several { env, .. } => {
                let failed = "failed to create a temporary directory";
                let folder = folder::Folder::new().context(failed)?;
                for (name, text) in names.iter().zip(texts) {
                    folder.write(name, text)?;
                }
                if let Input::Several { env_files, .. } = input {
                    for (name, text) in *env_files {
                        folder.write(name, text)?;
                    }
                }
                if !env.is_empty() {
                    folder.write(ENV_FILE, env)?;
                    options.extend(["--env-file", ENV_FILE]);
                }
                options.extend(names.iter().flat_map(|name| ["-f", name]));
                user.map_or(Ok(()), |user| folder.give_to(user))
                    .context(failed)?;
                Some(folder)
            }
            Input::OnDisk {
                files, env_files, ..
            } => {
                // Otherwise, the paths are relative to the directory of the first file.
                if files.first().is_some_and(|file| file.contains('/')) {
                    options.extend(["--project-directory", "."]);
                }
                options.extend(files.iter().flat_map(|file| ["-f", file]));
                options.extend(env_files.iter().flat_map(|file| ["--env-file", file]));
                None
            }
        };
        let temporary = folder.as_ref().map(folder::Folder::stack);
        let ended = self.run(user, &options, arguments, |process| {
            // Files on disk have a directory.
            let dir = temporary
                .as_deref()
                .or(input.dir())
                .unwrap_or(Path::new("/"));
            match input {
                Input::OnDisk { .. } => process.env("PWD", dir),
                _ => process.env_clear().envs(container_environment()),
            };
            process.current_dir(dir);
        });
        if let (Err(error), Some(dir)) = (&ended, input.dir()) {
            lock(&FAILED).insert(dir.to_owned(), format!("{error:#}"));
        }
        Ok((ended?, temporary))
    }

    /// Runs `config` with the rights of a user, or with all of this process (B29).
    fn run(
        &self,
        user: Option<u32>,
        options: &[&str],
        arguments: &[&str],
        prepare: impl FnOnce(&mut Command) + Send,
    ) -> Result<Output> {
        let first = self.first.iter().map(String::as_str);
        let more = [options, &["config"], arguments].concat();
        let words: Vec<&str> = first.chain(more).collect();
        let started = Instant::now();
        let prepare = |process: &mut Command| {
            prepare(process);
            process.envs(OFFLINE.map(|name| (name, "false")));
            // The program ends before it pays to collect garbage, which takes a quarter of its time by default.
            process.env("GOGC", "400");
        };
        let output = match user {
            None => process::run(&self.program, &words, LIMITS, prepare),
            Some(user) => process::run_as(user, &self.program, &words, LIMITS, prepare),
        };
        self.trace.report(Exchange {
            peer: "compose",
            request: format!("run {} {}", self.name, words[self.first.len()..].join(" ")),
            outcome: process::outcome(&output, LIMITS),
            elapsed: started.elapsed(),
        });
        let name = format!("`{} config`", self.name);
        if let Ok(output) = &output
            && answer::is_out_of_memory(output)
        {
            let most = process::MEMORY >> 20;
            bail!("{name} needs more than {most} MiB of memory: it was ended");
        }
        output.map_err(|error| match error {
            RunError::TimedOut => anyhow!("{name} did not finish within {:.0?}", LIMITS.time),
            RunError::TooLarge => {
                anyhow!("{name} printed more than {} MiB", LIMITS.output >> 20)
            }
            RunError::Failed(error) => {
                let rights = user.map_or_else(String::new, |user| format!(" as the user {user}"));
                anyhow!(error).context(format!("cannot run {name}{rights}"))
            }
        })
    }
}

impl Program for Compose {
    fn name(&self) -> String {
        format!("{} {}", self.name, self.printed_version)
    }

    fn version(&self) -> ComposeVersion {
        self.version
    }

    fn again(&self, trace: Trace) -> Option<Box<dyn Program>> {
        Some(Box::new(Self {
            program: self.program.clone(),
            first: self.first.clone(),
            name: self.name.clone(),
            version: self.version,
            printed_version: self.printed_version.clone(),
            trace,
            answers: Mutex::default(),
        }))
    }

    fn ask(
        &self,
        input: &Input,
        profiles: Profiles,
        values: Values,
        mask: &Mask,
    ) -> Result<Answer> {
        let is_kept = (profiles, values) == (Profiles::Active, Values::Resolved);
        let sent = input.sent().filter(|_| is_kept);
        let known = sent
            .as_ref()
            .and_then(|sent| lock(&self.answers).get(sent).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let mut arguments = JSON.to_vec();
        if values == Values::Named {
            arguments.push("--no-interpolate");
        }
        let options: &[&str] = match profiles {
            Profiles::All => &["--profile", "*"],
            Profiles::Active => &[],
        };
        let (output, folder) = self.run_config(input, options, &arguments)?;
        let folder = folder.and_then(|folder| Some(folder.to_str()?.to_owned()));
        let name = &self.name;
        let answer = if output.status.success() {
            let config = serde_json::from_slice(&output.stdout).with_context(|| {
                format!("`{name} config` did not print the configuration as JSON")
            })?;
            Answer::Read(Read {
                config,
                printed_by: self.version,
                folder,
            })
        } else {
            let message = answer::message(&output, folder.as_deref(), mask);
            let status = output.status;
            let Some(code) = status.code() else {
                bail!("`{name} config` failed ({status})");
            };
            // A wrapper, a plugin or a provider can fail for a reason of its own.
            let (control, _) = self.run_config(&VALID, &[], &JSON)?;
            if !control.status.success() {
                bail!("`{name} config` rejects every file ({status}): {message}");
            }
            Answer::Rejected(Rejection::new(self, code, &message))
        };
        if let Some(sent) = sent {
            lock(&self.answers).insert(sent, answer.clone());
        }
        Ok(answer)
    }
}

/// The variables that Portainer's container sets, with values that are valid there and differ from those of this host. A container
/// command finds its plugins by `DOCKER_CONFIG`.
fn container_environment() -> Vec<(&'static str, OsString)> {
    let mut variables = vec![("HOME", HOME.into()), ("HOSTNAME", "portainer".into())];
    variables.extend(env::var_os("PATH").map(|mut path| {
        path.push(":");
        path.push(HOME);
        ("PATH", path)
    }));
    let config = process::docker_config();
    variables.extend(config.map(|config| ("DOCKER_CONFIG", config.into())));
    variables
}
