//! What the deployment needs: images, ports and container names.

use std::collections::BTreeSet;

use super::Blocking;
use crate::{
    compose::{Place, Project, Service},
    finding::Finding,
    model::{Container, Pull, has_address, named},
    plan::{
        Fate, Host, Plan, Projects,
        checks::conflicts::{has_name, held_by, used_on_host},
        checks::missing,
        fate_of,
        fates::redefined::DOWN,
    },
    text::{counted, operands, shell_word},
};

impl Blocking<'_, '_> {
    /// Images that are not on this engine. A failed pull or build would remove the whole stack (M06).
    pub fn images(&mut self, project: &Project) {
        let (mut absent, mut pull, mut build) = (Vec::new(), Vec::new(), Vec::new());
        let (tool, dir) = (self.facts.tool, self.facts.dir);
        for (service, image) in absent_images(project, self.facts.host) {
            absent.push(format!("{service}: {}", image.image));
            if self.facts.projects.builds(service) {
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
        self.list(absent, what, hint, "image missing");
    }

    /// Directories and files that a container mounts in the short syntax, and that were deleted since: Docker would mount
    /// an empty directory in their place. One that no container mounts yet is created on purpose.
    pub fn sources(&mut self, project: &Project) {
        for (service, source) in missing::missing_sources(self.facts, project, true) {
            let shown = self.facts.below_dir(source);
            self.absent(&format!("{service} mounts {shown}"), source);
        }
    }

    /// Fixed addresses that Portainer could not give the new container: a network of the running containers does not have them, or
    /// a container of another service has them and keeps them (B38).
    pub fn addresses(&mut self, project: &Project) {
        let containers: Vec<&Container> = self.containers().collect();
        for service in &project.services {
            let name = service.name.as_str();
            for (network, address) in service.fixed_addresses() {
                let mut endpoints = containers
                    .iter()
                    .flat_map(|container| container.subnets(&network));
                let is_v6 = address.contains(':');
                let subnet = endpoints.find(|subnet| subnet.contains(':') == is_v6);
                if let Some(subnet) = subnet.filter(|subnet| !has_address(subnet, &address)) {
                    let what = format!(
                        "{name} needs the address {address}, which is outside network {network}: a container there has {subnet}"
                    );
                    let hint = format!("correct the address, or {DOWN}");
                    let blocker = Finding::new(what, hint);
                    self.blockers.push(blocker.short("address not in network"));
                }
                let holder = containers.iter().find(|container| {
                    self.facts.label(container, "service") != Some(name)
                        && self.keeps(container)
                        && container.has_address(&network, &address)
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
    fn keeps(&self, container: &Container) -> bool {
        let fate = fate_of(&self.plan.services, container.name());
        fate.is_some_and(|fate| {
            !matches!(
                fate,
                Fate::Recreated(_) | Fate::Removed(_) | Fate::LeftBehind(_)
            )
        })
    }

    /// The network of a stopped container that is kept, if it no longer exists. Docker starts a container in the networks of its
    /// last start, by their IDs.
    pub fn removed_network<'c>(&self, container: &'c Container) -> Option<&'c str> {
        let known = self.facts.host.networks.as_ref()?;
        let is_gone = |id: &str| !id.is_empty() && known.iter().all(|network| network["Id"] != id);
        let mut networks = container.networks();
        let (name, _) = networks.find(|(name, endpoint)| {
            !matches!(name.as_str(), "host" | "none" | "bridge")
                && endpoint["NetworkID"].as_str().is_some_and(is_gone)
        })?;
        (!container.is_running() && self.keeps(container)).then_some(name)
    }

    /// Ports and names that something else holds, for the services whose containers are created or replaced.
    pub fn held(&mut self, project: &Project) {
        let plan = self.plan;
        let is_asked = |service: &str| is_asked(plan, service);
        // The containers that stay beside the services hold their ports and names as well.
        let staying: BTreeSet<&str> = self
            .containers()
            .filter(|&one| {
                let service = self.facts.label(one, "service").unwrap_or_default();
                project.service(service).is_none() || one.is_one_off(self.facts.tool)
            })
            .map(Container::id)
            .collect();
        let host = self.facts.host;
        let own = host.listed().iter();
        let own = own.filter(|container| staying.iter().any(|id| id.starts_with(container.id())));
        let others: Vec<&Container> = host.others().chain(own).collect();
        let by_containers = held_by((&others, self.facts.tool), project, is_asked);
        self.blockers.extend(by_containers);
        let by_programs = used_on_host(self.facts, project, is_asked);
        self.blockers.extend(by_programs);
        for service in &project.services {
            if is_asked(&service.name) && service.replicas() > 0 {
                self.shared(service, project);
                self.private_ipc(service, project);
                self.devices(service);
            }
        }
    }

    /// A path of this host that a service mounts, and that does not exist.
    fn absent(&mut self, mounts: &str, path: &str) {
        let what = format!("{mounts}, which does not exist");
        let hint = format!("create {path}, or correct the path in {}", self.facts.file);
        let blocker = Finding::new(what, hint);
        self.blockers.push(blocker.short("file or folder missing"));
    }

    /// The containers outside the stack whose namespaces or volumes a service shares.
    fn shared(&mut self, service: &Service, project: &Project) {
        let facts = self.facts;
        let modes = service
            .namespaces()
            .map(|(_, mode)| (mode.to_owned(), true));
        let volumes = service.texts("volumes_from").into_iter();
        let volumes = volumes.map(|source| (source, false));
        for (given, must_run) in modes.chain(volumes) {
            let mut parts = given.split(':').map(|part| part.trim_start_matches('/'));
            let (Some("container"), Some(id), Some(others)) =
                (parts.next(), parts.next(), &facts.host.others)
            else {
                continue;
            };
            let is_it = |one: &&Container| one.id().starts_with(id) || one.name() == id;
            let mut found = others.iter().filter(is_it).peekable();
            let (why, verb) = if found.peek().is_none() {
                ("does not exist", "create")
            } else if must_run && !found.any(Container::is_running) {
                ("does not run", "start")
            } else {
                continue;
            };
            // The deployment may start one of the stack itself.
            let is_own = facts
                .host
                .listed()
                .iter()
                .any(|container| is_it(&container));
            if !is_own && !project.services.iter().any(|service| has_name(service, id)) {
                let what = format!("{} needs the container {id}, which {why}", service.name);
                let hint = format!("{verb} that container first, or correct its name");
                self.add(what, hint);
            }
        }
    }

    /// The service whose IPC namespace a service shares, if its container keeps that namespace to itself: Docker would not start
    /// the other one.
    fn private_ipc(&mut self, service: &Service, project: &Project) {
        let of = |service: &Service| service.text(&["ipc"]);
        let shared = of(service).and_then(|mode| Some(mode.strip_prefix("service:")?.to_owned()));
        let Some(owner) = shared.and_then(|name| project.service(&name)) else {
            return;
        };
        let name = owner.name.as_str();
        // Without the key, Docker's default applies, which a container of the service shows.
        let mode = of(owner).filter(|_| is_asked(self.plan, name)).or_else(|| {
            let container = self.facts.of_service(name).next()?;
            Some(container.text("/HostConfig/IpcMode").to_owned())
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
    fn devices(&mut self, service: &Service) {
        let Some(known) = &self.facts.host.volumes else {
            return;
        };
        for (_, volume) in service.volumes() {
            if let Some(Place::Absolute(device)) = &volume.device
                && !volume.is_external
                && named(known, &volume.name).is_none()
                && self.facts.lacks(device)
            {
                let (name, key) = (&service.name, &volume.key);
                let shown = self.facts.below_dir(device);
                self.absent(
                    &format!("{name} mounts the volume {key} of {shown}"),
                    device,
                );
            }
        }
    }
}

/// Whether a container of a service is created, replaced or started, or may be.
fn is_asked(plan: &Plan, service: &str) -> bool {
    let mut planned = plan.services.iter();
    !planned.any(|other| other.service == service && other.fate == Fate::Unchanged)
}

/// The services whose image is not on this engine, with the image. Other policies than pulling what is missing are refused
/// with a reason of their own.
fn absent_images<'p>(project: &'p Project, host: &Host) -> Vec<(&'p str, Pull)> {
    let absent = project.services.iter().filter_map(|service| {
        let policy = service.text(&["pull_policy"]);
        let is_said = matches!(policy.as_deref(), Some("never" | "build"));
        let image = service.image.clone()?;
        (host.lacks_image(&image) && !is_said && service.replicas() > 0)
            .then(|| (service.name.as_str(), service.pull(image)))
    });
    absent.collect()
}

/// The images of what is sent that are not on this engine; none of them if one has to be built.
pub fn images_to_pull(projects: &Projects, host: &Host) -> Vec<Pull> {
    let sent = projects.sent.iter();
    let absent: Vec<_> = sent.flat_map(|sent| absent_images(sent, host)).collect();
    if absent.iter().any(|(service, _)| projects.builds(service)) {
        return Vec::new();
    }
    let images: BTreeSet<Pull> = absent.into_iter().map(|(_, image)| image).collect();
    images.into_iter().collect()
}
