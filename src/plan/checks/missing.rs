//! What the create needs and does not exist: files, images, external networks and volumes (B06).

use std::{collections::BTreeSet, mem::take};

use composefile::{
    document::Document,
    interpolate::interpolate,
    services::{includes, is_remote_context, services},
};
use serde_json::Value;

use crate::{
    compose::{Content, Place, Project, Service},
    finding::{Finding, Kind},
    model::{Container, Pull, compose_label, named},
    plan::{Environment, Facts, NOT_PULLED, PathKind, Sent, checks::permissions},
    text::listed,
};

/// What is missing.
#[derive(Default)]
pub struct Missing {
    pub refusals: Vec<Finding>,
    /// What is said of images that do not exist on this host and can perhaps be built.
    pub absent: Vec<String>,
    /// The images to pull before anything is removed (B27), in order.
    pub pulls: BTreeSet<Pull>,
    /// What else may be missing.
    pub doubts: Vec<String>,
    files: Vec<String>,
    unreadable: Vec<String>,
    images: Vec<String>,
    external: Vec<String>,
    runtimes: Vec<String>,
    /// Networks that Compose refuses, because they do not have its label.
    foreign: Vec<String>,
}

/// Looks for what does not exist. If Compose cannot read the text, only the files are known that it names.
pub fn missing(facts: &Facts) -> Missing {
    use Kind::{MissingFiles, OnEngine, UnreadableFiles};
    let others = facts.host.others.as_ref();
    let mut search = FileChecks {
        facts,
        portainer: others.and_then(|all| permissions::portainer(all, facts.portainer_port?)),
        missing: Missing::default(),
    };
    if let Some(document) = facts.document {
        search.files(document);
    }
    let project = facts.projects.sent.as_ref().ok();
    for service in project.into_iter().flat_map(|project| &project.services) {
        search.mounts(service);
        search.content(service);
        if service.replicas() > 0 {
            search.image(service);
        }
        search.external(service);
        search.runtime(service);
    }
    let mut missing = search.missing;
    let hint = "create them, or correct their paths in the Compose file";
    let files = Finding::new("files do not exist", hint).short("file or folder missing");
    let hint = "put its content into the Compose file";
    let unreadable = Finding::new("Portainer cannot read files", hint);
    let hint = "create it first, or correct its name";
    let external = Finding::new("external networks or volumes do not exist", hint);
    let hint = "if it is the right one, add `external: true` and its `name` to the Compose file; otherwise, remove it";
    let foreign = Finding::new("networks of the stack were not created by Compose", hint)
        .short("network not from Compose");
    let hint = "install it and restart Docker, or correct its name in the Compose file";
    let runtimes = Finding::new("runtimes are missing", hint).short("runtime missing");
    let refusals = [
        (take(&mut missing.files), files, MissingFiles),
        (take(&mut missing.unreadable), unreadable, UnreadableFiles),
        (take(&mut missing.images), unavailable_images(), OnEngine),
        (take(&mut missing.external), external, OnEngine),
        (take(&mut missing.runtimes), runtimes, OnEngine),
        (take(&mut missing.foreign), foreign, OnEngine),
    ];
    for (mut list, refusal, kind) in refusals {
        list.dedup();
        let refusal = (!list.is_empty()).then(|| refusal.details(list).of_kind(kind));
        missing.refusals.extend(refusal);
    }
    let created = project.and_then(|project| created_directories(facts, project));
    missing.doubts.extend(created);
    missing
}

/// The mounts for which Docker creates a directory, as a warning: a file may have been meant.
fn created_directories(facts: &Facts, project: &Project) -> Option<String> {
    let missing = missing_sources(facts, project, false).into_iter();
    let mounts =
        missing.map(|(service, source)| format!("{} of {service}", facts.below_dir(source)));
    // A service can mount one path at several places.
    let mounts = Vec::from_iter(mounts.collect::<BTreeSet<String>>());
    let what = match mounts.len() {
        0 => return None,
        1 => "does not exist: Docker creates an empty directory",
        _ => "do not exist: Docker creates empty directories",
    };
    Some(format!("{} {what}", listed(&mounts)))
}

