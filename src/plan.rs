//! What a run would do, as data: what would fail, what would change, and what would be lost.
//!
//! Invariant: pure. Code that plans cannot write.
#![deny(clippy::disallowed_methods)]

mod adoption;
mod before;
mod checks;
mod edited;
mod facts;
mod fates;
mod losses;
mod migration;
mod service;
mod words;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    finding::{Finding, Kind},
    model::{Grant, Pull},
    portainer::Repository,
    text::Mask,
};

pub use adoption::{
    Request, adoption, fates,
    kept::{AdoptFlags, Keep, runs},
    variables::up,
};
pub use before::{Before, Environment, Host, Namesake};
pub use checks::permissions::environment as unusable;
pub use checks::{
    adoption::images_to_pull,
    conditions::{Awaited, Until},
    missing::{images_to_have, unavailable_images},
    permissions::{management_of, portainer, runs_portainer},
    sending::refused_name,
};
pub use edited::{InPortainer, changed_variables};
pub use facts::{Facts, Form, Parsed, PathKind, RecordFacts, Sent};
pub use fates::{Fate, Projects, Unread, binds::long_binds, starts, versions::PortainerCompose};
pub use losses::{
    files,
    foreign::{Foreign, Touch, foreign},
    memory::unseen_memory,
    networks::is_connected_as_sent,
};
pub use migration::{depends_on_version, migration};
pub use service::{ServicePlan, called, fate_of};
pub use words::{downtime, told_losses};

/// What an adoption or a migration would do to a stack (B01–B06). It is what the JSON shows.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Plan {
    pub readiness: Readiness,
    /// What Portainer would be asked to do; null if that cannot be worked out.
    pub request: Option<Request>,
    /// What would happen to each service; empty if that cannot be worked out.
    pub services: Vec<ServicePlan>,
    /// Everything that would be lost, as far as it is known.
    pub losses: Vec<Finding>,
    /// What would change because it was changed in the files, and what would run again. A fate may say it, too.
    pub changes: Vec<Finding>,
    /// Whether the containers could be inspected, and Compose could read the files on disk and what is sent. Otherwise it is
    /// unknown what the stack loses.
    pub losses_known: bool,
    /// Every reason why it would be refused.
    pub blockers: Vec<Finding>,
    /// With `--git`, if the repository would change a container: the patch that leaves every container untouched. Values are
    /// hidden, unless `--reveal` was given.
    pub patch: Option<String>,
    /// The missing images that are pulled first, because of `--pull`. The stack is planned again then.
    #[schemars(with = "Vec<String>")]
    pub pulls: Vec<Pull>,
    /// What may go wrong, or could not be checked.
    pub warnings: Vec<Finding>,
    /// The repository that Portainer deploys the stack from now, if it is a Git stack.
    pub git: Option<Repository>,
    /// Who may use the stack afterwards besides administrators, as in `--access`, if that flag changes it.
    #[schemars(with = "Option<Vec<String>>")]
    pub access: Option<BTreeSet<Grant>>,
    /// What to know before a later change or deployment.
    pub notices: Vec<Finding>,
    /// How many lines change: of the Compose file, or of the text that Portainer has if the Portainer stack is updated or
    /// deployed again from Git. Null if the Compose file cannot be rewritten, or if `combined_files` is not empty.
    pub changed_lines: Option<usize>,
    /// The Compose files that Compose resolved into one text; empty if the Compose file is edited in place.
    pub combined_files: Vec<String>,
    /// What Portainer has, compared with what would be sent and with what was last sent (B22).
    #[serde(skip)]
    pub in_portainer: InPortainer,
    /// What of it was edited there: its text, and variables by name.
    #[serde(skip)]
    pub edited: Vec<String>,
    /// The containers that were created outside of Portainer since.
    #[serde(skip)]
    pub by_hand: Vec<String>,
    /// Whether the files were edited, too.
    #[serde(skip)]
    pub files_differ: bool,
    /// The variables of the Portainer stack that an update changes, by name.
    #[serde(skip)]
    pub changed_variables: Vec<String>,
    /// The command that shows these lines; null in a list.
    pub diff_command: Option<String>,
    /// Whether the stack was stopped as a whole: the deployment starts it.
    #[serde(skip)]
    pub is_stopped: bool,
    /// The containers that the deployment waits for, and that the adoption waits for before (B20).
    #[serde(skip)]
    pub awaited: Vec<Awaited>,
    /// The images to pull, sorted: before a migration stops anything (B27), and those that Portainer's Compose pulls although they
    /// exist here, or that do not exist here (B20).
    #[serde(skip)]
    pub images: Vec<Pull>,
}

