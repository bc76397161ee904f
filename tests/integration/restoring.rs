//! B16–B19: what a restore checks, saves and compares, and the restore without Portainer.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use rehearsal::{Call, Change, Era, FaultKind, Health, Peer, Status};
use serde_json::Value;

use crate::bench::{Bench, KEY, PLAIN, Run};

/// A stack that needs an image, a volume, a network of its own, one of another stack, and a port.
const NEEDY: &str = "services:
  a:
    image: x:1
    volumes: [data:/data]
    networks: [own, shared]
  b:
    image: y:1
    ports: ['18080:80']
    networks: [own]
networks:
  own:
    internal: true
    ipam: {config: [{subnet: 172.28.7.0/24}]}
  shared: {external: true}
volumes:
  data:
";

/// Two services, of which the second waits for the health of the first.
const HEALTH: &str = "services:
  db:
    image: x:1
    healthcheck: {test: [CMD, 'true']}
  app:
    image: x:1
    depends_on: {db: {condition: service_healthy}}
";

fn snapshots(bench: &Bench) -> Vec<Value> {
    let folders = fs::read_dir(bench.state().join("snapshots")).expect("snapshots");
    let mut files: Vec<PathBuf> = folders
        .flat_map(|folder| fs::read_dir(folder.expect("a folder").path()).expect("read"))
        .map(|file| file.expect("a file").path())
        .filter(|file| file.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON"))
        .filter(|json: &Value| json["version"].is_number())
        .collect()
}

/// Removes the containers of a project, as a person would.
fn remove_containers(bench: &Bench, project: &str) {
    for id in bench.containers(project) {
        bench.rehearsal.world(|world| world.containers.remove(&id));
    }
}

/// Writes a file into the layers of a project's containers.
pub fn write_file(bench: &Bench, project: &str, path: &str) {
    for id in bench.containers(project) {
        let change = Change {
            path: path.to_owned(),
            kind: 1,
            data: b"report\n".to_vec(),
        };
        bench.rehearsal.world(|world| {
            let container = world.containers.get_mut(&id).expect("a container");
            container.changes.push(change);
        });
    }
}

/// Runs the binary on a terminal on which `typed` is typed.
fn on_terminal(bench: &Bench, args: &[&str], typed: &str) -> Run {
    let inner = bench.command(args);
    let mut words = vec![inner.get_program().to_str().expect("UTF-8")];
    words.extend(args);
    let mut command = Command::new("script");
    command
        .args(["-qec", &words.join(" "), "/dev/null"])
        .env_clear()
        .envs(
            inner
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("script runs");
    let mut keyboard = child.stdin.take().expect("a pipe");
    keyboard.write_all(typed.as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("it ends");
    drop(keyboard);
    let run = Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::new(),
    };
    assert!(!run.out.contains(KEY));
    run
}

#[test]
fn b16_everything_that_is_missing_is_listed_and_nothing_is_touched() {
    let bench = Bench::new();
    bench.started(
        "net",
        "services:\n  n:\n    image: x:1\n    networks: [shared]\nnetworks:\n  shared: {name: shared}\n",
        None,
    );
    bench.started("web", NEEDY, None);
    bench.run(&["web"]).code(0);
    remove_containers(&bench, "web");
    remove_containers(&bench, "net");
    bench.started(
        "port",
        "services:\n  p:\n    image: x:1\n    ports: ['18080:80']\n",
        None,
    );
    bench.rehearsal.world(|world| {
        world.remove_image("y:1").expect("it exists");
        world.volumes.retain(|volume| volume.name != "web_data");
        world.networks.retain(|network| network.name != "shared");
        world.add_container("web-a-1", "somebody/elses:1");
    });
    let before = bench.rehearsal.world(|world| world.containers.clone());
    bench.rehearsal.forget_requests();
    bench.run(&["restore", "web"]).code(1).says(&[
        "refusing to restore: 5 problems",
        "the name web-a-1 is used by a container outside any stack",
        "the image of web-b-1 no longer exists: y:1",
        "volume web_data no longer exists",
        "network shared does not exist",
        "docker network create shared",
        "web-b-1 needs port 18080/tcp, which container port-p-1 publishes",
        "--force",
        "this run changed nothing",
    ]);
    assert!(bench.nothing_was_changed());
    assert_eq!(
        bench.rehearsal.world(|world| world.containers.clone()),
        before
    );
    assert_eq!(snapshots(&bench).len(), 1, "no snapshot of its own");
}

#[test]
fn b16_force_restores_what_is_possible() {
    let bench = Bench::new();
    bench.started(
        "web",
        "services:\n  a:\n    image: x:1\n    volumes: [data:/data]\n  b:\n    image: y:1\nvolumes:\n  data:\n",
        None,
    );
    bench.run(&["web"]).code(0);
    remove_containers(&bench, "web");
    bench.rehearsal.world(|world| {
        world.remove_image("y:1").expect("it exists");
        world.volumes.clear();
    });
    bench.run(&["restore", "web"]).code(1).says(&["2 problems"]);
    assert_eq!(bench.containers("web").len(), 0);
    bench.run(&["restore", "web", "--force"]).code(1).says(&[
        "continuing because of --force",
        "volume web_data no longer exists: an empty volume was created",
        "web-b-1 does not exist",
        "the stack differs from the snapshot",
    ]);
    assert_eq!(bench.containers("web").len(), 1);
    // The image can be loaded again. The data of the volume stays lost, whatever is run again.
    bench.rehearsal.world(|world| world.add_image("y:1"));
    for args in [&["restore", "web", "--force"][..], &["restore", "web"]] {
        bench
            .run(args)
            .code(1)
            .says(&["volume web_data"])
            .hides("verified");
    }
    assert_eq!(bench.containers("web").len(), 2);
}

#[test]
fn b17_what_is_replaced_is_saved_and_what_was_written_since_is_named() {
    for era in [Era::Sync, Era::Async] {
        let bench = Bench::of(era);
        bench.started(
            "web",
            "services:\n  a:\n    image: x:1\n    volumes: [/cache]\n",
            None,
        );
        bench.run(&["web"]).code(0);
        write_file(&bench, "web", "/root/report.txt");
        let ids = bench.containers("web");
        bench.run(&["restore", "web"]).code(0).says(&[
            "only the snapshot that the restore takes keeps them",
            "web-a-1: files written inside the container: /root/report.txt",
            "these volumes will be kept, but no restored container uses them",
            "(/cache of web-a-1)",
            "verified",
        ]);
        let saved = snapshots(&bench);
        assert_eq!(saved.len(), 2);
        assert_eq!(saved[1]["command"], "restore");
        assert_eq!(saved[1]["containers"]["known"][0]["Id"], ids[0].as_str());
        assert!(saved[1]["record"]["known"]["text"].is_string());
        assert!(saved[1]["changes"].to_string().contains("/root/report.txt"));
        // The default stays what ran before the migration, and nothing is replaced a second time.
        bench
            .run(&["restore", "web"])
            .code(0)
            .says(&["(taken by stacklift migrate)", "verified"])
            .hides("will be kept");
        assert_eq!(snapshots(&bench).len(), 2);
    }
}

#[test]
fn b18_files_inside_a_container_are_put_back() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    write_file(&bench, "web", "/root/report.txt");
    write_file(&bench, "web", "/run/web.pid");
    bench.run(&["web"]).code(0).says(&["/root/report.txt"]);
    bench.rehearsal.faults().set(
        Call::EngineUnpack,
        FaultKind::Status(500, r#"{"message":"no space left on device"}"#.to_owned()),
    );
    // A container without its files is not started, also if the restore is repeated.
    for _ in 0..2 {
        bench.run(&["restore", "web"]).code(1).says(&[
            "was not started, because its files could not be restored",
            "no space left on device",
            "expected running, got stopped",
        ]);
    }
    bench.rehearsal.faults().clear();
    bench
        .run(&["restore", "web"])
        .code(0)
        .says(&["copy", "1 file into web-a-1", "verified"]);
    let ids = bench.containers("web");
    bench.rehearsal.world(|world| {
        let changes = &world.containers[&ids[0]].changes;
        let files: Vec<_> = changes.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(files, ["/root/report.txt"]);
        assert_eq!(changes[0].data, b"report\n");
    });
    bench
        .run(&["restore", "web"])
        .code(0)
        .says(&["1 container matches the snapshot"])
        .hides("copy");

    // Somebody else's container of the same configuration does not have them.
    bench.rehearsal.world(|world| {
        let container = world.containers.get_mut(&ids[0]).expect("a container");
        container.changes.clear();
    });
    for _ in 0..2 {
        bench.run(&["restore", "web"]).code(1).says(&[
            "web-a-1 differs: these files inside the container are missing: /root/report.txt",
        ]);
    }
    assert_eq!(bench.containers("web"), ids);
}

#[test]
fn b18_files_that_are_not_saved_are_a_difference() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    write_file(&bench, "web", "/var/log/large");
    let id = bench.containers("web").remove(0);
    bench.rehearsal.world(|world| {
        let container = world.containers.get_mut(&id).expect("a container");
        container.changes[0].data = vec![0; 2 << 20];
    });
    bench.run(&["web"]).code(0);
    bench.run(&["restore", "web"]).code(1).says(&[
        "these cannot be restored",
        "web-a-1: files written inside the container: /var/log/large",
    ]);
    for _ in 0..2 {
        bench
            .run(&["restore", "web"])
            .code(1)
            .says(&["web-a-1 differs: these files inside the container are lost: /var/log/large"]);
    }
}

#[test]
fn b17_a_terminal_is_asked_before_something_is_lost() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    write_file(&bench, "web", "/root/report.txt");
    let ids = bench.containers("web");
    bench.rehearsal.forget_requests();
    for answer in ["n\n", "\n"] {
        on_terminal(&bench, &["restore", "web"], answer)
            .code(1)
            .says(&[
                "/root/report.txt",
                "[y/N]",
                "Canceled. Nothing was changed.",
            ]);
        assert!(bench.nothing_was_changed());
    }
    assert_eq!(bench.containers("web"), ids);
    assert_eq!(snapshots(&bench).len(), 1);
    on_terminal(&bench, &["restore", "web"], "y\n")
        .code(0)
        .says(&["[y/N]", "verified"]);
    // The answer is given.
    bench.run(&["web"]).code(0);
    write_file(&bench, "web", "/root/report.txt");
    on_terminal(&bench, &["restore", "web", "--yes"], "")
        .code(0)
        .says(&["/root/report.txt"])
        .hides("[y/N]");
}

