//! How fast an adoption is, for docs/reference/speed.md.

use std::time::{Duration, Instant};

use super::{
    cases,
    scenarios::{PLAIN, PLAIN_FILES},
};
use crate::bench::{Case, Stack};

cases! { [by_old by_newer] speed }

/// How long an adoption of a running stack takes, and `compose up -d` with nothing to do.
fn speed(case: Case) {
    let stack = Stack::by(case).running(PLAIN, PLAIN_FILES);
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..7 {
        let started = Instant::now();
        stack.run("adopt $PROJECT").code(0);
        times[0].push(started.elapsed());
        stack.rehearsal.world(|world| world.records.clear());
        let started = Instant::now();
        stack.up();
        times[1].push(started.elapsed());
    }
    let [adopt, up] = times.map(|mut times| {
        times.sort();
        times[3]
    });
    println!("adopt: {adopt:.2?}; compose up -d with nothing to do: {up:.2?}");
}
