//! `stacklift plan <STACK>`, and the same of a command with `--dry-run`: what it would do. Reads only.

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
};

mod text;

pub(super) use text::{show, show_without_next};

pub(super) fn run(arguments: &PlanArguments, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    watch_reading(console);
    let opened = Opened::new(&arguments.stack, cli)?.adopted_with(&arguments.adoption, console)?;
    let flags = arguments.adoption.flags;
    if arguments.diff || arguments.request {
        console.waiting("inspecting what exists");
        let situation = opened.situation();
        let prepared = Prepared::new(&situation, flags);
        console.done();
        let prepared = prepared?;
        if prepared.plan.is_left_to_git() {
            console.note("nothing would be sent: Portainer deploys the stack from Git");
            return Ok(());
        }
        let (stack, reveal) = (&opened.stack, arguments.adoption.git.reveal);
        if arguments.diff {
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
    let ways = Ways {
        adopt: Some(flags),
        migrate: arguments.compare.then_some(false),
        or_migrate: opened.git.is_none() && arguments.output == Output::Json,
    };
    let wanted = (arguments.output, arguments.exit_code);
    report(&opened, ways, wanted, console)
}

/// Plans and prints the report. Ends with its exit code if that was asked for, and with 1 if the command would be refused.
pub(super) fn report(
    opened: &Opened,
    ways: Ways,
    (output, exit_code): (Output, bool),
    console: &Console,
) -> Result<(), Ended> {
    console.waiting("inspecting what exists");
    let report = plan(&opened.situation(), ways, &opened.settings.typed);
    console.done();
    let report = report?;
    console.result(output, &report, show)?;
    Ended::verdict(if exit_code {
        report.exit_code()
    } else {
        report.is_refused().into()
    })
}
