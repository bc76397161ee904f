//! The real Compose, as Portainer runs it, on a real engine (M05–M07, N04–N07).

use std::{
    fs, io,
    path::PathBuf,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::world::{Era, Kind, PortainerError, Work};

/// A program that performs the creates, updates and deletes on a real engine.
///
/// The world then has Portainer's stacks, but not their containers.
#[derive(Debug, Clone)]
pub struct Compose {
    /// The program and its first arguments, such as `docker exec portainer docker-compose`. The variable
    /// `PORTAINER_ENVIRONMENT` tells it the ID of the environment to deploy to.
    ///
    /// For [`Era::Sync`](super::Era::Sync), a Compose program. For [`Era::Async`](super::Era::Async), a program that uses Compose as a library and has the
    /// commands `up PROJECT FILE [ENV_FILE]` and `down PROJECT`.
    pub command: Vec<String>,
    /// The directory for the files of the stacks.
    pub folder: PathBuf,
    /// The path of this directory where the program runs, such as `/data/compose`.
    pub seen_as: String,
}

/// Runs a [`Compose`]. Portainer deploys one stack at a time (M21).
pub(super) struct Deployer {
    compose: Compose,
    era: Era,
    deploying: Mutex<()>,
}

impl Deployer {
    pub fn new(compose: Compose, era: Era) -> Self {
        Self {
            compose,
            era,
            deploying: Mutex::default(),
        }
    }

    /// Performs a change on the engine and waits for its end. A failed deployment ends in `compose down` (M06).
    pub fn perform(&self, work: &Work) -> Result<(), PortainerError> {
        if work.kind == Kind::Delete {
            return self
                .down(work)
                .map_err(|reason| PortainerError::failed_down(&reason));
        }
        let _one_at_a_time = self.lock();
        self.up(work).map_err(|reason| {
            // Portainer reports the failure of `up`, even if `down` fails too.
            let _ = self.down(work);
            PortainerError::failed(&reason)
        })
    }

    /// Deploys in the background. A failure undoes nothing (N06). A stack in error is removed first (N07).
    pub fn deploy(&self, work: &Work, in_error: bool) -> Result<(), String> {
        let _one_at_a_time = self.lock();
        if in_error {
            self.down(work)?;
        }
        self.up(work)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.deploying
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn up(&self, work: &Work) -> Result<(), String> {
        self.write(work).map_err(|error| error.to_string())?;
        let folder = format!("{}/{}", self.compose.seen_as, work.record.id);
        let (file, env) = (
            format!("{folder}/docker-compose.yml"),
            format!("{folder}/stack.env"),
        );
        let has_env = work.record.env.as_ref().is_some_and(|env| !env.is_empty());
        let mut arguments = match self.era {
            Era::Sync => vec!["-f", &file, "--project-name", &work.record.name],
            Era::Async => vec!["up", &work.record.name, &file],
        };
        match self.era {
            Era::Sync if has_env => arguments.extend(["--env-file", &env, "up", "-d"]),
            Era::Sync => arguments.extend(["up", "-d"]),
            Era::Async if has_env => arguments.push(&env),
            Era::Async => {}
        }
        self.run(work, &arguments)
    }

    fn down(&self, work: &Work) -> Result<(), String> {
        let project = &work.record.name;
        let arguments: &[&str] = match self.era {
            Era::Sync => &["--project-name", project, "down", "--remove-orphans"],
            Era::Async => &["down", project],
        };
        self.run(work, arguments)
    }

    /// Writes the text and the variables (M07).
    fn write(&self, work: &Work) -> io::Result<()> {
        let folder = self.compose.folder.join(work.record.id.to_string());
        let env = work.record.env.as_deref().unwrap_or_default();
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("docker-compose.yml"), &work.record.text)?;
        if env.is_empty() {
            return Ok(());
        }
        let lines = env
            .iter()
            .map(|one| format!("{}={}\n", one.name, one.value));
        fs::write(folder.join("stack.env"), lines.collect::<String>())
    }

    /// Runs the program for the environment of `work`. The error is what it prints to standard error.
    fn run(&self, work: &Work, arguments: &[&str]) -> Result<(), String> {
        let (program, first) = self
            .compose
            .command
            .split_first()
            .ok_or("no Compose program")?;
        let output = Command::new(program)
            .args(first)
            .args(arguments)
            .env("PORTAINER_ENVIRONMENT", work.record.endpoint.to_string())
            .output()
            .map_err(|error| format!("failed to run {program}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
