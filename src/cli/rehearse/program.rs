//! The Compose program of an embedded host.
//!
//! The hashes of what it prints are those of the labels of that world. Whether it accepts a text, the program of this host says,
//! if there is one: it knows more than the world.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, anyhow};
use rehearsal::{COMPOSE_VERSION, Rehearsal};
use serde_json::Value;

use crate::{
    compose::{Host, Input, NOT_COMBINED, Profiles, Program, Rejection, Values, Version},
    text::{Mask, excerpt},
};

/// The exit status of Compose for a text that it rejects.
const REJECTED: i32 = 15;

/// The Compose of an embedded host.
pub(super) struct Embedded {
    rehearsal: Arc<Rehearsal>,
    version: Version,
    host: Host,
    /// The directory of the stack that is rehearsed, if it is not an example.
    original: Option<PathBuf>,
}

impl Embedded {
    pub(super) fn new(
        rehearsal: Arc<Rehearsal>,
        host: Host,
        original: Option<PathBuf>,
    ) -> Result<Self> {
        Ok(Self {
            version: Version::parse(COMPOSE_VERSION)
                .context("the simulated Compose has no version")?,
            rehearsal,
            host,
            original,
        })
    }

    /// The configuration, or the message that Compose prints.
    fn ask(&self, input: &Input) -> Result<Value, String> {
        self.rehearsal.world(|world| match *input {
            Input::Sent {
                project, text, env, ..
            } => world.config_of_text(project, text, env),
            Input::Several { .. } => Err(NOT_COMBINED.to_owned()),
            Input::OnDisk {
                project,
                dir,
                files,
                ..
            } => {
                let folder = dir.to_str().ok_or("the path is not valid UTF-8")?;
                let file = files.first().map(String::as_str);
                world.config_on_disk(project.unwrap_or_default(), folder, file)
            }
        })
    }
}

impl Program for Embedded {
    fn name(&self) -> String {
        format!("the simulated Compose {}", self.version)
    }

    fn version(&self) -> &Version {
        &self.version
    }

    fn check(&self, input: &Input, mask: &Mask) -> Result<Option<Rejection>> {
        if let Ok(program) = self.host.compose() {
            let mut input = *input;
            if let Input::Sent { dir, .. } = &mut input {
                *dir = self.original.as_deref();
            }
            return program.check(&input, mask);
        }
        let rejected = self.ask(input).err().map(|message| {
            let message = excerpt(&mask.hide(&message));
            Rejection::new(self, REJECTED, message)
        });
        Ok(rejected)
    }

    fn config(&self, input: &Input, _: Profiles, _: Values, mask: &Mask) -> Result<Value> {
        let failed = |message: String| anyhow!("{} failed: {}", self.name(), mask.hide(&message));
        self.ask(input).map_err(failed)
    }
}
