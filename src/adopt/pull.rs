//! `--pull`: gets the images that are not on this engine, before anything else is done.

use std::time::Duration;

use anyhow::Result;

use super::{Prepared, Procedure, progress::Progress};
use crate::{
    failure::Failure,
    plan,
    process::{self, Limits, RunError},
    text::{excerpt, printable},
};

/// What one pull may use.
const LIMITS: Limits = Limits {
    time: Duration::from_hours(1),
    output: 16 << 20,
};

impl Prepared {
    /// The missing images, if nothing else prevents the adoption of the stack `name`, and none of them has to be built.
    pub fn images_to_pull(&self, name: &str) -> Vec<String> {
        let images = &self.before.details.images;
        match &self.rewrite {
            Ok(rewrite) if self.plan.blockers.len() == 1 => plan::images_to_pull(
                (&rewrite.text, &rewrite.env),
                &self.source.compose,
                name,
                images,
            ),
            _ => Vec::new(),
        }
    }
}

impl Procedure<'_, '_> {
    /// Pulls what is missing by the container command, which has the credentials of the registries, and plans again. Pulls
    /// nothing if something else prevents the adoption, or if an image has to be built.
    pub(super) fn pull(&mut self, prepared: Prepared) -> Result<Prepared> {
        let missing = if self.a.pull {
            prepared.images_to_pull(self.a.stack.name().as_str())
        } else {
            Vec::new()
        };
        if missing.is_empty() {
            return Ok(prepared);
        }
        for image in missing {
            self.run.wait(format!("pulling {}", printable(&image)));
            self.pull_one(&image)?;
            self.run.step("pulled", printable(&image));
            if self.start == Progress::NotSent {
                self.start = Progress::Pulled;
                self.mark(&Progress::Pulled);
            }
        }
        self.prepare()
    }

    fn pull_one(&self, image: &str) -> Result<()> {
        let tool = self.a.tool;
        let output = process::find(tool)
            .and_then(|tool| process::run(&tool, &["pull", "--", image], LIMITS, |_| ()));
        let reason = match output {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => excerpt(String::from_utf8_lossy(&output.stderr).trim()),
            Err(RunError::TimedOut) => "it did not finish within an hour".to_owned(),
            Err(RunError::TooLarge(_)) => "it printed too much".to_owned(),
            Err(RunError::Failed(error)) => error.to_string(),
        };
        Err(Failure::new(format!("failed to pull {}", printable(image)))
            .details(reason)
            .hint(format!(
                "fix it, for example with `{tool} login`, then run the command again"
            ))
            .into())
    }
}
