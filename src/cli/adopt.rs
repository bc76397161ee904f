//! `stacklift adopt <STACK>`: moves a running stack into Portainer.

use super::{
    Cli, Console, Ended, NO_STACK,
    arguments::{AdoptArguments, Output},
    confirm::consent,
    interrupt::Interrupt,
    opened::Opened,
    plan,
    render::print_patch,
};
use crate::{
    adopt::{self, Adopt},
    inventory::Ways,
    plan::Plan,
    report::AdoptReport,
    run::{Event, Listener, Stopped},
};

mod all;
mod text;

pub(super) use text::show;

pub(super) fn run(arguments: &AdoptArguments, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    if arguments.stacks.iter().any(|stack| plan::is_pattern(stack)) {
        return Err(Ended::Usage(
            "only `plan` takes a pattern: name the stacks, or pass --all",
        ));
    }
    let [stack] = arguments.stacks.as_slice() else {
        if arguments.stacks.is_empty() && !arguments.all {
            let chooses = arguments.everywhere || !arguments.exclude.is_empty();
            return Err(Ended::Usage(if chooses || arguments.uninterrupted {
                "--exclude, --everywhere and --uninterrupted require --all"
            } else {
                NO_STACK
            }));
        }
        if arguments.adoption.git.git.is_some() {
            return Err(Ended::Usage("--git is for one stack: name one STACK"));
        }
        return all::run(arguments, cli);
    };
    if arguments.output == Output::Json {
        console.steps_to_stderr();
    }
    let interrupt = Interrupt::watch(console);
    let opened = Opened::new(stack, cli)?.adopted_with(&arguments.adoption, console)?;
    if arguments.dry_run {
        let ways = Ways {
            adopt: Some(arguments.adoption.flags),
            ..Ways::default()
        };
        let wanted = (arguments.output, arguments.exit_code);
        return plan::report(&opened, ways, wanted, console);
    }
    let listener = &mut |event: Event| interrupt.show(&event);
    let (report, ended) = adopt(arguments, &opened, None, listener, console)?;
    text::show_next(&report, console);
    if arguments.output == Output::Json {
        console.done();
        console.json(&report)?;
    }
    Ok(ended?)
}

/// Adopts one stack, whose plan may be `confirmed` already.
fn adopt(
    arguments: &AdoptArguments,
    opened: &Opened,
    confirmed: Option<&Plan>,
    listener: &mut Listener,
    console: &Console,
) -> Result<(AdoptReport, Result<(), Stopped>), Stopped> {
    let setup = opened.setup()?;
    let question = |question: &str| console.ask(question);
    let adopt = Adopt {
        situation: opened.situation(),
        peers: &opened.at.peers,
        setup: &setup,
        flags: arguments.adoption.flags,
        consent: consent(arguments.yes, &question),
        confirmed,
        wait: arguments.wait,
        on_failure: arguments.on_failure,
    };
    let (report, ended) = adopt::run(&adopt, listener);
    console.done();
    show(&report, console);
    let patch = report.plan.as_ref().and_then(|plan| plan.patch.as_ref());
    if let (Some(patch), Output::Text) = (patch, arguments.output) {
        print_patch(patch);
    }
    Ok((report, ended))
}
