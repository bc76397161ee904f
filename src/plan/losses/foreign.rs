//! The containers that a run does not recreate, but that use one that it recreates, restarts or removes (B21).
//!
//! The engine stores a shared namespace as the ID of the other container. A container that refers to an ID that no longer
//! exists keeps running without the namespace, and `restart` stops it for good: it must be recreated.
//!
//! Invariant: pure; reads inspect JSON.

use std::collections::BTreeMap;

use crate::{
    finding::{Finding, Kind},
    model::{Container, PORTAINER_FOLDERS},
    text::shell_word,
};

/// What happens to a container that others use. A later one is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    Restarted,
    MayBeReplaced,
    /// Another container takes its place, or none.
    Replaced,
    /// The same, before this run. Only references by ID tell that the other container is meant.
    Gone,
}

/// What has to be done about a container. A later one is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Remedy {
    /// Nothing: it keeps the volumes that it mounts.
    Nothing,
    Restart,
    Recreate,
}

/// A container that uses one that a run touches, and that the run does not touch itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub loss: Finding,
    touch: Touch,
    remedy: Remedy,
}

struct Hit {
    name: String,
    touch: Touch,
    /// How many containers are between it and one of the run.
    distance: usize,
}

/// The containers of `all` that use one of `touched`, directly or through another one. Those to repair first come first.
/// `projects` are the names of the project.
pub fn foreign(
    touched: &[(&Container, Touch)],
    all: &[Container],
    tool: &str,
    projects: &[String],
) -> Vec<Foreign> {
    let hit = |one: &Container, touch, distance| Hit {
        name: one.name().to_owned(),
        touch,
        distance,
    };
    let first = touched
        .iter()
        .map(|&(one, touch)| (one.id(), hit(one, touch, 0)));
    let mut hits: BTreeMap<&str, Hit> = first.collect();
    let mut others: Vec<&Container> = all.iter().collect();
    others.retain(|container| !hits.contains_key(container.id()));
    others.sort_by_key(|container| container.name());
    let of = |one: &Container, hits: &BTreeMap<&str, Hit>| harmed(one, hits, tool, projects);
    // Each round makes one worse, so this ends.
    for distance in 1.. {
        let spread: Vec<(&Container, Touch)> = others
            .iter()
            .filter_map(|&one| Some((one, of(one, &hits)?.passes_on()?)))
            .filter(|(one, next)| hits.get(one.id()).is_none_or(|known| known.touch < *next))
            .collect();
        if spread.is_empty() {
            break;
        }
        for (one, touch) in spread {
            hits.insert(one.id(), hit(one, touch, distance));
        }
    }
    let distance = |one: &&Container| hits.get(one.id()).map_or(0, |hit| hit.distance);
    others.sort_by_key(distance);
    others
        .iter()
        .filter_map(|container| of(container, &hits))
        .collect()
}

fn harmed(
    container: &Container,
    hits: &BTreeMap<&str, Hit>,
    tool: &str,
    projects: &[String],
) -> Option<Foreign> {
    let is_running = container.is_running();
    let (mut uses, mut worst) = (Vec::new(), None);
    for (what, reference) in container.refers_to() {
        let by_id = |id: &str| {
            id == reference || (reference.len() >= SHORT_ID && id.starts_with(reference))
        };
        let hit = hits
            .iter()
            .find(|(id, hit)| by_id(id) || (hit.touch != Touch::Gone && hit.name == reference));
        let Some((id, hit)) = hit else {
            continue;
        };
        let remedy = match (what, hit.touch) {
            ("Links" | "VolumesFrom", Touch::Restarted) => continue,
            (_, Touch::Restarted) if !is_running => continue,
            ("VolumesFrom", _) => Remedy::Nothing,
            (_, Touch::Restarted) => Remedy::Restart,
            ("Links", _) => Remedy::Recreate,
            _ if by_id(id) => Remedy::Recreate,
            _ => Remedy::Restart,
        };
        let of = &hit.name;
        uses.push(match what {
            "NetworkMode" => format!("shares the network of {of}"),
            "PidMode" => format!("shares the PID namespace of {of}"),
            "IpcMode" => format!("shares the IPC namespace of {of}"),
            "Links" => format!("links to {of}"),
            _ => format!("mounts the volumes of {of}"),
        });
        worst = worst.max(Some((remedy, hit.touch)));
    }
    let (remedy, touch) = worst?;
    let project = container.compose_label(tool, "project");
    let is_own = project.is_some_and(|project| projects.iter().any(|own| own == project));
    let name = shell_word(container.name());
    let how = match remedy {
        Remedy::Nothing => String::new(),
        Remedy::Restart => format!("; restart it then: `{tool} restart {name}`"),
        Remedy::Recreate => format!("; recreate it then: {}", recreate(container, tool, is_own)),
    };
    let belongs = if is_own {
        "is not recreated with the stack"
    } else {
        "does not belong to the stack"
    };
    let when = match touch {
        Touch::Restarted => "when that container is restarted",
        Touch::MayBeReplaced => "if that container is recreated or removed",
        Touch::Replaced => "when that container is recreated or removed",
        Touch::Gone => "since that container was recreated or removed",
    };
    let harm = match (remedy, is_running) {
        (Remedy::Nothing, _) => "keeps the volumes that it has now",
        (_, true) => "loses it",
        (_, false) => "cannot start again",
    };
    let uses = uses.join(" and ");
    let message = format!("it {belongs}, {uses}, and {harm} {when}{how}");
    let loss = Finding::of_container(container, tool, Kind::Foreign, &message);
    Some(Foreign {
        loss: Finding {
            service: loss.service.filter(|_| is_own),
            ..loss
        },
        touch,
        remedy,
    })
}

/// The length of the engine's short IDs.
const SHORT_ID: usize = 12;

/// How to recreate a container. Compose finds its files by the labels.
fn recreate(container: &Container, tool: &str, is_own: bool) -> String {
    let name = shell_word(container.name());
    let label = |name: &str| container.compose_label(tool, name);
    let by_compose = !is_own && !container.is_one_off(tool);
    let (Some(project), Some(service), true) = (label("project"), label("service"), by_compose)
    else {
        return format!("`{tool} rm -f {name}`, then create it again as it was created before");
    };
    let dir = label("project.working_dir").unwrap_or_default();
    if dir.starts_with(PORTAINER_FOLDERS) {
        return format!("`{tool} rm -f {name}`, then update the stack {project} in Portainer");
    }
    let files = container.config_files(tool);
    let mut words = vec![tool, "compose", "-p", project];
    if !dir.is_empty() {
        words.extend(["--project-directory", dir]);
    }
    words.extend(files.flat_map(|file| ["-f", file]));
    words.extend(["up", "-d", "--force-recreate", service]);
    let words: Vec<_> = words.into_iter().map(shell_word).collect();
    format!("`{}`", words.join(" "))
}

impl Foreign {
    /// What that means for the containers that use this one.
    fn passes_on(&self) -> Option<Touch> {
        match (self.remedy, self.touch) {
            (Remedy::Nothing, _) => None,
            (Remedy::Restart, _) => Some(Touch::Restarted),
            (Remedy::Recreate, Touch::MayBeReplaced) => Some(Touch::MayBeReplaced),
            (Remedy::Recreate, _) => Some(Touch::Replaced),
        }
    }

    /// Whether it does not work until it is restarted or recreated.
    pub fn needs_repair(&self) -> bool {
        self.remedy != Remedy::Nothing
    }
}

#[cfg(test)]
mod tests;
