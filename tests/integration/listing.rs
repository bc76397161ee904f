//! Portainer's list of stacks is streamed: memory does not grow with its length.

use std::{fs, process::Stdio};

use testbed::{Call, FaultKind};

use crate::bench::{Bench, PLAIN};

/// The most memory that a run had until it sent the create, in KiB, with this many Portainer stacks.
fn peak(records: usize) -> u64 {
    let bench = Bench::on_disk(PLAIN);
    bench.world(|world| {
        for number in 0..records {
            world.add_record(&format!("other{number}"), 1, "services: {}\n");
        }
    });
    bench.once(Call::Create, FaultKind::Hang);
    let mut child = bench
        .command("web --timeout 10m")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    bench.wait_for(Call::Create, &mut child);
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a process");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.expect("a peak").parse().expect("a number")
}

#[test]
fn many_records_take_no_more_memory_than_none() {
    // Enough to exceed the difference, and few enough for the time limit of a read on a busy machine.
    let (few, many) = (peak(0), peak(5000));
    assert!(
        many < few + 2048,
        "{few} KiB for a few, {many} KiB for many"
    );
}
