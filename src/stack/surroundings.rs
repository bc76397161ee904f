//! What compose reads a stack by besides its text: the shell, a home, files beside it.

use std::env;

use super::{Source, Stack};
use crate::rewrite::faithful::{Context, DEFAULT_FILES, EnvFiles, env_files_needed};

const OVERRIDES: [&str; 4] = [
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
];

/// What a variable is set to.
type Lookup = dyn Fn(&str) -> Option<String>;

/// All of it, as it is now.
pub struct Surroundings {
    dir: String,
    file: String,
    home: Option<String>,
    shell: Box<Lookup>,
    overrides: Vec<String>,
    env_files: EnvFiles,
    /// The first env file that is there and cannot be read.
    pub unreadable: Option<anyhow::Error>,
}

impl Surroundings {
    /// Looks around the stack in its directory, and reads the env files that its text names.
    pub fn of(stack: &Stack, source: &Source) -> Self {
        let is_found = DEFAULT_FILES.contains(&stack.file());
        let overrides = OVERRIDES
            .into_iter()
            .filter(|name| is_found && stack.dir().join(name).is_file())
            .map(str::to_owned);
        let dir = stack.dir_text().to_owned();
        let mut found = Self {
            file: stack.file().to_owned(),
            home: env::var("HOME").ok().filter(|home| !home.is_empty()),
            overrides: overrides.collect(),
            shell: Box::new({
                let dir = dir.clone();
                move |name| variable(&dir, name)
            }),
            dir,
            env_files: EnvFiles::new(),
            unreadable: None,
        };
        for file in env_files_needed(&source.compose, source.env.as_deref(), &found.context()) {
            match stack.read_env(&file) {
                Ok(text) => {
                    found.env_files.insert(file, text);
                }
                Err(error) => found.unreadable = found.unreadable.or(Some(error)),
            }
        }
        found
    }

    /// As `compose` wants it.
    pub fn context(&self) -> Context<'_> {
        Context {
            stack_dir: &self.dir,
            file: &self.file,
            env_file: ".env",
            home: self.home.as_deref(),
            shell: &*self.shell,
            overrides: &self.overrides,
            env_files: &self.env_files,
        }
    }
}

/// A variable of the shell that starts the stack: this one, in the stack's directory.
fn variable(dir: &str, name: &str) -> Option<String> {
    match name {
        "PWD" => Some(dir.to_owned()),
        // The key is written nowhere (C56).
        _ if name.starts_with("STACKMGR_") || name.starts_with("STACKLIFT_") => None,
        _ => env::var(name).ok(),
    }
}
