//! What an adoption does to the containers of each service.
//!
//! Compose compares the hash of a service's resolved configuration with the label `config-hash` of its containers, and
//! recreates those that differ (M05, N05). Portainer runs its own Compose, whose hashes are computed here from what the program
//! of this host prints (B47).

pub mod binds;
pub mod dependents;
pub mod redefined;
pub mod services;
pub mod steering;
pub mod versions;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    compose::{ComposeVersion, Dialect, Project, Rejection, Service},
    model::Container,
    plan::{Facts, PortainerCompose, edited},
    text::printable,
};

/// Why a service is recreated whose image the Compose file only builds.
const BUILT: &str = "Portainer's copy names the image that `build` made";

/// What happens to a service.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "reason", rename_all = "kebab-case")]
pub enum Fate {
    /// Its containers are not touched.
    #[default]
    Unchanged,
    /// Its containers are replaced once.
    Recreated(String),
    /// Its containers stay, and are stopped and started again.
    Restarted(String),
    /// It does not run now, and will: as a whole clause, such as `is stopped and will be started`. Its containers stay, if
    /// it has any.
    Started(String),
    /// Its containers are removed and not replaced: a migration.
    Removed(String),
    /// The text does not start it, and its containers stay as they are (N09).
    LeftBehind(String),
    /// It cannot be known.
    Unknown(String),
}

impl Fate {
    pub fn unknown(why: &str) -> Self {
        Self::Unknown(why.to_owned())
    }

    /// Whether its containers certainly stay.
    pub fn is_unchanged(&self) -> bool {
        matches!(self, Self::Unchanged | Self::LeftBehind(_))
    }

    /// Whether its containers are certainly not replaced.
    pub fn keeps_containers(&self) -> bool {
        self.is_unchanged() || matches!(self, Self::Started(_) | Self::Restarted(_))
    }

    /// A higher one has more to lose.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Unchanged => 0,
            Self::LeftBehind(_) => 1,
            Self::Started(_) => 2,
            Self::Restarted(_) => 3,
            Self::Unknown(_) => 4,
            Self::Recreated(_) | Self::Removed(_) => 5,
        }
    }

    /// Why, for all but [`Fate::Unchanged`].
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unchanged => None,
            Self::Recreated(reason)
            | Self::Restarted(reason)
            | Self::Started(reason)
            | Self::Removed(reason)
            | Self::LeftBehind(reason)
            | Self::Unknown(reason) => Some(reason),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Unchanged => return f.write_str("keeps running"),
            Self::Started(what) => return f.write_str(&printable(what)),
            Self::Recreated(_) => "recreated",
            Self::Restarted(_) => "restarted",
            Self::Removed(_) => "removed",
            Self::LeftBehind(_) => "left alone",
            Self::Unknown(_) => "may be recreated",
        };
        let reason = printable(self.reason().unwrap_or_default());
        write!(f, "{what}: {reason}")
    }
}

/// The image of a service has another ID now than the one that its container runs.
pub fn newer_image(image: &str) -> String {
    format!("{image} is now a different image")
}

/// Splits off the containers of a service beyond `after`: those with the highest numbers.
pub fn split_surplus<'a>(
    own: &mut Vec<&'a Container>,
    after: usize,
    tool: &str,
) -> Vec<&'a Container> {
    own.sort_by_key(|container| container.container_number(tool));
    own.split_off(after)
}

/// What the Compose program of this host reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projects {
    /// In the files on disk, or why that is unknown.
    pub on_disk: Result<Project, String>,
    /// In what will be sent.
    pub sent: Result<Project, Unread>,
    /// In what Portainer has, or in what it had when it deployed the containers.
    pub deployed: Option<Project>,
}

/// Why Compose reads nothing in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    Rejected(Rejection),
    /// It is unknown what it reads.
    Unknown(String),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(Rejection { by, message, .. }) => write!(f, "{by}: {message}"),
            Self::Unknown(why) => f.write_str(why),
        }
    }
}