#[test]
fn b18_a_volume_that_was_recreated_is_another_one() {
    let bench = Bench::new();
    let folder = bench.root().join("volumes");
    let data = folder.join("web_data/_data");
    bench.rehearsal.world(|world| {
        folder
            .to_str()
            .expect("UTF-8")
            .clone_into(&mut world.volume_folder);
    });
    bench.started(
        "web",
        "services:\n  a:\n    image: x:1\n    volumes: [data:/data]\nvolumes:\n  data:\n",
        None,
    );
    fs::create_dir_all(&data).expect("a folder");
    bench.run(&["web"]).code(0);
    let births = &snapshots(&bench)[0]["births"];
    assert!(
        births["web_data"].is_string(),
        "a file system with birth times: {births}"
    );
    bench
        .run(&["restore", "web"])
        .code(0)
        .says(&["verified"])
        .hides("not checked");
    // Deleted and recreated with the same name, driver and labels.
    fs::remove_dir_all(&folder).expect("removed");
    fs::create_dir_all(&data).expect("a folder");
    for args in [&["restore", "web"][..], &["restore", "web", "--force"]] {
        bench
            .run(args)
            .code(1)
            .says(&["volume web_data", "it was deleted and recreated"])
            .hides("verified");
    }
    // Unknown is not the same.
    fs::remove_dir_all(&folder).expect("removed");
    bench.run(&["restore", "web"]).code(0).says(&[
        "not checked:",
        "whether these volumes were deleted and recreated: web_data",
    ]);
}

