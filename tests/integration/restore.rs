//! `stacklift restore`, over the embedded engine.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Stdio,
};

use rehearsal::{Call, Era, FaultKind, Status, Variable};
use serde_json::{Value, json};

use crate::bench::{Bench, PLAIN, Run};

/// A stack that shows what a restore must keep.
const RICH: &str = "\
services:
  db:
    image: postgres:16
    environment:
      PASSWORD: ${PASSWORD}
    volumes:
      - /cache
      - data:/data
      - ./conf:/conf
    networks:
      back:
        ipv4_address: 172.28.9.10
        aliases: [database]
      front:
  app:
    image: x
    depends_on: [db]
    ports: ['18080:80']
    networks: [front]
  job:
    image: x
    command: 'true'
    networks: [front]
networks:
  back:
    ipam:
      config:
        - subnet: 172.28.9.0/24
  front:
volumes:
  data:
";
const ENV: &str = "PASSWORD=very-secret-value\n";

/// The containers of a project but for what a new container has of its own: ids, times, addresses that
/// the engine chose.
fn containers(bench: &Bench, project: &str) -> Vec<Value> {
    bench.rehearsal.world(|world| {
        world
            .project(project)
            .into_iter()
            .map(|container| {
                let mut json = serde_json::to_value(container).expect("JSON");
                let id = container.id[..12].to_owned();
                let networks = json["networks"].as_object_mut().expect("networks");
                for network in networks.values_mut() {
                    let mut aliases: Vec<&Value> = network["Aliases"]
                        .as_array()
                        .expect("aliases")
                        .iter()
                        .filter(|alias| **alias != *id)
                        .collect();
                    aliases.sort_by_key(std::string::ToString::to_string);
                    *network = json!({"aliases": aliases, "ipam": network["IPAMConfig"]});
                }
                json
            })
            .collect()
    })
}

fn volumes(bench: &Bench) -> Value {
    bench
        .rehearsal
        .world(|world| serde_json::to_value(&world.volumes).expect("JSON"))
}

/// What `compose up -d` by hand would change.
fn up_would_change(bench: &Bench, project: &str) -> Vec<String> {
    let folder = bench.dir(project);
    let folder = folder.to_str().expect("UTF-8").to_owned();
    bench
        .rehearsal
        .world(|world| world.up_would_change(project, &folder))
        .expect("a stack that loads")
}

fn snapshots(bench: &Bench) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(bench.state().join("snapshots")) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = folders
        .flat_map(|folder| fs::read_dir(folder.expect("a folder").path()).expect("read"))
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    files
}

#[test]
fn what_ran_by_hand_runs_again_as_it_did() {
    for era in [Era::Sync, Era::Async] {
        let bench = Bench::of(era);
        bench
            .rehearsal
            .world(|world| world.exits.insert("web/job".to_owned(), 0));
        bench.started("web", RICH, Some(ENV));
        bench.started("mail", PLAIN, None);
        let (before, data) = (containers(&bench, "web"), volumes(&bench));
        let ids = bench.containers("web");
        let others = bench.containers("mail");
        bench.run(&["web"]).code(0).says(&["snapshot"]);
        assert_ne!(bench.containers("web"), ids);
        bench
            .run(&["restore", "web"])
            .code(0)
            .says(&[
                "delete Portainer stack 1",
                "the stack is down until",
                "verified 3 containers match the snapshot",
            ])
            .hides("very-secret-value");
        let after = containers(&bench, "web");
        assert_eq!(after.len(), 3);
        for (before, after) in before.iter().zip(&after) {
            for key in [
                "name", "image", "labels", "env", "mounts", "networks", "ports", "restart",
            ] {
                assert_eq!(before[key], after[key], "{key} of {}", before["name"]);
            }
            assert_eq!(before["state"] == "running", after["state"] == "running");
        }
        // The volumes that a create made since stay as well: none is ever removed.
        for volume in data.as_array().expect("volumes") {
            assert!(
                volumes(&bench)
                    .as_array()
                    .expect("volumes")
                    .contains(volume)
            );
        }
        assert_eq!(up_would_change(&bench, "web"), Vec::<String>::new());
        assert_eq!(bench.containers("mail"), others);
        assert!(bench.rehearsal.world(|world| world.records.is_empty()));
        // Once more changes nothing.
        let ids = bench.containers("web");
        bench
            .run(&["restore", "web"])
            .code(0)
            .says(&["3 containers match the snapshot"]);
        assert_eq!(bench.containers("web"), ids);
    }
}

#[test]
fn a_failed_migration_names_the_way_back() {
    for (era, kind) in [
        (
            Era::Sync,
            FaultKind::Status(500, "{\"message\":\"no\"}".to_owned()),
        ),
        (Era::Sync, FaultKind::CloseAfter),
        (Era::Async, FaultKind::CloseAfter),
    ] {
        let bench = Bench::of(era);
        bench.started("web", RICH, Some(ENV));
        let before = containers(&bench, "web");
        bench.rehearsal.faults().once(Call::Create, kind);
        let run = bench.run(&["web"]).code(1);
        let last = run.err.lines().last().expect("a line");
        let (_, command) = last.split_once("stacklift ").expect("the command");
        let arguments: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(arguments[..3], ["restore", "web", "--to"]);
        bench.run(&arguments).code(0).says(&["verified"]);
        assert_eq!(containers(&bench, "web").len(), before.len());
        assert_eq!(up_would_change(&bench, "web"), Vec::<String>::new());
    }
}

