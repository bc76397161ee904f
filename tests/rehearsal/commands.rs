//! The real `curl` and `docker` commands, run against the rehearsal.

use std::process::{Command, Output};

use rehearsal::{Options, Rehearsal, World};

fn start() -> Rehearsal {
    let world = World::with_examples("ptr_test", "/opt/stacks").unwrap();
    Rehearsal::start(world, &Options::default()).unwrap()
}

fn run(command: &mut Command) -> Output {
    let output = command.output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn docker(rehearsal: &Rehearsal, args: &[&str]) -> String {
    let host = format!("unix://{}", rehearsal.socket().display());
    let mut command = Command::new("docker");
    command
        .args(args)
        .env("DOCKER_HOST", host)
        .env_remove("DOCKER_CONTEXT");
    let output = run(&mut command);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs the docker command"]
fn docker_lists_a_project() {
    let rehearsal = start();
    let filter = "label=com.docker.compose.project=minio";
    let format = "table {{.Names}}\t{{.Image}}\t{{.Status}}";
    let table = docker(&rehearsal, &["ps", "--filter", filter, "--format", format]);
    let lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let lines = lines.collect::<Vec<_>>();
    assert_eq!(lines[0], ["NAMES", "IMAGE", "STATUS"]);
    assert_eq!(
        lines[1][..3],
        ["minio", "minio/minio:RELEASE.2025-04-22T22-12-26Z", "Up"]
    );
    assert_eq!(lines.len(), 2);
}

#[test]
#[ignore = "needs the docker command"]
fn docker_removes_the_containers_that_it_listed() {
    let rehearsal = start();
    let filter = "label=com.docker.compose.project=books-db";
    let ids = docker(&rehearsal, &["ps", "-aq", "--filter", filter]);
    let ids = ids.lines().collect::<Vec<_>>();
    assert_eq!(ids.len(), 2);
    docker(&rehearsal, &[&["rm", "-f"], &ids[..]].concat());
    assert_eq!(docker(&rehearsal, &["ps", "-aq", "--filter", filter]), "");
    rehearsal.world(|world| {
        assert!(world.container("watchtower").is_some());
        assert_eq!(world.project("mongo").len(), 2);
        assert!(world.volume("books-db_db-data").is_some());
        assert_eq!(
            world.dangling().len(),
            2,
            "the named and the anonymous volume"
        );
    });
}

#[test]
#[ignore = "needs the docker command"]
fn docker_reads_everything_else() {
    let rehearsal = start();
    let info = docker(&rehearsal, &["info", "--format", "{{.ID}}"]);
    assert_eq!(
        info.trim(),
        rehearsal.world(|world| world.engine.id.clone())
    );
    let format = "{{.Name}} {{.State.Status}} {{range .Mounts}}{{.Type}}:{{.Destination}} {{end}}";
    let inspected = docker(&rehearsal, &["inspect", "minio", "--format", format]);
    assert_eq!(
        inspected.trim(),
        "/minio running bind:/policies volume:/data"
    );
    let volumes = docker(&rehearsal, &["volume", "ls", "-q"]);
    assert!(
        volumes.lines().any(|name| name == "minio_minio-data"),
        "{volumes}"
    );
    let networks = docker(&rehearsal, &["network", "ls", "--format", "{{.Name}}"]);
    assert!(
        networks.lines().any(|name| name == "proxy-chain_edge"),
        "{networks}"
    );
    let version = docker(&rehearsal, &["version", "--format", "{{.Server.Version}}"]);
    assert_eq!(version.trim(), "20.10.24");
    let ports = docker(&rehearsal, &["port", "minio"]);
    assert!(ports.contains("9000/tcp -> 0.0.0.0:9000"), "{ports}");
}

#[test]
#[ignore = "needs the docker command"]
fn docker_negotiates_the_api_version_with_a_newer_engine() {
    let mut world = World::with_examples("ptr_test", "/opt/stacks").unwrap();
    for (name, value) in [
        (&mut world.engine.api, "1.52"),
        (&mut world.engine.min_api, "1.44"),
    ] {
        value.clone_into(name);
    }
    let rehearsal = Rehearsal::start(world, &Options::default()).unwrap();
    let ids = docker(&rehearsal, &["ps", "-aq"]);
    assert_eq!(
        ids.lines().count(),
        rehearsal.world(|world| world.containers.len())
    );
}

#[test]
#[ignore = "needs curl"]
fn curl_migrates_by_hand() {
    let rehearsal = start();
    let key = format!("X-API-Key: {}", rehearsal.key());
    let url = |path: &str| format!("{}{path}", rehearsal.base_url());
    let curl = |args: &[&str]| {
        let mut command = Command::new("curl");
        command
            .args(["-sk", "--noproxy", "*", "-H", &key])
            .args(args);
        String::from_utf8(run(&mut command).stdout).unwrap()
    };
    let list = curl(&[&url("/api/stacks")]);
    assert!(
        list.starts_with(r#"[{"Id":1,"Name":"mail","Type":2,"EndpointId":2,"#),
        "{list}"
    );
    let body =
        r#"{"name":"web","stackFileContent":"services:\n  a:\n    image: busybox\n","env":[]}"#;
    let create = url("/api/stacks/create/standalone/string?endpointId=1");
    let created = curl(&["--data-binary", body, &create]);
    assert!(created.starts_with(r#"{"Id":2,"Name":"web","#), "{created}");
    assert_eq!(rehearsal.world(|world| world.project("web").len()), 1);
    let deleted = curl(&[
        "-w",
        "%{http_code}",
        "-X",
        "DELETE",
        &url("/api/stacks/2?endpointId=1"),
    ]);
    assert_eq!(deleted, "204");
    assert_eq!(rehearsal.world(|world| world.project("web").len()), 0);
}

#[test]
#[ignore = "needs the docker command"]
fn docker_runs_stops_and_connects() {
    let rehearsal = start();
    rehearsal.world(|world| world.add_image("busybox:1.36"));
    let run = [
        "run",
        "-d",
        "--name",
        "x1",
        "-v",
        "vol:/x",
        "-v",
        "/bare",
        "-p",
        "8089:80",
        "--label",
        "team=blue",
        "busybox:1.36",
        "sleep",
        "99",
    ];
    let id = docker(&rehearsal, &run);
    let id = id.trim();
    let output = |args: &[&str]| docker(&rehearsal, args).trim().to_owned();
    assert_eq!(
        output(&["port", "x1"]),
        "80/tcp -> 0.0.0.0:8089\n80/tcp -> [::]:8089"
    );
    assert_eq!(
        output(&["network", "create", "--subnet", "10.7.0.0/24", "side"]).len(),
        64
    );
    output(&[
        "network", "connect", "--ip", "10.7.0.9", "--alias", "web", "side", "x1",
    ]);
    let format = "{{.State.Status}} {{(index .NetworkSettings.Networks \"side\").IPAddress}}";
    assert_eq!(output(&["inspect", "x1", "-f", format]), "running 10.7.0.9");
    let members = "{{range .Containers}}{{.Name}} {{.IPv4Address}}{{end}}";
    assert_eq!(
        output(&["network", "inspect", "side", "-f", members]),
        "x1 10.7.0.9/24"
    );
    output(&["network", "disconnect", "side", "x1"]);
    output(&["network", "rm", "side"]);
    for (args, state) in [
        (["stop", "x1"], "exited"),
        (["start", "x1"], "running"),
        (["pause", "x1"], "paused"),
        (["unpause", "x1"], "running"),
        (["restart", "x1"], "running"),
        (["kill", "x1"], "exited"),
    ] {
        assert_eq!(output(&args), "x1");
        let format = "{{.State.Status}}";
        assert_eq!(output(&["inspect", "x1", "-f", format]), state, "{args:?}");
    }
    output(&["rename", "x1", "x2"]);
    assert_eq!(
        output(&["ps", "-aq", "--no-trunc", "--filter", "name=x2"]),
        id
    );
    assert_eq!(output(&["diff", "x2"]), "");
    assert_eq!(
        output(&["create", "--name", "x3", "busybox:new"]).len(),
        64,
        "pulls the image first"
    );
    let volumes = |rehearsal: &Rehearsal| rehearsal.world(|world| world.volumes.len());
    let before = volumes(&rehearsal);
    output(&["rm", "-v", "x2", "x3"]);
    assert_eq!(volumes(&rehearsal), before - 1, "only the anonymous volume");
    assert_eq!(output(&["volume", "rm", "vol"]), "vol");
}
