//! `stacklift plan` and `--dry-run`.

use std::{collections::BTreeMap, ffi::OsString, fs, os::unix::fs::symlink, path::Path};

use crate::{
    bench::{Bench, PLAIN, Run, Texts, copy_program, write_script},
    schema::{SCHEMA, check, schema, stored},
};
use serde_json::{Value, json};

/// The config hash of each service of the stack `web`, as its containers have it.
pub fn labeled(bench: &Bench) -> BTreeMap<String, String> {
    bench.world(|world| {
        let label = |name: &str| format!("com.docker.compose.{name}");
        let containers = world.project("web").into_iter();
        containers
            .map(|one| {
                let of = |name: &str| one.labels[&label(name)].clone();
                (of("service"), of("config-hash"))
            })
            .collect()
    })
}

/// Runs the program with a Compose 2.26.1 that reads services of these hashes, on disk and in what is sent.
pub fn with_hashes<'a>(
    bench: &Bench,
    args: impl Texts<'a>,
    hashes: &BTreeMap<String, String>,
) -> Run {
    bench.run_with(args, "PATH", path_with_hashes(bench, hashes))
}

/// The `PATH` with such a Compose.
fn path_with_hashes(bench: &Bench, hashes: &BTreeMap<String, String>) -> OsString {
    let bin = bench.programs();
    let file = bin.join("config.json");
    let config = json!({ "name": "web", "services": configs(bench, hashes) });
    fs::write(&file, config.to_string()).expect("a file");
    write_script(
        &bin.join("docker-compose"),
        &format!(
            "[ \"$1\" = version ] && {{ echo 2.26.1; exit; }}\ncat '{}'\n",
            file.display()
        ),
    );
    bench.path(&[bin])
}

/// What Compose prints of each service with this hash. One that no container has is another one.
fn configs(bench: &Bench, hashes: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let labels = labeled(bench);
    bench.world(|world| {
        let config = |hash: &String| world.configs.0.get(hash).cloned();
        let other = |service: &String, hash: &String| {
            let mut other = labels.get(service).and_then(config).unwrap_or_default();
            other["labels"] = json!({ "other": hash });
            other
        };
        let services = hashes.iter();
        let services = services.map(|(service, hash)| {
            let config = config(hash).unwrap_or_else(|| other(service, hash));
            let doubled = config.to_string().replace('$', "$$");
            let printed = serde_json::from_str(&doubled).expect("JSON");
            (service.clone(), printed)
        });
        services.collect()
    })
}

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
