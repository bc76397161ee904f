//! What the create needs and does not exist: files, images, external networks and volumes (B06).

use std::{collections::BTreeSet, mem::take};

use composefile::{
    document::Node,
    services::{MountType, Service, includes, is_remote_context},
};
use serde_json::Value;

use crate::{
    finding::{Finding, Kind},
    model::{Container, Pull, compose_label, named},
    plan::{
        Environment, Facts, NOT_PULLED, PathKind,
        blockers::permissions,
        facts::services::{Given, Place, SentService, SentStack},
    },
    snapshot::Inspected,
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
    /// Networks that Compose refuses, because they do not have its label.
    foreign: Vec<String>,
}

/// Looks for what does not exist. An adoption creates the volumes `created`.
pub fn missing(facts: &Facts, stack: &SentStack, created: &BTreeSet<String>) -> Missing {
    use Kind::{MissingFiles, OnEngine, UnreadableFiles};
    let others = facts.others.as_ref();
    let mut search = Search {
        facts,
        created,
        stack,
        portainer: others.and_then(|all| permissions::portainer(all, facts.portainer_port?)),
        missing: Missing::default(),
    };
    search.read_at_load();
    for service in stack.active() {
        search.env_files(&service);
        search.mounts(&service);
        search.content(&service);
        if service.replicas() != Some(0) {
            search.image(&service);
        }
        search.external(&service);
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
    let refusals = [
        (take(&mut missing.files), files, MissingFiles),
        (take(&mut missing.unreadable), unreadable, UnreadableFiles),
        (take(&mut missing.images), unavailable_images(), OnEngine),
        (take(&mut missing.external), external, OnEngine),
        (take(&mut missing.foreign), foreign, OnEngine),
    ];
    for (mut list, refusal, kind) in refusals {
        list.dedup();
        let refusal = (!list.is_empty()).then(|| refusal.details(list).of_kind(kind));
        missing.refusals.extend(refusal);
    }
    missing.doubts.extend(created_directories(facts, stack));
    missing
}

/// The mounts for which Docker creates a directory, as a warning: a file may have been meant.
fn created_directories(facts: &Facts, stack: &SentStack) -> Option<String> {
    let missing = missing_sources(facts, stack, false).into_iter();
    let mounts =
        missing.map(|(service, source)| format!("{} of {service}", facts.below_dir(&source)));
    let mounts: Vec<String> = mounts.collect();
    let what = match mounts.len() {
        0 => return None,
        1 => "does not exist: Docker creates an empty directory",
        _ => "do not exist: Docker creates empty directories",
    };
    Some(format!("{} {what}", listed(&mounts)))
}

/// The services, with the paths of the host that they mount in the short syntax and that do not exist: those that a container
/// of the service mounts, or the others.
pub fn missing_sources<'d>(
    facts: &Facts,
    stack: &SentStack<'_, 'd, '_>,
    mounted: bool,
) -> Vec<(&'d str, String)> {
    let services = stack.active().into_iter().flat_map(|service| {
        let sources = short_sources(&service).into_iter();
        sources.map(move |source| (service.name, source))
    });
    let missing = services.filter(|(service, source)| {
        let is_mounted = facts.of_service(service).any(|one| mounts(one, source));
        is_mounted == mounted && facts.lacks(source)
    });
    missing.collect()
}

/// Whether a container mounts a path of the host.
fn mounts(container: Inspected, source: &str) -> bool {
    let mut mounts = container.mounts();
    mounts.any(|mount| mount["Type"] == "bind" && mount["Source"] == source)
}

/// The paths of the host that a service mounts in the short syntax.
fn short_sources(service: &SentService) -> Vec<String> {
    let mounts = service.mounts().into_iter();
    let binds = mounts.filter(|mount| mount.is_short && mount.kind == MountType::Bind);
    let places = binds.filter_map(|bind| Some(service.stack.place(&bind.source?, false)));
    let sources = places.filter_map(|place| match place {
        Place::Absolute(source) => Some(source),
        Place::Folder(_) | Place::Unknown => None,
    });
    sources.collect()
}

/// The refusal of images that Portainer could not get.
pub fn unavailable_images() -> Finding {
    let hint = "pull or build it first, without `pull_policy: build`";
    Finding::new("images cannot be pulled or built", hint).short("image missing")
}

/// Whether Compose reads files besides the text and `stack.env`, whose contents are unknown here.
pub fn reads_files(stack: &SentStack) -> bool {
    let extends = |service: &Service| service.extends_file().is_some();
    !includes(stack.reader.document).is_empty()
        || stack.reader.services.iter().any(extends)
        || stack.services().iter().any(|service| {
            service.env_files().any(|file| file.path != "stack.env")
                || service.label_files().next().is_some()
        })
}

struct Search<'a, 'f, 'r, 'd, 'x> {
    facts: &'a Facts<'f>,
    created: &'a BTreeSet<String>,
    stack: &'a SentStack<'r, 'd, 'x>,
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