/// The services, with the paths of the host that they mount, that Docker creates, and that do not exist: those that a container of
/// the service mounts, or the others.
pub fn missing_sources<'p>(
    facts: &Facts,
    project: &'p Project,
    mounted: bool,
) -> Vec<(&'p str, &'p str)> {
    let services = project.services.iter().flat_map(|service| {
        let created = service.mounts.iter().filter(|mount| mount.creates);
        created.filter_map(|mount| match &mount.place {
            Some(Place::Absolute(source)) => Some((service.name.as_str(), source.as_str())),
            _ => None,
        })
    });
    let missing = services.filter(|(service, source)| {
        let mut containers = facts.of_service(service);
        containers.any(|container| mounts(container, source)) == mounted && facts.lacks(source)
    });
    missing.collect()
}

/// Whether a container mounts a path of the host.
fn mounts(container: &Container, source: &str) -> bool {
    let mut mounts = container.mounts();
    mounts.any(|mount| mount["Type"] == "bind" && mount["Source"] == source)
}

/// The images that a text names and Compose does not build. Without a Compose program, they are all that is known of what a
/// deployment needs, and are pulled before a migration stops anything (B27).
pub fn images_to_have(document: &Document, sent: Sent) -> BTreeSet<String> {
    let variables = sent.variables();
    let lookup = |name: &str| variables.get(name).cloned();
    let services = services(document).into_iter().filter(|service| {
        let has = |key: &str| service.node.get(key).is_some();
        !has("build") && !has("profiles") && !has("pull_policy")
    });
    let images = services.filter_map(|service| service.node.get("image")?.as_str());
    let images = images.filter_map(|image| interpolate(image, &lookup).ok());
    images.map(Into::into).collect()
}

/// The refusal of images that Portainer could not get.
pub fn unavailable_images() -> Finding {
    let hint = "pull or build it first, without `pull_policy: build`";
    Finding::new("images cannot be pulled or built", hint).short("image missing")
}

/// The files of the host that the text names, which Portainer's Compose sees only if they are in its container, with what names
/// them. Compose says if one of the stack's directory is missing.
fn host_files<'d>(document: &'d Document<'d>) -> Vec<(String, &'d str)> {
    let mut files = Vec::new();
    for include in includes(document) {
        files.push(("`include`".to_owned(), include));
    }
    for service in services(document) {
        let of = |key: &str| format!("{}: `{key}`", service.name);
        files.extend(service.extends_file().map(|file| (of("extends"), file)));
        let env_files = service.env_files().into_iter();
        let env_files = env_files.filter(|file| file.required != Some("false"));
        files.extend(env_files.map(|file| (of("env_file"), file.path)));
        let label_files = service.label_files().into_iter();
        files.extend(label_files.map(|file| (of("label_file"), file)));
    }
    files.retain(|(_, path)| path.starts_with('/'));
    files
}

/// Whether Compose reads files of the host, whose contents are unknown in Portainer's container.
pub fn reads_files(document: &Document) -> bool {
    !host_files(document).is_empty()
}

struct FileChecks<'a, 'f> {
    facts: &'a Facts<'f>,
    /// Portainer's container, if Portainer runs on this host and its container can be identified.
    portainer: Option<&'f Container>,
    missing: Missing,
}

/// Whether something exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Yes,
    No,
    Unknown,
}

impl FileChecks<'_, '_> {
    /// Files of the host that Portainer reads (M11): refused if one is certainly missing, a doubt if that is unknown.
    fn files(&mut self, document: &Document) {
        for (what, path) in host_files(document) {
            let (list, why) = match self.portainer_has(&Place::Absolute(path.to_owned())) {
                Found::Yes => continue,
                Found::No => (&mut self.missing.unreadable, ""),
                Found::Unknown => (&mut self.missing.doubts, "the deployment fails if "),
            };
            list.push(format!("{what}: {why}Portainer cannot read {path}"));
        }
    }

    /// The sources of bind mounts that Docker does not create (M13), and devices.
    fn mounts(&mut self, service: &Service) {
        for mount in service.mounts.iter().filter(|mount| !mount.creates) {
            if let Some(place) = &mount.place {
                self.read_by_engine(&format!("{} mounts", service.name), place);
            }
        }
        let devices = service.get("devices").and_then(Value::as_array);
        for item in devices.into_iter().flatten() {
            let given = item["source"].as_str().or(item.as_str());
            let device = given.and_then(|given| given.split(':').next());
            // Another name is one of a device of CDI.
            if let Some(device) = device.filter(|device| device.starts_with('/')) {
                let place = Place::Absolute(device.to_owned());
                self.read_by_engine(&format!("{} needs", service.name), &place);
            }
        }
    }

