//! Portainer's list of stacks is streamed: memory does not grow with its length.

use std::{fs, process::Stdio, thread, time::Duration};

use rehearsal::{Call, FaultKind};

use crate::bench::{Bench, PLAIN};

/// The most memory that a run had until it sent the create, in KiB, with this many Portainer stacks.
fn peak(records: usize) -> u64 {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    bench.world(|world| {
        for number in 0..records {
            world.add_record(&format!("other{number}"), 1, "services: {}\n");
        }
    });
    bench.once(Call::Create, FaultKind::Hang);
    let mut child = bench
        .command("web --timeout 10m")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    while bench.calls(Call::Create).is_empty() {
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "it sent no create");
        thread::sleep(Duration::from_millis(1));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a process");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.expect("a peak").parse().expect("a number")
}

#[test]
fn ten_thousand_records_take_no_more_memory_than_none() {
    let (few, many) = (peak(0), peak(10_000));
    assert!(
        many < few + 2048,
        "{few} KiB for a few, {many} KiB for many"
    );
}
