//! What a restore does to the stack, in sentences, and the question before it interrupts or loses something (B08).

use anyhow::Result;

use super::{
    Cause, Planned, Restoration,
    plan::{StateChange, named, own},
    steps::matching,
    waves::Dependencies,
};
use crate::{
    model::Container,
    text::{down_for, listed, plural, said},
};

impl Restoration<'_, '_, '_> {
    /// What happens to the Portainer stack and to each container, and how long those that run are down.
    pub(super) fn effects(&self, planned: &Planned) -> Vec<String> {
        let (step, existing, plan) = (&planned.record, &planned.existing, &planned.containers);
        let containers = self.snapshot().containers.items();
        let (removed, possible) = self.removed(planned);
        let old = |one: &&Container| containers.iter().find(|old| old.name() == one.name());
        let (recreated, gone): (Vec<&Container>, Vec<_>) = removed
            .iter()
            .partition(|container| old(container).is_some());
        let (stopped, recreated): (Vec<&Container>, Vec<_>) =
            recreated.into_iter().partition(|container| {
                container.is_running() && old(container).is_some_and(|old| !old.is_running())
            });
        let stopped_since =
            |one: &&Container| !one.is_running() && old(one).is_some_and(Container::is_running);
        let (started, recreated): (Vec<&Container>, Vec<_>) =
            recreated.into_iter().partition(stopped_since);
        let created = plan.create.iter().map(|&index| &containers[index]);
        let created = created.filter(|container| named(existing, container.name()).is_none());
        let created: Vec<&Container> = created.collect();
        // Portainer removes or recreates them, or may do so.
        let is_moved = step.replaces_containers() && !planned.keeps;
        let of_change = |change: StateChange| -> Vec<String> {
            let mut of: Vec<&String> = plan.changing.keys().collect();
            of.retain(|name| plan.changing[*name].contains(&change) && !is_moved);
            let named = of.into_iter().filter_map(|name| named(existing, name));
            named.map(|container| self.called(container)).collect()
        };
        let names = |all: &[&Container]| -> Vec<String> {
            all.iter().map(|container| self.called(container)).collect()
        };
        // Portainer's `down` ends when the last container has stopped.
        let waits = step.removes_containers(self.snapshot());
        let others = gone
            .iter()
            .filter(|container| waits && container.is_running());
        let others = others
            .map(|container| container.stop_grace().unwrap_or(10))
            .max();
        let down = down(&recreated, containers, &plan.dependencies, others);
        let deploys = step.deploys(self.snapshot());
        let ended = containers
            .iter()
            .filter(|container| deploys && !container.is_running());
        let again: Vec<String> = ended.map(|container| self.called(container)).collect();
        let mut kept = own(self.snapshot(), existing);
        kept.retain(|container| {
            !plan.removes(container) && !plan.changing.contains_key(container.name())
        });
        let same = kept
            .iter()
            .filter(|container| !self.has_lost_memory(container))
            .count();
        let matching = (!step.replaces_containers() && same > 0).then(|| matching(same));
        kept.retain(|_| planned.keeps);
        let parts = [
            said(&names(&recreated), "is removed and recreated").map(|told| told + &down),
            said(
                &names(&started),
                "is stopped now, and will be recreated and started",
            ),
            said(&names(&stopped), "is removed and recreated").map(|told| {
                let stay = if stopped.len() == 1 { "stays" } else { "stay" };
                format!("{told}, and {stay} stopped")
            }),
            said(&names(&gone), "is removed"),
            said(&names(&created), "is created"),
            said(&of_change(StateChange::Unpause), "is unpaused"),
            said(&of_change(StateChange::Start), "is started"),
            said(&of_change(StateChange::Stop), "is stopped"),
            said(&of_change(StateChange::Pause), "is paused"),
            (!possible.is_empty()).then(|| {
                let all = listed(&names(&possible));
                format!("{all} may be recreated, when Portainer deploys the stack")
            }),
            said(&names(&kept), "is kept"),
            said(&again, "may run again")
                .map(|told| format!("{told}, when Portainer deploys the stack")),
            said(&Vec::from_iter(&planned.networks), "is recreated")
                .map(|told| format!("{} {told}", plural(planned.networks.len(), "network"))),
        ];
        let (saved, endpoint) = (self.snapshot().endpoint, self.endpoint);
        let is_elsewhere = step.sends() && endpoint != saved;
        let elsewhere = is_elsewhere.then(|| {
            format!("this is done on environment {endpoint}, because Portainer no longer has environment {saved}")
        });
        let parts = [Some(step.to_string()), elsewhere].into_iter().chain(parts);
        let told: Vec<String> = parts.flatten().filter(|part| !part.is_empty()).collect();
        let told = (!told.is_empty()).then(|| told.join("; "));
        told.into_iter().chain(matching).collect()
    }

    /// The service of a container, if its name says that it is the only one.
    pub(super) fn called(&self, container: &Container) -> String {
        let (name, snapshot) = (container.name(), self.snapshot());
        let project = container.label(&snapshot.label("project"));
        let service = container.compose_label(&snapshot.tool, "service");
        let is_usual = project.zip(service).is_some_and(|(project, service)| {
            let mut gaps = ["-", "_"].into_iter();
            gaps.any(|gap| name == format!("{project}{gap}{service}{gap}1"))
        });
        let all = snapshot.containers.items().iter();
        let of_service =
            all.filter(|container| container.compose_label(&snapshot.tool, "service") == service);
        let is_only = of_service.count() < 2;
        service
            .filter(|_| is_usual && is_only)
            .unwrap_or(name)
            .to_owned()
    }

    /// The containers that are removed, and those that may be, because Portainer deploys the stack.
    pub(super) fn removed<'v>(
        &self,
        planned: &'v Planned,
    ) -> (Vec<&'v Container>, Vec<&'v Container>) {
        let step = &planned.record;
        let removes_all = step.removes_containers(self.snapshot());
        let own = own(self.snapshot(), &planned.existing).into_iter();
        let (plan, replaces) = (&planned.containers, step.replaces_containers());
        own.filter(|container| (replaces && !planned.keeps) || plan.removes(container))
            .partition(|container| removes_all || plan.removes(container))
    }

    /// Asks if a container is stopped or removed, if Portainer may do so, if the restore ends with nothing that runs, or if
    /// something is `lost`. Returns whether it asked: what was read before may then be out of date.
    pub(super) fn ask(&self, planned: &Planned, lost: bool) -> Result<bool> {
        let name = self.restore.name;
        let act = match self.restore.cause {
            Cause::Failure => return Ok(false),
            Cause::Wanted => format!("roll back {name}"),
            Cause::Unfinished => format!("roll back {name} first"),
        };
        let mut changes = planned.containers.changing.values().flatten();
        let stops = changes.any(|change| matches!(change, StateChange::Stop | StateChange::Pause));
        let step = &planned.record;
        let sends = step.record().is_some() && step.replaces_containers();
        // Nothing runs after it.
        let ends = !self.snapshot().has_running()
            && (step.replaces_containers() || !planned.containers.create.is_empty());
        let interrupts = sends || stops || ends || planned.touches();
        if !interrupts && !lost && self.restore.cause == Cause::Wanted {
            return Ok(false);
        }
        self.restore.consent.require(&act, None)
    }
}

/// How long containers are down that are removed and recreated; nothing if none runs. One is stopped after those that
/// depend on it, so the times to stop add up along the dependencies. `others` is how long the containers take that are removed
/// before and not recreated.
fn down(
    recreated: &[&Container],
    saved: &[Container],
    dependencies: &Dependencies,
    others: Option<u32>,
) -> String {
    let grace = |name: &str| {
        let mut running = recreated.iter().filter(|container| container.is_running());
        let found = running.find(|container| container.name() == name);
        found.map_or(0, |container| container.stop_grace().unwrap_or(10))
    };
    if !recreated.iter().any(|container| container.is_running()) {
        return String::new();
    }
    let mut until_stopped = vec![0; saved.len()];
    // Dependencies first.
    for &index in dependencies.order() {
        let needs = dependencies.needs(index).iter();
        let before = needs.map(|(need, _)| until_stopped[*need]).max();
        until_stopped[index] = grace(saved[index].name()) + before.unwrap_or(0);
    }
    let seconds = until_stopped.into_iter().chain(others).max().unwrap_or(0);
    let start = if recreated.len() == 1 { "its" } else { "their" };
    format!(" ({})", down_for(seconds, &format!("{start} start")))
}
