//! What a run would do and what it would cost, as data.
//!
//! Invariant: pure. Whoever plans cannot write.
#![deny(clippy::disallowed_methods)]

use std::{collections::BTreeSet, fmt};

use serde::Serialize;

use crate::{
    model::{Carried, Container, MountKind, PublishedPort, Record},
    rewrite::loss::{Owner, TextLoss, TextLossKind},
    text::printable,
};

/// Images that are the manager itself; its agent is not (B04).
const MANAGER_IMAGES: [&str; 3] = ["portainer", "portainer-ce", "portainer-ee"];

/// Something that ran before and will not after: named, never by value (B01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Loss {
    /// What the rewritten text loses, but for variables.
    Text(TextLoss),
    /// Variables of a removed `env_file`, by its owner.
    Variables {
        /// The service.
        owner: Owner,
        /// The file they came from, as written.
        file: String,
        /// Their names.
        names: Vec<String>,
    },
    /// A new container gets an empty volume in its place (M05).
    AnonymousVolume {
        /// The container's name.
        container: String,
        /// Where the volume is mounted in it.
        target: String,
        /// The volume's name, by which its data can be found again.
        volume: String,
    },
    /// What the deleted record carries and the new one will not.
    Carried(Carried),
    /// Variables of the deleted record that `.env` does not have.
    RecordVariables(Vec<String>),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(loss) => f.write_str(&printable(&loss.to_string())),
            Self::Variables { owner, file, names } => f.write_str(&printable(&format!(
                "{owner}: variables of {file} that no longer arrive: {}",
                names.join(", ")
            ))),
            Self::AnonymousVolume {
                container,
                target,
                volume,
            } => write!(
                f,
                "{container}: the anonymous volume at {} is replaced by an empty one; its data stays in the volume {volume}",
                printable(target)
            ),
            Self::Carried(carried) => match carried {
                Carried::Git(url) => write!(f, "the record's git link to {}", printable(url)),
                Carried::AutoUpdate => f.write_str("the record's automatic update"),
                Carried::Webhook => f.write_str("the record's webhook"),
                Carried::Access => f.write_str("the record's access rights"),
            },
            Self::RecordVariables(names) => write!(
                f,
                "variables of the record that .env does not have: {}",
                printable(&names.join(", "))
            ),
        }
    }
}

/// What the text loses, the variables of one file and one service together.
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

/// The engine names a volume without a name by 64 hexadecimal digits.
fn is_anonymous(volume: &str) -> bool {
    volume.len() == 64 && volume.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What is lost with a record (B01): what it carries, and variables that are not among `names`.
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

/// Why a run is refused unless `--force` overrides it (B02–B04).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Refusal {
    /// The rewrite damages the text (B02): where and how.
    Damage(Vec<String>),
    /// Containers would be removed here and created on another engine (B03).
    OtherEngine {
        /// The number of the endpoint.
        endpoint: i64,
    },
    /// The stack runs the manager itself (B04): which container, and how that shows.
    RunsManager {
        /// The container's name.
        container: String,
        /// The image, or the published port.
        because: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage(_) => f.write_str("the rewrite of the contract damages the compose text"),
            Self::OtherEngine { endpoint } => write!(
                f,
                "endpoint {endpoint} is another engine than this host's: containers would be removed here and created there"
            ),
            Self::RunsManager { container, because } => write!(
                f,
                "the stack runs the manager itself: the container {container} {because}"
            ),
        }
    }
}

impl Refusal {
    /// The reasons in detail, one a line.
    pub fn details(&self) -> Option<String> {
        match self {
            Self::Damage(places) => Some(places.join("\n")),
            Self::OtherEngine { .. } | Self::RunsManager { .. } => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Damage(_) => {
                "change those lines so that the rewrite leaves them whole, or run with --force to send the damaged text"
            }
            Self::OtherEngine { .. } => {
                "name this host's endpoint with --endpoint, or run with --force"
            }
            Self::RunsManager { .. } => {
                "manage this stack by hand: removing it would cut off the manager; --force does it all the same"
            }
        }
    }
}

/// The first container that runs the manager (B04): by its image, or because it publishes
/// `manager_port`, which is `None` where the manager is not on this host.
pub fn runs_manager(containers: &[Container], manager_port: Option<u16>) -> Option<Refusal> {
    containers.iter().find_map(|container| {
        let because = if is_manager_image(&container.image) {
            format!("runs {}", printable(&container.image))
        } else {
            let port = manager_port?;
            let publishes = |published: &PublishedPort| {
                published.host_port == port && published.protocol == "tcp"
            };
            container.ports.iter().find(|p| publishes(p))?;
            format!("publishes the manager's port {port}")
        };
        Some(Refusal::RunsManager {
            container: container.name().to_owned(),
            because,
        })
    })
}

/// `[registry/]portainer/portainer[-ce|-ee][:tag][@digest]`.
fn is_manager_image(image: &str) -> bool {
    let image = image.split('@').next().unwrap_or(image);
    let mut parts = image.rsplit('/');
    let repository = parts.next().unwrap_or_default();
    let repository = repository.split(':').next().unwrap_or_default();
    parts.next() == Some("portainer") && MANAGER_IMAGES.contains(&repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_managers_image() {
        for image in [
            "portainer/portainer-ce:2.21.0",
            "portainer/portainer-ee",
            "portainer/portainer@sha256:00",
            "registry.example:5000/portainer/portainer-ce:latest",
        ] {
            assert!(is_manager_image(image), "{image}");
        }
        for image in ["portainer/agent:2", "portainer-ce", "nginx", "x/portainer"] {
            assert!(!is_manager_image(image), "{image}");
        }
    }

    #[test]
    fn only_nameless_volumes_are_lost() {
        assert!(is_anonymous(&"0a".repeat(32)));
        assert!(!is_anonymous("web_data"));
        assert!(!is_anonymous(&"0a".repeat(31)));
    }
}