impl Projects {
    /// Why it is unknown what the files on disk or what is sent mean, if it is.
    pub fn unread(&self) -> Option<String> {
        let sent = self.sent.as_ref().err().map(ToString::to_string);
        self.on_disk.as_ref().err().cloned().or(sent)
    }

    /// Whether the files on disk, or what is sent, build the image of a service.
    pub fn builds(&self, service: &str) -> bool {
        let mut projects = self.on_disk.iter().chain(&self.sent);
        projects.any(|project| project.service(service).is_some_and(Service::is_built))
    }

    /// Whether a container certainly has the configuration of the files on disk, whichever version created it.
    pub fn is_as_on_disk(&self, container: &Container, service: &str, tool: &str) -> bool {
        let labeled = container.compose_label(tool, "config-hash");
        let on_disk = self.on_disk.as_ref().ok();
        labeled.is_some_and(|hash| on_disk.is_some_and(|project| project.is_of(service, hash)))
    }

    /// Whether a container certainly has another configuration than the files on disk.
    pub fn differs_from_disk(&self, container: &Container, service: &Service, tool: &str) -> bool {
        let on_disk = self.on_disk.as_ref();
        !service.shares() && on_disk.is_ok_and(|on_disk| on_disk.differs_from(container, tool))
    }
}

/// What decides the fates of all containers.
#[derive(Clone, Copy)]
pub struct Deciding<'a> {
    pub facts: &'a Facts<'a>,
    /// What is sent.
    pub sent: &'a Project,
    /// Portainer's Compose, if it is known.
    pub portainer: Option<PortainerCompose>,
}

