//! What does not start or is not healthy now: it may fail again after the create (B06).

use composefile::document::Node;

use crate::{
    model::Condition,
    plan::{
        Facts,
        facts::services::{Given, SentService, SentStack},
    },
    snapshot::Inspected,
    text::printable,
};

/// A container that failed to start, and a dependency that is not what its service waits for.
pub fn doubts(facts: &Facts, stack: &SentStack) -> Vec<String> {
    let objects = facts.containers.unwrap_or_default();
    let containers: Vec<Inspected> = objects.iter().map(Inspected).collect();
    let of = |service: &str| {
        let containers = containers.iter().copied();
        let containers =
            containers.filter(|one| one.compose_label(facts.tool, "service") == Some(service));
        containers.collect::<Vec<_>>()
    };
    let mut doubts = Vec::new();
    for service in stack.active() {
        for container in of(service.name).iter().filter(|one| one.failed_to_start()) {
            doubts.push(format!(
                "the create may fail: {} failed to start the last time",
                printable(container.name())
            ));
        }
        let required = conditions(stack, &service).into_iter();
        for dependency in required.filter(|one| one.required) {
            let condition = dependency.condition;
            let unmet = |one: &Inspected| match condition {
                Condition::Healthy if one.health() == Some("unhealthy") => Some("is unhealthy"),
                Condition::Completed if one.exit_code().is_some_and(|code| code != 0) => {
                    Some("exited with an error")
                }
                _ => None,
            };
            for container in of(&dependency.name) {
                let Some(state) = unmet(&container) else {
                    continue;
                };
                doubts.push(format!(
                    "the create may fail: service {} depends on {}, which {state}",
                    printable(service.name),
                    printable(container.name())
                ));
            }
        }
    }
    doubts
}

/// A service that another one waits for.
pub struct Dependency {
    pub name: String,
    pub condition: Condition,
    /// Whether the deployment fails if the condition is not met. Compose waits for an optional one as well.
    pub required: bool,
}

/// The services that a service waits for.
pub fn conditions(stack: &SentStack, service: &SentService) -> Vec<Dependency> {
    let entries = service.nodes("depends_on").flat_map(Node::entries);
    let conditions = entries.filter_map(|entry| {
        let required = entry.value.get("required").and_then(Node::as_bool);
        match stack.read(entry.value.get("condition")?) {
            Given::Is(condition) => Some(Dependency {
                name: entry.name()?.to_owned(),
                condition: Condition::named(&condition),
                required: required != Some(false),
            }),
            Given::No | Given::Unknown => None,
        }
    });
    conditions.collect()
}