    /// The files of secrets and configs.
    fn content(&mut self, service: &Service) {
        for file in &service.files {
            if let Content::File(place) = &file.content {
                let noun = file.section.trim_end_matches('s');
                self.read_by_engine(&format!("{noun} {} needs", file.key), place);
            }
        }
    }

    /// An image that must be on the engine, or a build whose files must be readable. With an image that exists, Compose
    /// builds only with `pull_policy: build`. Compose pulls an image that exists if its `pull_policy` says so (N10), or if
    /// its platform is not the service's.
    fn image(&mut self, service: &Service) {
        let Some(image) = service.image.clone() else {
            return;
        };
        let host = self.facts.host;
        let is_absent = host.lacks_image(&image);
        if self.facts.remote.environment.is_other_engine() {
            return;
        }
        let policy = service.text(&["pull_policy"]).unwrap_or_default();
        let name = &service.name;
        if service.is_built() {
            let reason = match policy.as_str() {
                "build" => "`pull_policy: build` builds its image".to_owned(),
                _ if is_absent => format!("image {image} is not on this host"),
                _ => return,
            };
            // Compose first tries to pull an image that the text names.
            let is_built = !service.names_image() || matches!(policy.as_str(), "build" | "never");
            self.build(&format!("{name}: {reason}"), service, is_built);
        } else if is_absent && policy == "never" {
            self.missing.images.push(format!(
                "{name}: image {image} is not on this host, and `pull_policy: never` forbids pulling it"
            ));
        } else if !matches!(policy.as_str(), "never" | "build") {
            let pull = service.pull(image);
            let is_pulled = !NOT_PULLED.contains(&policy.as_str());
            let found = host.image(&pull.image);
            let is_other = found.is_some_and(|found| is_for_another_platform(found, &pull));
            if is_absent || is_pulled || is_other {
                self.missing.pulls.insert(pull);
            }
        }
    }

    /// The context and the Dockerfile of a build. A missing one makes the create fail if the image is certainly built.
    fn build(&mut self, reason: &str, service: &Service, is_built: bool) {
        let written = service.text(&["build", "context"]).unwrap_or_default();
        let Some(place) = service
            .context
            .as_ref()
            .filter(|_| !is_remote_context(&written))
        else {
            return;
        };
        let mut found = self.portainer_has(place);
        let mut what = "its build context";
        if found != Found::No && service.text(&["build", "dockerfile_inline"]).is_none() {
            let name = service.text(&["build", "dockerfile"]);
            let name = name.unwrap_or_else(|| "Dockerfile".to_owned());
            let is_missing = |name: &str| self.portainer_has(&place.join(name)) == Found::No;
            // Compose takes both spellings of the default name.
            if is_missing(&name) && (name != "Dockerfile" || is_missing("dockerfile")) {
                found = Found::No;
                what = "the Dockerfile of its build context";
            }
        }
        let context = match place {
            Place::Folder(below) if below.is_empty() => ".",
            Place::Folder(below) => below,
            Place::Absolute(_) | Place::Unknown => &written,
        };
        match found {
            Found::Yes => {}
            Found::No if is_built => self.missing.images.push(format!(
                "{reason}, and Portainer cannot read {what} {context}"
            )),
            Found::No | Found::Unknown => self.missing.absent.push(format!(
                "{reason}; if Portainer cannot read {what} {context}, the deployment fails"
            )),
        }
    }

    fn runtime(&mut self, service: &Service) {
        let known = &self.facts.host.runtimes;
        let wanted = service.get("runtime").and_then(Value::as_str);
        // containerd finds these by their names (Docker 23).
        let is_named = |name: &str| name.is_empty() || name.starts_with("io.containerd.");
        if let Some(name) = wanted
            && !known.is_empty()
            && !known.contains(name)
            && !is_named(name)
            && !self.facts.remote.environment.is_other_engine()
        {
            let what = format!("{}: Docker has no runtime `{name}`", service.name);
            self.missing.runtimes.push(what);
        }
    }