impl Deciding<'_> {
    /// The fate of a container that its service keeps.
    pub fn fate(&self, container: &Container, service: &Service) -> Fate {
        let fate = self
            .by_image(container, service)
            .unwrap_or_else(|| self.by_hash(container, service));
        match fate {
            Fate::Unchanged => self
                .by_lack(container, service)
                .unwrap_or_else(|| self.by_state(container, service)),
            fate => fate,
        }
    }

    /// The fate of a container whose configuration stays, if it lacks a network or a volume of its service (N05): later versions of
    /// Compose recreate it.
    fn by_lack(&self, container: &Container, service: &Service) -> Option<Fate> {
        let compares = self.portainer.and_then(PortainerCompose::compares_mounts);
        let lack = lack(container, service).filter(|_| compares != Some(false))?;
        Some(match compares {
            Some(_) => Fate::Recreated(lack),
            None => Fate::Unknown(lack),
        })
    }

    /// Whether a container has the image and the configuration of the files on disk, as far as both are known.
    pub fn is_as_on_disk(&self, container: &Container, service: &Service) -> bool {
        let (projects, tool) = (self.facts.projects, self.facts.tool);
        self.by_image(container, service).is_none()
            && projects.is_as_on_disk(container, &service.name, tool)
    }

    /// Whether a container has the image and the configuration that are sent, whichever version of Compose created it.
    pub fn is_as_sent(&self, container: &Container, service: &Service) -> bool {
        let hash = self.facts.label(container, "config-hash");
        hash.is_some_and(|hash| self.sent.is_of(&service.name, hash))
            && self.by_image(container, service).is_none()
            && self.by_lack(container, service).is_none()
    }

    /// The fate of a container whose configuration stays.
    fn by_state(&self, container: &Container, service: &Service) -> Fate {
        if container.is_being_removed() {
            return Fate::unknown("its container is being removed");
        }
        // Compose compares this label, and not the image that the container runs (N05).
        let label = self.facts.label(container, "image");
        if service.image.is_some() && label != Some(container.image_id()) {
            return Fate::unknown("it runs another image than Compose started it with");
        }
        // M05
        if container.is_paused() {
            return Fate::unknown("its container is paused, and Compose cannot start it");
        }
        // N08
        if !container.is_running() {
            return Fate::Started(starts(container).to_owned());
        }
        Fate::Unchanged
    }

    /// Compose recreates a container if the name of its image refers to another image now.
    fn by_image(&self, container: &Container, service: &Service) -> Option<Fate> {
        // N10
        let kept = ["missing", "if_not_present", "never"];
        if service
            .text(&["pull_policy"])
            .is_some_and(|policy| !kept.contains(&policy.as_str()))
        {
            return Some(Fate::unknown("its `pull_policy` may pull a newer image"));
        }
        let reference = service.image.as_ref()?;
        let found = self.facts.host.images.get(reference);
        let Some(Some(now)) = found else {
            return Some(Fate::Unknown(match found {
                Some(_) => format!("image {reference} is not on this host"),
                None => format!("it is unknown whether image {reference} is on this host"),
            }));
        };
        let id = now["Id"].as_str();
        let is_other = id.is_some_and(|id| id != container.image_id());
        is_other.then(|| {
            let edited = self.by_edited_image(container, service);
            edited.unwrap_or_else(|| Fate::Recreated(newer_image(reference)))
        })
    }

    /// The same, if the file names another image than the one that the container was created with.
    fn by_edited_image(&self, container: &Container, service: &Service) -> Option<Fate> {
        let is_named = service.image.as_deref() == Some(container.image_name());
        let fate = (!is_named).then(|| self.by_hash(container, service));
        fate.filter(|fate| matches!(fate, Fate::Recreated(_)))
    }

    /// Whether the name of its image refers to another image now, and Compose recreates it because of that.
    pub fn has_newer_image(&self, container: &Container, service: &Service) -> bool {
        matches!(self.by_image(container, service), Some(Fate::Recreated(_)))
            && self.by_edited_image(container, service).is_none()
    }

    /// Whether the Compose file builds the image of a service and does not name it.
    fn is_built(&self, service: &str) -> bool {
        let on_disk = self.facts.projects.on_disk.as_ref().ok();
        let found = on_disk.and_then(|project| project.service(service));
        found.is_some_and(|service| service.is_built() && !service.names_image())
    }

    fn by_hash(&self, container: &Container, service: &Service) -> Fate {
        let label = |name: &str| container.compose_label(self.facts.tool, name);
        let Some(labeled) = label("config-hash") else {
            return Fate::unknown("its container has no `config-hash` label");
        };
        let (sent, name) = (self.sent, service.name.as_str());
        let on_disk = match &self.facts.projects.on_disk {
            Ok(on_disk) => on_disk,
            Err(reason) => return Fate::unknown(reason),
        };
        if on_disk.service(name).is_none() {
            return Fate::unknown("Compose on this host printed no configuration for it");
        }
        let started_by = label("version").and_then(ComposeVersion::parse);
        let created_by = started_by.map(Dialect::of);
        let is_kept = |dialect| sent.has_hash(name, labeled, [dialect]);
        if let Some(portainer) = self.portainer {
            let dialects = portainer.dialects();
            let mut certain = dialects.iter();
            if certain.all(|&dialect| sent.keeps(name, labeled, dialect, created_by)) {
                return if portainer.is_library && service.is_built() {
                    Fate::Recreated("this version of Portainer builds its image again".to_owned())
                } else {
                    Fate::Unchanged
                };
            }
            let (kept, others): (Vec<_>, Vec<_>) =
                dialects.into_iter().partition(|&dialect| is_kept(dialect));
            if let Some(&first) = kept.first() {
                let mut kept = kept.into_iter();
                let mut others = others.into_iter();
                let part = kept
                    .find_map(|dialect| sent.open_part(name, dialect, created_by))
                    .or_else(|| others.find_map(|other| sent.difference(name, first, other)));
                return Fate::Unknown(format!(
                    "Compose in this version of Portainer may record {} in another form, and treat that as a change",
                    part.unwrap_or("the service")
                ));
            }
        }
        // Of the same configuration, each version computes its own hash.
        let mut dialects = Dialect::all().into_iter();
        if let Some(created_by) = dialects.find(|&dialect| is_kept(dialect)) {
            return self.by_dialect(container, created_by, sent, name);
        }
        // The hash contains the ID of the container that it shares with, which is not always known.
        if service.shares() && !self.is_edited(name) {
            return Fate::unknown("a namespace or volumes are shared with another container");
        }
        if sent.is_completed(name) {
            return Fate::unknown("Compose completes its configuration when it starts the service");
        }
        let record = self.facts.record.as_ref();
        let adopted = record.filter(|_| !self.facts.before.has_failed());
        let by_hand =
            adopted.and_then(|record| edited::why_by_hand(container, record, self.facts.tool));
        if on_disk.is_of(name, labeled) {
            let why = if self.is_built(name) {
                BUILT
            } else {
                "configured differently in Portainer's copy of the Compose file"
            };
            return Fate::Recreated(by_hand.unwrap_or_else(|| why.to_owned()));
        }
        match (started_by, label("version")) {
            (Some(version), _) if Dialect::is_known(version) => {
                let Facts { sent, source, .. } = *self.facts;
                let env_files = self
                    .facts
                    .env_files
                    .get(name)
                    .map_or(&[][..], Vec::as_slice);
                let why = || edited::why_changed(record, sent, source.text, env_files);
                Fate::Recreated(by_hand.unwrap_or_else(why))
            }
            (_, Some(version)) => Fate::Unknown(format!(
                "Compose {version} started it, which stacklift does not know"
            )),
            (_, None) => Fate::unknown("it is unknown which version of Compose started it"),
        }
    }

    /// Whether a service certainly has another configuration in what is sent than in what Portainer deployed.
    fn is_edited(&self, service: &str) -> bool {
        let dialects = self.portainer.map(PortainerCompose::dialects);
        let deployed = self.facts.projects.deployed.as_ref();
        deployed.is_some_and(|deployed| {
            let dialects = dialects.unwrap_or_else(Dialect::all);
            deployed.service(service).is_some() && self.sent.differs(deployed, service, dialects)
        })
    }

    /// The fate of a container with the configuration that is sent, whose hash Portainer's Compose does not compute.
    fn by_dialect(
        &self,
        container: &Container,
        created_by: Dialect,
        sent: &Project,
        service: &str,
    ) -> Fate {
        let Some(portainer) = self.portainer else {
            return Fate::unknown("the version of Compose in Portainer is unknown");
        };
        let version = self.facts.label(container, "version");
        let creator = version.map_or_else(
            || "another version of Compose".to_owned(),
            |version| format!("Compose {version}"),
        );
        let mut dialects = portainer.dialects().into_iter();
        let part = dialects.find_map(|dialect| sent.difference(service, created_by, dialect));
        Fate::Recreated(format!(
            "{creator} started it; Compose in Portainer records {} in another form, and treats that as a change",
            part.unwrap_or("the service")
        ))
    }
}

/// What happens to a container that does not run (N08).
pub fn starts(container: &Container) -> &'static str {
    match container.exit_code() {
        Some(0) if !container.is_kept_running() => "has finished and will run again",
        _ => "is stopped and will be started",
    }
}

/// The network or volume of the service that its container lacks. Compose looks at the networks of running containers only.
fn lack(container: &Container, service: &Service) -> Option<String> {
    let has = |name: &str| container.networks().any(|(network, _)| network == name);
    let is_compared = service.get("network_mode").is_none()
        && container.state() == "running"
        && !container.is_restarting();
    let mut networks = service.networks.keys().filter(|_| is_compared);
    if let Some(network) = networks.find(|name| !has(name)) {
        return Some(format!(
            "its container is not connected to network {network}"
        ));
    }
    let mounted = container.volumes();
    let mut volumes = service.volumes().map(|(_, volume)| &volume.name);
    let lacks = volumes.any(|volume| mounted.iter().all(|(name, _)| name != volume));
    lacks.then(|| "its container does not mount a volume of its service".to_owned())
}

#[cfg(test)]
mod tests;
