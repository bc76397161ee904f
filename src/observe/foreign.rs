//! Reads the other containers of the engine, and finds those that a run harms (B21).

use anyhow::Result;

use super::{Before, Situation, with_hint};
use crate::{
    engine::EngineReader,
    finding::{Finding, Kind},
    model::Container,
    plan::{self, Foreign, Plan, Touch},
    stack::StackName,
    text::bulleted,
};

const UNKNOWN: &str = "it is unknown whether other containers share a namespace or volumes with the containers of the stack, and must be restarted or recreated";

impl Situation<'_> {
    /// Adds to a plan the losses of the containers that use one of `touched` and are not touched themselves. Reads nothing if
    /// nothing is touched.
    pub fn lose_foreign(&self, before: &Before, touched: &[(&Container, Touch)], plan: &mut Plan) {
        if touched.is_empty() {
            return;
        }
        // That they could not be listed is said already.
        let Some(others) = &before.host.others else {
            return plan.warn(UNKNOWN);
        };
        match self.engine.users_of_others(others) {
            Ok(mut all) => {
                all.extend(before.host.containers.iter().flatten().cloned());
                let projects = self.stack.name().projects();
                let found = plan::foreign(touched, &all, self.tool, &projects);
                plan.losses
                    .extend(found.into_iter().map(|foreign| foreign.loss));
            }
            Err(error) => plan.warn(format!("{}; {UNKNOWN}", with_hint(&error))),
        }
    }
}

/// The containers that use one of `touched`, and are not touched themselves. Reads nothing if nothing is touched.
pub fn foreign_of(
    engine: &EngineReader,
    touched: &[(&Container, Touch)],
    tool: &str,
    stack: &StackName,
) -> Result<Vec<Foreign>> {
    if touched.is_empty() {
        return Ok(Vec::new());
    }
    let users = engine.users_of_others(&engine.list_all()?)?;
    Ok(plan::foreign(touched, &users, tool, &stack.projects()))
}

/// The containers that must be restarted or recreated, because of what happened to the containers `before` the run, and to
/// those that were `gone` by then: one line for each. Also the warning that lists them, or that they are unknown.
pub fn foreign_since(
    engine: &EngineReader,
    (before, gone): (&[Container], &[&Container]),
    tool: &str,
    stack: &StackName,
) -> (Vec<String>, Option<String>) {
    if before.is_empty() && gone.is_empty() {
        return (Vec::new(), None);
    }
    let ids = before.iter().map(Container::id);
    let found = engine.inspect_containers(ids).and_then(|now| {
        let changed = before.iter().filter_map(|old| {
            let now = now.iter().find(|now| now.id() == old.id());
            Some((old, touch(old, now)?))
        });
        let gone = gone.iter().map(|&one| (one, Touch::Gone));
        let touched: Vec<_> = changed.chain(gone).collect();
        foreign_of(engine, &touched, tool, stack)
    });
    match found {
        Ok(mut found) => {
            found.retain(Foreign::needs_repair);
            let lines: Vec<String> = found
                .iter()
                .map(|foreign| foreign.loss.to_string())
                .collect();
            let heading = "these containers must be restarted or recreated by hand:";
            let warning = (!lines.is_empty()).then(|| list(heading, &lines));
            (lines, warning)
        }
        Err(error) => {
            let unknown = format!("{}; {UNKNOWN}", with_hint(&error));
            (vec![unknown.clone()], Some(unknown))
        }
    }
}

/// The warnings that list what the stack loses, after a heading, and the other containers that lose something.
pub fn warnings_of(plan: &Plan, heading: &str) -> Vec<String> {
    let is_foreign = |loss: &&Finding| loss.kind == Kind::Foreign;
    let (others, own): (Vec<_>, Vec<_>) = plan.losses.iter().partition(is_foreign);
    let all = [(heading, own), (NOT_RECREATED, others)].into_iter();
    let told = all.filter(|(_, losses)| !losses.is_empty());
    told.map(|(heading, losses)| {
        let losses = losses.iter().map(|loss| loss.told(&plan.services));
        list(heading, &losses.collect::<Vec<_>>())
    })
    .collect()
}

/// The heading of a list of containers that a run harms.
pub const NOT_RECREATED: &str = "these containers are not recreated with the stack:";

/// A heading, and one line for each of `what`.
pub fn list(heading: &str, what: &[impl ToString]) -> String {
    let items = bulleted(what.iter().map(ToString::to_string));
    format!("{heading}\n{items}")
}

/// What happened to a container that others may use.
fn touch(old: &Container, now: Option<&Container>) -> Option<Touch> {
    let Some(now) = now else {
        return Some(Touch::Replaced);
    };
    let has_changed = old.is_running()
        && (!now.is_running() || old.text("/State/StartedAt") != now.text("/State/StartedAt"));
    has_changed.then_some(Touch::Restarted)
}
