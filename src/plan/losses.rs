//! What works before a run and not after (B01).

pub mod containers;
pub mod foreign;
pub mod limits;
pub mod mounts;
pub mod ports;
pub mod record;
pub mod replacement;
pub mod reported;

use std::{collections::BTreeSet, fmt};

use serde::Serialize;

use crate::{
    model::{Carried, Changes, Grant},
    plan::Foreign,
    rewrite::loss::{Owner, TextLoss, TextLossKind},
    snapshot::Inspected,
    text::{counted, printable, shell_word, without_credentials},
};

/// Something that works before a run and not after: by name, never by value (B01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Loss {
    /// Anything that the rewritten text loses, except variables.
    Text(TextLoss),
    /// Variables of a removed `env_file`, grouped by owner and file.
    Variables {
        /// The service or other element that loses them.
        owner: Owner,
        /// The env file, as written in the Compose file.
        file: String,
        /// The names of the variables.
        names: Vec<String>,
    },
    /// Running containers end with SIGKILL: how many.
    Killed(usize),
    /// Containers that this run does not remove, but that Portainer may recreate or remove (B10, M05, M06): how many.
    Adopted { project: String, count: usize },
    /// Something that one container has.
    Container {
        /// The container's name.
        container: String,
        replaced_by: ReplacedBy,
        loss: ContainerLoss,
    },
    /// What this version of Portainer does not do (N14, N17).
    Version(String),
    /// Containers of a service beyond those that the text starts.
    Replicas {
        service: String,
        now: usize,
        after: usize,
    },
    /// Running containers that came from this directory under another project name. They are not removed.
    OtherProject {
        project: String,
        containers: Vec<String>,
    },
    /// A container that the run does not recreate loses the use of one that it touches (B21).
    Foreign(Foreign),
    /// A property of the deleted Portainer stack that the new one does not have.
    Carried(Carried),
    /// Those who may use the Portainer stack, and not after `--access` (B23).
    RecordUse(BTreeSet<Grant>),
    /// Variables of the deleted Portainer stack that are not in `.env`.
    RecordVariables(Vec<String>),
    /// Variables of the deleted Portainer stack with another value in `.env`.
    RecordValues(Vec<String>),
    /// Members of a section of the deleted Portainer stack's text that are not in the Compose file.
    RecordMembers {
        /// `services`, `volumes`, …
        section: &'static str,
        names: Vec<String>,
    },
    /// What was edited in Portainer (B22), such as `the variable V`; empty where the other losses say it.
    RecordText(Vec<String>),
    /// What Portainer has differs, and nothing is known of a last send (B22).
    RecordDiffers,
    /// The Portainer stack is stopped, and the create starts it.
    RecordStarts,
}

/// Who replaces a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ReplacedBy {
    /// This run: it removes the container (C51, C52).
    Run,
    /// Portainer's Compose, and only if its configuration differs (M05): the container's project has the name that
    /// Portainer gives the stack (B10).
    Portainer,
}

