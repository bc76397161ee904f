//! What the deployment needs: images, ports and container names.

use std::collections::{BTreeMap, BTreeSet};

use composefile::document::Document;
use serde_json::Value;

use super::Blocking;
use crate::{
    finding::Finding,
    model::{Container, Pull, has_address, named},
    plan::{
        Fate, Plan, Sent,
        blockers::conflicts::{has_name, held_by, used_on_host},
        blockers::missing,
        facts::services::{Given, Place, SentService, SentStack, with_sent},
        fate_of,
        fates::redefined::DOWN,
    },
    snapshot::Inspected,
    text::{counted, operands, shell_word},
};

impl Blocking<'_, '_> {
    /// Images that are not on this engine. A failed pull or build would remove the whole stack (M06).
    pub fn images(&mut self, stack: &SentStack) {
        let (mut absent, mut pull, mut build) = (Vec::new(), Vec::new(), Vec::new());
        let (tool, dir) = (self.facts.tool, self.facts.dir);
        for (service, image) in absent_images(stack, &self.facts.details.images) {
            absent.push(format!("{service}: {}", image.image));
            let document = self.facts.source.document.ok();
            if document.is_some_and(|document| is_built(document, service)) {
                build.push(service);
            } else {
                let platform = image.platform.iter();
                let platform =
                    platform.map(|one| format!("{} ", shell_word(&format!("--platform={one}"))));
                let image = operands(&[&image.image]);
                pull.push(format!(
                    "{tool} pull {}{image}",
                    platform.collect::<String>()
                ));
            }
        }
        pull.sort();
        pull.dedup();
        let images = pull.len() + build.len();
        if !build.is_empty() {
            let (dir, services) = (shell_word(dir), operands(&build));
            pull.push(format!("cd {dir} && {tool} compose build {services}"));
        }
        let verb = if images == 1 { "is" } else { "are" };
        let what = format!("{} {verb} not on this host", counted(images, "image"));
        let how = match (build.is_empty(), pull.len()) {
            (true, 1) => "pass --pull, or pull it first",
            (true, _) => "pass --pull, or pull them first",
            (false, _) => "get them first",
        };
        let hint = format!("{how}: {}", pull.join(" && "));
        let blocker = Finding::about(absent, what, hint);
        self.blockers
            .extend(blocker.map(|one| one.short("image missing")));
    }

    /// Directories and files that a container mounts in the short syntax, and that were deleted since: Docker would mount
    /// an empty directory in their place. One that no container mounts yet is created on purpose.
    pub fn sources(&mut self, stack: &SentStack) {
        for (service, source) in missing::missing_sources(self.facts, stack, true) {
            let shown = self.facts.below_dir(&source);
            self.absent(&format!("{service} mounts {shown}"), &source);
        }
    }

    /// Fixed addresses that Portainer could not give the new container: a network of the running containers does not have them, or
    /// a container of another service has them and keeps them (B38).
    pub fn addresses(&mut self, stack: &SentStack) {
        let containers: Vec<Inspected> = self.containers().collect();
        for service in stack.active() {
            let name = service.name;
            for (network, address) in service.fixed_addresses() {
                let mut endpoints = containers.iter().flat_map(|one| one.subnets(&network));
                let is_v6 = address.contains(':');
                let subnet = endpoints.find(|subnet| subnet.contains(':') == is_v6);
                if let Some(subnet) = subnet.filter(|subnet| !has_address(subnet, &address)) {
                    let what = format!(
                        "{name} needs the address {address}, which is outside network {network}: a container there has {subnet}"
                    );
                    let hint = format!("correct the address, or {DOWN}");
                    let blocker = Finding::new(what, hint).short("address not in network");
                    self.blockers.push(blocker);
                }
                let holder = containers.iter().find(|one| {
                    self.facts.label(**one, "service") != Some(name)
                        && self.keeps(**one)
                        && one.has_address(&network, &address)
                });
                if let Some(holder) = holder.filter(|_| is_asked(self.plan, name)) {
                    let holder = holder.name();
                    let what =
                        format!("the address {address} in network {network} is used by {holder}");
                    let hint = "change the address, or give the other service a fixed address too";
                    let short = "port, address or name in use";
                    self.blockers.push(Finding::new(what, hint).short(short));
                }
            }
        }
    }

