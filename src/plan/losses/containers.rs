//! What is lost with the containers that run now (B01).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    model::Grant,
    plan::{
        ContainerLoss, Facts, Loss, Removal, ReplacedBy,
        facts::services::{SentService, SentStack},
        losses::mounts::{is_anonymous, placed_files},
        losses::replacement,
        losses::reported::Reported,
    },
    snapshot::{Inspected, Known},
    text::printable,
};

/// The losses, and the parts of them that are unknown. `stack` is `None` if the text that is sent is not YAML; `text`
/// are the losses of the text.
pub fn losses(facts: &Facts, stack: Option<&SentStack>, text: &[Loss]) -> (Vec<Loss>, Vec<String>) {
    let mut running = Running {
        facts,
        reported: Reported(text),
        losses: Vec::new(),
        unknown: Vec::new(),
    };
    let objects = facts.containers.unwrap_or_default();
    let mut containers: Vec<Inspected> = objects.iter().map(Inspected).collect();
    containers.sort_by_key(|container| container.name());
    running.killed(&containers);
    running.containers(&containers, stack);
    running.other_projects();
    (running.losses, running.unknown)
}

struct Running<'a, 'f> {
    facts: &'a Facts<'f>,
    reported: Reported<'a>,
    losses: Vec<Loss>,
    unknown: Vec<String>,
}

/// What happens to a container.
enum Fate<'s, 'r, 'd, 'a> {
    /// It gets a successor.
    Recreated(&'s SentService<'r, 'd, 'a>),
    /// It is only removed.
    Removed(Option<ContainerLoss>),
    Unknown,
}

