//! Checks before the first change that everything exists that the restore needs (B16).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use serde_json::Value;

use super::{
    Cause, Planned, RecordStep, Restoration,
    containers::image_of,
    named::{external_volumes, needed_healthy},
    networks::{are_free, existing_networks, subnets},
    plan::{StateChange, is_stranger, own},
    text,
};
use crate::{
    disk,
    engine::EngineReader,
    failure::Failure,
    finding::Finding,
    model::{Container, has_address},
    parallel::in_parallel,
    plan::Sent,
    portainer::Contents,
    text::{counted, numbered, said},
};

impl Restoration<'_, '_, '_> {
    /// Refuses a restore that cannot succeed and lists every reason. With `--force`, and where nobody asked for the restore, warns
    /// instead: after a failure, what can come back comes back.
    pub(super) fn check(&mut self, planned: &Planned) -> Result<()> {
        let problems = &planned.problems;
        if problems.is_empty() {
            return Ok(());
        }
        let lines = numbered(problems);
        if self.restore.force || self.restore.cause != Cause::Wanted {
            let why = if self.restore.force {
                "continuing because of --force"
            } else {
                "what is possible is restored"
            };
            self.run
                .warn(format!("the restore will be incomplete; {why}:\n{lines}"));
            return Ok(());
        }
        let count = counted(problems.len(), "problem");
        Err(Failure::new(format!("refusing to restore: {count} found"))
            .details(lines)
            .hint("fix the problems above and run the command again, or restore what is possible with --force")
            .into())
    }

    pub(super) fn problems(&self, planned: &Planned) -> Result<Vec<Finding>> {
        let (record, plan) = (&planned.record, &planned.containers);
        let (snapshot, now) = (self.snapshot(), planned.existing.iter());
        // They are never removed.
        let names_in_use = now
            .filter(|container| is_stranger(snapshot, container))
            .map(|one| {
                let (name, owner) = (one.name(), owner(one.label(&snapshot.label("project"))));
                let what = format!("the name {name} is used by a container {owner}");
                Finding::new(what, "rename or remove that container")
            });
        let mut problems: Vec<Finding> = names_in_use.collect();
        if let RecordStep::OutOfReach(rights) = record
            && self.restore.cause != Cause::Failure
        {
            let what = format!("the Portainer stack is unknown: {rights}");
            let hint = format!(
                "{}, or restore only the containers with --engine-only",
                rights.remedy()
            );
            problems.push(Finding::new(what, hint));
        }
        problems.extend(self.elsewhere.clone().filter(|_| record.sends()));
        if matches!(record, RecordStep::Create(..))
            && (planned.keeps || !own(snapshot, &planned.existing).is_empty())
            && let Some(refused) = self.refused_name()?
        {
            let hint = format!(
                "{}; or restore only the containers with --engine-only",
                refused.advice()
            );
            problems.push(Finding::new(refused.message, hint));
        }
        if let RecordStep::Create(_, Some(git)) = record
            && let Err(error) = self.run.portainer.fetch(git)
        {
            let hint = "fix that, or restore only the containers with --engine-only; for a private repository, set STACKLIFT_GIT_PASSWORD: a snapshot does not contain the password";
            problems.push(Finding::new(format!("{error:#}"), hint));
        }
        if let RecordStep::Update(_, contents) | RecordStep::Create(contents, None) = record {
            let missing = self.missing_external_volumes(contents)?.into_iter();
            problems.extend(missing.map(|name| {
                Finding::new(
                    format!("Portainer's Compose file in the snapshot needs volume {name}, which no longer exists"),
                    "restore its data, or restore only the containers with --engine-only; --force creates an empty volume",
                )
            }));
        }
        if self.restore.cause == Cause::Wanted {
            // Others are recreated, and may become healthy.
            let is_kept = |one: &&Container| plan.keep.values().any(|id| id == one.id());
            let kept = planned.existing.iter().filter(is_kept);
            problems.extend(self.prevents(record, kept).map(|why| {
                let what = format!("Portainer cannot deploy the stack: {why}");
                let hint = "fix that, or restore only the containers with --engine-only";
                Finding::new(what, hint)
            }));
        }
        problems.extend(self.missing_volumes()?);
        if plan.is_empty() && !record.replaces_containers() {
            return Ok(problems);
        }
        let containers = snapshot.containers.items();
        let is_recreated =
            |index: &usize| record.replaces_containers() || plan.create.contains(index);
        let indices = (0..containers.len()).filter(is_recreated);
        let recreated: Vec<&Container> = indices.map(|index| &containers[index]).collect();
        let starts = |one: &&Container| plan.gives(one, StateChange::Start);
        let started: Vec<&Container> = containers.iter().filter(starts).collect();
        let started = [&recreated[..], &started].concat();
        let needs = Needs {
            engine: self.run.engine,
            tool: &self.snapshot().tool,
            containers,
            networks: snapshot.networks.items(),
            images: &BTreeMap::new(),
        };
        let own = own(self.snapshot(), &planned.existing);
        problems.extend(needs.missing(&recreated, (&started, &own, &planned.networks))?);
        problems.extend(self.ports_in_use(&started, &planned.existing)?);
        Ok(problems)
    }

    /// Why Portainer's deployment would fail: containers are unhealthy, and others wait for their health (B20).
    pub(super) fn prevents<'c>(
        &self,
        step: &RecordStep,
        containers: impl Iterator<Item = &'c Container>,
    ) -> Option<String> {
        let snapshot = self.snapshot();
        let (RecordStep::Update(_, contents) | RecordStep::Create(contents, _)) = step else {
            return None;
        };
        let needed = needed_healthy(sent(contents));
        let label = snapshot.label("service");
        let is_needed =
            |one: &&Container| one.label(&label).is_some_and(|one| needed.contains(one));
        let unhealthy = containers.filter(|container| container.health() == Some("unhealthy"));
        let names: Vec<&str> = unhealthy.filter(is_needed).map(Container::name).collect();
        said(&names, "is unhealthy").filter(|_| step.deploys(snapshot))
    }

    fn missing_volumes(&self) -> Result<Vec<Finding>> {
        let volumes = self.compare_volumes()?;
        let missing = volumes.missing.into_iter().map(|name| {
            Finding::new(
                format!("volume {name} no longer exists, and snapshots do not contain its data"),
                "--force creates an empty volume: restore its data from a backup afterwards",
            )
        });
        let different = volumes.different.into_iter().map(|(name, what)| {
            Finding::new(
                format!("volume {name} is not the one in the snapshot: {what}"),
                "check its data; with --force, the containers use the volume as it is",
            )
        });
        Ok(missing.chain(different).collect())
    }

    /// The volumes without which Portainer cannot deploy the Compose file of the snapshot.
    pub(super) fn missing_external_volumes(&self, contents: &Contents) -> Result<Vec<String>> {
        let mut names = Vec::from_iter(external_volumes(sent(contents)));
        let found = self.run.engine.inspect_volumes(&names)?;
        let saved = self.snapshot().volumes.items();
        // A saved one that is missing is a problem already.
        let all = found.iter().chain(saved).map(|volume| text(volume, "Name"));
        let known: BTreeSet<&str> = all.collect();
        names.retain(|name| !known.contains(name.as_str()));
        Ok(names)
    }

    fn ports_in_use(
        &self,
        recreated: &[&Container],
        existing: &[Container],
    ) -> Result<Vec<Finding>> {
        let own = own(self.snapshot(), existing);
        let mut others = self.run.engine.list_all()?;
        others.retain(|other| {
            other.is_running() && own.iter().all(|container| container.id() != other.id())
        });
        let mut problems = Vec::new();
        for container in recreated.iter().filter(|container| container.is_running()) {
            for binding in container.port_bindings() {
                let Some(port) = binding.host_port() else {
                    continue;
                };
                let (address, protocol) = (binding.address, binding.protocol);
                let holds = |other: &&Container| other.holds(address, port, protocol);
                if let Some(other) = others.iter().find(holds) {
                    let (name, other) = (container.name(), other.name());
                    let what = format!(
                        "{name} needs port {port}/{protocol}, which container {other} publishes"
                    );
                    problems.push(Finding::new(what, "stop that container"));
                }
            }
        }
        Ok(problems)
    }
}

