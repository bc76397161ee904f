//! A run with 100,000 stacks in Portainer, compared with `curl` of the list alone.

use std::fs;

use anyhow::Result;
use testbed::{Call, FaultKind};

use super::{
    place::Place,
    timing::{medians, megabytes, peak, ratio, time, verdict},
};

const STACK: &str = "books-db";
const STACKS: usize = 100_000;
const ROUNDS: usize = 15;
const TEXT: &str = "services:\n  a:\n    image: busybox:1.36\n";

pub fn measure() -> Result<()> {
    let place = Place::new()?;
    let list = many_stacks(&place)?;
    println!(
        "a run with {STACKS} Portainer stacks ({} MB), {ROUNDS} rounds in alternation:",
        list.len() / 1_000_000
    );
    place.reset(STACK);
    time(&mut place.stacklift(&[STACK])?)?;
    // Serialized once, so that serialization is not measured.
    place
        .rehearsal
        .faults()
        .set(Call::List, FaultKind::Body(200, list));

    let mut curl = place.curl();
    curl.arg(format!("{}/api/stacks", place.rehearsal.base_url()));
    let mut commands = [place.stacklift(&[STACK])?, curl];
    let names = ["stacklift", "curl, the list alone"];
    let [of_stacklift, of_curl] = medians(names, ROUNDS, |way| {
        place.reset(STACK);
        time(&mut commands[way])
    })?;
    verdict("stacklift / curl", ratio(of_stacklift, of_curl), 5.0);
    place.reset(STACK);
    verdict(
        "peak memory of stacklift in MB",
        megabytes(peak(&commands[0])?),
        12.0,
    );
    Ok(())
}

/// The response of the rehearsal to a list.
fn many_stacks(place: &Place) -> Result<Vec<u8>> {
    let added: Vec<u64> = place.rehearsal.world(|world| {
        (0..STACKS)
            .map(|number| world.add_record(&format!("stack-{number}"), 1, TEXT))
            .collect()
    });
    let list = place.path("list.json");
    let mut curl = place.command("curl");
    curl.args(["-sSkf", "-o"]).arg(&list).arg("-H");
    curl.arg(format!("X-API-Key: {}", super::place::KEY));
    curl.arg(format!("{}/api/stacks", place.rehearsal.base_url()));
    time(&mut curl)?;
    place.rehearsal.world(|world| {
        for id in added {
            world.records.remove(&id);
        }
    });
    Ok(fs::read(list)?)
}
