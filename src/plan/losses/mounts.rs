//! The mounts of a container that its successor will have from another source, or not at all (B01).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

use composefile::{
    path::clean,
    services::{MountSpec, MountType},
};
use serde_json::Value;

use crate::{
    compose::{Content, Place, Project, Service},
    finding::Kind,
    model::{Container, is_id},
    plan::{Facts, InPortainer, losses::text::INSIDE},
};

/// What a container has at one target.
#[derive(Clone, PartialEq)]
struct Mount {
    source: Source,
    /// `None` if it is not compared.
    is_read_only: Option<bool>,
}

#[derive(Clone, PartialEq)]
enum Source {
    Bind(Place),
    Volume {
        name: String,
        /// Options of its driver may make it a directory of the host.
        has_options: bool,
    },
    Anonymous,
    Tmpfs,
    Unknown,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(Place::Absolute(path)) => f.write_str(path),
            Self::Bind(Place::Folder(_) | Place::Unknown) => f.write_str(INSIDE),
            Self::Volume { name, .. } => write!(f, "volume {name}"),
            Self::Anonymous => f.write_str("a new anonymous volume"),
            Self::Tmpfs => f.write_str("a tmpfs"),
            Self::Unknown => f.write_str("something else"),
        }
    }
}

/// What the text mounts into a service.
struct Mounts {
    by_target: BTreeMap<String, Mount>,
    /// Whether there are no others.
    is_whole: bool,
}

/// The losses of mounts, and what is unknown of them. Anonymous volumes are left out: they are always lost.
pub fn losses(
    facts: &Facts,
    container: &Container,
    service: &Service,
) -> (Vec<(Kind, String)>, Vec<String>) {
    let after = sent(facts, service);
    let on_disk = facts.projects.on_disk.as_ref().ok();
    let on_disk = on_disk.filter(|_| !facts.is_adoption());
    let before = on_disk.and_then(|all| Some(mounts(Some(all), all.service(&service.name)?)));
    let (mut losses, mut unknown) = (Vec::new(), Vec::new());
    let running = running(container);
    let has = |target: &str| {
        let mut all = container.mounts();
        all.any(|mount| mount["Destination"].as_str().map(clean).as_deref() == Some(target))
    };
    for (target, Mount { source, .. }) in &after.by_target {
        // A volume with the name of an anonymous one is the container's own. `tmpfs` is compared with the other settings.
        let is_new = match source {
            Source::Bind(_) => true,
            Source::Volume { name, .. } => !is_id(name),
            Source::Anonymous | Source::Tmpfs | Source::Unknown => false,
        };
        if is_new && facts.is_adoption() && !running.contains_key(target) && !has(target) {
            losses.push((Kind::Edited, format!("new mount of {source} at {target}")));
        }
    }
    for (target, (now, places)) in running {
        let is_changed =
            |before: &Mounts| before.by_target.get(&target) != after.by_target.get(&target);
        // The losses of the text say so.
        if before.as_ref().is_some_and(is_changed) {
            continue;
        }
        let source = &now.source;
        let kept = match source {
            Source::Volume { .. } => "; the volume keeps its data",
            _ => "",
        };
        let Some(mount) = after.by_target.get(&target) else {
            let message = format!("{source} is no longer mounted at {target}{kept}");
            losses.extend(after.is_whole.then_some((Kind::Other, message)));
            continue;
        };

        losses.push(match moved(facts, (source, &places), &mount.source) {
            // The container still has it.
            Moved::No if matches!(source, Source::Bind(Place::Absolute(path)) if facts.lacks(path)) => (
                Kind::Other,
                format!("{source} no longer exists: Docker mounts an empty directory at {target}"),
            ),
            Moved::No if is_in_clone(facts, &now, &places) => (
                Kind::Other,
                format!(
                    "files that were written to {source} may be lost: Portainer replaces its copy of the repository"
                ),
            ),
            Moved::No => match (mount.is_read_only, now.is_read_only) {
                (Some(true), Some(false)) => {
                    (Kind::Edited, format!("{target} becomes read-only"))
                }
                (Some(false), Some(true)) => {
                    (Kind::Edited, format!("{target} becomes writable"))
                }
                _ => continue,
            },
            Moved::To(after) => (
                Kind::Other,
                format!("{after} is mounted at {target} instead of {source}{kept}"),
            ),
            Moved::Unknown => continue,
            Moved::Unreadable(path) => {
                unknown.push(format!(
                    "cannot verify that {path} is the same directory as {source}, which {} mounts at {target}",
                    container.name()
                ));
                continue;
            }
        });
    }
    (losses, unknown)
}

