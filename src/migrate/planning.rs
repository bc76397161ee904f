//! What a migration says before it writes: its plan, with everything that will be lost and every reason to refuse.

use anyhow::Result;

use super::{OnRefusal, Procedure, Rewrite};
use crate::{
    failure::Failure,
    model::Container,
    observe::{Before, Situation, warnings_of},
    plan::{self, Loss, Plan, Refusal, Removal, Touch},
    snapshot::Inspected,
    stack::Source,
    text::listed,
};
use composefile::document::{Document, ParseError};

impl Procedure<'_, '_> {
    /// The losses, refusals and warnings that follow from what was observed.
    pub(super) fn plan(
        &self,
        source: &Source,
        document: Result<&Document, &ParseError>,
        rewrite: &Rewrite,
        before: &Before,
    ) -> Plan {
        let removal = match self.m.grace {
            Some(grace) => Removal::Stop(u32::try_from(grace.as_secs()).unwrap_or(u32::MAX)),
            None => Removal::Kill,
        };
        plan_of(
            &self.situation(),
            (source, document),
            rewrite,
            removal,
            before,
        )
    }

    /// Reports the plan. Stops if it refuses the run, with every reason at once, unless `--force` overrides it.
    pub(super) fn say(&mut self, rewrite: &Rewrite, plan: &Plan) -> Result<()> {
        for warning in &rewrite.env.warnings {
            self.run
                .warn(format!("{}/.env: {warning}", self.m.stack.dir().display()));
        }
        let name = self.m.stack.name();
        let is_adopted = |loss: &Loss| matches!(loss, Loss::Adopted { .. });
        let adopts = plan.losses.iter().any(is_adopted);
        if self.m.grace.is_some() && adopts {
            self.run.warn(format!(
                "--grace has no effect on the containers of project {}: Portainer stops those that it recreates, within their own stop grace periods",
                name.portainer_name()
            ));
        }
        for warning in &plan.warnings {
            self.run.warn(warning);
        }
        self.refuse(&plan.refusals)?;
        let verb = if adopts { "may" } else { "will" };
        for warning in warnings_of(&plan.losses, verb) {
            self.run.warn(warning);
        }
        for notice in plan.notices() {
            self.run.step("note", notice);
        }
        Ok(())
    }

    /// Stops with every reason at once, unless `--force` overrides them.
    pub(super) fn refuse(&mut self, refusals: &[Refusal]) -> Result<()> {
        if self.m.on_refusal == OnRefusal::Stop && !refusals.is_empty() {
            return Err(refused(refusals, self.m.stack.name().as_str()).into());
        }
        for refusal in refusals {
            let places = refusal
                .details()
                .map_or(String::new(), |places| format!("\n{places}"));
            self.run
                .warn(format!("{refusal}; continuing because of --force{places}"));
        }
        Ok(())
    }

    /// Asks before anything is written, if there is something to destroy (B08). Declining stops the run. Returns whether it
    /// asked: what was read before may then be out of date.
    pub(super) fn ask(&mut self, plan: &Plan, before: &Before) -> Result<bool> {
        if !plan.destroys {
            return Ok(false);
        }
        let name = self.m.stack.name().as_str();
        let effect = effect(name, plan, before);
        if !self
            .m
            .consent
            .require(&format!("migrate {name}"), &effect)?
        {
            return Ok(false);
        }
        self.require_unchanged(before, "before you answered")?;
        Ok(true)
    }

    /// Stops if the containers are not as they were observed. `when` says since when.
    pub(super) fn require_unchanged(&self, before: &Before, when: &str) -> Result<()> {
        if before.all.is_none() || self.is_unchanged(before) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the stack's containers changed {when}, or can no longer be listed"
        ))
        .hint("run the command again: it shows what will be lost now")
        .into())
    }
}

/// What a migration interrupts or loses, in one line.
fn effect(name: &str, plan: &Plan, before: &Before) -> String {
    let record = before.record.as_ref();
    let mut effects: Vec<String> = record
        .map(|record| format!("Portainer stack {} is deleted", record.id))
        .into_iter()
        .collect();
    let containers = before.containers.as_deref();
    let names: Vec<&str> = containers
        .into_iter()
        .flatten()
        .map(Container::name)
        .collect();
    effects.extend(match names.as_slice() {
        [] if containers.is_some() => None,
        [] => Some(format!("{name}'s containers are unknown")),
        [one] => Some(format!("{one} is down until Portainer has recreated it")),
        names => Some(format!(
            "{} are down until Portainer has recreated them",
            listed(names)
        )),
    });
    effects.extend(plan::told_losses(plan.losses.len()));
    effects.join("; ")
}

/// The plan of a migration.
pub(super) fn plan_of(
    situation: &Situation,
    (source, document): (&Source, Result<&Document, &ParseError>),
    rewrite: &Rewrite,
    removal: Removal,
    before: &Before,
) -> Plan {
    let sent = rewrite.sent();
    let mut plan = situation.with_facts(source, document, sent, removal, before, plan::migration);
    let name = Some(situation.stack.name().as_str());
    let containers = before.details.containers.iter().flatten().map(Inspected);
    let touched = containers.map(|one| match one.compose_label(situation.tool, "project") {
        project if project == name => (one, Touch::Replaced),
        // B10
        _ => (one, Touch::MayBeReplaced),
    });
    let touched: Vec<_> = touched.collect();
    situation.lose_foreign(before, &touched, &mut plan.losses, &mut plan.warnings);
    plan
}

/// The error that lists every refusal. A single one is the message itself.
fn refused(refusals: &[Refusal], stack: &str) -> Failure {
    if let [refusal] = refusals {
        let hint = refusal.hint(stack);
        let hint = if hint.contains("--force") {
            hint
        } else {
            format!("{hint}; --force overrides this check")
        };
        let failure = Failure::new(format!("refusing to migrate: {refusal}")).hint(hint);
        return match refusal.details() {
            Some(details) => failure.details(details),
            None => failure,
        };
    }
    let reasons = refusals.iter().map(|refusal| {
        let details = refusal.details().unwrap_or_default();
        let details = details.replace('\n', "\n    ");
        let details = match details.as_str() {
            "" => String::new(),
            details => format!("\n    {details}"),
        };
        format!("  - {refusal}{details}\n    hint: {}", refusal.hint(stack))
    });
    let reasons: Vec<String> = reasons.collect();
    Failure::new(format!(
        "refusing to migrate for {} reasons",
        refusals.len()
    ))
    .details(reasons.join("\n"))
    .hint("fix the problems above, or pass --force to migrate anyway")
}
