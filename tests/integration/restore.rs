//! `stacklift restore`, over the embedded engine.

use std::fs;

use serde_json::{Value, json};
use testbed::Era;

use crate::bench::{Bench, PLAIN};

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
    bench.world(|world| {
        let containers = world.project(project).into_iter();
        containers
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
    bench.world(|world| serde_json::to_value(&world.volumes).expect("JSON"))
}

/// What `compose up -d` by hand would change.
fn up_would_change(bench: &Bench, project: &str) -> Vec<String> {
    let folder = bench.dir(project);
    let folder = folder.to_str().expect("UTF-8").to_owned();
    let before = bench.world(|world| world.clone());
    let mut after = before.clone();
    after
        .start_by_hand(project, &folder, &[])
        .expect("a stack that loads");
    let new = after.project(project).into_iter();
    new.filter(|one| !before.containers.contains_key(&one.id))
        .map(|one| one.name.clone())
        .collect()
}

/// Asserts that containers are as before but for what a new one has of its own.
#[track_caller]
fn are_as(after: &[Value], before: &[Value]) {
    assert_eq!(after.len(), before.len());
    for (before, after) in before.iter().zip(after) {
        for key in [
            "name", "image", "labels", "env", "mounts", "networks", "ports", "restart",
        ] {
            assert_eq!(before[key], after[key], "{key} of {}", before["name"]);
        }
        assert_eq!(before["state"] == "running", after["state"] == "running");
    }
}

#[test]
fn what_ran_by_hand_runs_again_as_it_did() {
    for era in [Era::Sync, Era::Async] {
        let bench = Bench::of(era);
        bench.world(|world| world.exits.insert("web/job".to_owned(), 0));
        bench.started("web", RICH, Some(ENV));
        bench.started("mail", PLAIN, None);
        let (before, data) = (containers(&bench, "web"), volumes(&bench));
        let ids = bench.containers("web");
        let others = bench.containers("mail");
        bench.succeeds("web", "snapshot");
        assert_ne!(bench.containers("web"), ids);
        bench.succeeds("restore web", &[
            "  the Portainer stack is deleted; app, db and job are removed and recreated (down for up to 20 s, plus their start)\n",
            "restored web: 3 containers match the snapshot (2 running; job was not run again); ",
            "  it is no longer in Portainer: edit ",
        ]).hides("very-secret-value");
        are_as(&containers(&bench, "web"), &before);
        // The volumes that a create made since stay as well: none is ever removed.
        let now = volumes(&bench);
        for volume in data.as_array().expect("volumes") {
            assert!(now.as_array().expect("volumes").contains(volume));
        }
        assert_eq!(up_would_change(&bench, "web"), Vec::<String>::new());
        assert_eq!(bench.containers("mail"), others);
        assert!(bench.world(|world| world.records.is_empty()));
        // Once more changes nothing.
        let ids = bench.containers("web");
        bench.succeeds("restore web", "3 containers match the snapshot");
        assert_eq!(bench.containers("web"), ids);

        // A file that was edited meanwhile is newer than what runs.
        bench.succeeds("web", "snapshot");
        bench.stack("web", &format!("{RICH}# edited\n"), Some(ENV));
        let stays = "  that file or .env has changed since the snapshot, and stays as it is: what runs is older\n";
        let print = "  to print docker-compose.yml as it was then, run: jq -j .compose.text /";
        bench.succeeds("restore web", &[stays, print]);
    }
}

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