    fn external(&mut self, service: &Service) {
        if self.facts.remote.environment.is_other_engine() {
            return;
        }
        let label = compose_label(self.facts.tool, "network");
        let (external, foreign) = (&mut self.missing.external, &mut self.missing.foreign);
        let known = self.facts.host.networks.as_ref();
        for (name, endpoint) in known.iter().flat_map(|_| &service.networks) {
            // `network_mode` names one that is not of the text.
            let own = endpoint.network.as_ref().filter(|one| !one.is_external);
            let found = known.and_then(|all| named(all, name));
            match (own, found) {
                (None, None) if !matches!(name.as_str(), "host" | "none" | "bridge") => {
                    external.push(format!("network {name} does not exist"));
                }
                (Some(own), Some(found)) if found["Labels"][&label] != *own.key => {
                    foreign.push(format!(
                        "network {name} exists, but Compose did not create it as {}",
                        own.key
                    ));
                }
                _ => {}
            }
        }
        let known = &self.facts.host.volumes;
        for (_, volume) in service.volumes().filter(|(_, volume)| volume.is_external) {
            let name = &volume.name;
            let exists = known.as_ref().is_none_or(|all| named(all, name).is_some());
            if !exists && !self.facts.runs.created.contains(name) {
                external.push(format!("volume {name} does not exist"));
            }
        }
    }

    /// Whether Portainer can read a path of the text. Its container sees only what is mounted into it.
    fn portainer_has(&self, place: &Place) -> Found {
        let path = match place {
            Place::Unknown => return Found::Unknown,
            // The folder holds nothing but the text and `stack.env` (M07).
            Place::Folder(below) if below.is_empty() => return Found::Yes,
            Place::Folder(_) => return Found::No,
            Place::Absolute(path) => path,
        };
        let Some(portainer) = self.portainer else {
            return Found::Unknown;
        };
        let mounts = portainer.mounts().filter_map(|mount| {
            let target = mount["Destination"].as_str()?.trim_end_matches('/');
            let below = path.strip_prefix(target)?;
            (below.is_empty() || below.starts_with('/')).then_some((mount, below))
        });
        match mounts.min_by_key(|(_, below)| below.len()) {
            None => Found::No,
            Some((mount, below)) if mount["Type"] == "bind" => {
                let source = mount["Source"].as_str().unwrap_or_default();
                self.host_has(&format!("{source}{below}"))
            }
            Some(_) => Found::Unknown,
        }
    }

    /// A file that the engine mounts: refused if it is certainly missing.
    fn read_by_engine(&mut self, what: &str, place: &Place) {
        let missing = match place {
            Place::Folder(below) if !below.is_empty() => {
                format!("{what} {below}, which Portainer does not have")
            }
            Place::Absolute(path) if self.host_has(path) == Found::No => {
                let shown = self.facts.below_dir(path);
                format!("{what} {shown}, which does not exist")
            }
            Place::Folder(_) | Place::Absolute(_) | Place::Unknown => return,
        };
        self.missing.files.push(missing);
    }

    /// The engine's host is this host only if the environment is this engine.
    fn host_has(&self, path: &str) -> Found {
        if self.facts.remote.environment != Environment::SameEngine {
            return Found::Unknown;
        }
        match (self.facts.lookup)(path) {
            PathKind::File | PathKind::Directory => Found::Yes,
            PathKind::Missing => Found::No,
            PathKind::Unknown => Found::Unknown,
        }
    }
}

/// Whether an image that exists is for another operating system or processor than the service's `platform`.
fn is_for_another_platform(found: &Value, pull: &Pull) -> bool {
    let mut wanted = pull.platform.iter().flat_map(|name| name.split('/'));
    let (Some(system), Some(processor)) = (wanted.next(), wanted.next()) else {
        return false;
    };
    let processor = match processor {
        "x86_64" | "x86-64" => "amd64",
        "aarch64" => "arm64",
        "i386" => "386",
        "armhf" | "armel" => "arm",
        processor => processor,
    };
    let is = |key: &str, value: &str| found[key].as_str().is_none_or(|found| found == value);
    !is("Os", system) || !is("Architecture", processor)
}