/// Whether a stack can be moved this way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// Nothing is known that prevents it.
    Ready,
    /// The Portainer stack has the same text and variables already.
    NothingToDo,
    /// It was edited in Portainer since the last adoption: it would be refused without `--overwrite`.
    Edited,
    /// It would be refused.
    Blocked,
    /// No Compose file was found.
    NoFile,
    /// Portainer could not be read.
    #[default]
    Unknown,
}

impl Plan {
    /// Whether Portainer has no stack yet.
    pub fn creates(&self) -> bool {
        self.request.as_ref().is_some_and(Request::creates)
    }

    /// Whether Portainer deploys its Git stack again (M24).
    pub fn redeploys(&self) -> bool {
        matches!(self.request, Some(Request::Redeploy(_)))
    }

    /// Whether Portainer has the stack with this text and these variables.
    pub fn sends_nothing(&self) -> bool {
        matches!(self.request, Some(Request::Nothing(_)))
    }

    /// What is said of a stack that is not planned.
    pub fn unplanned(readiness: Readiness) -> Self {
        Self {
            readiness,
            ..Self::default()
        }
    }

    pub fn blocked(blocker: Finding) -> Self {
        Self {
            blockers: vec![blocker],
            ..Self::unplanned(Readiness::Blocked)
        }
    }

    /// Hides the values of `.env` in what is said of names and paths (B13).
    pub fn hide_values(&mut self, mask: &Mask) {
        for pull in self.pulls.iter_mut().chain(&mut self.images) {
            pull.hide_values(mask);
        }
        let losses = self.losses.iter_mut().chain(&mut self.changes);
        for found in losses.chain(&mut self.blockers).chain(&mut self.warnings) {
            found.hide_values(mask);
        }
    }

    /// Adds a warning, which may quote what is from outside, once.
    pub fn warn(&mut self, warning: impl AsRef<str>) {
        let warning = Finding::of_stack(warning.as_ref());
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    pub fn warn_all(&mut self, warnings: impl IntoIterator<Item: AsRef<str>>) {
        for warning in warnings {
            self.warn(warning);
        }
    }

    /// Whether the last adoption of the same failed.
    pub fn failed_before(&self) -> bool {
        let mut warnings = self.warnings.iter();
        warnings.any(|warning| warning.kind == Kind::FailedBefore)
    }

    /// The plan of a stack that cannot be planned.
    pub fn failed(error: &anyhow::Error) -> Self {
        Self::blocked(Finding::of_error(error))
    }

    /// Whether something would be lost, or it is unknown what.
    pub fn loses(&self) -> bool {
        !self.losses_known || !self.losses.is_empty()
    }

    /// The names of some services.
    pub fn services_with(&self, is: impl Fn(&ServicePlan) -> bool) -> Vec<&str> {
        let services = self.services.iter().filter(|service| is(service));
        services.map(|service| service.service.as_str()).collect()
    }

    /// `word`, the first blocker in short, and how many others there are.
    pub fn told(&self, word: &str) -> String {
        let first = self.blockers.first();
        let first = first.map_or("", Finding::in_short);
        match self.blockers.len().saturating_sub(1) {
            0 => format!("{word}: {first}"),
            more => format!("{word}: {first} (+{more})"),
        }
    }
}

/// The values of `pull_policy` with which an image that is present is not pulled (N10). Empty without a value.
const NOT_PULLED: [&str; 5] = ["", "missing", "if_not_present", "never", "build"];

#[cfg(test)]
mod tests;
