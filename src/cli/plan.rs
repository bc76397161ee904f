//! `stacklift plan <STACK>`, and the same of a command with `--dry-run`: what it would do. Reads only.

use anyhow::Result;

use super::{
    Cli, Console, Ended,
    arguments::{Output, PlanArguments},
    interrupt::watch_reading,
    opened::Opened,
    render::{show_diff, show_request},
};
use crate::{
    adopt::Prepared,
    inventory::{Ways, plan},
    plan::Readiness,
    report::PlanReport,
};

mod several;
mod text;

pub(super) use several::is_pattern;
pub(super) use text::{show, show_list, show_without_next, up_to_date};

pub(super) fn run(arguments: &PlanArguments, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    watch_reading(console);
    let stack = match arguments.stacks.as_slice() {
        [stack] if !is_pattern(stack) => stack,
        _ => return several::run(arguments, cli),
    };
    let opened = Opened::new(stack, cli)?.adopted_with(&arguments.adoption, console)?;
    let flags = arguments.adoption.flags;
    if arguments.diff || arguments.request {
        console.waiting("inspecting what exists");
        let situation = opened.situation();
        let prepared = Prepared::new(&situation, flags);
        console.done();
        let prepared = prepared?;
        let (stack, reveal) = (&opened.stack, arguments.adoption.git.reveal);
        if prepared.plan.sends_nothing() {
            let is = up_to_date(prepared.plan.git.as_ref());
            console.note(&format!("{} {is}", stack.name()));
        } else if arguments.diff {
            show_diff(&prepared, stack, reveal, console)?;
        } else {
            show_request(&prepared, stack, reveal, console)?;
        }
        let is_blocked = prepared.plan.readiness == Readiness::Blocked;
        // A patch for a repository solves what it shows.
        let is_patch = arguments.diff && prepared.plan.patch.is_some();
        if is_blocked && !is_patch {
            prepared.payload(stack.name().as_str())?;
        }
        return Ok(());
    }
    let wanted = (arguments.output, arguments.exit_code);
    report(&opened, ways(arguments), wanted, console)
}

fn ways(arguments: &PlanArguments) -> Ways {
    let is_from_git = arguments.adoption.git.git.is_some();
    Ways {
        adopt: Some(arguments.adoption.flags),
        migrate: arguments.compare.then_some(false),
        or_migrate: !is_from_git && arguments.output == Output::Json,
    }
}

/// Plans and prints the report. Ends with its exit code if that was asked for, and with 1 if the command would be refused.
pub(super) fn report(
    opened: &Opened,
    ways: Ways,
    (output, exit_code): (Output, bool),
    console: &Console,
) -> Result<(), Ended> {
    let report = planned(opened, ways, console)?;
    console.result(output, &report, show)?;
    Ended::verdict(code_of(&report, exit_code))
}

fn planned(opened: &Opened, ways: Ways, console: &Console) -> Result<PlanReport> {
    console.waiting("inspecting what exists");
    let report = plan(&opened.situation(), ways);
    console.done();
    report
}

fn code_of(report: &PlanReport, exit_code: bool) -> u8 {
    if exit_code {
        report.exit_code()
    } else {
        report.is_refused().into()
    }
}
