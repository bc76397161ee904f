//! `stacklift list`: every stack of the host, its state, and whether it can be adopted. Reads only.

use super::{Cli, Ended, arguments::Output, interrupt::watch_reading, opened::Surroundings};
use crate::{observe::with_hint, text::counted};

pub(super) mod text;

pub(super) fn run(output: Output, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    watch_reading(console);
    let surroundings = Surroundings::new(cli)?;
    console.waiting("reading Portainer and Docker");
    let list = surroundings
        .inventory()
        .list(&surroundings.settings.typed, |done, all| {
            console.still_waiting(&format!("planned {done} of {}", counted(all, "stack")));
        });
    console.done();
    let mut list = list?;
    if let Err(error) = &surroundings.portainer {
        list.warnings.insert(0, with_hint(error));
    }
    console.result(output, &list, text::show)?;
    for warning in &list.warnings {
        console.warning(warning);
    }
    Ok(())
}
