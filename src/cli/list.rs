//! `stacklift list`: every stack of the host, its state, and whether it can be adopted. Reads only.

use super::{Cli, Ended, arguments::Output, interrupt::watch_reading, opened::Surroundings};

pub(super) mod text;

pub(super) fn run(output: Output, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    watch_reading(console);
    let (at, environment) = Surroundings::without_stack(cli)?;
    at.compose.compose()?;
    console.waiting("reading Portainer and Docker");
    let list = || {
        let unasked = environment.as_ref().err();
        at.inventory().list(unasked, console.planning())
    };
    let list = at.peers.remembering(list);
    console.done();
    let list = list?;
    console.result(output, &list, text::show)?;
    for warning in &list.warnings {
        console.warning(warning);
    }
    Ok(())
}
