//! What a run would lose and why it is refused, as data.
//!
//! Invariant: pure. Code that plans cannot write.
#![deny(clippy::disallowed_methods)]

use std::{collections::BTreeSet, fmt};

use serde::Serialize;

use crate::{
    model::{Carried, Container, MountKind, Record},
    rewrite::loss::{Owner, TextLoss, TextLossKind},
    text::printable,
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
        /// The env file, as written in the compose file.
        file: String,
        /// The names of the variables.
        names: Vec<String>,
    },
    /// An anonymous volume, which a new container replaces with an empty one (M05).
    AnonymousVolume {
        /// The container's name.
        container: String,
        /// The mount point in the container.
        target: String,
        /// The volume's name, which still leads to its data.
        volume: String,
    },
    /// A property of the deleted Portainer stack that the new one does not have.
    Carried(Carried),
    /// Variables of the deleted Portainer stack that are not in `.env`.
    RecordVariables(Vec<String>),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(loss) => f.write_str(&printable(&loss.to_string())),
            Self::Variables { owner, file, names } => f.write_str(&printable(&format!(
                "{owner}: these variables of {file} will no longer be set: {}",
                names.join(", ")
            ))),
            Self::AnonymousVolume {
                container,
                target,
                volume,
            } => write!(
                f,
                "{container}: the anonymous volume at {} will be replaced by an empty one; its data stays in the volume {volume}",
                printable(target)
            ),
            Self::Carried(carried) => match carried {
                Carried::Git(url) => {
                    write!(f, "the Portainer stack's Git link to {}", printable(url))
                }
                Carried::AutoUpdate => f.write_str("the Portainer stack's automatic update"),
                Carried::Webhook => f.write_str("the Portainer stack's webhook"),
                Carried::Access => f.write_str("the Portainer stack's access rights"),
            },
            Self::RecordVariables(names) => write!(
                f,
                "variables of the Portainer stack that are not in .env: {}",
                printable(&names.join(", "))
            ),
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

/// The anonymous volumes of containers that will be removed (B01, M05).
pub fn volumes_lost(containers: &[Container]) -> Vec<Loss> {
    let mut losses = Vec::new();
    for container in containers {
        for mount in &container.mounts {
            let Some(volume) = mount.name.as_deref().filter(|name| is_anonymous(name)) else {
                continue;
            };
            if mount.kind == MountKind::Volume {
                losses.push(Loss::AnonymousVolume {
                    container: container.name().to_owned(),
                    target: mount.target.clone(),
                    volume: volume.to_owned(),
                });
            }
        }
    }
    losses
}

/// The engine gives an anonymous volume a name of 64 hexadecimal digits.
fn is_anonymous(volume: &str) -> bool {
    volume.len() == 64 && volume.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The losses of deleting a Portainer stack (B01): its properties, and its variables that are not in `names`.
pub fn record_lost(record: &Record, names: &BTreeSet<&str>) -> Vec<Loss> {
    let mut losses: Vec<Loss> = record.carries.iter().cloned().map(Loss::Carried).collect();
    let variables: Vec<String> = record
        .variables
        .iter()
        .filter(|name| !names.contains(name.as_str()))
        .cloned()
        .collect();
    if !variables.is_empty() {
        losses.push(Loss::RecordVariables(variables));
    }
    losses
}

/// A reason to refuse a run, unless `--force` overrides it (B02–B04).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Refusal {
    /// The literal rewrite damages the text (B02): where and how.
    Damage(Vec<String>),
    /// Containers would be removed here and created on another engine (B03).
    OtherEngine {
        /// Portainer's environment.
        endpoint: i64,
    },
    /// The stack runs Portainer itself (B04).
    RunsPortainer {
        /// The container's name.
        container: String,
        /// The evidence: its image, or the published port.
        because: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage(_) => f.write_str("the literal rewrite damages the compose file"),
            Self::OtherEngine { endpoint } => write!(
                f,
                "environment {endpoint} is another engine: containers would be removed on this host and created there"
            ),
            Self::RunsPortainer { container, because } => write!(
                f,
                "the stack runs Portainer itself: the container {container} {because}"
            ),
        }
    }
}

impl Refusal {
    /// The details, one per line.
    pub fn details(&self) -> Option<String> {
        match self {
            Self::Damage(places) => Some(places.join("\n")),
            Self::OtherEngine { .. } | Self::RunsPortainer { .. } => None,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Damage(_) => {
                "change those lines so that the rewrite does not damage them, or pass --force to send the damaged text"
            }
            Self::OtherEngine { .. } => {
                "pass the environment of this host with --endpoint, or pass --force"
            }
            Self::RunsPortainer { .. } => {
                "manage this stack by hand: removing it would cut off Portainer; --force overrides this check"
            }
        }
    }
}

/// The first container that runs Portainer (B04): by its image, or because it publishes Portainer's port. `port` is
/// `None` if Portainer is not on this host.
pub fn runs_portainer(containers: &[Container], port: Option<u16>) -> Option<Refusal> {
    containers.iter().find_map(|container| {
        let because = container.runs_portainer(port)?;
        Some(Refusal::RunsPortainer {
            container: container.name().to_owned(),
            because,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_anonymous_volumes_are_lost() {
        assert!(is_anonymous(&"0a".repeat(32)));
        assert!(!is_anonymous("web_data"));
        assert!(!is_anonymous(&"0a".repeat(31)));
    }
}