/// Containers, and what they need in order to be recreated.
pub struct Needs<'n> {
    pub engine: &'n EngineReader,
    pub tool: &'n str,
    /// All of the stack.
    pub containers: &'n [Container],
    /// Those of the stack.
    pub networks: &'n [Value],
    /// The images that were looked for before, by reference and by ID; `None` is one that does not exist.
    pub images: &'n BTreeMap<String, Option<Value>>,
}

impl Needs<'_> {
    /// What `recreated` containers need and is missing. Others, of which `own` exist, are started in networks that are not
    /// `replaced`.
    pub(super) fn missing(
        &self,
        recreated: &[&Container],
        started: (&[&Container], &[&Container], &BTreeSet<String>),
    ) -> Result<Vec<Finding>> {
        let mut problems = self.missing_images(recreated)?;
        problems.extend(self.missing_networks(recreated)?);
        problems.extend(self.taken_addresses(started)?);
        problems.extend(
            recreated
                .iter()
                .flat_map(|container| missing_paths(container)),
        );
        problems.extend(self.missing_partners(recreated)?);
        Ok(problems)
    }

    /// By ID: it does not matter whether the image's name refers to another image now.
    fn missing_images(&self, recreated: &[&Container]) -> Result<Vec<Finding>> {
        let is_found = |one: &&Container| matches!(self.images.get(one.image_id()), Some(Some(_)));
        let mut recreated = recreated.to_vec();
        recreated.retain(|container| !is_found(container));
        let found = in_parallel(&recreated, |container| image_of(self.engine, container));
        let mut problems = Vec::new();
        for (container, image) in recreated.iter().zip(found) {
            if image?.is_none() {
                let (name, image) = (container.name(), container.image_name());
                let id = container.image_id();
                let what = format!("the image of {name} no longer exists: {image} ({id})");
                let hint = "load exactly that image again, for example with docker load; a different version has a different ID";
                problems.push(Finding::new(what, hint));
            }
        }
        Ok(problems)
    }

    /// The networks that other projects own, and the fixed addresses that are taken.
    fn missing_networks(&self, recreated: &[&Container]) -> Result<Vec<Finding>> {
        let all = self.engine.all_networks()?;
        let of = |object| [text(object, "Name"), text(object, "Id")];
        let known: BTreeSet<&str> = all.iter().flat_map(of).collect();
        let names: BTreeSet<&str> = recreated
            .iter()
            .flat_map(|container| container.networks())
            .map(|(name, _)| name.as_str())
            .filter(|name| !matches!(*name, "bridge" | "host" | "none"))
            .collect();
        let with_address = recreated
            .iter()
            .flat_map(|container| container.fixed_addresses());
        let fixed: BTreeSet<&str> = with_address.map(|(network, _)| network).collect();
        let mut problems = Vec::new();
        for name in names {
            match self
                .networks
                .iter()
                .find(|network| text(network, "Name") == name)
            {
                None if !known.contains(name) => {
                    let what =
                        format!("network {name} does not exist and is not part of the stack");
                    let hint = format!("create it: `{} network create {name}`", self.tool);
                    problems.push(Finding::new(what, hint));
                }
                Some(network) if fixed.contains(name) && !are_free(network, &all) => {
                    let what =
                        format!("the addresses of network {name} are used by another network");
                    let hint = "remove the other network, or change its addresses";
                    problems.push(Finding::new(what, hint));
                }
                _ => {}
            }
        }
        Ok(problems)
    }

    /// The fixed addresses that a network which stays does not have, or which another container has.
    fn taken_addresses(
        &self,
        (started, own, replaced): (&[&Container], &[&Container], &BTreeSet<String>),
    ) -> Result<Vec<Finding>> {
        let all = started.iter().flat_map(|container| {
            let fixed = container.fixed_addresses();
            fixed.map(|(network, address)| (container.name(), network, address))
        });
        let fixed: Vec<(&str, &str, &str)> = all
            .filter(|(_, network, _)| !replaced.contains(*network))
            .collect();
        if fixed.is_empty() {
            return Ok(Vec::new());
        }
        let networks = existing_networks(self.engine, self.networks)?;
        let mut problems = Vec::new();
        for (container, name, address) in fixed {
            let Some(network) = networks.get(name) else {
                continue;
            };
            let mut users = network["Containers"].as_object().into_iter().flatten();
            let other = users.find(|(id, endpoint)| {
                has(endpoint, address) && own.iter().all(|container| container.id() != *id)
            });
            let needs = format!("{container} needs the address {address}");
            if !subnets(network).any(|subnet| has_address(subnet, address)) {
                let what = format!("{needs}, which is outside network {name}");
                let hint =
                    "disconnect other containers from the network: the restore then recreates it";
                problems.push(Finding::new(what, hint));
            } else if let Some((_, other)) = other {
                let what = format!("{needs}, which container {} has", text(other, "Name"));
                problems.push(Finding::new(what, "stop that container"));
            }
        }
        Ok(problems)
    }

    /// The containers outside the snapshot whose namespaces or volumes a saved container shares.
    fn missing_partners(&self, recreated: &[&Container]) -> Result<Vec<Finding>> {
        let mut problems = Vec::new();
        for container in recreated {
            for id in container.shares_with() {
                let is_saved = self.containers.iter().any(|other| other.id() == id);
                if is_saved || !self.engine.inspect_containers([id])?.is_empty() {
                    continue;
                }
                let (name, short) = (container.name(), id.get(..12).unwrap_or(id));
                let what = format!(
                    "{name} shares a namespace or volumes with container {short}, which does not exist"
                );
                let hint = "a recreated container has a different ID: start the stack from its Compose file instead";
                problems.push(Finding::new(what, hint));
            }
        }
        Ok(problems)
    }
}

