//! Snapshots that outlive a run (B15).

use std::fs;

use crate::bench::{Bench, PLAIN, id_of};

#[test]
fn b15_a_run_never_removes_its_own_snapshot_or_the_first_whole_one() {
    let bench = Bench::migrated(PLAIN);
    let first = bench.saved(".json").remove(0);
    // A clock that was ahead.
    for minute in 10..22 {
        let later = first.with_file_name(format!("20991231T23{minute}00.000Z.json"));
        fs::copy(&first, later).expect("a copy");
    }
    let run = bench.run("web").code(0);
    let mut words = run
        .out
        .split_whitespace()
        .skip_while(|word| *word != "snapshot");
    let id = words.nth(1).expect("an ID");
    let kept: Vec<String> = bench.saved(".json").iter().map(|f| id_of(f)).collect();
    assert_eq!(kept.len(), 10);
    assert_eq!(kept[0], id_of(&first));
    assert_eq!(kept[9], id, "the newest, whatever the clock says");
    bench.succeeds("restore web -v", &format!("from snapshot {id}"));
}
