//! Checks every container after the deployment.

use anyhow::Result;

use super::{Prepared, Procedure};
use crate::{failure::Failure, model::Container};

impl Procedure<'_, '_> {
    /// Compares the containers with those before.
    pub(super) fn verify(&mut self, prepared: &Prepared) -> Result<()> {
        let name = self.a.stack.name().as_str();
        let now = self.run.engine.list(name)?;
        let before = prepared.before.all.as_deref().unwrap_or_default();
        let mut wrong = Vec::new();
        for old in before {
            let new = now.iter().find(|new| new.name() == old.name());
            match new {
                None => wrong.push(format!("{} does not exist", old.name())),
                Some(new) if old.state == "running" && new.state != "running" => {
                    wrong.push(format!("{} is {}", new.name(), new.state));
                }
                Some(_) => {}
            }
        }
        let is_same = |new: &&Container| before.iter().any(|old| old.id == new.id);
        let same = now.iter().filter(is_same).count();
        if wrong.is_empty() {
            self.run.step(
                "verified",
                format!("{} containers: {same} not touched", now.len()),
            );
            self.run.show(&now);
            return Ok(());
        }
        Err(Failure::new("the stack does not run as before")
            .details(wrong.join("\n"))
            .into())
    }
}
