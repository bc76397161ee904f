//! What a migration says before it writes: its plan, with everything that will be lost and every reason to refuse.

use anyhow::Result;

use super::{OnRefusal, Procedure, Rewrite};
use crate::{
    failure::Failure,
    observe::Before,
    plan::{self, Loss, Plan, Refusal, Removal},
    run::Consent,
    stack::Source,
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
            Some(_) => Removal::Stop,
            None => Removal::Kill,
        };
        self.situation().with_facts(
            source,
            document,
            rewrite.sent(),
            removal,
            before,
            plan::migration,
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
        if !plan.losses.is_empty() {
            let lines: Vec<_> = plan
                .losses
                .iter()
                .map(|loss| format!("  - {loss}"))
                .collect();
            let verb = if adopts { "may" } else { "will" };
            self.run
                .warn(format!("the stack {verb} lose:\n{}", lines.join("\n")));
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

    /// Asks before the first destructive act if something will be lost (B08). Declining stops the run. Returns whether it
    /// asked: what was read before may then be out of date.
    pub(super) fn ask(&mut self, plan: &Plan, before: &Before) -> Result<bool> {
        let Consent::Ask(ask) = self.m.consent else {
            return Ok(false);
        };
        if !plan.destroys || (plan.losses.is_empty() && before.is_known()) {
            return Ok(false);
        }
        let name = self.m.stack.name();
        if !ask(&format!("migrate {name}?")) {
            return Err(Failure::new("canceled: the migration was not confirmed")
                .hint("to migrate without this question, pass --yes")
                .into());
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