impl<'a> Running<'a, '_> {
    /// With a Portainer stack, Portainer stops the containers by their stop signal (M04). It does the same with those that
    /// it recreates (B10).
    fn killed(&mut self, containers: &[Inspected]) {
        let (own, adopted): (Vec<Inspected>, Vec<_>) = containers
            .iter()
            .partition(|one| self.replaced_by(**one) == ReplacedBy::Run);
        let running = own.iter().filter(|one| one.is_running()).count();
        let is_killed = self.facts.removal == Removal::Kill && self.facts.record.is_none();
        if running > 0 && is_killed {
            self.losses.push(Loss::Killed(running));
        }
        if !adopted.is_empty() {
            self.losses.push(Loss::Adopted {
                project: self.facts.project.to_owned(),
                count: adopted.len(),
            });
        }
    }

    fn replaced_by(&self, container: Inspected) -> ReplacedBy {
        if self.facts.is_adopted(container) {
            ReplacedBy::Portainer
        } else {
            ReplacedBy::Run
        }
    }

    fn containers(&mut self, containers: &[Inspected<'a>], stack: Option<&SentStack>) {
        let all = stack.map(SentStack::services).unwrap_or_default();
        let services: BTreeMap<&str, &SentService> =
            all.iter().map(|one| (one.name, one)).collect();
        let surplus = self.surplus(containers, &services);
        for &container in containers {
            let fate = if stack.is_none() {
                Fate::Unknown
            } else {
                self.fate(container, &services, &surplus)
            };
            self.container(container, fate);
        }
    }

    fn container(&mut self, container: Inspected<'a>, fate: Fate) {
        let mut losses = Vec::new();
        losses.extend(self.other_directory(container));
        let mut placed = Vec::new();
        match fate {
            Fate::Removed(loss) => losses.extend(loss),
            Fate::Unknown => {}
            Fate::Recreated(service) => {
                let (found, unknown) =
                    replacement::losses(self.facts, container, service, self.reported);
                losses.extend(found);
                self.unknown.extend(unknown);
                placed = placed_files(service);
                if replacement::is_image_unknown(self.facts, container) {
                    self.unknown.push(format!(
                        "cannot inspect the image of {}: the variables that it will lose are unknown",
                        printable(container.name())
                    ));
                }
            }
        }
        losses.extend(anonymous_volumes(container));
        losses.extend(self.files(container, &placed));
        losses.extend(self.uses_lost(container));
        let name = container.name();
        let replaced_by = self.replaced_by(container);
        self.losses
            .extend(losses.into_iter().map(|loss| Loss::Container {
                container: name.to_owned(),
                replaced_by,
                loss,
            }));
    }

    fn fate<'s, 'r, 'd, 'x>(
        &self,
        container: Inspected,
        services: &BTreeMap<&str, &'s SentService<'r, 'd, 'x>>,
        surplus: &BTreeSet<&str>,
    ) -> Fate<'s, 'r, 'd, 'x> {
        let Some(name) = self.label(container, "service") else {
            return Fate::Unknown;
        };
        let service = name.to_owned();
        if container.is_one_off(self.facts.tool) {
            return Fate::Removed(Some(ContainerLoss::OneOff));
        }
        match services.get(name) {
            None => Fate::Removed(Some(ContainerLoss::NotDefined { service })),
            Some(found) if !found.is_active() => {
                Fate::Removed(Some(ContainerLoss::Profile { service }))
            }
            Some(_) if surplus.contains(container.id()) => Fate::Removed(None),
            Some(found) => Fate::Recreated(found),
        }
    }

    /// The containers beyond the replicas of their service: those with the highest numbers.
    fn surplus(
        &mut self,
        containers: &[Inspected<'a>],
        services: &BTreeMap<&str, &SentService>,
    ) -> BTreeSet<&'a str> {
        let mut by_service: BTreeMap<&str, Vec<Inspected<'a>>> = BTreeMap::new();
        for &container in containers {
            if let Some(name) = self.label(container, "service")
                && !container.is_one_off(self.facts.tool)
            {
                by_service.entry(name).or_default().push(container);
            }
        }
        let mut surplus = BTreeSet::new();
        for (name, mut members) in by_service {
            let Some(service) = services.get(name).filter(|service| service.is_active()) else {
                continue;
            };
            let now = members.len();
            let Some(after) = service.replicas().filter(|after| *after < now) else {
                continue;
            };
            members.sort_by_key(|one| {
                let number = self.label(*one, "container-number");
                Reverse(number.and_then(|number| number.parse::<u64>().ok()))
            });
            surplus.extend(members.iter().take(now - after).map(|one| one.id()));
            self.losses.push(Loss::Replicas {
                service: name.to_owned(),
                now,
                after,
            });
        }
        surplus
    }

    fn other_directory(&self, container: Inspected) -> Option<ContainerLoss> {
        let dir = self.label(container, "project.working_dir")?;
        let is_own = self.facts.is_same(dir, self.facts.dir)
            || self.facts.is_portainers(dir)
            || self.facts.replaces_lost_files(container);
        (!is_own).then(|| ContainerLoss::OtherDirectory(dir.to_owned()))
    }

    fn files(&mut self, container: Inspected, placed: &[String]) -> Option<ContainerLoss> {
        match self.facts.changes.get(container.id())? {
            Known::Unknown(reason) => {
                let lost = match self.replaced_by(container) {
                    ReplacedBy::Run => "they will be lost",
                    ReplacedBy::Portainer => "they will be lost if it is recreated",
                };
                self.unknown.push(format!(
                    "cannot list the files written inside {}: {lost} ({})",
                    printable(container.name()),
                    printable(reason)
                ));
                None
            }
            Known::Known(changes) => ContainerLoss::files(container, changes, placed),
        }
    }

    /// Those who may use a container, and not its successor (B23).
    fn uses_lost(&self, container: Inspected) -> Option<ContainerLoss> {
        let uses = self.facts.uses;
        let stays = (self.facts.removal == Removal::ByPortainer).then_some(&uses.stack);
        let after = uses.wanted.as_ref().or(stays);
        let given = uses.containers.get(container.id())?;
        let lost = Grant::missing(given, after.unwrap_or(&BTreeSet::new()));
        (!lost.is_empty()).then_some(ContainerLoss::Use(lost))
    }

    /// Running containers from this directory that belong to another project.
    fn other_projects(&mut self) {
        for (project, mut containers) in self.facts.others_from_here() {
            containers.retain(|one| matches!(&*one.state, "running" | "paused" | "restarting"));
            let is_own = project == self.facts.name || project == self.facts.project;
            if !is_own && !containers.is_empty() {
                let names = containers.iter().map(|one| one.name().to_owned());
                self.losses.push(Loss::OtherProject {
                    project: project.to_owned(),
                    containers: names.collect(),
                });
            }
        }
    }

    fn label<'c>(&self, container: Inspected<'c>, name: &str) -> Option<&'c str> {
        container.compose_label(self.facts.tool, name)
    }
}

fn anonymous_volumes(container: Inspected) -> Vec<ContainerLoss> {
    let is_deleted = container.removes_itself();
    let volumes = container.volumes().into_iter();
    volumes
        .filter(|(volume, _)| is_anonymous(volume))
        .map(|(volume, target)| ContainerLoss::AnonymousVolume {
            target: target.to_owned(),
            volume: volume.to_owned(),
            is_deleted,
        })
        .collect()
}

#[cfg(test)]
mod tests;
