//! Engines that cannot be used: no API version is shared with them, or they are Podman (C52, B06).

use std::fs;

use crate::bench::{Bench, PLAIN, Run};
use testbed::Call;

/// A running stack that Portainer has, on an engine that supports these API versions.
fn speaking(oldest: &str, newest: &str) -> Bench {
    let bench = Bench::web(PLAIN);
    bench.record("web", 1);
    bench.engine_api(|api| {
        oldest.clone_into(&mut api.oldest);
        newest.clone_into(&mut api.newest);
    });
    bench
}

#[test]
fn b06_an_engine_that_shares_no_api_version_is_refused() {
    let older = [
        "the newest of Docker is 1.40",
        "upgrade to Docker Engine 20.10",
    ];
    let newer = ["the oldest of Docker is 1.55", "upgrade stacklift"];
    for (oldest, newest, says) in [("1.12", "1.40", older), ("1.55", "1.60", newer)] {
        let bench = speaking(oldest, newest);
        bench.stops("web", "refusing to migrate");
        for args in ["web", "plan web", "adopt web --yes", "web --dry-run"] {
            let run = bench.run(args).says(&says);
            let run = run.says("no API version is shared by stacklift and Docker on ");
            assert!(run.code == 1 || args == "web --dry-run", "{run:#?}");
        }
        assert!(bench.nothing_was_changed());
        assert!(!bench.state().join("snapshots").exists());
    }
}

#[test]
fn an_engine_that_is_newer_than_this_program_is_asked_for_its_oldest_version() {
    let bench = speaking("1.51", "1.60");
    bench.succeeds("web", "created");
    assert_eq!(bench.calls(Call::EngineVersion).len(), 1);
}

/// Runs the binary with `docker` as this script.
fn with_docker(bench: &Bench, args: &str, script: &str) -> Run {
    bench.script("docker", script);
    bench.run(&format!("{args} --engine command"))
}

#[test]
fn b06_a_command_that_shares_no_api_version_is_refused() {
    for stderr in [
        "Error response from daemon: client version 1.41 is too old. Minimum supported API version is 1.44, please upgrade your client to a newer version",
        "Error response from daemon: client version 1.52 is too new. Maximum supported API version is 1.41",
        "API version 1.40 is not supported by this client: the minimum supported API version is 1.44",
    ] {
        let bench = speaking("1.12", "1.41");
        let script = format!("echo '{stderr}' >&2; exit 1\n");
        let why = "no API version is shared by `docker` and its engine";
        with_docker(&bench, "web", &script).fails(&format!("{why}: {stderr}\nNothing was changed.\nhint: upgrade the older of the two, or use `--engine api`; if DOCKER_API_VERSION is set, unset it;"));
        with_docker(&bench, "plan web", &script).fails(why);
        assert!(bench.nothing_was_changed());
        // C52 is what --force asks for.
        with_docker(&bench, "web --force", &script)
            .succeeds(&["continuing because of --force", "created"]);
    }
}

#[test]
fn podman_is_refused_by_its_header() {
    let bench = speaking("1.24", "1.41");
    bench.run("web").code(0);
    bench.engine_api(|api| api.libpod = Some("5.4.2".to_owned()));
    bench.forget_requests();
    for args in [
        "web",
        "web --force",
        "web --dry-run",
        "adopt web --yes",
        "restore web --yes",
        "plan web",
    ] {
        let run = bench.fails(args, " is Podman, which is not supported\n");
        let run = run.says(&["cannot recreate its containers", "hint: use Docker Engine"]);
        if !["plan web", "web --dry-run"].contains(&args) {
            run.says("Nothing was changed");
        }
    }
    let says = ["warning: ", "is Podman, which is not supported"];
    bench.succeeds("restore web --list", &says);
    assert!(bench.nothing_was_changed());
}

#[test]
fn podman_is_refused_by_what_its_command_says() {
    let bench = Bench::web(PLAIN);
    let script = "[ \"$1\" = version ] && printf 'Client:       Podman Engine\\nVersion:      4.3.1\\n'; true\n";
    for args in ["web", "plan web", "adopt web"] {
        with_docker(&bench, args, script)
            .fails("the engine of `docker` is Podman, which is not supported");
    }
    assert!(bench.nothing_was_changed());
}

#[test]
fn another_tool_that_finds_nothing_names_its_label() {
    let bench = Bench::new();
    let dir = bench.stack("web", PLAIN, None);
    fs::rename(dir.join("docker-compose.yml"), dir.join("boat-compose.yml")).expect("renamed");
    bench.script("boat", "exit 0\n");
    for args in ["web", "plan web"] {
        let run = bench.run(&format!("{args} --tool boat --engine command"));
        run.says("no container has the label com.boat.compose.project=web, which --tool boat looks for; containers with the label com.docker.compose.project are found without --tool\n");
    }
}
