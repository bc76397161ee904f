//! The real Compose, as Portainer runs it, on a real engine (M05–M07, N04–N07).

use std::{fs, io, path::PathBuf, process::Command};

use rehearsal::{Deploy, Era, Record};

/// A program that performs the creates, updates and deletes of the embedded Portainer.
#[derive(Debug)]
pub struct Program {
    /// The program and its first arguments, such as `docker exec portainer docker-compose`. The variable
    /// `PORTAINER_ENVIRONMENT` tells it the ID of the environment to deploy to.
    ///
    /// For [`Era::Sync`], a Compose program. For [`Era::Async`], a program that uses Compose as a library and has the
    /// commands `up PROJECT FILE [ENV_FILE]` and `down PROJECT`.
    pub command: Vec<String>,
    pub era: Era,
    /// The directory for the files of the stacks.
    pub folder: PathBuf,
    /// The path of this directory where the program runs, such as `/data/compose`.
    pub seen_as: String,
}

impl Deploy for Program {
    fn up(&self, record: &Record) -> Result<(), String> {
        self.write(record).map_err(|error| error.to_string())?;
        let folder = format!("{}/{}", self.seen_as, record.id);
        let entry = record.clone.as_ref().map(|clone| clone.git.entry.as_str());
        let file = format!("{folder}/{}", entry.unwrap_or("docker-compose.yml"));
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
        let recreates = record.clone.as_ref().is_some_and(|clone| clone.recreates);
        if recreates && self.era == Era::Sync {
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
}

impl Program {
    /// Writes the text and the variables (M07).
    fn write(&self, record: &Record) -> io::Result<()> {
        let folder = self.folder.join(record.id.to_string());
        let env = record.env.as_deref().unwrap_or_default();
        fs::create_dir_all(&folder)?;
        match &record.clone {
            None => fs::write(folder.join("docker-compose.yml"), &record.text)?,
            Some(clone) => {
                for (name, text) in &clone.files {
                    let path = folder.join(name);
                    fs::create_dir_all(path.parent().unwrap_or(&folder))?;
                    fs::write(path, text)?;
                }
            }
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
