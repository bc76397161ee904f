//! `stacklift adopt <STACK>`: Portainer takes over a running stack.

use std::sync::Arc;

use super::{
    Common, Console, Ended, arguments::AdoptArguments, confirm::asks, interrupt::Interrupt,
    opened::Opened, plan, report::Ways,
};
use crate::{
    adopt::{self, Adopt},
    run::{Consent, Event},
};

pub(super) fn run(
    arguments: &AdoptArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    let opened = Opened::new(&arguments.stack, common, console)?;
    if arguments.dry_run.dry_run {
        let ways = Ways {
            adopt: true,
            migrate: None,
        };
        let reporting = arguments.dry_run.reporting();
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
        endpoint: opened.settings.endpoint,
        tool: &opened.settings.location.tool,
        compose: &opened.compose,
        consent: if asks(arguments.yes) {
            Consent::Ask(&question)
        } else {
            Consent::Given
        },
        wait: arguments.wait,
    };
    let interrupt = Interrupt::watch(console);
    let mut listener = |event: Event| interrupt.show(&event);
    Ok(adopt::run(&adopt, &mut listener)?)
}
