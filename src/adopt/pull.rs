//! `--pull`: gets the images that are not on this engine, before anything else is done.

use anyhow::Result;

use super::{Adoption, Prepared};
use crate::{failure::Failure, model::Pull, run::Consent};

impl Adoption<'_, '_> {
    /// Pulls what is missing, and plans again. Pulls nothing if something else prevents the adoption, or if an image has to
    /// be built.
    pub(super) fn pull(&mut self, prepared: Prepared) -> Result<Prepared> {
        // What is missing from now on prevents the adoption.
        self.flags.pull = false;
        if prepared.plan.pulls.is_empty() {
            return Ok(prepared);
        }
        if matches!(self.a.consent, Consent::Impossible) {
            self.ask(&prepared.plan)?;
        }
        self.pull_all(&prepared.plan.pulls)?;
        self.prepare()
    }

    /// Pulls what Portainer would pull again, because of `pull_policy` or `platform` (N10): if it cannot be pulled, the
    /// deployment would fail. A pull may move the name of an image, so the stack is planned again then.
    pub(super) fn pull_first(&mut self, prepared: Prepared) -> Result<Prepared> {
        if prepared.plan.images.is_empty() {
            return Ok(prepared);
        }
        self.pull_all(&prepared.plan.images)?;
        let now = self.prepare()?;
        now.payload(self.at.stack.name().as_str())?;
        self.ask_if_worse(&now.plan, &prepared.plan)?;
        Ok(now)
    }

    fn pull_all<'p>(&mut self, images: impl IntoIterator<Item = &'p Pull>) -> Result<()> {
        for image in images {
            self.run.pull(image).map_err(|error| {
                Failure::new(format!("failed to pull {image}"))
                    .details(image.told(&error))
                    .hint(format!(
                        "fix it, for example with `{} login`, then run the command again",
                        self.at.tool
                    ))
            })?;
        }
        Ok(())
    }
}
