//! A whole run with an existing backup and nothing to remove.

use anyhow::Result;

use super::{
    place::Place,
    timing::{medians, megabytes, peak, ratio, time, verdict},
};

const STACK: &str = "books-db";
const ROUNDS: usize = 100;

pub fn measure() -> Result<()> {
    let place = Place::new()?;
    println!(
        "a run of {STACK} with a backup and nothing to remove, {ROUNDS} rounds in alternation:"
    );
    // Creates the backup.
    place.reset(STACK);
    time(&mut place.stacklift(&[STACK])?)?;

    let mut commands = [place.stacklift(&[STACK])?, place.two_requests(STACK)?];
    let names = ["stacklift", "curl, the same two requests in one process"];
    let [of_stacklift, of_curl] = medians(names, ROUNDS, |way| {
        place.reset(STACK);
        time(&mut commands[way])
    })?;
    println!("  stacklift / curl: {:.2}", ratio(of_stacklift, of_curl));
    place.reset(STACK);
    verdict(
        "peak memory of stacklift in MB",
        megabytes(peak(&commands[0])?),
        10.0,
    );
    Ok(())
}