fn sent(contents: &Contents) -> Sent<'_> {
    Sent::new(&contents.text, &contents.env)
}

/// The files and directories of this host that a container mounts in the short form and that were deleted. Docker creates empty
/// directories in their place when the container is created again.
pub fn deleted_sources(container: &Container) -> impl Iterator<Item = &str> {
    sources(container).filter(|path| is_deleted(path))
}

fn sources(container: &Container) -> impl Iterator<Item = &str> {
    let binds = container.items("/HostConfig/Binds");
    binds.filter_map(|bind| bind.as_str()?.split(':').next())
}

fn is_deleted(path: &str) -> bool {
    let path = Path::new(path);
    path.is_absolute() && disk::metadata(path).is_err_and(|error| disk::is_absent(&error))
}

/// The files and devices of this host that a container needs and that were deleted.
fn missing_paths(container: &Container) -> Vec<Finding> {
    let mounts = container.items("/HostConfig/Mounts");
    let mounts = mounts.filter(|mount| mount["Type"] == "bind");
    let mounts = mounts.filter_map(|mount| mount["Source"].as_str());
    let devices = container.items("/HostConfig/Devices");
    let devices = devices.filter_map(|device| device["PathOnHost"].as_str());
    let paths = sources(container).chain(mounts).chain(devices);
    let absent = paths.filter(|path| is_deleted(path));
    let name = container.name();
    let problems = absent.map(|path| {
        let what = format!("{name} needs {path}, which does not exist");
        let hint = "restore it from a backup: without it, a restore needs --force, and Docker then creates an empty directory in its place, or fails to start the container";
        Finding::new(what, hint)
    });
    problems.collect()
}

/// Whether an endpoint has this address. The engine writes the length of the subnet behind it.
fn has(endpoint: &Value, address: &str) -> bool {
    let mut all = ["IPv4Address", "IPv6Address"]
        .map(|key| text(endpoint, key))
        .into_iter();
    all.any(|one| one.split('/').next() == Some(address))
}

/// `of the stack x`, or `outside any stack`.
pub(super) fn owner(project: Option<&str>) -> String {
    project.map_or_else(
        || "outside any stack".to_owned(),
        |project| format!("of the stack {project}"),
    )
}