    /// Whether a container of an active service may still have its addresses when the others are started.
    fn keeps(&self, container: Inspected) -> bool {
        let fate = fate_of(&self.plan.services, container.name());
        fate.is_some_and(|fate| {
            !matches!(
                fate,
                Fate::Recreated(_) | Fate::Removed(_) | Fate::LeftBehind(_)
            )
        })
    }

    /// Ports and names that something else holds, for the services whose containers are created or replaced.
    pub fn held(&mut self, stack: &SentStack, active: &BTreeSet<&str>) {
        let plan = self.plan;
        let is_asked = |service: &str| is_asked(plan, service);
        // The containers that stay beside the services hold their ports and names as well.
        let staying: BTreeSet<&str> = self
            .containers()
            .filter(|&one| {
                let service = self.facts.label(one, "service").unwrap_or_default();
                !active.contains(service) || one.is_one_off(self.facts.tool)
            })
            .map(Inspected::id)
            .collect();
        let own = self.facts.listed().iter();
        let own = own.filter(|one| staying.iter().any(|id| id.starts_with(&one.id)));
        let others: Vec<&Container> = self.facts.others.iter().flatten().chain(own).collect();
        let by_containers = held_by((&others, self.facts.tool), stack, is_asked);
        self.blockers.extend(by_containers);
        let by_programs = used_on_host(self.facts, stack, is_asked);
        self.blockers.extend(by_programs);
        for service in stack.active() {
            if is_asked(service.name) && service.replicas() != Some(0) {
                self.shared(&service);
                self.private_ipc(&service);
                self.devices(&service);
            }
        }
    }

    /// A path of this host that a service mounts, and that does not exist.
    fn absent(&mut self, mounts: &str, path: &str) {
        let what = format!("{mounts}, which does not exist");
        let hint = format!("create {path}, or correct the path in {}", self.file);
        let blocker = Finding::new(what, hint).short("file or folder missing");
        self.blockers.push(blocker);
    }

    /// The containers outside the stack whose namespaces or volumes a service shares.
    fn shared(&mut self, service: &SentService) {
        let (stack, facts) = (service.stack, self.facts);
        let modes = ["network_mode", "pid", "ipc"].map(|key| (service.given(&[key]), true));
        let volumes = service.items("volumes_from");
        let volumes = volumes.map(|item| (stack.read(item), false));
        for (given, must_run) in modes.into_iter().chain(volumes) {
            let given = given.known().unwrap_or_default();
            let mut parts = given.split(':').map(|part| part.trim_start_matches('/'));
            let (Some("container"), Some(id), Some(others)) =
                (parts.next(), parts.next(), &facts.others)
            else {
                continue;
            };
            let is_named = |one: &Container| one.names.iter().any(|name| name == id);
            let is_it = |one: &&Container| one.id.starts_with(id) || is_named(one);
            let mut found = others.iter().filter(is_it).peekable();
            let (why, verb) = if found.peek().is_none() {
                ("does not exist", "create")
            } else if must_run && !found.any(Container::is_running) {
                ("does not run", "start")
            } else {
                continue;
            };
            // The deployment may start one of the stack itself.
            let is_own = facts.listed().iter().any(|one| is_it(&one));
            if !is_own && !stack.active().iter().any(|one| has_name(one, id)) {
                let what = format!("{} needs the container {id}, which {why}", service.name);
                let hint = format!("{verb} that container first, or correct its name");
                self.add(what, hint);
            }
        }
    }

