//! The real Compose program as Portainer 2.23 runs it, on a real engine (M05–M07).

use std::{
    fs, io,
    path::PathBuf,
    process::Command,
    sync::{Mutex, PoisonError},
};

use super::world::{PortainerError, Work};

/// A Compose program that performs the creates, updates and deletes of [`Era::Sync`](super::Era::Sync) on a real engine.
///
/// The world then has Portainer's stacks, but not their containers.
#[derive(Debug, Clone)]
pub struct Compose {
    /// The program and its first arguments, such as `docker exec portainer docker-compose`.
    pub command: Vec<String>,
    /// The directory for the files of the stacks.
    pub folder: PathBuf,
    /// The path of this directory where the program runs, such as `/data/compose`.
    pub seen_as: String,
}

/// Runs a [`Compose`]. Portainer deploys one stack at a time (M21).
pub(super) struct Deployer {
    compose: Compose,
    deploying: Mutex<()>,
}

impl Deployer {
    pub fn new(compose: Compose) -> Self {
        Self {
            compose,
            deploying: Mutex::default(),
        }
    }

    /// Performs a change on the engine. A failed deployment ends in `compose down` (M06).
    pub fn perform(&self, work: &Work) -> Result<(), PortainerError> {
        let down = ["--project-name", work.name(), "down", "--remove-orphans"];
        if work.contents().is_none() {
            return self
                .run(&down)
                .map_err(|reason| PortainerError::failed_down(&reason));
        }
        let _one_at_a_time = self
            .deploying
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.up(work).map_err(|reason| {
            // Portainer reports the failure of `up`, even if `down` fails too.
            let _ = self.run(&down);
            PortainerError::failed(&reason)
        })
    }

    fn up(&self, work: &Work) -> Result<(), String> {
        self.write(work).map_err(|error| error.to_string())?;
        let folder = format!("{}/{}", self.compose.seen_as, work.id());
        let (file, env) = (
            format!("{folder}/docker-compose.yml"),
            format!("{folder}/stack.env"),
        );
        let mut arguments = vec!["-f", &file, "--project-name", work.name()];
        if work.contents().is_some_and(|(_, env)| !env.is_empty()) {
            arguments.extend(["--env-file", &env]);
        }
        arguments.extend(["up", "-d"]);
        self.run(&arguments)
    }

    /// Writes the text and the variables (M07).
    fn write(&self, work: &Work) -> io::Result<()> {
        let folder = self.compose.folder.join(work.id().to_string());
        let (text, env) = work.contents().unwrap_or_default();
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("docker-compose.yml"), text)?;
        if env.is_empty() {
            return Ok(());
        }
        let lines = env
            .iter()
            .map(|one| format!("{}={}\n", one.name, one.value));
        fs::write(folder.join("stack.env"), lines.collect::<String>())
    }

    /// Runs the program. The error is what it prints.
    fn run(&self, arguments: &[&str]) -> Result<(), String> {
        let (program, first) = self
            .compose
            .command
            .split_first()
            .ok_or("no Compose program")?;
        let output = Command::new(program)
            .args(first)
            .args(arguments)
            .output()
            .map_err(|error| format!("failed to run {program}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
