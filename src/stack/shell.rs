//! What Compose reads besides the Compose file and `.env`: the shell, the home directory and override files.

use std::env;

use composefile::reader::{Context, EnvFiles, NAME_FILES, OVERRIDE_FILES};

use super::Stack;
use crate::disk;

/// Looks up a variable of the shell.
type Lookup = dyn Fn(&str) -> Option<String>;

/// The shell and the home that a stack is started with, and the env files that its text names.
pub struct Shell {
    dir: String,
    file: String,
    env_file: &'static str,
    home: Option<String>,
    project: Option<String>,
    variables: Box<Lookup>,
    /// The override files that Compose finds by itself. It does not read them if its files are named.
    pub overrides: Vec<String>,
    env_files: EnvFiles,
    /// The first env file that exists and cannot be read.
    pub unreadable: Option<anyhow::Error>,
}

impl Shell {
    /// The shell and home of this process, as if it started the stack in the stack's directory.
    ///
    /// `project` is the name of the project, if it is passed to Compose. `needed` names the env files to read: those that a
    /// rewrite needs in this context.
    pub fn of(
        stack: &Stack,
        project: Option<&str>,
        needed: impl FnOnce(&Context) -> Vec<String>,
    ) -> Self {
        let is_found = stack.is_found();
        let overrides = OVERRIDE_FILES
            .into_iter()
            .filter(|name| is_found && disk::exists(&stack.dir().join(name)))
            .map(str::to_owned);
        let dir = stack.dir_text().to_owned();
        let user = user_of(stack);
        let mut shell = Self {
            file: stack.file().to_owned(),
            env_file: ".env",
            home: variable(&dir, user, "HOME").filter(|home| !home.is_empty()),
            overrides: overrides.collect(),
            project: project.map(str::to_owned),
            dir: dir.clone(),
            variables: Box::new(move |name| variable(&dir, user, name)),
            env_files: EnvFiles::new(),
            unreadable: None,
        };
        for file in needed(&shell.context()) {
            match stack.read_env(&file) {
                Ok(text) => {
                    shell.env_files.insert(file, text);
                }
                Err(error) => shell.unreadable = shell.unreadable.or(Some(error)),
            }
        }
        shell
    }

    /// The shell for a text that contains everything that Compose read from several files. There are no other files, and
    /// `env_file` contains the variables.
    pub fn of_combined(stack: &Stack, env_file: &'static str) -> Self {
        let mut shell = Self::of(stack, Some(stack.name().as_str()), |_| Vec::new());
        (shell.env_file, shell.overrides) = (env_file, Vec::new());
        let variables = shell.variables;
        shell.variables = Box::new(move |name| {
            let names_files = NAME_FILES.contains(&name);
            (!names_files).then(|| variables(name)).flatten()
        });
        shell
    }

    /// The context in which Compose reads the stack's text.
    pub fn context(&self) -> Context<'_> {
        Context {
            stack_dir: &self.dir,
            file: &self.file,
            env_file: self.env_file,
            home: self.home.as_deref(),
            shell: &*self.variables,
            project: self.project.as_deref(),
            overrides: &self.overrides,
            env_files: &self.env_files,
        }
    }
}

/// The user with whose rights Compose reads the stack, if it is not this one.
pub(super) fn user_of(stack: &Stack) -> Option<u32> {
    disk::user_of(stack.dir()).ok().flatten()
}

/// A variable of this process's environment, with `PWD` set to the stack's directory. For another user, Compose has only the
/// home of that user (B44).
pub(super) fn variable(dir: &str, user: Option<u32>, name: &str) -> Option<String> {
    match (name, user) {
        ("PWD", _) => Some(dir.to_owned()),
        ("HOME", Some(user)) => disk::home_of(user),
        (_, Some(_)) => None,
        // Settings of this program, the API key among them, must not reach the text (C56).
        _ if name.starts_with("STACKMGR_") || name.starts_with("STACKLIFT_") => None,
        _ => env::var(name).ok(),
    }
}