#[test]
fn b18_health_is_awaited_in_the_order_of_dependencies() {
    let bench = Bench::new();
    bench.started("web", HEALTH, None);
    bench.run(&["web"]).code(0);
    bench.rehearsal.world(|world| {
        world
            .health
            .insert("web/db".to_owned(), Health::After(1500))
    });
    bench.rehearsal.forget_requests();
    let started = std::time::Instant::now();
    bench.run(&["restore", "web"]).code(0).says(&["verified"]);
    assert!(started.elapsed() > Duration::from_millis(1500));
    let requests = bench.rehearsal.requests();
    let starts: Vec<usize> = requests
        .iter()
        .enumerate()
        .filter(|(_, request)| request.call == Call::EngineStart)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(starts.len(), 2);
    let looks = requests[starts[0]..starts[1]].iter();
    let looks = looks.filter(|request| request.call == Call::EngineInspect);
    assert!(looks.count() > 3, "the health was read until it was good");

    bench.run(&["web"]).code(0);
    bench
        .rehearsal
        .world(|world| world.health.insert("web/db".to_owned(), Health::Never));
    for _ in 0..2 {
        bench
            .run(&["restore", "web", "--to", &snapshot_ids(&bench)[0]])
            .code(1)
            .says(&["web-db-1 differs: expected healthy, got unhealthy"])
            .says(&["web-app-1 was not started: it depends on web-db-1"])
            .hides("verified");
    }
}