/// Something that one container has and its successor will not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ContainerLoss {
    /// No service of the text starts it.
    NotDefined { service: String },
    /// Only a profile that is not active starts its service (M14).
    Profile { service: String },
    /// `compose run` started it.
    OneOff,
    /// It was started from another directory.
    OtherDirectory(String),
    /// It is not running, and its successor will be: `paused`, `exited` or `created` (N08).
    WillStart { state: String },
    /// An anonymous volume, which a new container replaces with an empty one (M05).
    AnonymousVolume {
        /// The mount point in the container.
        target: String,
        volume: String,
        /// Whether the engine deletes the volume with the container (`--rm`).
        is_deleted: bool,
    },
    /// Files in its own layer: the first ones, and the number of all.
    Files { shown: Vec<String>, total: usize },
    /// The name that its successor has instead.
    Name(String),
    /// Variables that its successor will not have.
    Variables(Vec<String>),
    /// Variables with another value in its successor.
    Values(Vec<String>),
    /// Its successor runs another image of the same name.
    Image(String),
    /// Its successor runs an image of another name.
    OtherImage { now: String, after: String },
    /// A mount that its successor has from another source, or not at all.
    Mount {
        /// The mount point in the container.
        target: String,
        now: Source,
        after: Option<Source>,
    },
    /// A mount that its successor may not write to, or may.
    Access { target: String, is_read_only: bool },
    /// Ports that its successor does not publish, and those that only its successor publishes: `127.0.0.1:8080->80/tcp`.
    Ports { lost: Vec<String>, new: Vec<String> },
    /// A network that it is attached to.
    Network(String),
    /// Aliases in a network.
    Aliases { network: String, names: Vec<String> },
    /// Settings that differ from the text, as after `docker update`.
    Limits(Vec<&'static str>),
    /// Those who may use it in Portainer, and not its successor (B23).
    Use(BTreeSet<Grant>),
    /// Those who may use it in Portainer until it is recreated, and not the stack.
    UseUntilRecreated(BTreeSet<Grant>),
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Source {
    /// A named volume.
    Volume(String),
    /// A path of the host.
    Path(String),
    /// A path that Portainer resolves.
    InPortainer,
    /// A new anonymous volume.
    Anonymous,
    Tmpfs,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(loss) => f.write_str(&printable(&loss.to_string())),
            Self::Variables { owner, file, names } => f.write_str(&printable(&format!(
                "{owner}: variables of {file} no longer set: {}",
                names.join(", ")
            ))),
            Self::Killed(count) => write!(
                f,
                "{} will be stopped with SIGKILL, without time to shut down",
                counted(*count, "running container")
            ),
            Self::Version(problem) => f.write_str(&printable(problem)),
            Self::Adopted { project, count } => write!(
                f,
                "project {} has {}, which Portainer adopts: it recreates each one whose configuration differs, and may remove all of them if the deployment fails",
                printable(project),
                counted(*count, "container")
            ),
            Self::Container {
                container,
                replaced_by,
                loss,
            } => {
                let loss = match replaced_by {
                    ReplacedBy::Run => loss.to_string(),
                    ReplacedBy::Portainer => loss.if_portainer_replaces(),
                };
                f.write_str(&printable(&format!("{container}: {loss}")))
            }
            Self::Replicas {
                service,
                now,
                after,
            } => write!(
                f,
                "service {}: {} will be reduced to {after}",
                printable(service),
                counted(*now, "container")
            ),
            Self::OtherProject {
                project,
                containers,
            } => f.write_str(&printable(&format!(
                "project {project} was started from this directory and will keep running next to the new containers: {}",
                containers.join(", ")
            ))),
            Self::Foreign(foreign) => foreign.fmt(f),
            Self::Carried(carried) => match carried {
                Carried::Git(url) => {
                    write!(
                        f,
                        "the Portainer stack's Git link to {}",
                        printable(&without_credentials(url))
                    )
                }
                Carried::AutoUpdate => f.write_str("the Portainer stack's automatic update"),
                Carried::Webhook => f.write_str("the Portainer stack's webhook"),
                Carried::Access => f.write_str("the Portainer stack's access rights"),
            },
            Self::RecordUse(grants) => {
                write!(f, "{} can no longer use it", Grant::list(grants))
            }
            Self::RecordVariables(names) => write!(
                f,
                "variables that exist only in Portainer: {}",
                printable(&names.join(", "))
            ),
            Self::RecordValues(names) => write!(
                f,
                "variables with another value in Portainer: {}",
                printable(&names.join(", "))
            ),
            Self::RecordMembers { section, names } => write!(
                f,
                "{section} that exist only in Portainer: {}",
                printable(&names.join(", "))
            ),
            Self::RecordStarts => f.write_str("Portainer stack: is stopped and will be started"),
            Self::RecordText(what) => {
                f.write_str("what was edited in Portainer since the last adoption")?;
                if what.is_empty() {
                    return Ok(());
                }
                write!(f, ": {}", printable(&what.join(" and ")))
            }
            Self::RecordDiffers => f.write_str("what only Portainer has in its Compose file and variables"),
        }
    }
}

