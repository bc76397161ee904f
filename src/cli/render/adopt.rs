//! The faithful rewrite of a stack as `adopt` makes it, and how its blockers are shown.

use std::sync::Arc;

use anyhow::Result;

use crate::{
    adopt::Prepared,
    cli::{
        Console,
        opened::{Surroundings, say_where},
        settings::Settings,
    },
    failure::Failure,
    finding::Finding,
    observe::with_hint,
    plan::{AdoptFlags, Keep},
    stack::{Stack, StackName},
    text::{counted, numbered},
};

/// Prepares the adoption of the stack from its files and its containers, without Portainer. Warns if they are not enough.
pub(super) fn prepared(
    name: &StackName,
    settings: &Settings,
    keep: Keep,
    console: &Arc<Console>,
) -> Result<(Stack, Prepared)> {
    let at = Surroundings::of_host(settings, console)?;
    let alone = at.inventory();
    let listed = alone.engine.list(name.as_str());
    let stack = alone.stack(name, listed.as_deref().unwrap_or_default())?;
    say_where(name, stack.dir(), &settings.location, console);
    let flags = AdoptFlags {
        keep,
        ..AdoptFlags::default()
    };
    let prepared = Prepared::new(&alone.situation(&stack), flags)?;
    if !prepared.before.host.is_known() {
        let why = listed.as_ref().err();
        let why = why.map(|error| format!(": {}", with_hint(error)));
        console.warning(&format!(
            "cannot read the containers of {}, so this does not show what `adopt` adds because of them: names for anonymous volumes, and the variables of --keep-variables{}",
            stack.name(),
            why.unwrap_or_default()
        ));
    }
    Ok((stack, prepared))
}

/// The error that lists why a stack cannot be rewritten.
pub(super) fn blocked(stack: &Stack, problems: &[Finding]) -> Failure {
    let name = stack.name();
    let blockers = problems
        .iter()
        .map(|problem| problem.clone().in_file(stack.file()));
    let count = counted(problems.len(), "problem");
    Failure::new(format!("cannot adopt {name}: {count}"))
        .details(numbered(blockers))
        .hint("fix the file, then run the command again")
}