/// The paths at which a container of a service has anonymous volumes of its own: from the text, and from the image if no other
/// service's volumes can be there.
pub fn anonymous(facts: &Facts, service: &Service, image: Option<&Value>) -> BTreeSet<String> {
    let found = sent(facts, service);
    let own = service.mounts.iter().filter(|mount| {
        // Docker rejects any other target.
        let is_path = mount.target.starts_with('/');
        mount.kind == MountType::Volume && mount.volume.is_none() && is_path
    });
    let own = own.map(|mount| clean(&mount.target)).filter(|path| {
        let mount = found.by_target.get(path);
        mount.is_some_and(|mount| matches!(mount.source, Source::Anonymous))
    });
    let is_own = found.is_whole && service.get("volumes_from").is_none();
    let image = image.filter(|_| is_own);
    let declared = image.and_then(|image| image.pointer("/Config/Volumes")?.as_object());
    let declared = declared.into_iter().flatten().map(|(path, _)| clean(path));
    let free = declared.filter(|path| !found.by_target.contains_key(path));
    own.chain(free).collect()
}

/// Whether the text mounts something at a path of a service that is no anonymous volume.
pub fn mounts_other(facts: &Facts, service: &Service, path: &str) -> bool {
    let found = sent(facts, service);
    let mount = found.by_target.get(path);
    mount.is_some_and(|mount| !matches!(mount.source, Source::Anonymous))
}

enum Moved {
    No,
    To(String),
    Unknown,
    /// One of the two paths could not be looked at.
    Unreadable(String),
}

/// `now` is the source, and where it is on the host: the path that was asked for, and the one that was found.
fn moved(facts: &Facts, (now, places): (&Source, &[&str]), after: &Source) -> Moved {
    match (now, after) {
        // Only a text from Git has such paths in an adoption.
        (_, Source::Bind(Place::Folder(below))) if facts.is_adoption() => {
            let is_it =
                |place: &&str| facts.is_portainers(place) && Path::new(place).ends_with(below);
            if places.iter().any(is_it) {
                return Moved::No;
            }
            let what = if below.is_empty() {
                "the directory"
            } else {
                below
            };
            Moved::To(format!("{what} of Portainer's copy of the repository"))
        }
        (_, Source::Unknown)
        | (
            Source::Bind(_),
            Source::Volume {
                has_options: true, ..
            },
        ) => Moved::Unknown,
        (_, Source::Bind(Place::Absolute(path))) => {
            if places.iter().any(|place| clean(place) == *path) {
                return Moved::No;
            }
            let is_same = |place: &&str| (facts.is_same_file)(place, path);
            let same: Vec<_> = places.iter().map(is_same).collect();
            if same.contains(&Some(true)) {
                Moved::No
            } else if same.contains(&None) {
                Moved::Unreadable(path.clone())
            } else {
                Moved::To(path.clone())
            }
        }
        (Source::Tmpfs, Source::Tmpfs) => Moved::No,
        (Source::Volume { name: now, .. }, Source::Volume { name, .. }) if now == name => Moved::No,
        (_, after) => Moved::To(after.to_string()),
    }
}

/// Whether a container may have written into Portainer's clone of a repository, which a deployment replaces.
fn is_in_clone(facts: &Facts, now: &Mount, places: &[&str]) -> bool {
    let record = facts.record;
    record.is_some_and(|record| record.in_portainer == InPortainer::FromGit)
        && now.is_read_only != Some(true)
        && places.iter().any(|place| facts.is_portainers(place))
}