impl fmt::Display for ContainerLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDefined { service } => write!(
                f,
                "removed and not recreated: the Compose file has no service {service}"
            ),
            Self::Profile { service } => write!(
                f,
                "removed and not recreated: no profile of service {service} is active in Portainer"
            ),
            Self::OneOff => {
                f.write_str("removed and not recreated: it was started by `compose run`")
            }
            Self::OtherDirectory(dir) => {
                write!(f, "it was started from another directory: {dir}")
            }
            Self::WillStart { state } if state == "paused" => {
                f.write_str("is paused and will run afterwards")
            }
            Self::WillStart { .. } => f.write_str("is stopped and will be started"),
            Self::AnonymousVolume {
                target,
                is_deleted: true,
                ..
            } => write!(
                f,
                "the anonymous volume at {target} may be deleted with its data: the container was started with --rm"
            ),
            Self::AnonymousVolume { target, volume, .. } => write!(
                f,
                "the anonymous volume at {target} is replaced with an empty one; its data stays in volume {volume}"
            ),
            Self::Files { shown, total } => {
                let more = match total.saturating_sub(shown.len()) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(
                    f,
                    "files written inside the container: {}{more}",
                    shown.join(", ")
                )
            }
            Self::Variables(names) => write!(f, "variables no longer set: {}", names.join(", ")),
            Self::Values(names) => write!(f, "variables with another value: {}", names.join(", ")),
            Self::Image(image) => write!(f, "{image} is now a different image"),
            Self::OtherImage { now, after } => write!(f, "image {after} instead of {now}"),
            Self::Name(name) => write!(f, "renamed to {name}"),
            Self::Mount { target, now, after } => show_mount(f, target, now, after.as_ref()),
            Self::Access {
                target,
                is_read_only,
            } => {
                let access = if *is_read_only {
                    "read-only"
                } else {
                    "writable"
                };
                write!(f, "{target} becomes {access}")
            }
            Self::Ports { lost, new } => {
                write!(f, "ports no longer published: {}", lost.join(", "))?;
                match new.as_slice() {
                    [] => Ok(()),
                    new => write!(f, "; new: {}", new.join(", ")),
                }
            }
            Self::Network(network) => {
                write!(f, "no longer connected to network {network}")
            }
            Self::Aliases { network, names } => write!(
                f,
                "no longer has these aliases in network {network}: {}",
                names.join(", ")
            ),
            Self::Limits(names) => write!(
                f,
                "settings reset to those of the Compose file: {}",
                names.join(", ")
            ),
            Self::Use(grants) => write!(
                f,
                "{} can no longer use it in Portainer; to allow it:{}",
                Grant::list(grants),
                flags(grants)
            ),
            Self::UseUntilRecreated(grants) => write!(
                f,
                "{} can use it in Portainer until it is recreated, and not the stack; to allow both:{}",
                Grant::list(grants),
                flags(grants)
            ),
        }
    }
}

/// The flags that give this access.
fn flags(grants: &BTreeSet<Grant>) -> String {
    let grants = grants.iter().map(Grant::as_flag);
    grants
        .flat_map(|one| [" --access ".to_owned(), shell_word(&one).into()])
        .collect()
}

fn show_mount(
    f: &mut fmt::Formatter<'_>,
    target: &str,
    now: &Source,
    after: Option<&Source>,
) -> fmt::Result {
    match after {
        Some(after) => write!(f, "{after} is mounted at {target} instead of {now}")?,
        None => write!(f, "{now} is no longer mounted at {target}")?,
    }
    match now {
        Source::Volume(_) => f.write_str("; the volume keeps its data"),
        _ => Ok(()),
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(name) => write!(f, "volume {name}"),
            Self::Path(path) => f.write_str(path),
            Self::InPortainer => f.write_str("a path inside Portainer"),
            Self::Anonymous => f.write_str("a new anonymous volume"),
            Self::Tmpfs => f.write_str("a tmpfs"),
        }
    }
}

