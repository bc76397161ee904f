//! `stacklift plan` and `--dry-run`.

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::{
    bench::{Bench, PLAIN, copy_program},
    schema::{SCHEMA, check, schema, stored},
};
use serde_json::json;

/// A `docker` without the plugin takes its arguments for its own.
#[test]
fn a_docker_without_the_compose_plugin_is_named() {
    let bench = Bench::web(PLAIN);
    let bin = tempfile::tempdir().expect("a folder");
    // A native program that rejects `--short`.
    copy_program(Path::new("/bin/ls"), &bin.path().join("docker"));
    symlink("/bin/false", bin.path().join("docker-compose")).expect("a link");
    let run = bench.run_with("plan web", "PATH", bench.path(&[bin.path()]));
    let run = run.hides(&["--short", "could be run"]);
    let folders = ["local/lib", "local/libexec", "lib", "libexec"];
    let plugin = |folder: &str| format!("/usr/{folder}/docker/cli-plugins/docker-compose");
    let mut plugins = folders.iter().map(|folder| fs::exists(plugin(folder)));
    let has_plugin = plugins.any(|found| found.expect("a look"));
    let missing = "this host has no Compose program (Docker has no compose plugin)";
    assert_eq!(run.all().contains(missing), !has_plugin, "{run:#?}");
}

#[test]
fn the_stored_schema_is_the_printed_one() {
    let run = Bench::new().run("schema").code(0);
    assert!(run.out == stored(), "run: stacklift schema > {SCHEMA}");
}

#[test]
fn a_report_that_does_not_conform_is_detected() {
    let (all, schema) = schema("plan");
    for wrong in [json!({}), json!({"version": "1"}), json!([])] {
        assert!(check(&all, &schema, &wrong).is_err(), "{wrong}");
    }
}
