//! What a run would do, as data: what would fail, what would change, and what would be lost.
//!
//! Invariant: pure. Code that plans cannot write.
#![deny(clippy::disallowed_methods)]

mod adoption;
mod blockers;
mod edited;
mod facts;
mod fates;
mod losses;
mod migration;
mod words;

pub use adoption::{
    Adoption, AdoptionFacts, Request, ServicePlan, adoption, fate_of,
    kept::{AdoptFlags, Keep, runs},
    variables::up,
};
pub use blockers::permissions::environment as unusable;
pub use blockers::{
    Blocker, BlockerKind,
    adoption::{blocking, images_to_pull},
    conditions::{Awaited, Until, needed_healthy},
    hide_values,
    missing::unavailable_images,
    permissions::{management_of, portainer, runs_portainer},
};
pub use edited::{InPortainer, changed_variables};
pub use facts::{
    Details, Environment, Facts, Namesake, Observed, PathKind, RecordFacts, Sent, Source,
    services::{external_volumes, image_references},
};
pub use fates::{
    Fate, Projects, binds::long_binds, dependents::shared_namespaces, versions::PortainerCompose,
};
pub use losses::{
    Loss, LossKind, files,
    foreign::{Foreign, Touch, foreign},
    limits::{compose_key, name as limit_name},
    memory::UNSEEN_MEMORY,
    mounts::copied_files,
    networks::is_connected_as_sent,
};
pub use migration::{Plan, depends_on_version, migration};
pub use words::{Row, downtime, rows, told_losses};

use crate::text::printable;

/// The values of `pull_policy` with which an image that is present is not pulled (N10). Empty without a value.
const NOT_PULLED: [&str; 5] = ["", "missing", "if_not_present", "never", "build"];

/// Escapes what warnings quote from outside.
fn escape(warnings: &mut [String]) {
    for warning in warnings {
        *warning = printable(warning).into_owned();
    }
}

#[cfg(test)]
mod tests;
