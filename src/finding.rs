//! What is said of a stack: a problem, a loss, a warning or a failed check.
//!
//! Code decides on the [`Kind`], never on a text. Invariant: names, never values of variables.

use std::{collections::BTreeSet, fmt};

use composefile::document::Position;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    failure::Failure,
    model::Grant,
    text::{Mask, printable},
};

/// Something that prevents a run, is lost or changes, or may go wrong. Never holds a value of an env file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// What code decides on.
    #[serde(skip)]
    pub kind: Kind,
    /// The service that it belongs to, if it belongs to one.
    pub service: Option<String>,
    /// What it belongs to: `service web`, the name of a container, `Portainer stack`; null for the whole stack.
    pub subject: Option<String>,
    /// What is found.
    pub message: String,
    /// What to do about it; null if that is not known, or if there is nothing to do.
    pub hint: Option<String>,
    /// More facts, one per item.
    pub details: Vec<String>,
    /// The place in the Compose file, if it is about one.
    #[serde(skip)]
    pub position: Option<Position>,
    /// The problem in two or three words, for a table.
    #[serde(skip)]
    pub short: Option<String>,
}

/// The kinds of findings that code distinguishes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Kind {
    /// No code decides on it.
    #[default]
    Other,
    /// The literal rewrite damages the text (B02).
    Damage,
    /// Compose would reject the text.
    Rejected,
    /// Compose cannot read `.env` or another env file.
    BadEnvFile,
    /// Each detail is a file that does not exist where the engine looks for it.
    MissingFiles,
    /// Files that Portainer cannot read, or programs of this host: each detail is one, if there are any.
    UnreadableFiles,
    /// Each detail is about an image, a network, a volume, a port or a name of this engine.
    OnEngine,
    /// Paused containers of this engine.
    Paused,
    /// Compose cannot parse the text as YAML.
    NotYaml,
    /// A value has a type that Compose rejects.
    WrongType,
    /// A required env file or label file does not exist.
    MissingEnvFile,
    /// Invalid interpolation, or a required variable without a value.
    BadVariable,
    /// The stack has more than one file: `include`, `extends.file`, an override file, `COMPOSE_FILE`.
    SeveralFiles,
    /// The new text cannot be written simply in its place: Compose resolves the text then.
    NotSimple,
    /// A variable of the shell is used where its value cannot be written.
    ShellVariable,
    /// Compose versions disagree about the meaning.
    VersionDependent,
    /// A reference to something undefined, or a contradiction: Compose rejects the stack.
    Inconsistent,
    /// A bug in this program.
    Internal,
    /// It runs Portainer, or leads to it: it is never adopted (C05, B04).
    Management,
    /// The files that a container has written.
    Files,
    /// The files that a container has in memory (B36).
    Memory,
    /// Of the Portainer stack.
    Record,
    /// The access rights of the Portainer stack, which an update keeps (M16).
    Access,
    /// It does not run, and will (N08).
    Starts,
    /// It gets a network, an alias or an address that the text gives it (B38).
    Connected,
    /// Portainer recreates or removes containers that this run does not remove (B10, M05, M06).
    Adopted,
    /// A container that the text does not start: its service is unknown or inactive (M14), or it is a one-off container.
    Orphan,
    /// An anonymous volume, which a new container replaces with an empty one (M05), or which `--rm` deletes.
    AnonymousVolume {
        /// Its name.
        volume: String,
        /// Whether it is deleted with the container.
        is_deleted: bool,
    },
    /// A container's variables.
    Variables,
    /// The image name refers to another image.
    Image,
    /// Something else of a container that a user changes in the text.
    Edited,
    /// The containers of a service, of which there are more than the text starts.
    Replicas {
        /// Their names.
        containers: Vec<String>,
        /// How many the text starts.
        after: usize,
    },
    /// Those who may use a container, and not its successor (B23).
    Use(BTreeSet<Grant>),
    /// Those who may use a container until it is recreated, and not the stack (B23).
    UseUntilRecreated,
    /// A container that the run does not recreate loses the use of one that it touches (B21).
    Foreign,
    /// Whether files in memory are lost is unknown, for these reasons (B36).
    UnseenMemory(String),
    /// The last adoption of the same failed.
    FailedBefore,
    /// Volumes that get a name, and that Docker still counts as anonymous. Only the first adoption says it.
    StillAnonymous,
    /// Compose resolves the text. It is said when the text is sent.
    Resolved,
    /// A key of the Compose file that Portainer's Compose may not accept.
    UnknownKey(String),
}

const PORTAINER_STACK: &str = "Portainer stack";

