//! What is lost with the containers that run now (B01).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    compose::{Project, Service},
    finding::{Finding, Kind},
    model::{Container, Grant, is_portainers},
    plan::{
        Facts, ServicePlan,
        fates::split_surplus,
        losses::{files, if_recreated, replacement},
    },
    snapshot::Known,
    text::{counted, shell_word},
};

/// The losses, and the parts of them that are unknown. `project` is `None` if it is unknown what is sent; `services` is what is
/// planned for certain.
pub fn losses(
    facts: &Facts,
    project: Option<&Project>,
    services: &[ServicePlan],
) -> (Vec<Finding>, Vec<String>) {
    let mounted = project.into_iter().flat_map(|project| &project.services);
    let mounted = mounted.flat_map(Service::volumes);
    let external = mounted.filter(|(_, volume)| volume.is_external);
    let mut running = Running {
        facts,
        services,
        external: external.map(|(_, volume)| volume.name.as_str()).collect(),
        losses: Vec::new(),
        unknown: Vec::new(),
    };
    let mut containers: Vec<&Container> = facts.host.inspected().collect();
    containers.sort_by_key(|container| container.name());
    running.killed(&containers);
    running.containers(&containers, project);
    running.other_projects();
    (running.losses, running.unknown)
}

struct Running<'a, 'f> {
    facts: &'a Facts<'f>,
    services: &'a [ServicePlan],
    /// The volumes that the text mounts and does not create: a new container has them, too.
    external: BTreeSet<&'a str>,
    losses: Vec<Finding>,
    unknown: Vec<String>,
}

