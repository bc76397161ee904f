//! What a stack loses by the literal rewrite, as far as its text tells (B01).
//!
//! By owner and name or path as written, never by value. What the containers and the record lose is found
//! by others and stands beside a [`TextLoss`]; whether the text itself is damaged is [`super::damage`]'s.
#![deny(clippy::disallowed_methods)]

mod both;
mod finder;

use std::fmt;

use serde::Serialize;

use super::faithful::OF_THE_MANAGER;
use crate::rewrite::env::{contract_env, stack_env};
use both::Both;
pub use composefile::reader::{Context, EnvFiles};
use composefile::{document::Document, dotenv, reader::Reader};
use finder::Finder;

/// Something that holds before the rewrite and not after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextLoss {
    /// Who loses it.
    pub owner: Owner,
    /// The line of the compose file that says it, counted from 1; of `.env` where that loses it.
    pub line: usize,
    /// What is lost.
    #[serde(flatten)]
    pub kind: TextLossKind,
}

/// The part of a compose file that something belongs to, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// Below `services`.
    Service(String),
    /// Below the top-level `volumes`.
    Volume(String),
    /// Below the top-level `secrets`.
    Secret(String),
    /// Below the top-level `configs`.
    Config(String),
    /// The file as a whole.
    File,
    /// `.env`.
    Env,
}

/// What the literal rewrite can take from a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TextLossKind {
    /// A variable that came in through a removed `env_file` (M09).
    Variable {
        /// Its name.
        name: String,
        /// The file it came from, as written.
        file: String,
    },
    /// A text with variables that are not to the manager what they are here: the shell's, or those that
    /// `stack.env` does not give as `.env` does.
    Value {
        /// Where it stands: `services.web.labels.owner`.
        place: String,
        /// The variables.
        variables: Vec<String>,
    },
    /// `.env` as the contract sends it, which the manager's compose cannot read: nothing is deployed.
    UnreadableEnv {
        /// What is wrong.
        problem: String,
    },
    /// The project's name, and with it the names of its volumes and networks (M15).
    Project {
        /// The name here.
        here: String,
        /// The manager's.
        there: String,
    },
    /// The service runs here because of a profile that only the shell names (M14).
    Profiles,
    /// A file that compose reads with this one, and that is not sent.
    Beside {
        /// Its name.
        file: String,
    },
    /// A removed `env_file` that cannot be read here, so that nobody knows what it brought in.
    UnknownVariables {
        /// The file, as written.
        file: String,
    },
    /// A path of this host that the manager looks for elsewhere (M12).
    Path {
        /// As written.
        path: String,
        /// As the manager reads it; the same where nothing is replaced in it.
        becomes: String,
    },
    /// A file or folder of this host that the manager must be able to read, and may not (M11).
    Unreadable {
        /// As written.
        path: String,
        /// What names it.
        named_by: FileUse,
    },
    /// A text that is no path of this host, but has its `./` replaced all the same (C32).
    Replaced {
        /// Where it stands: `services.web.command[0]`.
        place: String,
    },
}

/// What a compose file can name a file for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileUse {
    /// `include`
    Include,
    /// `extends.file`
    Extends,
    /// `build`
    Build,
    /// `label_file`
    LabelFile,
    /// An `env_file` that the rewrite leaves in the text.
    EnvFile,
}

/// What stands for what is not known of the manager; nothing here reads like it.
const UNKNOWN: &str = "\0";

