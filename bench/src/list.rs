//! A run with a list of 100,000 records, against a plain `curl` of that list.

use std::fs;

use anyhow::Result;
use rehearsal::{Call, FaultKind};

use super::{
    place::Place,
    timing::{Times, megabytes, peak, ratio, time, verdict},
};

const STACK: &str = "books-db";
const RECORDS: usize = 100_000;
const ROUNDS: usize = 15;
const TEXT: &str = "services:\n  a:\n    image: busybox:1.36\n";

pub fn measure() -> Result<()> {
    let place = Place::new()?;
    let list = many_records(&place)?;
    println!(
        "the list of {RECORDS} records ({} MB), {ROUNDS} rounds in turn:",
        list.len() / 1_000_000
    );
    place.reset(STACK);
    time(&mut place.stacklift(&[STACK])?)?;
    // Written once, so that the time is not that of writing it.
    place
        .rehearsal
        .faults()
        .set(Call::List, FaultKind::Body(200, list));

    let mut stacklift = place.stacklift(&[STACK])?;
    let mut curl = place.curl();
    curl.arg(format!("{}/api/stacks", place.rehearsal.base_url()));
    let (mut of_stacklift, mut of_curl) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        place.reset(STACK);
        of_stacklift.add(time(&mut stacklift)?);
        of_curl.add(time(&mut curl)?);
    }
    println!(
        "  stacklift, the whole run: median {:.1?}",
        of_stacklift.median()
    );
    println!("  curl, the list alone: median {:.1?}", of_curl.median());
    verdict(
        "stacklift / curl",
        ratio(of_stacklift.median(), of_curl.median()),
        2.0,
    );
    place.reset(STACK);
    verdict(
        "peak memory of stacklift, MB",
        megabytes(peak(&stacklift)?),
        12.0,
    );
    Ok(())
}

/// The list as the rehearsal writes it.
fn many_records(place: &Place) -> Result<Vec<u8>> {
    let added: Vec<u64> = place.rehearsal.world(|world| {
        (0..RECORDS)
            .map(|number| world.add_record(&format!("stack-{number}"), 1, TEXT))
            .collect()
    });
    let list = place.file("list.json", b"")?;
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