fn snapshot_ids(bench: &Bench) -> Vec<String> {
    let listed = bench.run(&["restore", "web", "--list"]).code(0);
    let rows = listed.out.lines().skip(1);
    rows.filter_map(|row| row.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn b18_a_network_gets_its_settings_back() {
    let bench = Bench::new();
    bench.started(
        "web",
        &NEEDY
            .replace(", shared]", "]")
            .replace("  shared: {external: true}\n", ""),
        None,
    );
    bench.run(&["web"]).code(0);
    bench.rehearsal.world(|world| {
        let mut networks = world.networks.iter_mut();
        let own = networks
            .find(|network| network.name == "web_own")
            .expect("it");
        own.internal = false;
        own.ipam["Config"][0]["Subnet"] = "172.28.99.0/24".into();
    });
    bench
        .run(&["restore", "web", "--engine-only"])
        .code(0)
        .says(&[
            "remove network web_own",
            "create network web_own",
            "verified",
        ]);
    bench.rehearsal.world(|world| {
        let mut networks = world.networks.iter();
        let own = networks
            .find(|network| network.name == "web_own")
            .expect("it");
        assert!(own.internal);
        assert_eq!(own.ipam["Config"][0]["Subnet"], "172.28.7.0/24");
    });
    // A network that others use stays, and its difference is named each time.
    bench.rehearsal.world(|world| {
        let label = "com.docker.compose.project";
        let mut networks = world.networks.iter_mut();
        let own = networks
            .find(|network| network.name == "web_own")
            .expect("it");
        own.internal = false;
        own.labels.insert(label.to_owned(), "other".to_owned());
    });
    let ids = bench.containers("web");
    for _ in 0..2 {
        bench
            .run(&["restore", "web", "--engine-only"])
            .code(1)
            .says(&["network web_own differs: internal"])
            .hides("verified");
    }
    assert_eq!(bench.containers("web"), ids);
}

#[test]
fn b18_a_stopped_stack_stays_stopped_and_access_rights_come_back() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    bench.rehearsal.world(|world| {
        let id = *world.records.keys().next().expect("a record");
        world.stop(id, 1).expect("stopped");
        let record = world.records.get_mut(&id).expect("a record");
        record.control.users = vec![7];
        record.control.teams = vec![3];
    });
    bench.run(&["web"]).code(0);
    bench.run(&["restore", "web"]).code(0).says(&[
        "stopping the Portainer stack removes its containers",
        "the access rights of Portainer stack",
        "verified",
    ]);
    bench.rehearsal.world(|world| {
        let record = world.records.values().next().expect("a record");
        assert_eq!(record.status, Status::Inactive);
        assert_eq!(
            (&record.control.users, &record.control.teams),
            (&vec![7], &vec![3])
        );
    });
    assert!(bench.containers("web").is_empty());

    // What Portainer refuses is named, each time.
    bench.rehearsal.world(|world| {
        let record = world.records.values_mut().next().expect("a record");
        record.control.users.clear();
    });
    let refusal = FaultKind::Status(403, "{\"message\":\"Permission denied\"}".to_owned());
    bench.rehearsal.faults().set(Call::Access, refusal);
    for _ in 0..2 {
        bench
            .run(&["restore", "web"])
            .code(1)
            .says(&[
                "failed to restore the access rights",
                "differs: the access rights",
            ])
            .hides("verified");
    }
}

#[test]
fn b18_a_container_that_is_not_in_the_snapshot_is_removed_or_named() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let refusal = FaultKind::Status(500, "{\"message\":\"device busy\"}".to_owned());
    bench.rehearsal.faults().set(Call::EngineRemove, refusal);
    bench.stack("web", &PLAIN.replace("  a:", "  extra:"), None);
    let dir = bench.dir("web");
    let folder = dir.to_str().expect("UTF-8");
    bench
        .rehearsal
        .world(|world| world.start_by_hand("web", folder))
        .expect("it starts");
    bench
        .run(&["restore", "web", "--engine-only"])
        .code(1)
        .says(&["web-extra-1 is not in the snapshot", "device busy"])
        .hides("verified");
}

