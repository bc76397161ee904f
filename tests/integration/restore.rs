//! `stacklift restore` from snapshots of other versions. Transcripts show everything else that it does.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{Bench, PLAIN};

#[test]
fn an_older_snapshot_stays_readable_and_a_newer_one_is_refused() {
    let bench = Bench::migrated(PLAIN);
    let file = bench.saved("json").remove(0);
    let fixture = include_str!("../fixtures/snapshot-1.json");
    let mut json: Value = serde_json::from_str(fixture).expect("JSON");
    fs::write(&file, fixture).expect("the snapshot");
    bench.fails("restore web", "the image of web-old-1 no longer exists");
    json["version"] = json!(2);
    fs::write(&file, json.to_string()).expect("the snapshot");
    bench.fails("restore web", &["has version 2", "reads versions up to 1"]);
}