/// What a stack loses if its text is rewritten as the contract says (C30–C32) and sent with what the contract
/// reads from `env`, the text of its `.env`: services first, in their order, then the rest of the file.
/// `project` is what the manager calls the stack.
///
/// The text is read twice: as compose does here, and as the manager's compose does with the result, in a folder
/// of its own, with `stack.env`, and with a home and a shell of its own.
pub fn losses(
    document: &Document<'_>,
    env: Option<&str>,
    context: &Context<'_>,
    project: &str,
) -> Vec<TextLoss> {
    let env_text = env.unwrap_or_default();
    let variables = dotenv::parse(env_text, context.shell).unwrap_or_default();
    let shell = |name: &str| match name {
        "COMPOSE_PROJECT_NAME" => Some(project.to_owned()),
        _ => OF_THE_MANAGER.contains(&name).then(|| UNKNOWN.to_owned()),
    };
    let nothing = EnvFiles::new();
    let manager = Context {
        stack_dir: "/\0/stack",
        file: "docker-compose.yml",
        env_file: "stack.env",
        home: Some("/\0/home"),
        shell: &shell,
        overrides: &[],
        env_files: &nothing,
    };
    let stack_env = stack_env(&contract_env(env_text).variables);
    let read = dotenv::parse(&stack_env, &shell);
    let unreadable = read.as_ref().err().map(|error| TextLoss {
        owner: Owner::Env,
        line: line_of_entry(env_text, error.line),
        kind: TextLossKind::UnreadableEnv {
            problem: error.problem.to_string(),
        },
    });
    // Where nothing is deployed, it does not matter what it would have been.
    let sent = read.unwrap_or_else(|_| variables.clone());
    let here = Reader::new(document, env, &variables, context);
    let there = Reader::new(document, Some(&stack_env), &sent, &manager);
    let mut found = Finder::new(Both { here, there }).losses();
    found.extend(unreadable);
    found
}

/// The line of `.env` that the contract's reading takes its nth entry from, both counted from 1.
fn line_of_entry(env: &str, nth: usize) -> usize {
    let lines = env.split_inclusive('\n').enumerate();
    let mut entries = lines.filter(|(_, line)| !contract_env(line).variables.is_empty());
    entries
        .nth(nth.saturating_sub(1))
        .map_or(1, |(index, _)| index + 1)
}

impl fmt::Display for TextLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.owner)?;
        match &self.kind {
            TextLossKind::Variable { name, file } => {
                write!(f, "{name} no longer arrives (from {file})")
            }
            TextLossKind::Value { place, variables } => {
                write!(
                    f,
                    "{place} gets another value, because of {}",
                    variables.join(", ")
                )
            }
            TextLossKind::UnreadableEnv { problem } => {
                write!(
                    f,
                    "as it is sent the manager cannot read it, and deploys nothing: line {}: {problem}",
                    self.line
                )
            }
            TextLossKind::Project { here, there } => {
                write!(
                    f,
                    "the project is {here} here and {there} to the manager: other volumes and networks"
                )
            }
            TextLossKind::Profiles => f.write_str(
                "COMPOSE_PROFILES of the shell starts it, which the manager does not have",
            ),
            TextLossKind::Beside { file } => {
                write!(f, "what {file} says is not sent")
            }
            TextLossKind::UnknownVariables { file } => {
                write!(
                    f,
                    "what {file} sets no longer arrives; it cannot be read here"
                )
            }
            TextLossKind::Path { path, becomes } if path == becomes => {
                write!(f, "the manager looks for {path} in a folder of its own")
            }
            TextLossKind::Path { path, becomes } => {
                write!(f, "{path} becomes {becomes}, which is another place")
            }
            TextLossKind::Unreadable { path, named_by } => {
                write!(f, "the manager must be able to read {path} ({named_by})")
            }
            TextLossKind::Replaced { place } => {
                write!(
                    f,
                    "`./` is replaced in {place}, which is no path of this host"
                )
            }
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(name) => write!(f, "service {name}"),
            Self::Volume(name) => write!(f, "volume {name}"),
            Self::Secret(name) => write!(f, "secret {name}"),
            Self::Config(name) => write!(f, "config {name}"),
            Self::File => f.write_str("compose file"),
            Self::Env => f.write_str(".env"),
        }
    }
}

impl fmt::Display for FileUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Include => "include",
            Self::Extends => "extends",
            Self::Build => "build",
            Self::LabelFile => "label_file",
            Self::EnvFile => "env_file",
        })
    }
}

#[cfg(test)]
mod tests;