#[test]
fn b19_the_containers_are_restored_without_portainer() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let ids = bench.containers("web");
    bench
        .rehearsal
        .faults()
        .set(Call::List, FaultKind::CloseBefore);
    bench
        .run(&["restore", "web"])
        .code(1)
        .says(&["--engine-only", "this run changed nothing"]);
    bench.rehearsal.forget_requests();
    // The key may be lost with Portainer.
    let mut command = bench.command(&["restore", "web", "--engine-only"]);
    command.env_remove("STACKMGR_API_KEY");
    Run::of(&mut command).code(0).says(&[
        "no changes in Portainer, because of --engine-only",
        "not checked:",
        "the Portainer stack, because of --engine-only",
        "verified 1 container",
        "that was created since the snapshot, delete it",
        "When Portainer responds again, run: ",
        "stacklift restore web --to",
    ]);
    let requests = bench.rehearsal.requests();
    assert!(requests.iter().all(|request| request.peer == Peer::Engine));
    assert_ne!(bench.containers("web"), ids);
    assert!(snapshots(&bench)[1]["record"]["unknown"].is_string());

    bench.rehearsal.faults().clear();
    bench
        .run(&["restore", "web"])
        .code(0)
        .says(&["delete Portainer stack 1", "verified"]);
    assert!(bench.rehearsal.world(|world| world.records.is_empty()));
}

#[test]
fn b17_a_restore_lets_containers_shut_down_before_it_removes_them() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let ids = bench.containers("web");
    bench.rehearsal.forget_requests();
    bench
        .run(&["restore", "web", "--engine-only"])
        .code(0)
        .says(&["stop web-a-1", "remove web-a-1", "verified"]);
    let requests = bench.rehearsal.requests();
    let at = |call: Call| {
        let mut requests = requests.iter();
        requests.position(|one| one.call == call && one.path.contains(&ids[0]))
    };
    assert!(at(Call::EngineStop).expect("a stop") < at(Call::EngineRemove).expect("a removal"));

    // One that cannot be stopped is removed all the same. With `--rm`, a stop would delete its volumes.
    for rm in [false, true] {
        bench.run(&["web"]).code(0);
        bench.rehearsal.world(|world| {
            let containers = world.containers.values_mut();
            for container in containers {
                container.host_config["AutoRemove"] = rm.into();
            }
        });
        bench.rehearsal.forget_requests();
        let refusal = FaultKind::Status(500, "{\"message\":\"cannot stop\"}".to_owned());
        bench.rehearsal.faults().set(Call::EngineStop, refusal);
        let run = bench.run(&["restore", "web", "--engine-only"]);
        assert_eq!(
            run.err.contains("it is removed with SIGKILL"),
            !rm,
            "{run:#?}"
        );
        assert_eq!(bench.calls(Call::EngineStop).is_empty(), rm);
        assert!(!bench.calls(Call::EngineRemove).is_empty());
        drop(run.code(0).says(&["verified"]));
        bench.rehearsal.faults().clear();
    }
}

#[test]
fn b11_a_delete_without_a_response_is_waited_for_and_the_restore_continues() {
    let html = FaultKind::Body(504, b"<html>Gateway Time-out</html>".to_vec());
    for fault in [FaultKind::CloseAfter, html] {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        bench.run(&["web"]).code(0);
        bench.rehearsal.faults().once(Call::Delete, fault);
        bench.run(&["restore", "web"]).code(0).says(&[
            "waiting until Portainer has finished",
            "verified 1 container",
        ]);
        assert_eq!(bench.containers("web").len(), 1);
        assert_eq!(bench.calls(Call::Delete).len(), 1, "sent once");
    }
}