    /// The service whose IPC namespace a service shares, if its container keeps that namespace to itself: Docker would not start
    /// the other one.
    fn private_ipc(&mut self, service: &SentService) {
        let of = |service: &SentService| service.given(&["ipc"]).known();
        let shared = of(service).and_then(|mode| Some(mode.strip_prefix("service:")?.to_owned()));
        let active = service.stack.active();
        let Some(owner) = active
            .iter()
            .find(|one| shared.as_deref() == Some(one.name))
        else {
            return;
        };
        let name = owner.name;
        // Without the key, Docker's default applies, which a container of the service shows.
        let mode = of(owner).filter(|_| is_asked(self.plan, name)).or_else(|| {
            let is_unclear = owner.given(&["ipc"]) == Given::Unknown;
            let mut containers = self.facts.of_service(name);
            let found = containers.next().filter(|_| !is_unclear)?;
            Some(found.text("/HostConfig/IpcMode").to_owned())
        });
        if let Some(mode @ ("private" | "none")) = mode.as_deref() {
            let what = format!(
                "{} shares the IPC namespace of {name}, whose IPC mode is {mode}: Docker would not start it",
                service.name
            );
            self.add(what, format!("set `ipc: shareable` for {name}"));
        }
    }

    /// The directories of this host that the new volumes of a service stand for.
    fn devices(&mut self, service: &SentService) {
        let Some(known) = &self.facts.details.volumes else {
            return;
        };
        for (mount, name, is_external) in service.volumes() {
            let key = mount.source.filter(|_| !is_external);
            let Some(key) = key.filter(|_| named(known, &name).is_none()) else {
                continue;
            };
            let device = device(service.stack, &key).filter(|path| self.facts.lacks(path));
            if let Some(device) = device {
                let shown = self.facts.below_dir(&device);
                let mounts = format!("{} mounts the volume {key} of {shown}", service.name);
                self.absent(&mounts, &device);
            }
        }
    }
}

/// Whether a container of a service is created, replaced or started, or may be.
fn is_asked(plan: &Plan, service: &str) -> bool {
    let mut planned = plan.services.iter();
    !planned.any(|one| one.service == service && one.fate == Fate::Unchanged)
}

/// The path of this host that a volume of the text stands for.
fn device(stack: &SentStack, key: &str) -> Option<String> {
    let volume = stack.reader.document.get("volumes")?.get(key)?;
    let options = volume.get("driver_opts")?;
    let driver = stack.read_in(volume, "driver");
    let is_local = driver == Given::No || driver == Given::Is("local".to_owned());
    let how = stack.read_in(options, "o").known()?;
    let is_bind = how.split(',').any(|one| one == "bind" || one == "rbind");
    match stack.place(&stack.read_in(options, "device").known()?, false) {
        Place::Absolute(path) if is_local && is_bind => Some(path),
        _ => None,
    }
}

/// The services whose image is not on this engine, with the image. Other policies than pulling what is missing are refused
/// with a reason of their own.
fn absent_images<'d>(
    stack: &SentStack<'_, 'd, '_>,
    images: &BTreeMap<String, Option<Value>>,
) -> Vec<(&'d str, Pull)> {
    let absent = stack.active().into_iter().filter_map(|service| {
        let policy = service.given(&["pull_policy"]).known();
        let is_said = matches!(policy.as_deref(), Some("never" | "build"));
        let is_absent = |image: &String| matches!(images.get(image), Some(None));
        let image = service.image().filter(is_absent)?;
        (!is_said && service.replicas() != Some(0)).then(|| (service.name, service.pull(image)))
    });
    absent.collect()
}

/// The images that are not on this engine, of a text and its variables; none of them if one has to be built. `on_disk` is the
/// text that says how.
pub fn images_to_pull(
    sent: Sent,
    on_disk: &str,
    project: &str,
    images: &BTreeMap<String, Option<Value>>,
) -> Vec<Pull> {
    let Ok(document) = Document::parse(on_disk) else {
        return Vec::new();
    };
    with_sent(sent, project, |_, stack| {
        let found = stack.map(|stack| absent_images(stack, images));
        let absent = found.unwrap_or_default();
        let mut services = absent.iter().map(|(service, _)| service);
        if services.any(|service| is_built(&document, service)) {
            return Vec::new();
        }
        let images: BTreeSet<Pull> = absent.into_iter().map(|(_, image)| image).collect();
        images.into_iter().collect()
    })
}

/// Whether a text says how to build the image of a service.
fn is_built(document: &Document, service: &str) -> bool {
    let service = document.get("services").and_then(|all| all.get(service));
    service.is_some_and(|service| service.get("build").is_some())
}
