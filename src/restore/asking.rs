//! The question before a restore interrupts or loses something (B08).

use anyhow::Result;
use serde_json::Value;

use super::{
    Cause, Procedure, RecordStep,
    containers::{StateChange, changes},
    plan::{Plan, saved},
};
use crate::{snapshot::Inspected, text::listed};

impl Procedure<'_, '_, '_> {
    /// Asks if a container is stopped or removed, if Portainer may do so, or if something is `lost`. Returns whether it
    /// asked: what was read before may then be out of date.
    pub(super) fn ask(
        &self,
        step: &RecordStep,
        removed: &[Inspected],
        existing: &[Value],
        plan: &Plan,
        lost: bool,
    ) -> Result<bool> {
        let name = self.restore.name;
        let act = match self.restore.cause {
            Cause::Failure => return Ok(false),
            Cause::Wanted => format!("roll back {name}"),
            Cause::Unfinished => format!("roll back {name} before it is adopted"),
        };
        let mut effects: Vec<String> = match step {
            RecordStep::Delete(record) => Some(("deleted", record)),
            RecordStep::Update(record, _) => Some(("updated", record)),
            RecordStep::Stop(record) => Some(("stopped", record)),
            _ => None,
        }
        .map(|(verb, record)| format!("Portainer stack {} is {verb}", record.id))
        .into_iter()
        .collect();
        let containers = saved(self.snapshot());
        let removes_all = step.removes_containers(self.snapshot()).is_some();
        let is_removed = |container: &Inspected| removes_all || plan.removes(container.id());
        let is_saved = |name: &str| containers.iter().any(|container| container.name() == name);
        let (certain, possible): (Vec<Inspected>, Vec<_>) =
            removed.iter().partition(|one| is_removed(one));
        let (recreated, gone) = names(&certain).partition(|name| is_saved(name));
        let stopped: Vec<Inspected> = plan
            .keep
            .iter()
            .filter_map(|(&index, id)| {
                let now = existing.iter().map(Inspected).find(|now| now.id() == id)?;
                let changes = changes(containers[index], now);
                (changes.contains(&StateChange::Stop) || changes.contains(&StateChange::Pause))
                    .then_some(now)
            })
            .filter(|now| removed.iter().all(|one| one.id() != now.id()))
            .collect();
        for (names, [one, many], verb) in [
            (recreated, ["is", "are"], "removed and recreated"),
            (gone, ["is", "are"], "removed"),
            (names(&stopped).collect(), ["is", "are"], "stopped"),
            (
                names(&possible).collect(),
                ["may be", "may be"],
                "recreated",
            ),
        ] {
            let names: Vec<&str> = names;
            if !names.is_empty() {
                let be = if names.len() == 1 { one } else { many };
                effects.push(format!("{} {be} {verb}", listed(&names)));
            }
        }
        if lost {
            effects.push("the warnings above say what is lost or may stop working".to_owned());
        }
        if effects.is_empty() {
            if self.restore.cause == Cause::Wanted {
                return Ok(false);
            }
            effects.push(format!("{name} keeps every container that exists"));
        }
        self.restore.consent.require(&act, &effects.join("; "))
    }
}

fn names<'c>(containers: &[Inspected<'c>]) -> impl Iterator<Item = &'c str> {
    containers.iter().map(|container| container.name())
}