impl<'a> Running<'a, '_> {
    /// With a Portainer stack, Portainer stops the containers by their stop signal (M04). It does the same with those that
    /// it recreates (B10).
    fn killed(&mut self, containers: &[&Container]) {
        let facts = self.facts;
        let (adopted, own): (Vec<&Container>, Vec<_>) = containers
            .iter()
            .partition(|container| facts.is_adopted(container));
        let running = own
            .iter()
            .filter(|container| container.is_running())
            .count();
        if running > 0 && !facts.is_adoption() && facts.record.is_none() {
            self.losses.push(Finding::of_stack(&format!(
                "{} will be stopped with SIGKILL, without time to shut down (to avoid this, run `{} compose stop` first)",
                counted(running, "running container"),
                facts.tool
            )));
        }
        if !adopted.is_empty() {
            let (project, count) = (facts.project, counted(adopted.len(), "container"));
            let loss = Finding::of_stack(&format!(
                "project {project} has {count}, which Portainer adopts: it recreates each one whose configuration differs, and may remove all of them if the deployment fails"
            ));
            self.losses.push(loss.of_kind(Kind::Adopted));
        }
    }

    fn containers(&mut self, containers: &[&'a Container], project: Option<&Project>) {
        let surplus = project.map(|project| self.surplus(containers, project));
        let surplus = surplus.unwrap_or_default();
        for &container in containers {
            let found = project.map(|project| self.successor(container, project, &surplus));
            let (service, why) = found.unwrap_or_default();
            self.container(container, service, why);
        }
    }

    /// `service` is what replaces the container, and `why` says why nothing does.
    fn container(
        &mut self,
        container: &'a Container,
        service: Option<&Service>,
        why: Option<String>,
    ) {
        let mut losses = Vec::new();
        let other = |message| (Kind::Other, message);
        losses.extend(self.other_directory(container).map(other));
        let if_recreated = if_recreated(self.facts, self.services, container);
        let mut placed = Vec::new();
        losses.extend(why.map(|why| (Kind::Orphan, why)));
        if let Some(service) = service {
            let (found, unknown) =
                replacement::losses(self.facts, container, service, if_recreated);
            losses.extend(found);
            self.unknown.extend(unknown);
            let files = service.files.iter();
            placed.extend(files.map(|file| file.target.clone()));
            if replacement::image_env(self.facts, container.image_id()).is_none() {
                self.unknown.push(format!(
                    "cannot inspect the image of {}: the variables that it will lose are unknown",
                    container.name()
                ));
            }
        }
        losses.extend(self.anonymous_volumes(container));
        let files = self.files(container, &placed);
        losses.extend(files.map(|files| (Kind::Files, format!("{if_recreated}{files}"))));
        losses.extend(self.uses_lost(container));
        for (kind, message) in losses {
            let loss = Finding::of_container(container, self.facts.tool, kind, &message);
            self.losses.push(loss);
        }
    }

    /// The service that replaces a container, and why it is lost if none does. Neither if that is unknown, or for a container
    /// beyond the replicas.
    fn successor<'p>(
        &self,
        container: &Container,
        project: &'p Project,
        surplus: &BTreeSet<&str>,
    ) -> (Option<&'p Service>, Option<String>) {
        let Some(name) = self.facts.label(container, "service") else {
            return (None, None);
        };
        let removed = |how: &str, why: &str| {
            let stays = self.facts.is_replaced_by_portainer(container);
            let what = if stays {
                how
            } else {
                "removed and not recreated"
            };
            (None, Some(format!("{what}: {why}")))
        };
        if container.is_one_off(self.facts.tool) {
            return removed("stays", "it was started by `compose run`");
        }
        match project.service(name) {
            None if self.facts.defines(name) => removed(
                "stays, but is not updated",
                &format!("no profile of service {name} is active in Portainer"),
            ),
            None => removed(
                "stays as an orphan",
                &format!("the Compose file has no service {name}"),
            ),
            Some(_) if surplus.contains(container.id()) => (None, None),
            Some(service) => (Some(service), None),
        }
    }

    /// The containers beyond the replicas of their service: those with the highest numbers, but for an adoption only if it is
    /// certain that these are removed.
    fn surplus(&mut self, containers: &[&'a Container], project: &Project) -> BTreeSet<&'a str> {
        let mut by_service: BTreeMap<&str, Vec<&'a Container>> = BTreeMap::new();
        for &container in containers {
            if let Some(name) = self.facts.label(container, "service")
                && !container.is_one_off(self.facts.tool)
            {
                by_service.entry(name).or_default().push(container);
            }
        }
        let mut surplus = BTreeSet::new();
        for (name, mut members) in by_service {
            let now = members.len();
            let after = project.service(name).map(Service::replicas);
            let Some(after) = after.filter(|after| *after < now) else {
                continue;
            };
            let containers: Vec<String> = members
                .iter()
                .map(|member| member.name().to_owned())
                .collect();
            let over = split_surplus(&mut members, after, self.facts.tool);
            let mut rows = self.services.iter();
            if !self.facts.is_adoption() || rows.any(|row| row.removes_one_of(&containers)) {
                surplus.extend(over.iter().map(|container| container.id()));
            }
            let message = format!("{} will be reduced to {after}", counted(now, "container"));
            let kind = Kind::Replicas { containers, after };
            self.losses.push(Finding::of_service(name, kind, &message));
        }
        surplus
    }

    fn other_directory(&self, container: &Container) -> Option<String> {
        // It is a reason not to adopt the stack, or it does not matter.
        if self.facts.is_adoption() {
            return None;
        }
        let dir = self.facts.label(container, "project.working_dir")?;
        let is_own = self.facts.is_same(dir, self.facts.dir)
            || is_portainers(dir)
            || self.facts.replaces_lost_files(container);
        (!is_own).then(|| format!("it was started from another directory: {dir}"))
    }

    fn files(&mut self, container: &Container, placed: &[String]) -> Option<String> {
        let facts = self.facts;
        match facts.host.changes.get(container.id())? {
            Known::Unknown(reason) => {
                let lost = if facts.is_replaced_by_portainer(container) {
                    "they will be lost if it is recreated"
                } else {
                    "they will be lost"
                };
                self.unknown.push(format!(
                    "cannot list the files written inside {}: {lost} ({reason})",
                    container.name()
                ));
                None
            }
            Known::Known(changes) => files(container, changes, placed),
        }
    }

    /// Those who may use a container, and not its successor (B23).
    fn uses_lost(&self, container: &Container) -> Option<(Kind, String)> {
        let uses = &self.facts.remote.uses;
        let stays = self.facts.is_adoption().then_some(&uses.stack);
        let after = uses.wanted.as_ref().or(stays);
        let given = uses.containers.get(container.id())?;
        let lost = Grant::missing(given, after.unwrap_or(&BTreeSet::new()));
        let (who, flags) = (Grant::list(&lost), flags(&lost));
        let message = format!("the access of {who} in Portainer; to keep it:{flags}");
        (!lost.is_empty()).then_some((Kind::Use(lost), message))
    }

    /// Running containers from this directory that belong to another project, unless this one has some, too: two projects of
    /// one directory do not replace each other.
    fn other_projects(&mut self) {
        let from_here = |container: &Container| {
            let dir = self.facts.label(container, "project.working_dir");
            dir.is_some_and(|dir| self.facts.is_same(dir, self.facts.dir))
        };
        if self.facts.host.inspected().any(from_here) {
            return;
        }
        for (project, mut containers) in self.facts.others_from_here() {
            containers.retain(|container| container.is_running());
            let is_own = project == self.facts.name || project == self.facts.project;
            if !is_own && !containers.is_empty() {
                let names: Vec<&str> = containers
                    .iter()
                    .map(|container| container.name())
                    .collect();
                self.losses.push(Finding::of_stack(&format!(
                    "project {project} was started from this directory and will keep running next to the new containers: {}",
                    names.join(", ")
                )));
            }
        }
    }

    /// M05, M16, N04.
    fn anonymous_volumes(&self, container: &Container) -> Vec<(Kind, String)> {
        let is_deleted = container.removes_itself();
        let stays = self.facts.is_replaced_by_portainer(container);
        let lost = container.anonymous_volumes();
        let lost = lost.filter(|(volume, _)| !self.external.contains(volume));
        let lost = lost.map(|(volume, target)| {
            let of = format!("the anonymous volume at {target}");
            let deleted = "may be deleted with its data: the container was started with --rm";
            let kept = format!("with an empty one; its data stays in volume {volume}");
            let message = match (is_deleted, stays) {
                (true, true) => format!("if it is recreated, {of} {deleted}"),
                (true, false) => format!("{of} {deleted}"),
                (false, true) => {
                    format!("if it is recreated, Portainer 2.45 replaces {of} {kept}")
                }
                (false, false) => format!("{of} is replaced {kept}"),
            };
            let volume = volume.to_owned();
            (Kind::AnonymousVolume { volume, is_deleted }, message)
        });
        lost.collect()
    }
}

/// The same for a container that keeps its own rights until it is recreated.
pub fn use_until_recreated(loss: Finding) -> Finding {
    let Kind::Use(users) = &loss.kind else {
        return loss;
    };
    let (who, access) = (Grant::list(users), flags(users));
    Finding {
        message: format!(
            "until it is recreated, {who} can use it in Portainer, but not the stack; to share both:{access}"
        ),
        kind: Kind::UseUntilRecreated,
        ..loss
    }
}

/// The flags that give this access.
fn flags(grants: &BTreeSet<Grant>) -> String {
    grants.iter().fold(String::new(), |flags, grant| {
        flags + " --access " + &shell_word(&grant.as_flag())
    })
}

#[cfg(test)]
mod tests;
