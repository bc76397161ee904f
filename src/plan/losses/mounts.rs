//! The mounts of a container that its successor will have from another source, or not at all (B01).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

use composefile::{
    document::Node,
    path::clean,
    services::{MountSpec, MountType, one_or_many, split_at_colons},
};
use serde_json::Value;

use crate::{
    finding::Kind,
    model::{Variable, values},
    plan::{
        Facts, InPortainer, Sent,
        facts::services::{Given, Place, SentService, SentStack, with_sent},
        losses::reported::Reported,
    },
    snapshot::{Inspected, is_id},
};

/// How far `volumes_from` is followed from service to service.
const DEPTH: usize = 16;

/// What the text mounts at one target.
#[derive(Clone)]
struct Mount {
    source: Source,
    /// `None` if it is not compared.
    is_read_only: Option<bool>,
}

/// A mount of the text: its target, its source, and whether it is read-only.
type Written = (String, Source, Option<bool>);

#[derive(Clone)]
enum Source {
    Bind(Place),
    Volume {
        name: String,
        /// Options of its driver may make it a directory of the host.
        has_options: bool,
    },
    Anonymous,
    Tmpfs,
    /// Unknown, or reported by the losses of the text.
    Unknown,
}

/// What the text mounts into a service.
struct Mounts {
    by_target: BTreeMap<String, Mount>,
    /// Whether there are no others.
    is_whole: bool,
}

/// What a container mounts.
enum Now {
    /// A named volume.
    Volume(String),
    Path(String),
    Tmpfs,
}

impl fmt::Display for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(name) => write!(f, "volume {name}"),
            Self::Path(path) => f.write_str(path),
            Self::Tmpfs => f.write_str("a tmpfs"),
        }
    }
}

/// A mount of a container.
struct Running<'c> {
    source: Now,
    /// Where it is on the host: the path that was asked for, and the one that was found.
    places: Vec<&'c str>,
    is_read_only: Option<bool>,
}