/// The mounts of a container by target, each with its places on the host. Anonymous volumes are left out.
fn running(container: &Container) -> BTreeMap<String, (Mount, Vec<&str>)> {
    let mut found = BTreeMap::new();
    for (target, _) in container.fields("/HostConfig/Tmpfs") {
        let mount = Mount {
            source: Source::Tmpfs,
            is_read_only: None,
        };
        found.insert(clean(target), (mount, Vec::new()));
    }
    for mount in container.mounts() {
        let text = |key: &str| mount[key].as_str().unwrap_or_default();
        let target = clean(text("Destination"));
        let mut places = asked_for(container, &target);
        places.push(text("Source"));
        places.retain(|place| place.starts_with('/'));
        let source = match text("Type") {
            "volume" if is_id(text("Name")) => continue,
            "volume" => Source::Volume {
                name: text("Name").to_owned(),
                has_options: false,
            },
            "bind" if !places.is_empty() => Source::Bind(Place::Absolute(clean(places[0]))),
            "tmpfs" => Source::Tmpfs,
            _ => continue,
        };
        let is_writable = mount["RW"].as_bool().filter(|_| source != Source::Tmpfs);
        let mount = Mount {
            source,
            is_read_only: is_writable.map(|is| !is),
        };
        found.insert(target, (mount, places));
    }
    found
}

/// The host paths that the creator of a container named for a target. The engine may have resolved them since.
fn asked_for<'c>(container: &'c Container, target: &str) -> Vec<&'c str> {
    let short = container.items("/HostConfig/Binds").filter_map(|bind| {
        let spec = MountSpec::parse(bind.as_str()?)?;
        (clean(spec.target) == target).then_some(spec.source?)
    });
    let long = container.items("/HostConfig/Mounts").filter_map(|mount| {
        let is_bind = mount["Type"] == "bind";
        let is_it = is_bind && clean(mount["Target"].as_str()?) == target;
        is_it.then_some(mount["Source"].as_str()?)
    });
    short.chain(long).collect()
}

/// What the text that is sent mounts into a service.
fn sent(facts: &Facts, service: &Service) -> Mounts {
    mounts(facts.projects.sent.as_ref().ok(), service)
}

/// What a service of a project mounts. Compose refuses services that take their volumes from each other.
fn mounts(project: Option<&Project>, service: &Service) -> Mounts {
    let mut found = Mounts {
        by_target: BTreeMap::new(),
        is_whole: true,
    };
    for source in service.texts("volumes_from") {
        found.inherit(project, &source);
    }
    for item in service.texts("tmpfs") {
        let target = item.split(':').next().unwrap_or_default();
        found.add(target, Source::Tmpfs, None);
    }
    for mount in &service.mounts {
        let source = match (mount.kind, &mount.place, &mount.volume) {
            (MountType::Bind, Some(place), _) => Source::Bind(place.clone()),
            (MountType::Volume, _, Some(volume)) => Source::Volume {
                name: volume.name.clone(),
                has_options: volume.has_options,
            },
            (MountType::Volume, _, None) => Source::Anonymous,
            _ if mount.is_tmpfs => Source::Tmpfs,
            _ => Source::Unknown,
        };
        found.add(&mount.target, source, Some(mount.is_read_only));
    }
    for file in &service.files {
        // Only one with a `file` is a mount for certain.
        let source = match &file.content {
            Content::File(place) => Source::Bind(place.clone()),
            Content::Text(_) | Content::Variable(_) | Content::External => Source::Unknown,
        };
        found.add(&file.target, source, None);
    }
    found
}

impl Mounts {
    fn add(&mut self, target: &str, source: Source, is_read_only: Option<bool>) {
        let mount = Mount {
            source,
            is_read_only,
        };
        self.by_target.insert(clean(target), mount);
    }

    /// An item of `volumes_from`: a service with an optional mode, or `container:NAME`, whose mounts are unknown.
    fn inherit(&mut self, project: Option<&Project>, item: &str) {
        let mut parts = item.splitn(2, ':');
        let (name, mode) = (parts.next().unwrap_or_default(), parts.next());
        let from = project.and_then(|project| project.service(name));
        let Some(from) = from.filter(|_| name != "container") else {
            self.is_whole = false;
            return;
        };
        let from = mounts(project, from);
        self.is_whole &= from.is_whole;
        for (target, mut mount) in from.by_target {
            // Compose drops the mode, at least version 2.26.
            mount.is_read_only = mount.is_read_only.filter(|_| mode.is_none());
            self.by_target.insert(target, mount);
        }
    }
}

#[cfg(test)]
mod tests;
