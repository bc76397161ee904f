//! `stacklift adopt <STACK>`: moves a running stack into Portainer.

use std::sync::Arc;

use super::{
    Common, Console, Ended,
    arguments::{AdoptArguments, OnFailureArgument, Output, Reporting},
    confirm::consent,
    interrupt::Interrupt,
    opened::Opened,
    plan,
    report::Ways,
};
use crate::{
    adopt::{self, Adopt, OnFailure},
    run::Event,
};

pub(super) fn run(
    arguments: &AdoptArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    if arguments.output == Output::Json {
        console.steps_to_stderr();
    }
    let interrupt = Interrupt::watch(console);
    let opened = Opened::new(&arguments.stack, common, console)?;
    if arguments.dry_run {
        let ways = Ways {
            adopt: Some((&arguments.keep).into()),
            migrate: None,
        };
        let reporting = Reporting {
            output: arguments.output,
            exit_code: arguments.exit_code,
        };
        return plan::report(
            &opened.situation(),
            &opened.settings,
            ways,
            reporting,
            console,
        );
    }
    let setup = opened.setup()?;
    let question = |question: &str| console.ask(question);
    let adopt = Adopt {
        stack: &opened.stack,
        peers: &opened.peers,
        setup: &setup,
        base_url: &opened.settings.base_url,
        endpoint: opened.endpoint,
        tool: &opened.settings.location.tool,
        compose: &opened.compose,
        keep: (&arguments.keep).into(),
        pull: arguments.pull,
        consent: consent(arguments.yes, &question),
        wait: arguments.wait,
        timeout: opened.settings.timeout,
        on_failure: match arguments.on_failure {
            OnFailureArgument::Restore => OnFailure::Restore,
            OnFailureArgument::Leave => OnFailure::Leave,
        },
    };
    let mut listener = |event: Event| interrupt.show(&event);
    let (report, ended) = adopt::run(&adopt, &mut listener);
    if arguments.output == Output::Json {
        console.done();
        console.json(&report)?;
    }
    Ok(ended?)
}