impl ContainerLoss {
    /// The same, for a container that this run does not remove: Portainer's Compose recreates it if its configuration
    /// differs (M05), and leaves a container alone that the text does not start (N09).
    fn if_portainer_replaces(&self) -> String {
        match self {
            Self::NotDefined { service } => {
                format!("stays as an orphan: the Compose file has no service {service}")
            }
            Self::Profile { service } => format!(
                "stays, but is not updated: no profile of service {service} is active in Portainer"
            ),
            Self::OneOff => "stays: it was started by `compose run`".to_owned(),
            Self::AnonymousVolume {
                target,
                is_deleted: true,
                ..
            } => format!(
                "if it is recreated, the anonymous volume at {target} may be deleted with its data: the container was started with --rm"
            ),
            // M05
            Self::WillStart { state } if state == "paused" => {
                "is paused, and Compose cannot start it".to_owned()
            }
            // M05, M16, N04
            Self::AnonymousVolume { target, volume, .. } => format!(
                "if it is recreated, Portainer 2.45 replaces the anonymous volume at {target} with an empty one; its data stays in volume {volume}"
            ),
            Self::Files { .. }
            | Self::Name(_)
            | Self::Network(_)
            | Self::Aliases { .. }
            | Self::Limits(_) => {
                format!("if it is recreated: {self}")
            }
            _ => self.to_string(),
        }
    }
}

/// The losses of the text, with the variables of one file and one owner grouped.
pub fn text_lost(losses: Vec<TextLoss>) -> Vec<Loss> {
    let mut grouped: Vec<Loss> = Vec::new();
    for loss in losses {
        let TextLossKind::Variable { name, file } = loss.kind else {
            grouped.push(Loss::Text(loss));
            continue;
        };
        let group = grouped.iter_mut().find_map(|other| match other {
            Loss::Variables {
                owner,
                file: of,
                names,
            } if *owner == loss.owner && *of == file => Some(names),
            _ => None,
        });
        match group {
            Some(names) => names.push(name),
            None => grouped.push(Loss::Variables {
                owner: loss.owner,
                file,
                names: vec![name],
            }),
        }
    }
    grouped
}

/// How many files of one container are named.
const FILES_SHOWN: usize = 5;

impl ContainerLoss {
    /// The files that are lost with a container. `placed` are those that Compose itself puts into it.
    pub fn files(container: Inspected, changes: &Changes, placed: &[String]) -> Option<Self> {
        let (files, total) = written(container, changes, placed);
        let shown = files.into_iter().take(FILES_SHOWN).map(str::to_owned);
        (total > 0).then(|| Self::Files {
            shown: shown.collect(),
            total,
        })
    }
}

/// The changed files of a container's own layer that hold data, and the number of all. `placed` are the files that
/// Compose itself puts into the container.
fn written<'c>(
    container: Inspected,
    changes: &'c Changes,
    placed: &[String],
) -> (Vec<&'c str>, usize) {
    let paths: Vec<&str> = changes
        .listed
        .iter()
        .map(|change| change.path.as_str())
        .filter(|path| placed.iter().all(|placed| placed != path))
        .collect();
    let unlisted = changes.total.saturating_sub(changes.listed.len());
    let files = container.own_files(&paths, placed);
    let total = files.len() + unlisted;
    (files, total)
}

impl Loss {
    /// What loses something: `service web`, a container by its name, `Portainer stack`; `None` for the whole stack.
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::Text(TextLoss { owner, .. }) | Self::Variables { owner, .. } => {
                Some(owner.to_string())
            }
            Self::Container { container, .. } | Self::Foreign(Foreign { container, .. }) => {
                Some(container.clone())
            }
            Self::Replicas { service, .. } => Some(format!("service {service}")),
            Self::Carried(_)
            | Self::RecordUse(_)
            | Self::RecordVariables(_)
            | Self::RecordValues(_)
            | Self::RecordMembers { .. }
            | Self::RecordText(_)
            | Self::RecordDiffers
            | Self::RecordStarts => Some("Portainer stack".to_owned()),
            Self::Killed(_)
            | Self::Adopted { .. }
            | Self::Version(_)
            | Self::OtherProject { .. } => None,
        }
    }

    /// The service that the text names as the subject.
    pub fn service(&self) -> Option<&str> {
        match self {
            Self::Text(TextLoss { owner, .. }) | Self::Variables { owner, .. } => match owner {
                Owner::Service(name) => Some(name),
                _ => None,
            },
            Self::Replicas { service, .. } => Some(service),
            _ => None,
        }
    }

    /// What is lost, without the subject.
    pub fn message(&self) -> String {
        let text = self.to_string();
        let subject = self.subject().unwrap_or_default();
        let start = format!("{}: ", printable(&subject));
        match text.strip_prefix(&start) {
            Some(message) => message.to_owned(),
            None => text,
        }
    }
}
