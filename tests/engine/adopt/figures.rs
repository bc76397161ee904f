//! How fast an adoption is, for docs/reference/speed.md.

use std::time::{Duration, Instant};

use super::{
    Case, by_each_portainer,
    scenario::Scenario,
    scenarios::{PLAIN, PLAIN_FILES},
};

by_each_portainer! {
    speed
}

/// How long an adoption of a running stack takes, and `compose up -d` with nothing to do.
fn speed(case: Case) {
    let scenario = Scenario::new(case, PLAIN, PLAIN_FILES);
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..7 {
        let started = Instant::now();
        scenario.run("adopt $PROJECT").code(0);
        times[0].push(started.elapsed());
        scenario.rehearsal.world(|world| world.records.clear());
        let started = Instant::now();
        scenario.up();
        times[1].push(started.elapsed());
    }
    let [adopt, up] = times.map(|mut times| {
        times.sort();
        times[3]
    });
    println!("adopt: {adopt:.2?}; compose up -d with nothing to do: {up:.2?}");
}
