//! `stacklift list`: every stack of the host, its state, and whether it can be adopted. Reads only.

use super::{Cli, Ended, arguments::Output, interrupt::watch_reading, opened::Surroundings};

pub(super) mod text;

pub(super) fn run(output: Output, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    watch_reading(console);
    let surroundings = Surroundings::new(cli)?;
    surroundings.compose.compose()?;
    console.waiting("reading Portainer and Docker");
    let unasked = surroundings.portainer.as_ref().err();
    let list = surroundings.inventory().list(unasked, console.planning());
    console.done();
    let list = list?;
    console.result(output, &list, text::show)?;
    for warning in &list.warnings {
        console.warning(warning);
    }
    Ok(())
}
