//! Portainer's list of stacks is streamed: memory does not grow with its length.

use std::{fs, process::Stdio, thread, time::Duration};

use crate::bench::{Bench, PLAIN};

/// The most memory that a run had at a time, in KiB, as far as can be seen from outside.
fn peak(bench: &Bench) -> u64 {
    let mut child = bench
        .command(&["web"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("a child").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        // It only grows, so the last look is the best.
        peak = kib.unwrap_or(peak);
        thread::sleep(Duration::from_millis(1));
    }
    peak
}

#[test]
fn ten_thousand_records_take_no_more_memory_than_none() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let few = peak(&bench);
    bench.rehearsal.world(|world| {
        for number in 0..10_000 {
            world.add_record(&format!("other{number}"), 1, "services: {}\n");
        }
    });
    let many = peak(&bench);
    assert!(few > 0, "nothing was measured");
    assert!(
        many < few + 2048,
        "{few} KiB for a few, {many} KiB for many"
    );
}
