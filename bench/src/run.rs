//! A whole run, with today's backup there and nothing to remove.

use std::{env, process::Command};

use anyhow::{Result, ensure};

use super::{
    place::{KEY, Place, text},
    timing::{Times, megabytes, peak, ratio, time, verdict},
};

const STACK: &str = "books-db";
const ROUNDS: usize = 100;
/// The script takes so long that it has its turn in every fifth round only.
const SCRIPT_EVERY: usize = 5;

/// Where the script stands among those that are measured.
const SCRIPT: usize = 2;

pub fn measure() -> Result<()> {
    let place = Place::new()?;
    println!("a run of {STACK}, its backup there and nothing to remove, {ROUNDS} rounds in turn:");
    // The backup, and the body that `curl` sends.
    place.reset(STACK);
    time(&mut place.stacklift(&[STACK])?)?;
    let rendered = place.stacklift(&["render", "--reveal", STACK])?.output()?;
    ensure!(rendered.status.success(), "render failed: {rendered:?}");
    let payload = place.file("payload.json", &rendered.stdout)?;

    let mut contenders = vec![
        ("stacklift", place.stacklift(&[STACK])?, Times::default()),
        (
            "curl, the same two calls in one process",
            curl(&place, text(&payload)?),
            Times::default(),
        ),
    ];
    match env::var_os("STACKLIFT_REFERENCE") {
        Some(script) => {
            let mut command = place.command("bash");
            command.arg(script).arg(STACK);
            contenders.push(("the script", command, Times::default()));
        }
        None => println!("  the script is left out: STACKLIFT_REFERENCE does not name it"),
    }
    for round in 0..ROUNDS {
        let count = contenders.len();
        for at in 0..count {
            let at = (round + at) % count;
            if at == SCRIPT && !round.is_multiple_of(SCRIPT_EVERY) {
                continue;
            }
            let (_, command, times) = &mut contenders[at];
            place.reset(STACK);
            times.add(time(command)?);
        }
    }
    for (name, _, times) in &contenders {
        println!("  {name}: median {:.2?}", times.median());
    }
    let medians: Vec<_> = contenders
        .iter()
        .map(|(_, _, times)| times.median())
        .collect();
    verdict("stacklift / curl", ratio(medians[0], medians[1]), 0.6);
    if let Some(script) = medians.get(SCRIPT) {
        println!(
            "  stacklift / the script: {:.2}",
            ratio(medians[0], *script)
        );
    }
    place.reset(STACK);
    verdict(
        "peak memory of stacklift, MB",
        megabytes(peak(&contenders[0].1)?),
        10.0,
    );
    Ok(())
}

fn curl(place: &Place, payload: &str) -> Command {
    let url = place.rehearsal.base_url();
    let mut command = place.curl();
    command.arg(format!("{url}/api/stacks"));
    command.args(["--next", "-sSkf", "-o", "/dev/null", "-H"]);
    command.arg(format!("X-API-Key: {KEY}"));
    command.args(["-H", "Content-Type: application/json", "--data-binary"]);
    command.arg(format!("@{payload}"));
    command.arg(format!(
        "{url}/api/stacks/create/standalone/string?endpointId=1"
    ));
    command
}
