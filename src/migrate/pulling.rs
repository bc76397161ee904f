//! Pulls the images that the deployment needs, while the stack still runs (B27).

use std::slice::from_ref;

use anyhow::{Result, ensure};

use super::{Procedure, namesake};
use crate::{
    failure::Failure,
    model::{Pull, Record},
    observe::Before,
    plan::{Plan, Refusal},
};

impl Procedure<'_, '_> {
    /// Pulls every image of the plan. Refuses the run if one cannot be pulled, unless `--force` overrides it. Returns
    /// whether it tried: what was observed before may then be out of date.
    pub(super) fn pull(&mut self, plan: &Plan, before: &Before) -> Result<bool> {
        if plan.pulls.is_empty() {
            return Ok(false);
        }
        let mut failed = Vec::new();
        for pull in &plan.pulls {
            if let Err(error) = self.pull_one(pull) {
                failed.push(format!("image {pull}: {error:#}"));
            }
        }
        if !failed.is_empty() {
            self.refuse(&[Refusal::MissingImages(failed)])?;
        }
        let when = "while images were pulled";
        self.require_unchanged(before, when)?;
        let stack = self.at.stack;
        let records = self.at.records()?;
        namesake(stack, &records)?;
        let is_own = |one: &&Record| {
            one.name == stack.name().as_str() && one.endpoint_id == self.at.endpoint
        };
        let id = |record: &Record| record.id.clone();
        if records.iter().find(is_own).map(id) != before.record.as_ref().map(id) {
            return Err(Failure::new(format!("the Portainer stack changed {when}"))
                .hint("run the command again: it makes a new plan")
                .into());
        }
        Ok(true)
    }

    fn pull_one(&mut self, pull: &Pull) -> Result<()> {
        self.run.pull(pull)?;
        self.mark(|progress| progress.pulled = true);
        // The command may have reached another engine.
        let found = self.run.engine.inspect_images(from_ref(&pull.image))?;
        ensure!(
            !found.is_empty(),
            "it was pulled, but Docker does not have it"
        );
        Ok(())
    }
}
