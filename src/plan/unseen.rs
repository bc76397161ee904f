//! What follows from an API key that may not see or manage every Portainer stack (B06, B24).

use super::{Facts, Refusal};
use crate::model::{PORTAINER_FOLDERS, Rights};

/// The refusal if the API key may not manage stacks (M22).
pub(super) fn management(facts: &Facts) -> Option<Refusal> {
    let endpoint = facts.endpoint;
    (facts.rights == Rights::NoStacks).then_some(Refusal::ForbiddenStacks { endpoint })
}

/// The refusal if Portainer started containers for a Portainer stack that it does not list: the create would fail on its
/// name.
pub(super) fn hidden(facts: &Facts) -> Option<Refusal> {
    if facts.record.is_some() || facts.rights.see_every_stack() {
        return None;
    }
    let listed = facts.listed.unwrap_or_default().iter();
    let started = listed.filter_map(|container| {
        let dir = container.compose_label(facts.tool, "project.working_dir")?;
        let line = || format!("{} was started in {dir}", container.name());
        dir.starts_with(PORTAINER_FOLDERS).then(line)
    });
    let started: Vec<String> = started.collect();
    (!started.is_empty()).then_some(Refusal::HiddenStack(started))
}
