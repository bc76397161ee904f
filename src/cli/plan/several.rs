//! `stacklift plan` of several stacks, by name or by pattern.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
};

use anyhow::Result;

use super::{code_of, planned, show, ways};
use crate::{
    cli::{
        Cli, Console, Ended,
        arguments::{Output, PlanArguments},
        opened::{Opened, Surroundings},
    },
    failure::Failure,
    inventory::{Files, Inventory},
    report::{PlanReport, PlansReport, VERSION},
    stack::StackName,
};

/// Plans several stacks, one after the other. One that cannot be planned does not hide the others. What fails in the same way for
/// several stacks is not about a stack, and is said once.
pub(super) fn run(arguments: &PlanArguments, cli: Cli) -> Result<(), Ended> {
    let Cli { common, console } = cli;
    let is_of_one = arguments.diff || arguments.request || arguments.adoption.git.git.is_some();
    if is_of_one || common.dir.is_some() || common.file.is_some() {
        return Err(Ended::Usage(
            "--diff, --request, --git, --dir and --file are for one stack: name one STACK",
        ));
    }
    let mut at = Surroundings::new(common, None, console)?;
    at.environment(console)?;
    let planning = || plan_each(arguments, &at, console);
    let (plans, code) = at.peers.remembering(planning)?;
    if arguments.output == Output::Json {
        let version = VERSION;
        console.json(&PlansReport { version, plans })?;
    }
    Ended::verdict(code)
}

/// The plans, which are shown as text at once, and the exit code.
fn plan_each(
    arguments: &PlanArguments,
    at: &Surroundings,
    console: &Console,
) -> Result<(Vec<PlanReport>, u8)> {
    let (mut plans, mut errors, mut code) = (Vec::new(), BTreeSet::new(), 0);
    for name in named(&arguments.stacks, at)? {
        let plan = || {
            name.refuse_management_plane()?;
            let opened = Opened::open(&name, at.clone(), console)?;
            let opened = opened.adopted_with(&arguments.adoption, console);
            planned(
                &opened.map_err(|stopped| stopped.error)?,
                ways(arguments),
                console,
            )
        };
        if arguments.output == Output::Text && !plans.is_empty() {
            console.parts(&[]);
        }
        let own_code = match plan() {
            Ok(plan) => {
                if arguments.output == Output::Text {
                    show(&plan, console);
                }
                let code = code_of(&plan, arguments.exit_code);
                plans.push(plan);
                code
            }
            Err(error) => {
                if errors.insert(format!("{error:#}")) {
                    console.error(&error, None);
                }
                1
            }
        };
        // A refusal says more than a loss.
        code = if [code, own_code].contains(&1) {
            1
        } else {
            code.max(own_code)
        };
    }
    Ok((plans, code))
}

pub(in crate::cli) fn is_pattern(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'*')
}

/// The stacks with these names, and those with files that match a pattern, each once.
fn named(given: &[OsString], at: &Surroundings) -> Result<Vec<StackName>> {
    let mut names: Vec<StackName> = Vec::new();
    for given in given {
        let found = if is_pattern(given) {
            matching(&given.to_string_lossy(), &at.inventory())?
        } else {
            vec![StackName::new(given)?]
        };
        for name in found {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// The stacks of the host that have a Compose file and a name that matches.
fn matching(pattern: &str, inventory: &Inventory) -> Result<Vec<StackName>> {
    let host = inventory.host();
    let mut found = inventory.find(&host)?;
    found.retain(|stack| !matches!(stack.files, Files::None) && matches(pattern, &stack.name));
    let names = found
        .iter()
        .map(|stack| StackName::new(OsStr::new(&stack.name)));
    let names: Vec<StackName> = names.filter_map(Result::ok).collect();
    if names.is_empty() {
        let what = format!("no stack with a Compose file matches {pattern}");
        return Err(Failure::new(what)
            .hint("`stacklift list` shows the stacks")
            .into());
    }
    Ok(names)
}

/// Whether a name matches a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let left = name.strip_prefix(start);
    left.is_some_and(|left| {
        let ends = left.char_indices().map(|(at, _)| at).chain([left.len()]);
        ends.into_iter().any(|at| matches(rest, &left[at..]))
    })
}
