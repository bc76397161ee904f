//! `stacklift plan <STACK>`, and the same of a command with `--dry-run`: what each way would do. Reads only.

use std::sync::Arc;

use anyhow::Result;

use super::{
    Common, Console, Ended,
    arguments::{PlanArguments, Reporting},
    interrupt::watch_reading,
    opened::Opened,
    peers,
    settings::state_folder,
};
use crate::{
    inventory::{Commands, MigrateWay, Ways, plan},
    observe::Situation,
    report::PlanReport,
    run::Stopped,
};

mod text;

pub(super) use text::show;

pub(super) fn run(
    arguments: &PlanArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    watch_reading(console);
    let opened = Opened::new(&arguments.stack, common, console)?;
    let ways = Ways {
        adopt: Some((&arguments.keep).into()),
        migrate: Some(MigrateWay::default()),
    };
    report(&opened, ways, arguments.reporting, console)
}

/// Plans, prints the report, and ends with its exit code if that was asked for.
pub(super) fn report(
    opened: &Opened,
    ways: Ways,
    reporting: Reporting,
    console: &Console,
) -> Result<(), Ended> {
    console.waiting("inspecting what exists");
    let report = planned(opened, ways);
    console.done();
    let report = report.map_err(Stopped::untouched)?;
    console.result(reporting.output, &report, show)?;
    match report.exit_code() {
        code @ 1.. if reporting.exit_code => Err(Ended::Verdict(code)),
        _ => Ok(()),
    }
}

/// Plans each way. Fails if none can be planned.
pub(super) fn planned(opened: &Opened, ways: Ways) -> Result<PlanReport> {
    let commands = Commands {
        typed: &opened.settings.typed,
        has_file: opened.settings.location.file.is_some(),
    };
    let situation = opened.situation();
    plan(&situation, ways, &commands, unanswered(&situation)?)
}

/// The requests in the journal (B11), read without a lock. Without a state directory, no run can have sent one.
fn unanswered(situation: &Situation) -> Result<Vec<String>> {
    let Ok(state) = state_folder() else {
        return Ok(Vec::new());
    };
    let place = peers::place(state, situation.stack.name());
    if !place.has_unanswered() {
        return Ok(Vec::new());
    }
    let store = place.open(situation.engine.id().ok().as_deref());
    let requests = store.unanswered()?.into_iter();
    Ok(requests.map(|one| one.request.to_string()).collect())
}