#[test]
fn no_way_back_is_named_where_nothing_was_touched() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", PLAIN, None);
    let refusal = FaultKind::Status(403, "{}".to_owned());
    bench.rehearsal.faults().set(Call::Delete, refusal);
    bench.run(&["web"]).code(1).hides("stacklift restore");
}

#[test]
fn the_record_gets_its_text_and_variables_back() {
    let bench = Bench::new();
    bench.started("web", PLAIN, Some("A=1\n"));
    bench.run(&["web"]).code(0);
    let (id, old) = bench.rehearsal.world(|world| {
        let id = *world.records.keys().next().expect("a record");
        let text = format!("{PLAIN}    environment: {{MODE: old}}\n");
        let env = Some(vec![Variable {
            name: "ONLY_HERE".to_owned(),
            value: "record-secret".to_owned(),
        }]);
        world.update(id, text.clone(), env).expect("an update");
        (id, text)
    });
    bench.run(&["web"]).code(0);
    let new = bench
        .rehearsal
        .world(|world| *world.records.keys().next().expect("a record"));
    assert_ne!(new, id);
    bench
        .run(&["restore", "web"])
        .code(0)
        .says(&[&format!(
            "restore the text and variables of Portainer stack {new}"
        )])
        .hides("record-secret");
    let check = |bench: &Bench| {
        bench.rehearsal.world(|world| {
            let record = world.records.values().next().expect("a record");
            assert_eq!(record.text, old);
            let env = record.env.as_ref().expect("variables");
            assert_eq!(
                (env[0].name.as_str(), env[0].value.as_str()),
                ("ONLY_HERE", "record-secret")
            );
            assert_eq!(record.status, Status::Active);
        });
        assert_eq!(bench.containers("web").len(), 1);
    };
    check(&bench);
    // And where somebody deleted it.
    bench.rehearsal.world(|world| {
        let id = *world.records.keys().next().expect("a record");
        world.delete(id, 1).expect("a delete");
    });
    bench.run(&["restore", "web"]).code(0).says(&[
        "recreate the Portainer stack",
        "of the Portainer stack (Portainer will assign a new one)",
    ]);
    check(&bench);
}

#[test]
fn a_record_that_deploys_is_waited_for() {
    let bench = Bench::of(Era::Async);
    bench.started("web", PLAIN, None);
    bench
        .rehearsal
        .faults()
        .once(Call::Get, FaultKind::CloseBefore);
    bench
        .run(&["web"])
        .code(1)
        .says(&["it may still be deploying"]);
    bench.rehearsal.forget_requests();
    bench.run(&["restore", "web"]).code(0);
    let deletes = bench.calls(Call::Delete);
    assert_eq!(deletes.len(), 1);
    assert_eq!(deletes[0].status, Some(204), "not while it was deploying");
}

#[test]
fn nothing_is_restored_while_the_manager_cannot_be_asked() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let before = bench.containers("web");
    for kind in [
        FaultKind::CloseBefore,
        FaultKind::Status(502, String::new()),
        FaultKind::Garbage,
    ] {
        bench.rehearsal.faults().once(Call::List, kind);
        bench
            .run(&["restore", "web"])
            .code(1)
            .says(&["this run changed nothing"]);
        assert_eq!(bench.containers("web"), before);
    }
}

#[test]
fn killed_at_every_request_and_run_again_it_ends_in_the_same_state() {
    for era in [Era::Sync, Era::Async] {
        let bench = Bench::of(era);
        bench.started("web", RICH, Some(ENV));
        let before = containers(&bench, "web");
        bench.run(&["web"]).code(0);
        // Further each time, over what the last one left.
        let mut line = 1;
        loop {
            let mut child = bench
                .command(&["restore", "web", "-v"])
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it runs");
            let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
            let seen = lines.take(line).count();
            child.kill().expect("killed");
            child.wait().expect("it ends");
            if seen < line {
                break;
            }
            line += 1;
        }
        assert!(line > 5, "killed {line} times");
        bench.run(&["restore", "web"]).code(0).says(&["verified"]);
        let after = containers(&bench, "web");
        assert_eq!(after.len(), before.len());
        for (before, after) in before.iter().zip(&after) {
            for key in [
                "name", "labels", "env", "mounts", "networks", "ports", "state",
            ] {
                assert_eq!(before[key], after[key], "{key} of {}", before["name"]);
            }
        }
        assert_eq!(up_would_change(&bench, "web"), Vec::<String>::new());
    }
}

