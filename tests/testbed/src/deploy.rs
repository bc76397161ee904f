//! The real Compose, as Portainer runs it, on a real engine (M05–M07, N04–N07).

use std::{
    fs, io,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
    thread,
};

use rehearsal::{Apis, Era, Kind, Record, Refused, Work};

use crate::{Between, failed_down, lock};

/// A program that performs the creates, updates and deletes of the embedded Portainer.
#[derive(Debug)]
pub struct Program {
    /// The program and its first arguments, such as `docker exec portainer docker-compose`. The variable
    /// `PORTAINER_ENVIRONMENT` tells it the ID of the environment to deploy to.
    ///
    /// For [`Era::Sync`], a Compose program. For [`Era::Async`], a program that uses Compose as a library and has the
    /// commands `up PROJECT FILE [ENV_FILE]` and `down PROJECT`.
    pub command: Vec<String>,
    /// The generation of Portainer.
    pub era: Era,
    /// The directory for the files of the stacks.
    pub folder: PathBuf,
    /// The path of this directory where the program runs, such as `/data/compose`.
    pub seen_as: String,
}

impl Program {
    fn up(&self, record: &Record) -> Result<(), String> {
        self.write(record).map_err(|error| error.to_string())?;
        let folder = format!("{}/{}", self.seen_as, record.id);
        let file = format!("{folder}/{}", record.entries[0]);
        let env = format!("{folder}/stack.env");
        let has_env = record.env.as_ref().is_some_and(|env| !env.is_empty());
        let mut arguments = match self.era {
            Era::Sync => vec!["-f", &file, "--project-name", &record.name],
            Era::Library | Era::Async => vec!["up", &record.name, &file],
        };
        match self.era {
            Era::Sync if has_env => arguments.extend(["--env-file", &env, "up", "-d"]),
            Era::Sync => arguments.extend(["up", "-d"]),
            Era::Library | Era::Async if has_env => arguments.push(&env),
            Era::Library | Era::Async => {}
        }
        if record.recreates && self.era == Era::Sync {
            arguments.push("--force-recreate");
        }
        self.run(record, &arguments)
    }

    fn down(&self, record: &Record) -> Result<(), String> {
        let project = record.name.as_str();
        match self.era {
            Era::Sync => self.run(
                record,
                &["--project-name", project, "down", "--remove-orphans"],
            ),
            Era::Library | Era::Async => self.run(record, &["down", project]),
        }
    }

    /// Writes the text and the variables (M07).
    fn write(&self, record: &Record) -> io::Result<()> {
        let folder = self.folder.join(record.id.to_string());
        let env = record.env.as_deref().unwrap_or_default();
        fs::create_dir_all(&folder)?;
        let first = [(&record.entries[0], &record.text)];
        for (name, text) in record.files.iter().chain(first) {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            fs::write(path, text)?;
        }
        if env.is_empty() {
            return Ok(());
        }
        let lines = env
            .iter()
            .map(|one| format!("{}={}\n", one.name, one.value));
        fs::write(folder.join("stack.env"), lines.collect::<String>())
    }

    /// Runs the program for the environment of a stack. The error is what it prints to standard error.
    fn run(&self, record: &Record, arguments: &[&str]) -> Result<(), String> {
        let output = Command::new(&self.command[0])
            .args(&self.command[1..])
            .args(arguments)
            .env("PORTAINER_ENVIRONMENT", record.endpoint.to_string())
            .output()
            .map_err(|error| format!("failed to run {}: {error}", self.command[0]))?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Performs a change on the engine. The world has the Portainer stacks, but not their containers.
pub(crate) fn perform(
    between: &Arc<Between>,
    apis: &Arc<Apis>,
    work: Work,
) -> Result<u64, Refused> {
    if apis.world().era == Era::Async && work.kind != Kind::Delete {
        let id = work.record.id;
        apis.world().store_deploying(&work, None);
        let (between, apis) = (Arc::clone(between), Arc::clone(apis));
        // In the background (N01).
        thread::spawn(move || {
            let in_error = apis.world().records[&id].was_in_error;
            let outcome = deploy(&between, &work.record, in_error);
            apis.world().end_deployment(id, outcome);
        });
        return Ok(id);
    }
    let Some(program) = &between.program else {
        return apis.world().perform(&work);
    };
    if work.kind == Kind::Delete {
        let down = program.down(&work.record);
        down.map_err(|reason| failed_down(&reason))?;
    } else {
        let up = deploy(between, &work.record, false);
        up.map_err(|reason| {
            // Portainer reports the failure of `up`, even if `down` fails too (M06).
            let _ = program.down(&work.record);
            Refused::failed(&reason)
        })?;
    }
    apis.world().complete(&work)
}

/// Deploys one stack at a time, as Portainer does (M21). A failure undoes nothing (N06). A stack in error is removed first
/// (N07).
fn deploy(between: &Between, record: &Record, in_error: bool) -> Result<(), String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let program = between.program.as_ref().ok_or("no program")?;
    let _one_at_a_time = lock(&ONE_AT_A_TIME);
    if in_error {
        program.down(record)?;
    }
    program.up(record)
}