impl<'d> Search<'_, '_, '_, 'd, '_> {
    /// Files that Portainer reads for every service, active or not.
    fn read_at_load(&mut self) {
        for include in includes(self.stack.reader.document) {
            if !is_remote_file(include) {
                self.read_by_portainer("`include`", include);
            }
        }
        for service in &self.stack.reader.services {
            if let Some(file) = service.extends_file()
                && !is_remote_file(file)
            {
                self.read_by_portainer(&format!("{}: `extends`", service.name), file);
            }
        }
    }

    /// Env files that the rewrite leaves in the text, and label files.
    fn env_files(&mut self, service: &SentService<'_, 'd, '_>) {
        let name = service.name;
        for file in service.env_files().filter(|file| file.required) {
            let is_stack_env =
                self.given_place(file.path, true) == Some(Place::Folder("stack.env".into()));
            if is_stack_env && self.facts.sent.env.is_empty() {
                self.missing.unreadable.push(format!(
                    "{name}: Portainer writes stack.env only if .env sets variables"
                ));
            } else if !is_stack_env {
                self.read_by_portainer(&format!("{name}: `env_file`"), file.path);
            }
        }
        for file in service.label_files() {
            self.read_by_portainer(&format!("{name}: `label_file`"), file);
        }
    }

    /// The sources of bind mounts in the long syntax (M13), and devices.
    fn mounts(&mut self, service: &SentService<'_, 'd, '_>) {
        for item in service.items("volumes") {
            let text = |key: &str| self.stack.read(item.get(key)?).known();
            let creates = item
                .get("bind")
                .and_then(|bind| bind.get("create_host_path"));
            let is_made = creates.and_then(Node::as_bool) == Some(true);
            if let (Some("bind"), Some(source)) = (text("type").as_deref(), text("source"))
                && !is_made
            {
                self.read_by_engine(&format!("{} mounts", service.name), &source);
            }
        }
        for item in service.items("devices") {
            let given = self.stack.read(item.get("source").unwrap_or(item)).known();
            let device = given.as_deref().and_then(|one| one.split(':').next());
            // Another name is one of a device of CDI.
            if let Some(device) = device.filter(|one| one.starts_with('/')) {
                self.read_by_engine(&format!("{} needs", service.name), device);
            }
        }
    }

    /// The files of secrets and configs.
    fn content(&mut self, service: &SentService<'_, 'd, '_>) {
        for (section, noun) in [("secrets", "secret"), ("configs", "config")] {
            for item in service.items(section) {
                let name = self.stack.read(item.get("source").unwrap_or(item)).known();
                let all = self.stack.reader.document.get(section);
                let node = name.as_deref().and_then(|name| all?.get(name)?.get("file"));
                let file = node.and_then(|file| self.stack.read(file).known());
                if let (Some(name), Some(file)) = (name, file) {
                    self.read_by_engine(&format!("{noun} {name} needs"), &file);
                }
            }
        }
    }

    /// An image that must be on the engine, or a build whose files must be readable. With an image that exists, Compose
    /// builds only with `pull_policy: build`. Compose pulls an image that exists if its `pull_policy` says so (N10), or if
    /// its platform is not the service's.
    fn image(&mut self, service: &SentService<'_, 'd, '_>) {
        let Some(image) = service.image() else { return };
        let found = self.facts.details.images.get(&image);
        let is_absent = matches!(found, Some(None));
        if self.facts.environment.is_other_engine() {
            return;
        }
        let policy = service.given(&["pull_policy"]).known().unwrap_or_default();
        let name = service.name;
        if let Some(build) = service.node(&["build"]) {
            let reason = match policy.as_str() {
                "build" => "`pull_policy: build` builds its image".to_owned(),
                _ if is_absent => format!("image {image} is not on this host"),
                _ => return,
            };
            // Compose first tries to pull an image that the text names.
            let is_pulled = service.node(&["image"]).is_some();
            let is_built = !is_pulled || matches!(policy.as_str(), "build" | "never");
            self.build(&format!("{name}: {reason}"), build, is_built);
        } else if is_absent && policy == "never" {
            self.missing.images.push(format!(
                "{name}: image {image} is not on this host, and `pull_policy: never` forbids pulling it"
            ));
        } else if !matches!(policy.as_str(), "never" | "build") {
            let pull = service.pull(image);
            let found = found.and_then(Option::as_ref);
            let is_pulled = !NOT_PULLED.contains(&policy.as_str());
            let is_other = || found.is_some_and(|found| is_for_another_platform(found, &pull));
            if is_absent || is_pulled || is_other() {
                self.missing.pulls.insert(pull);
            }
        }
    }

