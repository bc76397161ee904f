//! What a stack loses through the literal rewrite, as far as its text shows (B01).
//!
//! A loss names its owner, and a name or path as written; never a value. [`crate::plan`] adds the losses of the containers
//! and of the Portainer stack. [`super::damage`] tells whether the text itself is damaged.

mod both;
mod finder;

use std::fmt;

use super::portainer::{self, SET_BY_PORTAINER};
use crate::rewrite::env::{contract_env, stack_env};
use both::Both;
use composefile::{
    document::Document,
    dotenv,
    reader::{Context, Reader},
};
use finder::Finder;

/// Something that ran before and will not after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLoss {
    /// The part of the file that loses it.
    pub owner: Owner,
    /// The loss.
    pub kind: TextLossKind,
}

/// A part of a Compose file, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A member of `services`.
    Service(String),
    /// A member of the top-level `volumes`.
    Volume(String),
    /// A member of the top-level `secrets`.
    Secret(String),
    /// A member of the top-level `configs`.
    Config(String),
    /// The file as a whole.
    File,
    /// `.env`.
    Env,
}

/// The kinds of losses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextLossKind {
    /// A variable that a removed `env_file` sets (M09).
    Variable {
        /// Its name.
        name: String,
        /// The file that sets it, as written.
        file: String,
    },
    /// A text with variables that have another value in Portainer: variables of the shell, or those for which
    /// `stack.env` and `.env` differ.
    Value {
        /// The path of the text: `services.web.labels.owner`.
        place: String,
        /// The variables.
        variables: Vec<String>,
    },
    /// Portainer cannot parse `.env` as it is sent: nothing is deployed.
    UnreadableEnv,
    /// The project name, and with it the names of volumes and networks (M15).
    Project {
        /// The name on this host.
        here: String,
        /// The name in Portainer.
        there: String,
    },
    /// The service runs because of a profile that only the shell activates (M14).
    Profiles,
    /// A file that Compose merges with this one, and that is not sent.
    IgnoredFile {
        /// Its name.
        file: String,
    },
    /// A removed `env_file` that cannot be read: its variables are unknown.
    UnknownVariables {
        /// The file, as written.
        file: String,
    },
    /// A path of this host that Portainer resolves elsewhere (M12).
    Path {
        /// As written.
        path: String,
        /// After the rewrite; the same if the rewrite does not change it.
        becomes: String,
    },
    /// A file or directory of this host that Portainer needs, and might not be able to read (M11).
    Unreadable {
        /// As written.
        path: String,
        /// The key that names it, such as `build`.
        named_by: &'static str,
    },
    /// A text that is not a path of this host, but in which `./` is replaced (C32).
    Replaced {
        /// The path of the text: `services.web.command[0]`.
        place: String,
    },
}

/// Placeholder for values that are unknown. No real value equals it.
const UNKNOWN: &str = "\0";

/// The losses of a stack whose text is rewritten literally (C30–C32) and sent with the variables that C41–C43 read from
/// `env`, the text of its `.env`. Services come first, in order, then the rest of the file. `project` is the stack's
/// project name in Portainer.
///
/// The text is read twice: as Compose reads it on this host, and as Portainer reads the result, in its own directory, with
/// `stack.env`, another home and another shell.
pub fn losses(
    document: &Document<'_>,
    env: Option<&str>,
    context: &Context<'_>,
    project: &str,
) -> Vec<TextLoss> {
    let env_text = env.unwrap_or_default();
    let variables = dotenv::parse(env_text, context.shell).unwrap_or_default();
    let shell = |name: &str| SET_BY_PORTAINER.contains(&name).then(|| UNKNOWN.to_owned());
    let portainer = portainer::context("/\0/stack", "/\0/home", &shell, project);
    let stack_env = stack_env(&contract_env(env_text).variables);
    let read = dotenv::parse(&stack_env, &shell);
    let unreadable = read.is_err().then_some(TextLoss {
        owner: Owner::Env,
        kind: TextLossKind::UnreadableEnv,
    });
    // If nothing is deployed, the values do not matter.
    let sent = read.unwrap_or_else(|_| variables.clone());
    let here = Reader::new(document, env, &variables, context);
    let there = Reader::new(document, Some(&stack_env), &sent, &portainer);
    let mut found = Finder::new(Both { here, there }).losses();
    found.extend(unreadable);
    found
}

/// Without the owner.
impl fmt::Display for TextLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TextLossKind::Variable { name, file } => {
                write!(f, "{name} of {file} is no longer set")
            }
            TextLossKind::Value { place, variables } => {
                let (names, verb) = match variables.as_slice() {
                    [one] => (format!("${{{one}}}"), "is"),
                    several => (several.join(", "), "are"),
                };
                let place = self.owner.below(place);
                write!(f, "{place} changes: {names} {verb} different in Portainer")
            }
            TextLossKind::UnreadableEnv => {
                f.write_str("the deployment would fail, because Portainer cannot parse it")
            }
            TextLossKind::Project { here, there } => {
                write!(
                    f,
                    "the project is named {there} instead of {here}, with new volumes and networks"
                )
            }
            TextLossKind::Profiles => {
                f.write_str("will not start: only your shell sets its profile in COMPOSE_PROFILES")
            }
            TextLossKind::IgnoredFile { file } => write!(f, "{file} is ignored"),
            TextLossKind::UnknownVariables { file } => {
                write!(f, "cannot read {file}: its variables are no longer set")
            }
            TextLossKind::Path { path, becomes } if path == becomes => {
                write!(f, "{path} would be a path inside Portainer")
            }
            TextLossKind::Path { path, becomes } => {
                write!(f, "{path} becomes {becomes}, which is another place")
            }
            TextLossKind::Unreadable { path, named_by } => match *named_by {
                "build" => write!(
                    f,
                    "Portainer may be unable to read the build directory {path}"
                ),
                _ => write!(f, "Portainer may be unable to read {path} ({named_by})"),
            },
            TextLossKind::Replaced { place } => {
                let place = self.owner.below(place);
                write!(f, "the rewrite changes {place}, which is not a path")
            }
        }
    }
}

impl Owner {
    /// The path of a text, without the service if it belongs to one.
    fn below<'p>(&self, place: &'p str) -> &'p str {
        let Self::Service(name) = self else {
            return place;
        };
        let below = place.strip_prefix(&format!("services.{name}."));
        below.unwrap_or(place)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(name) => write!(f, "service {name}"),
            Self::Volume(name) => write!(f, "volume {name}"),
            Self::Secret(name) => write!(f, "secret {name}"),
            Self::Config(name) => write!(f, "config {name}"),
            Self::File => f.write_str("Compose file"),
            Self::Env => f.write_str(".env"),
        }
    }
}