#[test]
fn a_stranger_with_the_name_of_a_saved_container_is_left_alone() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    bench.rehearsal.world(|world| {
        let id = world.project("web")[0].id.clone();
        world.containers.remove(&id);
        world.add_container("web-a-1", "somebody/elses:1");
    });
    bench.run(&["restore", "web"]).code(1).says(&[
        "web-a-1",
        "a container outside any stack",
        "this run changed nothing",
    ]);
    let image = bench.rehearsal.world(|world| {
        world
            .container("web-a-1")
            .map(|container| container.image.clone())
    });
    assert_eq!(image.as_deref(), Some("somebody/elses:1"));
}

#[test]
fn snapshots_are_private_whole_and_few() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, Some(ENV));
    bench.run(&["web"]).code(0);
    assert!(
        snapshots(&bench).is_empty(),
        "nothing to destroy, no snapshot"
    );
    bench.run(&["web"]).code(0);
    let first = snapshots(&bench).remove(0);
    for _ in 0..11 {
        bench.run(&["web"]).code(0);
    }
    let files = snapshots(&bench);
    assert_eq!(files.len(), 10, "the oldest and the nine newest");
    assert_eq!(files[0], first);
    for file in &files {
        let mode =
            |path: &std::path::Path| fs::metadata(path).expect("it").permissions().mode() & 0o777;
        assert_eq!(mode(file), 0o600);
        assert_eq!(mode(file.parent().expect("a folder")), 0o700);
        let json: Value = serde_json::from_slice(&fs::read(file).expect("it")).expect("JSON");
        assert_eq!(json["version"], 1);
        assert_eq!(json["compose"]["text"], PLAIN);
        assert_eq!(json["env"]["text"], ENV);
    }
    let run = bench.run(&["restore", "web", "--list"]).code(0);
    assert_eq!(run.out.lines().count(), 11, "{}", run.out);
    run.says(&["Id", "By", "Containers", "Portainer stack", "migrate"]);
    bench
        .run(&["restore", "web", "--to", "20200101T000000.000Z"])
        .code(1)
        .says(&["no snapshot 20200101T000000.000Z of the stack web"]);
    bench
        .run(&["restore", "other"])
        .code(1)
        .says(&["no snapshot of the stack other"]);
}

#[test]
fn a_disk_that_does_not_take_it_stops_the_run_before_anything_is_touched() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let before = bench.containers("web");
    fs::write(bench.state(), "a file in its place").expect("a file");
    bench
        .run(&["web"])
        .code(1)
        .says(&["failed to lock ", "this run changed nothing", "hint: "]);
    assert_eq!(bench.containers("web"), before);
    assert!(bench.nothing_was_changed());
    assert!(bench.backups("web").is_empty());
}

#[test]
fn what_cannot_be_read_is_unknown_and_said() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", PLAIN, None);
    bench
        .rehearsal
        .faults()
        .set(Call::File, FaultKind::Status(500, "{}".to_owned()));
    bench
        .run(&["web"])
        .code(0)
        .says(&["warning: the snapshot is incomplete: the Portainer stack could not be saved"]);
    let file = snapshots(&bench).remove(0);
    let json: Value = serde_json::from_slice(&fs::read(file).expect("it")).expect("JSON");
    assert!(json["record"]["unknown"].is_string(), "{}", json["record"]);
    bench
        .run(&["restore", "web"])
        .code(0)
        .says(&["no changes in Portainer"]);
}

#[test]
fn an_image_that_is_gone_and_the_rest_comes_back() {
    let bench = Bench::new();
    bench.started(
        "web",
        "services:\n  a:\n    image: x:1\n  b:\n    image: y:1\n",
        None,
    );
    bench.run(&["web"]).code(0);
    bench.rehearsal.world(|world| {
        let ids: Vec<String> = world.project("web").iter().map(|c| c.id.clone()).collect();
        for id in ids {
            world.containers.remove(&id);
        }
        world.remove_image("y:1").expect("it was there");
    });
    bench.run(&["restore", "web", "--force"]).code(1).says(&[
        "the image of web-b-1 no longer exists: y:1",
        "cannot recreate container web-b-1: its image y:1",
        "the stack differs from the snapshot",
        "partly restored",
    ]);
    assert_eq!(bench.containers("web").len(), 1);
}

#[test]
fn an_older_snapshot_stays_readable_and_a_newer_one_is_refused() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let file = snapshots(&bench).remove(0);
    let fixture = include_str!("../fixtures/snapshot-1.json");
    let mut json: Value = serde_json::from_str(fixture).expect("JSON");
    fs::write(&file, fixture).expect("the snapshot");
    bench
        .run(&["restore", "web"])
        .code(1)
        .says(&["the image of web-old-1 no longer exists"]);
    json["version"] = json!(2);
    fs::write(&file, json.to_string()).expect("the snapshot");
    bench
        .run(&["restore", "web"])
        .code(1)
        .says(&["has version 2", "reads versions up to 1"]);
}

#[test]
fn a_run_at_the_same_time_is_refused() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let lock = fs::File::open(&dir).expect("the directory");
    lock.try_lock().expect("the lock");
    for args in [&["restore", "web"][..], &["web"]] {
        let run: Run = bench.run(args).code(1);
        run.says(&["which is not stacklift, has locked the directory"]);
    }
}