    /// The context and the Dockerfile of a build. A missing one makes the create fail if the image is certainly built.
    fn build(&mut self, reason: &str, build: Node<'_>, is_built: bool) {
        let given = |key: &str| self.stack.read_in(build, key);
        let context = if build.is_mapping() {
            given("context")
        } else {
            self.stack.read(build)
        };
        let context = match context {
            Given::No => ".".to_owned(),
            Given::Is(context) => context,
            Given::Unknown => return,
        };
        if is_remote_context(&context) {
            return;
        }
        let mut found = self.portainer_has(&context);
        let mut what = "its build context";
        if found != Found::No && build.get("dockerfile_inline").is_none() {
            let names = match given("dockerfile") {
                Given::No => vec!["Dockerfile".to_owned(), "dockerfile".to_owned()],
                Given::Is(name) if !name.starts_with('/') => vec![name],
                Given::Is(_) | Given::Unknown => Vec::new(),
            };
            let is_missing =
                |name: &String| self.portainer_has(&format!("{context}/{name}")) == Found::No;
            if !names.is_empty() && names.iter().all(is_missing) {
                found = Found::No;
                what = "the Dockerfile of its build context";
            }
        }
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

    fn external(&mut self, service: &SentService<'_, 'd, '_>) {
        if self.facts.environment.is_other_engine() {
            return;
        }
        let label = compose_label(self.facts.tool, "network");
        let (external, foreign) = (&mut self.missing.external, &mut self.missing.foreign);
        for key in service.network_keys() {
            let (name, is_external) = self.stack.resource("networks", &key);
            let (Given::Is(name), Some(known)) = (name, &self.facts.details.networks) else {
                continue;
            };
            match named(known, &name) {
                None if is_external && !matches!(name.as_str(), "host" | "none" | "bridge") => {
                    external.push(format!("network {name} does not exist"));
                }
                Some(network) if !is_external && network["Labels"][&label] != key => {
                    foreign.push(format!(
                        "network {name} exists, but Compose did not create it as {key}"
                    ));
                }
                None | Some(_) => {}
            }
        }
        let known = &self.facts.details.volumes;
        for name in service.external_volumes() {
            let exists = known.as_ref().is_none_or(|all| named(all, &name).is_some());
            if !exists && !self.created.contains(&name) {
                external.push(format!("volume {name} does not exist"));
            }
        }
    }

    /// A file that Portainer reads (M11): refused if it is certainly missing, a doubt if that is unknown.
    fn read_by_portainer(&mut self, what: &str, path: &str) {
        let (list, why) = match self.portainer_has(path) {
            Found::Yes => return,
            Found::No => (&mut self.missing.unreadable, ""),
            Found::Unknown => (&mut self.missing.doubts, "the deployment fails if "),
        };
        list.push(format!("{what}: {why}Portainer cannot read {path}"));
    }

    /// Whether Portainer can read a path of the text. Its container sees only what is mounted into it.
    fn portainer_has(&self, path: &str) -> Found {
        let place = match self.given_place(path, true) {
            None | Some(Place::Unknown) => return Found::Unknown,
            // The folder holds nothing but the text and `stack.env` (M07).
            Some(Place::Folder(below)) if below.is_empty() => return Found::Yes,
            Some(Place::Folder(_)) => return Found::No,
            Some(Place::Absolute(path)) => path,
        };
        let Some(portainer) = self.portainer else {
            return Found::Unknown;
        };
        let mounts = portainer.mounts.iter().filter_map(|mount| {
            let target = mount.target.trim_end_matches('/');
            let below = place.strip_prefix(target)?;
            (below.is_empty() || below.starts_with('/')).then_some((mount, below))
        });
        match mounts.max_by_key(|(mount, _)| mount.target.len()) {
            None => Found::No,
            Some((mount, below)) if mount.kind == MountType::Bind => {
                self.host_has(&format!("{}{below}", mount.source))
            }
            Some(_) => Found::Unknown,
        }
    }

    /// A file that the engine mounts: refused if it is certainly missing.
    fn read_by_engine(&mut self, what: &str, path: &str) {
        let missing = match self.given_place(path, false) {
            Some(Place::Folder(below)) if !below.is_empty() => {
                format!("{what} {path}, which Portainer does not have")
            }
            Some(Place::Absolute(place)) if self.host_has(&place) == Found::No => {
                let shown = self.facts.below_dir(&place);
                format!("{what} {shown}, which does not exist")
            }
            None | Some(_) => return,
        };
        self.missing.files.push(missing);
    }

    /// The engine's host is this host only if the environment is this engine.
    fn host_has(&self, path: &str) -> Found {
        if self.facts.environment != Environment::SameEngine {
            return Found::Unknown;
        }
        match (self.facts.lookup)(path) {
            PathKind::File | PathKind::Directory => Found::Yes,
            PathKind::Missing => Found::No,
            PathKind::Unknown => Found::Unknown,
        }
    }

    /// The place of a path as written.
    fn given_place(&self, path: &str, local: bool) -> Option<Place> {
        let path = self.stack.reader.read(path).ok()?;
        Some(self.stack.place(&path, local))
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

/// Compose fetches these itself: Git repositories and OCI artifacts.
fn is_remote_file(path: &str) -> bool {
    is_remote_context(path) || path.starts_with("oci:")
}