/// The losses of mounts, and what is unknown of them. Anonymous volumes are left out: they are always lost.
pub fn losses(
    facts: &Facts,
    container: Inspected,
    service: &SentService,
    reported: Reported,
) -> (Vec<(Kind, String)>, Vec<String>) {
    let after = mounts(service, reported, DEPTH);
    let (mut losses, mut unknown) = (Vec::new(), Vec::new());
    for (target, now) in running(container) {
        let kept = match now.source {
            Now::Volume(_) => "; the volume keeps its data",
            _ => "",
        };
        let source = &now.source;
        let Some(mount) = after.by_target.get(&target) else {
            let message = format!("{source} is no longer mounted at {target}{kept}");
            losses.extend(after.is_whole.then_some((Kind::Other, message)));
            continue;
        };

        losses.push(match moved(facts, &now, &mount.source) {
            // The container still has it.
            Moved::No if matches!(source, Now::Path(path) if facts.lacks(path)) => (
                Kind::Other,
                format!("{source} no longer exists: Docker mounts an empty directory at {target}"),
            ),
            Moved::No if is_in_clone(facts, &now) => (
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
pub fn anonymous(service: &SentService, image: Option<&Value>) -> BTreeSet<String> {
    let found = mounts(service, Reported(&[]), DEPTH);
    let own = service.mounts().into_iter().filter(|mount| {
        let source = mount.source.as_deref().unwrap_or_default();
        // Docker rejects any other target.
        let is_path = mount.target.starts_with('/');
        mount.kind == MountType::Volume && source.is_empty() && is_path
    });
    let own = own.map(|mount| clean(&mount.target)).filter(|path| {
        let mount = found.by_target.get(path);
        mount.is_some_and(|mount| matches!(mount.source, Source::Anonymous))
    });
    let is_own = found.is_whole && service.items("volumes_from").next().is_none();
    let image = image.filter(|_| is_own);
    let declared = image.and_then(|image| image.pointer("/Config/Volumes")?.as_object());
    let declared = declared.into_iter().flatten().map(|(path, _)| clean(path));
    let free = declared.filter(|path| !found.by_target.contains_key(path));
    own.chain(free).collect()
}

/// Whether the text mounts something at a path of a service that is no anonymous volume.
pub fn mounts_other(service: &SentService, path: &str) -> bool {
    let found = mounts(service, Reported(&[]), DEPTH);
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

fn moved(facts: &Facts, now: &Running, after: &Source) -> Moved {
    match (&now.source, after) {
        // Only a text from Git has such paths in an adoption.
        (_, Source::Bind(Place::Folder(below))) if facts.is_adoption => {
            let is_it =
                |place: &&str| facts.is_portainers(place) && Path::new(place).ends_with(below);
            if now.places.iter().any(is_it) {
                return Moved::No;
            }
            let what = if below.is_empty() {
                "the directory"
            } else {
                below
            };
            Moved::To(format!("{what} of Portainer's copy of the repository"))
        }
        // The losses of the text name the paths that Portainer resolves.
        (_, Source::Unknown)
        | (
            Now::Path(_),
            Source::Bind(Place::Folder(_) | Place::Unknown)
            | Source::Volume {
                has_options: true, ..
            },
        ) => Moved::Unknown,
        (_, Source::Bind(Place::Absolute(path))) => {
            if now.places.iter().any(|place| clean(place) == *path) {
                return Moved::No;
            }
            let places = now.places.iter();
            let same: Vec<_> = places
                .map(|place| (facts.is_same_file)(place, path))
                .collect();
            if same.contains(&Some(true)) {
                Moved::No
            } else if same.contains(&None) {
                Moved::Unreadable(path.clone())
            } else {
                Moved::To(path.clone())
            }
        }
        (Now::Tmpfs, Source::Tmpfs) => Moved::No,
        (Now::Volume(now), Source::Volume { name, .. }) if now == name => Moved::No,
        (_, Source::Volume { name, .. }) => Moved::To(format!("volume {name}")),
        (_, Source::Bind(_)) => Moved::To("a path inside Portainer".to_owned()),
        (_, Source::Anonymous) => Moved::To("a new anonymous volume".to_owned()),
        (_, Source::Tmpfs) => Moved::To("a tmpfs".to_owned()),
    }
}

/// Whether a container may have written into Portainer's clone of a repository, which a deployment replaces.
fn is_in_clone(facts: &Facts, now: &Running) -> bool {
    let record = facts.record;
    record.is_some_and(|record| record.in_portainer == InPortainer::FromGit)
        && now.is_read_only != Some(true)
        && now.places.iter().any(|place| facts.is_portainers(place))
}

/// The mounts of a container, by target.
fn running(container: Inspected) -> BTreeMap<String, Running> {
    let mut found = BTreeMap::new();
    for (target, _) in container.fields("/HostConfig/Tmpfs") {
        let mount = Running {
            source: Now::Tmpfs,
            places: Vec::new(),
            is_read_only: None,
        };
        found.insert(clean(target), mount);
    }
    for mount in container.mounts() {
        let text = |key: &str| mount[key].as_str().unwrap_or_default();
        let target = clean(text("Destination"));
        let mut places = asked_for(container, &target);
        places.push(text("Source"));
        places.retain(|place| place.starts_with('/'));
        let source = match text("Type") {
            "volume" if is_id(text("Name")) => continue,
            "volume" => Now::Volume(text("Name").to_owned()),
            "bind" if !places.is_empty() => Now::Path(clean(places[0])),
            "tmpfs" => Now::Tmpfs,
            _ => continue,
        };
        let is_writable = mount["RW"]
            .as_bool()
            .filter(|_| !matches!(source, Now::Tmpfs));
        let mount = Running {
            source,
            places,
            is_read_only: is_writable.map(|is| !is),
        };
        found.insert(target, mount);
    }
    found
}

/// The host paths that the creator of a container named for a target. The engine may have resolved them since.
fn asked_for<'c>(container: Inspected<'c>, target: &str) -> Vec<&'c str> {
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

/// What the text mounts into a service.
fn mounts(service: &SentService, reported: Reported, depth: usize) -> Mounts {
    let mut found = Mounts {
        by_target: BTreeMap::new(),
        is_whole: !service.is_partial(),
    };
    for item in service.items("volumes_from") {
        found.inherit(service, item, reported, depth);
    }
    for item in service.nodes("tmpfs").flat_map(one_or_many) {
        let text = service.stack.read(item).known();
        let target = text.as_deref().and_then(|text| text.split(':').next());
        found.add(target.map(|target| (target.to_owned(), Source::Tmpfs, None)));
    }
    for item in service.items("volumes") {
        let is_reported = reported.names(service, item);
        found.is_whole &= !is_reported;
        let mount = if item.is_mapping() {
            long(service, item, reported)
        } else {
            short(service, item, reported)
        };
        found.add(mount.map(|(target, source, is_read_only)| {
            let source = if is_reported { Source::Unknown } else { source };
            (target, source, is_read_only)
        }));
    }
    for (target, item) in placed(service) {
        found.add(target.map(|target| (target, content(service, item), None)));
    }
    found
}

impl Mounts {
    fn add(&mut self, mount: Option<Written>) {
        self.is_whole &= mount.is_some();
        if let Some((target, source, is_read_only)) = mount {
            let mount = Mount {
                source,
                is_read_only,
            };
            self.by_target.insert(clean(&target), mount);
        }
    }

    /// An item of `volumes_from`: a service with an optional mode, or `container:NAME`, whose mounts are unknown.
    fn inherit(&mut self, service: &SentService, item: Node<'_>, reported: Reported, depth: usize) {
        let text = service.stack.read(item).known().unwrap_or_default();
        let mut parts = text.splitn(2, ':');
        let (name, mode) = (parts.next().unwrap_or_default(), parts.next());
        let services = service.stack.services();
        let from = services.iter().find(|other| other.name == name);
        let Some(from) = from.filter(|_| name != "container" && depth > 0) else {
            self.is_whole = false;
            return;
        };
        let from = mounts(from, reported, depth - 1);
        self.is_whole &= from.is_whole;
        for (target, mut mount) in from.by_target {
            // Compose drops the mode, at least version 2.26.
            mount.is_read_only = mount.is_read_only.filter(|_| mode.is_none());
            self.by_target.insert(target, mount);
        }
    }
}

fn short<'d>(
    service: &SentService<'_, 'd, '_>,
    item: Node<'d>,
    reported: Reported,
) -> Option<Written> {
    let text = service.stack.read(item).known()?;
    let spec = MountSpec::parse(&text)?;
    let written = item.as_str().map(split_at_colons).unwrap_or_default();
    let source = match (spec.kind, spec.source) {
        (MountType::Bind, Some(path)) => bind(service, path, written.first().copied(), reported),
        (_, Some(key)) => volume(service, key),
        (_, None) => Source::Anonymous,
    };
    let mut options = spec.options.unwrap_or_default().split(',');
    let is_read_only = options.any(|option| option == "ro");
    Some((spec.target.to_owned(), source, Some(is_read_only)))
}

fn long<'d>(
    service: &SentService<'_, 'd, '_>,
    item: Node<'d>,
    reported: Reported,
) -> Option<Written> {
    let text = |key| service.stack.read_in(item, key);
    let target = text("target").known()?;
    let written = item.get("source").and_then(Node::as_str);
    let source = match (text("type").known()?.as_str(), text("source")) {
        ("bind", Given::Is(path)) => bind(service, &path, written, reported),
        ("volume", Given::Is(key)) if !key.is_empty() => volume(service, &key),
        ("volume", Given::No) => Source::Anonymous,
        ("tmpfs", _) => Source::Tmpfs,
        _ => Source::Unknown,
    };
    let is_read_only = item.get("read_only").map_or(Some(false), Node::as_bool);
    Some((target, source, is_read_only))
}

/// The host path `path`, written as `written` in the text.
fn bind(service: &SentService, path: &str, written: Option<&str>, reported: Reported) -> Source {
    match service.stack.place(path, false) {
        Place::Absolute(path) if !path.starts_with('/') => Source::Unknown,
        Place::Absolute(_) if written.is_some_and(|written| reported.moves(written)) => {
            Source::Unknown
        }
        place => Source::Bind(place),
    }
}

fn volume(service: &SentService, key: &str) -> Source {
    let all = service.stack.reader.document.get("volumes");
    let options = all.and_then(|all| all.get(key)?.get("driver_opts"));
    match service.stack.resource("volumes", key).0 {
        Given::Is(name) => Source::Volume {
            name,
            has_options: options.is_some(),
        },
        Given::No | Given::Unknown => Source::Unknown,
    }
}

/// The targets of the secrets and configs of a service: Compose mounts them, or copies their content into the container.
pub fn placed_files(service: &SentService) -> Vec<String> {
    let targets = placed(service).into_iter();
    targets.filter_map(|(target, _)| target).collect()
}

/// A service, and the target of a secret or config whose content Compose copies into its containers (N17), with the content, if
/// it is known.
pub type Copied = (String, String, Option<String>);

/// What Compose copies into the containers of a text.
pub fn copied_files(sent: Sent, project: &str) -> Vec<Copied> {
    with_sent(sent, project, |_, stack| {
        stack.map_or_else(Vec::new, |stack| copied(stack, sent.env))
    })
}

/// The same of a text that was read, with these variables.
pub fn copied(stack: &SentStack, env: &[Variable]) -> Vec<Copied> {
    let read = |node: Node| stack.read(node).known();
    let values = values(env);
    let value = |name: String| Some(values.get(name.as_str())?.to_string());
    let mut all = Vec::new();
    for service in stack.active() {
        for (target, of) in placed(&service) {
            let (Some(target), Some(of)) = (target, of) else {
                continue;
            };
            let content = match (of.get("content"), of.get("environment")) {
                (Some(content), _) => read(content),
                (None, Some(name)) => read(name).and_then(value),
                (None, None) => continue,
            };
            all.push((service.name.to_owned(), target, content));
        }
    }
    all
}

/// The targets of the secrets and configs, as far as they are known, and what defines each.
fn placed<'d>(service: &SentService<'_, 'd, '_>) -> Vec<(Option<String>, Option<Node<'d>>)> {
    let mut found = Vec::new();
    for (section, dir) in [("secrets", "/run/secrets"), ("configs", "")] {
        let all = service.stack.reader.document.get(section);
        for item in service.items(section) {
            let source = item.get("source").unwrap_or(item);
            let target = item.get("target").unwrap_or(source);
            let target = service.stack.read(target).known().map(|target| {
                if target.starts_with('/') {
                    target
                } else {
                    format!("{dir}/{target}")
                }
            });
            let key = service.stack.read(source).known();
            let definition = key.and_then(|key| all?.get(&key));
            found.push((target, definition));
        }
    }
    found
}

/// What a secret or config mounts: only one with a `file` is a mount for certain.
fn content(service: &SentService, definition: Option<Node<'_>>) -> Source {
    let file = definition.and_then(|definition| definition.get("file"));
    match file.map(|file| service.stack.read(file)) {
        Some(Given::Is(path)) => Source::Bind(service.stack.place(&path, false)),
        _ => Source::Unknown,
    }
}

#[cfg(test)]
mod tests;
