//! `stacklift plan <STACK>`, and the same of a command with `--dry-run`: what each way would do. Reads only.

use std::sync::Arc;

use super::{
    Common, Console, Ended,
    arguments::{Output, PlanArguments, Reporting},
    interrupt::watch_reading,
    opened::Opened,
    report::{self, MigrateWay, Report, Ways},
    settings::Settings,
};
use crate::{observe::Situation, run::Stopped};

pub(super) fn run(
    arguments: &PlanArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    watch_reading(console);
    let opened = Opened::new(&arguments.stack, common, console)?;
    let ways = Ways {
        adopt: Some((&arguments.keep).into()),
        migrate: Some(MigrateWay {
            grace: None,
            force: false,
        }),
    };
    let situation = opened.situation();
    report(
        &situation,
        &opened.settings,
        ways,
        arguments.reporting,
        console,
    )
}

/// Plans, prints the report, and ends with its exit code if that was asked for.
pub(super) fn report(
    situation: &Situation,
    settings: &Settings,
    ways: Ways,
    reporting: Reporting,
    console: &Console,
) -> Result<(), Ended> {
    console.waiting("inspecting what exists");
    let report = Report::new(situation, settings, ways);
    console.done();
    let report = report.map_err(Stopped::untouched)?;
    match reporting.output {
        Output::Text => report::show(&report, console),
        Output::Json => console.json(&report)?,
    }
    match report.exit_code() {
        code @ 1.. if reporting.exit_code => Err(Ended::Verdict(code)),
        _ => Ok(()),
    }
}
