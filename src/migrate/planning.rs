//! What a migration says before it writes: its plan, with everything that will be lost and every reason to refuse.

use anyhow::Result;

use super::{Procedure, Rewrite};
use crate::{
    failure::Failure,
    finding::{Finding, Kind},
    model::Container,
    observe::warnings_of,
    plan::{self, Before, Fate, Plan},
    text::{listed, numbered, said},
};

impl Procedure<'_, '_> {
    /// Reports the plan. Stops if it refuses the run, with every reason at once, unless `--force` overrides it.
    pub(super) fn say(&mut self, rewrite: &Rewrite, plan: &Plan) -> Result<()> {
        let dir = self.at.stack.dir().display();
        let of_env = rewrite.env.warnings.iter();
        let of_env = of_env.map(|warning| format!("{dir}/.env: {warning}"));
        self.run.warn_all(of_env);
        let mut losses = plan.losses.iter();
        let adopts = losses.any(|loss| loss.kind == Kind::Adopted);
        self.run
            .warn_all(plan.warnings.iter().map(Finding::to_string));
        self.refuse(&plan.blockers)?;
        let heading = if adopts {
            "the stack may lose:"
        } else {
            "the stack will lose:"
        };
        self.run.warn_all(warnings_of(plan, heading));
        let notes = plan.changes.iter().chain(&plan.notices);
        self.run
            .note_all(notes.map(|note| note.told(&plan.services)));
        Ok(())
    }

    /// Stops with every reason at once, unless `--force` overrides them.
    pub(super) fn refuse(&mut self, refusals: &[Finding]) -> Result<()> {
        if !self.m.force && !refusals.is_empty() {
            return Err(refused(refusals).into());
        }
        for refusal in refusals {
            let what = &refusal.message;
            let mut lines = vec![format!("{what}; continuing because of --force")];
            lines.extend_from_slice(&refusal.details);
            self.run.warn(lines.join("\n"));
        }
        Ok(())
    }

    /// Asks before anything is written, if there is something to destroy (B08). Declining stops the run. Returns whether it
    /// asked: what was read before may then be out of date.
    pub(super) fn ask(&mut self, plan: &Plan, before: &Before) -> Result<bool> {
        if !before.destroys() {
            return Ok(false);
        }
        let name = self.at.stack.name().as_str();
        let (act, effect) = (format!("migrate {name}"), effect(name, plan, before));
        if !self.m.consent.require(&act, Some(&effect))? {
            return Ok(false);
        }
        self.require_unchanged(before, "before you answered")?;
        Ok(true)
    }

    /// Stops if the containers are not as they were observed. `when` says since when.
    pub(super) fn require_unchanged(&self, before: &Before, when: &str) -> Result<()> {
        if before.host.listed.is_none() || self.is_unchanged(before) {
            return Ok(());
        }
        let what = format!("the stack's containers changed {when}, or can no longer be listed");
        let hint = "run the command again: it shows what will be lost now";
        Err(Failure::new(what).hint(hint).into())
    }
}

/// What a migration interrupts or loses, in one line.
fn effect(name: &str, plan: &Plan, before: &Before) -> String {
    let record = before.remote.record.as_ref();
    let deleted = record.map(|record| {
        let id = &record.id;
        format!("{name} is already in Portainer: Portainer stack {id} is deleted")
    });
    let mut effects = Vec::from_iter(deleted);
    let containers = before.host.own.as_deref();
    let fate = |one: &Container| plan::fate_of(&plan.services, one.name());
    let is_removed = |one: &&Container| matches!(fate(one), Some(Fate::Removed(_)));
    let all = containers.into_iter().flatten();
    let (removed, others): (Vec<&Container>, Vec<_>) = all.partition(is_removed);
    let own_name = |one: &&Container| {
        let name = one.name();
        plan::called(&plan.services, name)
            .unwrap_or(name)
            .to_owned()
    };
    let names = |all: &[&Container]| all.iter().map(own_name).collect::<Vec<_>>();
    let running = others
        .iter()
        .copied()
        .filter(|container| container.is_running());
    effects.extend(match names(&running.collect::<Vec<_>>()).as_slice() {
        [] if containers.is_some() => said(&names(&others), "is removed and recreated"),
        [] => Some(format!("{name}'s containers are unknown")),
        [one] => Some(format!("{one} is down until Portainer has recreated it")),
        names => Some(format!(
            "{} are down until Portainer has recreated them",
            listed(names)
        )),
    });
    effects.extend(said(&names(&removed), "is removed"));
    effects.extend(plan::told_losses(plan.losses.len()));
    effects.join("; ")
}

/// The error that lists every refusal. A single one is the message itself.
fn refused(refusals: &[Finding]) -> Failure {
    if let [refusal] = refusals {
        let hint = format!("{}; {}", refusal.advice(), refusal.with_force());
        let failure = Failure::new(format!("refusing to migrate: {}", refusal.message)).hint(hint);
        return failure.lines(&refusal.details);
    }
    let count = refusals.len();
    Failure::new(format!("refusing to migrate for {count} reasons"))
        .details(numbered(refusals))
        .hint("fix the problems above, or pass --force to migrate anyway")
}
