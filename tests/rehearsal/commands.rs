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