impl Finding {
    /// A problem of the whole stack. The texts may quote what is from outside: they are escaped here. The hint may be empty.
    pub fn new(message: impl AsRef<str>, hint: impl AsRef<str>) -> Self {
        let hint = printable(hint.as_ref());
        Self {
            hint: (!hint.is_empty()).then(|| hint.into_owned()),
            ..Self::of_stack(message.as_ref())
        }
    }

    /// A problem with these details, if there are any.
    pub fn about(
        details: Vec<String>,
        message: impl AsRef<str>,
        hint: impl AsRef<str>,
    ) -> Option<Self> {
        (!details.is_empty()).then(|| Self::new(message, hint).details(details))
    }

    /// An error, with its causes, its hint and its details.
    pub fn of_error(error: &anyhow::Error) -> Self {
        let details = Failure::details_of(error).unwrap_or_default();
        let hint = Failure::hint_of(error).unwrap_or_default();
        Self::new(format!("{error:#}"), hint).details(details.lines().map(str::to_owned))
    }

    /// A loss of the whole stack.
    pub fn of_stack(message: &str) -> Self {
        Self {
            message: printable(message).into_owned(),
            ..Self::default()
        }
    }

    /// A text that may have several lines, and whose parts from outside are escaped.
    pub fn as_told(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// A loss of the Portainer stack that is deleted or updated.
    pub fn of_record(message: &str) -> Self {
        Self::of_stack(message)
            .on(PORTAINER_STACK)
            .of_kind(Kind::Record)
    }

    /// A loss of a service.
    pub fn of_service(service: &str, kind: Kind, message: &str) -> Self {
        Self {
            service: Some(service.to_owned()),
            ..Self::of_stack(message)
                .on(format!("service {service}"))
                .of_kind(kind)
        }
    }

    /// The same, about `subject`.
    #[must_use]
    pub fn on(self, subject: impl Into<String>) -> Self {
        let subject = Some(subject.into());
        Self { subject, ..self }
    }

    /// The same, with `details`.
    #[must_use]
    pub fn details(self, details: impl IntoIterator<Item = String>) -> Self {
        let shown = details
            .into_iter()
            .map(|detail| printable(&detail).into_owned());
        Self {
            details: shown.collect(),
            ..self
        }
    }

    /// The same, as another kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same, with two or three words for a table.
    #[must_use]
    pub fn short(self, short: &str) -> Self {
        let short = Some(short.to_owned());
        Self { short, ..self }
    }

    /// The same, with its place in the Compose file.
    #[must_use]
    pub fn placed(self, position: Position) -> Self {
        let position = Some(position);
        Self { position, ..self }
    }

    /// The same, with the name of the Compose file and the line in front of the message.
    #[must_use]
    pub fn in_file(self, file: &str) -> Self {
        match self.position {
            Some(Position { line, .. }) => Self {
                message: printable(&format!("{file}:{line}: {}", self.message)).into_owned(),
                ..self
            },
            None => self,
        }
    }

    /// In a few words, for a table.
    pub fn in_short(&self) -> &str {
        match self.kind {
            _ if let Some(short) = &self.short => short,
            Kind::NotYaml => "not valid YAML",
            Kind::Rejected | Kind::WrongType => "Compose rejects the file",
            Kind::BadEnvFile => "env file not readable",
            Kind::MissingEnvFile => "env file missing",
            Kind::ShellVariable => "variable of the shell",
            _ => &self.message,
        }
    }

    /// The hint; empty if there is none.
    pub fn advice(&self) -> &str {
        self.hint.as_deref().unwrap_or_default()
    }

    /// The same without the names of files: a container may write files all the time, which does not make another loss.
    #[must_use]
    pub fn without_files(&self) -> Self {
        let mut same = self.clone();
        if self.kind == Kind::Files {
            same.message.clear();
        }
        same
    }

    /// Hides the values of `.env` in what is said of names and paths, unless they are paths or plain words (B13).
    pub fn hide_values(&mut self, mask: &Mask) {
        let texts = [&mut self.message].into_iter().chain(&mut self.hint);
        for text in texts.chain(&mut self.details) {
            *text = mask.hide_unless(text, |_, is_plain| is_plain);
        }
    }
}

impl From<&Finding> for Failure {
    fn from(found: &Finding) -> Self {
        let failure = Self::new(&found.message).hint_if_any(found.hint.as_deref());
        failure.lines(&found.details)
    }
}

/// In a sentence of its own, or in several lines if there are details or a hint.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) if !matches!(self.kind, Kind::Record | Kind::Access) => {
                write!(f, "{}: {}", printable(subject), self.message)?;
            }
            _ => f.write_str(&self.message)?,
        }
        for detail in &self.details {
            write!(f, "\n- {detail}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n{hint}"),
            None => Ok(()),
        }
    }
}
