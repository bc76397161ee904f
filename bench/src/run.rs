//! A whole run with an existing backup and nothing to remove.

use std::env;

use anyhow::Result;

use super::{
    place::Place,
    timing::{Times, megabytes, peak, ratio, time, verdict},
};

const STACK: &str = "books-db";
const ROUNDS: usize = 100;
/// The script is slow: it runs in every fifth round only.
const SCRIPT_EVERY: usize = 5;

/// The index of the script in the list of commands.
const SCRIPT: usize = 2;

pub fn measure() -> Result<()> {
    let place = Place::new()?;
    println!(
        "a run of {STACK} with a backup and nothing to remove, {ROUNDS} rounds in alternation:"
    );
    // Creates the backup.
    place.reset(STACK);
    time(&mut place.stacklift(&[STACK])?)?;

    let mut commands = vec![
        ("stacklift", place.stacklift(&[STACK])?, Times::default()),
        (
            "curl, the same two requests in one process",
            place.two_requests(STACK)?,
            Times::default(),
        ),
    ];
    match env::var_os("STACKLIFT_REFERENCE") {
        Some(script) => {
            let mut command = place.command("bash");
            command.arg(script).arg(STACK);
            commands.push(("the script", command, Times::default()));
        }
        None => println!("  without the script: STACKLIFT_REFERENCE is not set"),
    }
    for round in 0..ROUNDS {
        let count = commands.len();
        for at in 0..count {
            let at = (round + at) % count;
            if at == SCRIPT && !round.is_multiple_of(SCRIPT_EVERY) {
                continue;
            }
            let (_, command, times) = &mut commands[at];
            place.reset(STACK);
            times.add(time(command)?);
        }
    }
    for (name, _, times) in &commands {
        println!("  {name}: median {:.2?}", times.median());
    }
    let medians: Vec<_> = commands
        .iter()
        .map(|(_, _, times)| times.median())
        .collect();
    println!("  stacklift / curl: {:.2}", ratio(medians[0], medians[1]));
    if let Some(script) = medians.get(SCRIPT) {
        println!(
            "  stacklift / the script: {:.2}",
            ratio(medians[0], *script)
        );
    }
    place.reset(STACK);
    verdict(
        "peak memory of stacklift in MB",
        megabytes(peak(&commands[0].1)?),
        10.0,
    );
    Ok(())
}
