//! B16–B19: what a restore checks, saves and compares, and the restore without Portainer.

use std::{fs, time::Duration};

use serde_json::Value;
use testbed::{Call, Era, FaultKind, Peer, Rule, Status};

use crate::bench::{Bench, PLAIN, done, id_of, instead, read_json, refusal};
use crate::confirming::{on_terminal, on_terminal_after};

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
    let all = bench.saved(".json").into_iter().map(read_json);
    all.filter(|json| json["version"].is_number()).collect()
}

/// Removes the containers of a project, as a person would.
fn remove_containers(bench: &Bench, project: &str) {
    for id in bench.containers(project) {
        bench.world(|world| world.containers.remove(&id));
    }
}

/// Writes a file into the layers of a project's containers.
pub fn write_file(bench: &Bench, project: &str, path: &str) {
    for id in bench.containers(project) {
        bench.world(|world| {
            let container = world.containers.get_mut(&id).expect("a container");
            container
                .files
                .insert(path.to_owned(), b"report\n".to_vec());
        });
    }
}

#[test]
fn b16_everything_that_is_missing_is_listed_and_nothing_is_touched() {
    let bench = Bench::new();
    let shared = "services:\n  n:\n    image: x:1\n    networks: [shared]\nnetworks:\n  shared: {name: shared}\n";
    bench.started("net", shared, None);
    bench.started("web", NEEDY, None);
    bench.run("web").code(0);
    remove_containers(&bench, "web");
    remove_containers(&bench, "net");
    let port = "services:\n  p:\n    image: x:1\n    ports: ['18080:80']\n";
    bench.started("port", port, None);
    bench.world(|world| {
        world
            .images
            .retain(|_, image| image["RepoTags"][0] != "y:1");
        world.volumes.retain(|volume| volume["Name"] != "web_data");
        world.networks.retain(|network| network["Name"] != "shared");
        world.add_container("web-a-1", "somebody/elses:1");
        world.add_container("web-b-1", "x:1");
    });
    bench.change_container("web-b-1", |other| {
        let label = "com.docker.compose.project".to_owned();
        other.labels.insert(label, "shop".to_owned());
    });
    bench.forget_requests();
    bench.stops("restore web", &[
        "refusing to restore: 6 problems found\n  1. the name web-a-1 is used by a container outside any stack\n",
        "  2. the name web-b-1 is used by a container of the stack shop\n",
        "  3. volume web_data no longer exists, and snapshots do not contain its data\n     --force creates",
        "  4. the image of web-b-1 no longer exists: y:1",
        "  5. network shared does not exist and is not part of the stack\n     create it: docker network create shared\n",
        "  6. web-b-1 needs port 18080/tcp, which container port-p-1 publishes\n",
    ]);
    assert_eq!(snapshots(&bench).len(), 1, "no snapshot of its own");
}

/// Also where Portainer deploys the stack, and would create the volume itself.
#[test]
fn b18_a_volume_that_a_restore_created_empty_is_named_and_is_no_difference() {
    for recreates_record in [false, true] {
        let bench = Bench::adopted(&format!(
            "{PLAIN}    volumes: ['data:/data']\nvolumes:\n  data: {{}}\n"
        ));
        if recreates_record {
            bench.write("web", "docker-compose.yml", PLAIN);
            bench.run("adopt web").code(0);
            bench.world(|world| world.records.clear());
        }
        remove_containers(&bench, "web");
        bench.world(|world| world.volumes.clear());
        let gone = "volume web_data no longer exists, and snapshots do not contain its data";
        let new = "warning: volume web_data no longer exists: a starts with a new one\n";
        // The second file does not have it.
        let plan = bench.run("plan web").code(0);
        assert_eq!(plan.err.contains(new), !recreates_record, "{plan:#?}");
        bench.forget_requests();
        bench.stops("restore web", gone);
        let names = "but a restore created the volume web_data empty";
        bench.succeeds("restore web --force", &[gone, "restored web: 1 ", names]);
        for again in ["restore web", "restore web --force"] {
            bench.succeeds(again, &["web is as it was: 1 ", names]);
        }
        // Another volume of this name is a difference again.
        bench.world(|world| world.volumes[0]["Labels"] = serde_json::json!({}));
        let says = "volume web_data is not the one in the snapshot: the labels";
        bench.fails("restore web", says);
    }
}

#[test]
fn b17_what_is_replaced_is_saved_and_what_was_written_since_is_named() {
    for era in [Era::Sync, Era::Async] {
        let bench = Bench::of(era);
        let text = "services:\n  a:\n    image: x:1\n    volumes: [/cache]\n";
        bench.started("web", text, None);
        bench.run("web").code(0);
        write_file(&bench, "web", "/root/report.txt");
        let ids = bench.containers("web");
        bench.forget_requests();
        for answer in ["n\n", "\n"] {
            let run = on_terminal(&bench, "restore web", answer).code(1);
            let canceled = "Canceled. Nothing was changed.";
            run.says(&["/root/report.txt", canceled]);
            assert!(bench.nothing_was_changed());
        }
        assert_eq!(snapshots(&bench).len(), 1);
        let run = on_terminal(&bench, "restore web --yes", "").code(0);
        run.hides("[y/N]").says(&[
            "  web-a-1: 1 file written since then is removed, and kept in a new snapshot: /root/report.txt\n",
            "(/cache of web-a-1) is kept, but no restored container uses it\n",
            "restored web",
        ]);
        let saved = snapshots(&bench);
        assert_eq!(saved.len(), 2);
        assert_eq!(saved[1]["command"], "restore");
        assert_eq!(saved[1]["containers"]["known"][0]["Id"], ids[0].as_str());
        assert!(saved[1]["record"]["known"]["text"].is_string());
        assert!(saved[1]["changes"].to_string().contains("/root/report.txt"));
        // The default stays what ran before the migration, and nothing is replaced a second time.
        let run = bench.run("restore web").code(0).hides("is kept");
        run.says(&["(before stacklift migrate)", "web is as it was"]);
        assert_eq!(snapshots(&bench).len(), 2);
    }
}

/// Docker creates `/sys/fs/cgroup` in the layer of a container that mounts `/sys` of the host, as cAdvisor does.
#[test]
fn b18_what_a_mount_hides_is_neither_lost_nor_saved() {
    let text = format!("{PLAIN}    volumes: ['/sys:/sys:ro']\n");
    let bench = Bench::web(&text);
    write_file(&bench, "web", "/sys/fs/cgroup");
    bench.always(Call::EngineArchive, instead(404, r#"{"message":"no"}"#));
    let run = bench.succeeds("web", "created stack web");
    run.hides(&["inside the container", "/sys/fs/cgroup"]);
    bench.succeeds("restore web --yes", "restored web");
}

#[test]
fn b18_files_inside_a_container_are_put_back() {
    let bench = Bench::web(PLAIN);
    write_file(&bench, "web", "/root/report.txt");
    write_file(&bench, "web", "/run/web.pid");
    bench.succeeds("web", "/root/report.txt");
    let full = instead(500, r#"{"message":"no space left on device"}"#);
    bench.always(Call::EngineUnpack, full);
    // A container without its files is not started, also if the restore is repeated.
    for _ in 0..2 {
        let why = ": Docker returned 500: no space left on device\nweb-a-1 differs: expected running, got stopped\n";
        let run = bench.fails("restore web", why);
        run.says("was not started, because its files could not be restored");
    }
    bench.faults().clear();
    let says = ["copy", "1 file into web-a-1", "restored web"];
    bench.succeeds("restore web -v", &says);
    let id = bench.containers("web").remove(0);
    let files = bench.container("web-a-1").files;
    assert_eq!(files.len(), 1);
    assert_eq!(files["/root/report.txt"], b"report\n");
    let matches = "1 container matches the snapshot";
    bench.succeeds("restore web", matches).hides("copy");

    // Somebody else's container of the same configuration does not have them: it is recreated.
    bench.change_container("web-a-1", |one| one.files.clear());
    bench.succeeds("restore web --dry-run", "a is removed and recreated");
    bench.succeeds("restore web", "restored web");
    let now = bench.container("web-a-1");
    assert_ne!(now.id, id);
    assert_eq!(now.files.len(), 1);
}

#[test]
fn a_dry_run_writes_nothing() {
    let bench = Bench::migrated(HEALTH);
    let changed = || fs::metadata(bench.state()).and_then(|found| found.modified());
    let before = changed().expect("a time");
    bench.run("restore web --dry-run").code(0);
    assert_eq!(changed().expect("a time"), before);
    let run = bench.run(&["restore", "web", "--to", ""]).code(2);
    run.says("a value is required for '--to <ID>' but none was supplied");
}

#[test]
fn a_restore_of_an_update_says_what_the_file_on_disk_is() {
    let bench = Bench::adopted(HEALTH);
    let edited = format!("{HEALTH}    hostname: b\n");
    let file = bench.write("web", "docker-compose.yml", &edited);
    bench.run("adopt web --yes").code(0);
    let stays = "stays as it is: `stacklift plan web` compares it with Portainer's copy";
    let line = format!("\n  {} {stays}\n", file.display());
    bench.succeeds("restore web --yes", &line);
}

#[test]
fn b18_health_is_awaited_in_the_order_of_dependencies() {
    let bench = Bench::migrated(HEALTH);
    let set = |health| {
        bench.world(|world| world.health.insert("web/db".to_owned(), health));
    };
    set(Some(1500));
    bench.forget_requests();
    let started = std::time::Instant::now();
    bench.succeeds("restore web", "match");
    assert!(started.elapsed() > Duration::from_millis(1500));
    let calls: Vec<Call> = bench.requests().iter().map(|one| one.call).collect();
    let mut parts = calls.split(|call| *call == Call::EngineStart).skip(1);
    let between = parts.next().expect("a start");
    assert_eq!(parts.count(), 1, "two starts: {calls:?}");
    let looks = between.iter().filter(|call| **call == Call::EngineInspect);
    assert!(looks.count() > 1, "the health was read until it was good");

    bench.run("web").code(0);
    set(None);
    let args = format!("restore web --to {}", id_of(&bench.saved(".json")[0]));
    for _ in 0..2 {
        let why = "\nweb-app-1 was not started: it depends on web-db-1: web-db-1 is unhealthy\nweb-app-1 differs: expected running, got stopped\nweb-db-1 differs: expected healthy, got unhealthy\n";
        bench.fails(&args, why).hides("restored web");
    }
}

#[test]
fn b15_the_default_is_the_last_state_that_ran() {
    let bench = Bench::adopted(PLAIN);
    let id = bench.first_record().id;
    bench
        .world(|world| testbed::stop(world, id, 1))
        .expect("stopped");
    // It undoes the start only with the snapshot's ID.
    bench.succeeds("adopt web", "restore web --to ");
    let says = "restored web: 1 container matches the snapshot";
    bench.succeeds("restore web", says).hides("nothing");
}

#[test]
fn b18_a_stopped_stack_stays_stopped_and_access_rights_come_back() {
    let bench = Bench::migrated(PLAIN);
    let id = bench.first_record().id;
    bench
        .world(|world| testbed::stop(world, id, 1))
        .expect("stopped");
    bench.change_record(|record| {
        (record.control.users, record.control.teams) = (vec![7], vec![3]);
    });
    bench.run("web").code(0);
    let id = id_of(&bench.saved(".json").pop().expect("a snapshot"));
    let again = format!("restore web --to {id}");
    bench.succeeds(&again, "  web was not running then, and will not run after the restore\n  the Portainer stack is stopped; a is removed\nrestored web: 0 containers match the snapshot; nothing runs\n");
    assert!(bench.containers("web").is_empty());
    // What Portainer refuses is named, each time.
    bench.change_record(|record| {
        assert_eq!(record.status, Status::Inactive);
        let control = &mut record.control;
        assert_eq!((&control.users, &control.teams), (&vec![7], &vec![3]));
        control.users.clear();
    });
    let refusal = instead(403, r#"{"message":"Permission denied","details":"no"}"#);
    bench.always(Call::Access, refusal);
    for _ in 0..2 {
        let why = "\nfailed to restore the access rights of Portainer stack 2: status 403: Permission denied\nPortainer stack 2 differs: the access rights\n";
        bench.fails(&again, why).hides("restored web");
    }
    // Nor is the page of a proxy a success (B35).
    bench.always(Call::Access, instead(200, "<html>Log in</html>"));
    let why = "\nPortainer stack 2 differs: the access rights\n";
    bench.fails(&again, &["something other than Portainer", why]);
}

#[test]
fn a_stack_is_found_on_the_environment_that_was_added_again() {
    let bench = Bench::web(PLAIN);
    bench.run("adopt web").code(0);
    bench.world(|world| {
        let here = world.endpoints.remove(&1).expect("an environment");
        world.endpoints.insert(2, here);
        let mut records = world.records.values_mut();
        records.next().expect("a record").endpoint = 2;
    });
    bench.run("restore web").succeeds("restored web");
    assert!(bench.world(|world| world.records.is_empty()));
}

#[test]
fn b19_the_containers_are_restored_without_portainer() {
    let bench = Bench::migrated(PLAIN);
    let ids = bench.containers("web");
    bench.forget_requests();
    for kind in [FaultKind::Garbage, instead(502, ""), FaultKind::CloseBefore] {
        bench.always(Call::List, kind);
        bench.stops("restore web", "--engine-only");
    }
    bench.forget_requests();
    // The key may be lost with Portainer.
    bench.without_key("restore web --engine-only").succeeds(&[
        "  Portainer is left as it is, because of --engine-only",
        "\nrestored web: 1 container matches the snapshot",
        "warning: not checked:\n  - the Portainer stack, because of --engine-only\nwarning: Portainer was not contacted: a stack that was created there since the snapshot is not deleted yet. When Portainer responds again, run: stacklift restore web\n",
    ]);
    let requests = bench.requests();
    assert!(requests.iter().all(|request| request.peer == Peer::Engine));
    assert_ne!(bench.containers("web"), ids);
    assert!(snapshots(&bench)[1]["record"]["unknown"].is_string());

    bench.faults().clear();
    let says = ["the Portainer stack is deleted", "restored web"];
    bench.succeeds("restore web", &says);
    assert!(bench.world(|world| world.records.is_empty()));
}

#[test]
fn b17_a_restore_lets_containers_shut_down_before_it_removes_them() {
    let bench = Bench::migrated(PLAIN);
    let ids = bench.containers("web");
    bench.forget_requests();
    let says = ["stop web-a-1", "remove web-a-1", "restored web"];
    bench.succeeds("restore web --engine-only -v", &says);
    let requests = bench.requests();
    let at = |call: Call| {
        let mut requests = requests.iter();
        requests.position(|one| one.call == call && one.path.contains(&ids[0]))
    };
    assert!(at(Call::EngineStop).expect("a stop") < at(Call::EngineRemove).expect("a removal"));

    // One that cannot be stopped is removed all the same. With `--rm`, a stop would delete its volumes.
    for rm in [false, true] {
        bench.run("web").code(0);
        bench.change_container("web-a-1", |one| one.host_config["AutoRemove"] = rm.into());
        bench.forget_requests();
        let refusal = instead(500, "{\"message\":\"cannot stop\"}");
        bench.always(Call::EngineStop, refusal);
        let run = bench.run("restore web --engine-only");
        let is_killed = run.err.contains("it is removed with SIGKILL");
        assert_eq!(is_killed, !rm, "{run:#?}");
        assert_eq!(bench.calls(Call::EngineStop).is_empty(), rm);
        assert!(!bench.calls(Call::EngineRemove).is_empty());
        run.succeeds("restored web");
        bench.faults().clear();
    }
}

#[test]
fn b11_a_delete_without_a_response_is_waited_for_and_the_restore_continues() {
    let html = done(504, "<html>Gateway Time-out</html>");
    for fault in [FaultKind::CloseAfter, html] {
        let bench = Bench::migrated(PLAIN);
        bench.once(Call::Delete, fault);
        bench.succeeds("restore web", &[
            "warning: this run was deleting Portainer stack 1, and the outcome is unknown; waiting for Portainer to finish",
            "restored web: 1 container",
        ]);
        assert_eq!(bench.containers("web").len(), 1);
        assert_eq!(bench.calls(Call::Delete).len(), 1, "sent once");
    }
}

/// Compose's `down` fails under load: a network still has active endpoints.
#[test]
fn b05_a_restore_sends_a_delete_that_failed_once_more() {
    let bench = Bench::migrated(PLAIN);
    bench.forget_requests();
    bench.once(Call::Delete, refusal());
    let says = [
        "Portainer stack 1 again: the first attempt failed",
        "1 container matches the snapshot",
    ];
    bench
        .succeeds("restore web -v", &says)
        .hides("failed to delete");
    let calls: Vec<Call> = bench.requests().iter().map(|one| one.call).collect();
    let mut attempts = calls.split(|call| *call == Call::Delete).skip(1);
    let between = attempts.next().expect("two deletes");
    assert!(between.contains(&Call::List), "it looks first: {between:?}");
    let after = attempts.next().expect("what follows the second delete");
    assert!(attempts.next().is_none(), "sent twice");
    assert!(after.contains(&Call::EngineCreate), "{after:?}");
    assert!(bench.world(|world| world.records.is_empty()));
}

#[test]
fn b05_a_restore_warns_of_a_delete_that_failed_twice_or_may_go_on() {
    // The first is Portainer's own response, the second that of a proxy: what Portainer does then is unknown.
    for (fault, sent) in [(refusal(), 2), (instead(500, "<html>"), 1)] {
        let bench = Bench::migrated(PLAIN);
        bench.forget_requests();
        bench.faults().add(Rule::new(Call::Delete, fault).times(2));
        let warning = "warning: failed to delete Portainer stack 1: ";
        let run = bench.fails("restore web", warning);
        run.says("\nPortainer stack 1 still exists\n");
        assert_eq!(bench.calls(Call::Delete).len(), sent);
        assert_eq!(bench.containers("web").len(), 1);
        bench.faults().clear();
        bench.succeeds("restore web", "1 container matches the snapshot");
        assert!(bench.world(|world| world.records.is_empty()));
    }
}

#[test]
fn b11_a_restore_waits_for_a_deployment_that_somebody_else_started() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    bench.run("web").code(0);
    bench.update_in_portainer(&bench.first_record());
    assert_eq!(bench.first_record().status, Status::Deploying);
    bench.forget_requests();
    bench.succeeds("restore web", "1 container matches the snapshot");
    let deletes = bench.calls(Call::Delete);
    assert_eq!(deletes.len(), 1);
    assert_eq!(deletes[0].status, Some(204), "not while it was deploying");
}

#[test]
fn b18_a_container_that_is_not_in_the_snapshot_is_removed_or_named() {
    let bench = Bench::migrated(PLAIN);
    let busy = instead(500, "{\"message\":\"device busy\"}");
    bench.always(Call::EngineRemove, busy);
    bench.started("web", &PLAIN.replace("  a:", "  extra:"), None);
    let run = bench.run("restore web --engine-only").code(1);
    run.says(&["web-extra-1 is not in the snapshot", "device busy"])
        .hides("restored web");
}

#[test]
fn b16_a_container_whose_name_is_taken_is_not_created() {
    let bench = Bench::migrated(&format!("{PLAIN}  b:\n    image: busybox:1.36\n"));
    bench.world(|world| {
        world.containers.retain(|_, one| one.name != "web-a-1");
        world.add_container("web-a-1", "x:1");
    });
    bench.succeeds(
        "restore web --dry-run --force",
        "\nNext: stacklift restore web --force\n",
    );
    let started = std::time::Instant::now();
    let differs =
        "error: the stack differs from the snapshot\nweb-a-1 is a container outside any stack\n";
    bench.fails("restore web --force", differs).hides("409");
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "it does not wait for the name"
    );
}

/// Also a restore that has nothing to do prints no command.
#[test]
fn b08_a_restore_looks_again_after_the_question() {
    let bench = Bench::migrated(HEALTH);
    let changed = "what they need changed before you answered";
    let joins = || {
        bench.world(|world| world.add_container("web-new-1", "x:1"));
        bench.change_container("web-new-1", |one| {
            let label = "com.docker.compose.project".to_owned();
            one.labels.insert(label, "web".to_owned());
        });
    };
    bench.forget_requests();
    on_terminal_after(&bench, "restore web", joins, "y\n").fails(changed);
    assert!(bench.nothing_was_changed());
    let edit = || bench.change_record(|record| record.text.push('#'));
    on_terminal_after(&bench, "restore web", edit, "y\n").fails(changed);
    on_terminal(&bench, "restore web", "y\n").succeeds("restored web");
    bench
        .succeeds("restore web --dry-run", "2 containers match the snapshot\n")
        .hides("Next");
}

#[test]
fn a_restore_says_that_only_portainer_has_the_compose_file() {
    let bench = Bench::adopted(PLAIN);
    let file = bench.root().join("web/docker-compose.yml");
    fs::remove_file(file).expect("removed");
    let only = "the Compose file exists only in Portainer; to keep it, first run: stacklift export web --to ";
    let gone = "does not exist; to write one from the containers, run: stacklift export web --to ";
    bench.succeeds("restore web --yes", &[only, gone]);
}

/// What an adoption refuses, a restore does not send.
#[test]
fn b20_a_restore_sends_no_deployment_that_fails() {
    let bench = Bench::adopted(HEALTH);
    bench.write(
        "web",
        "docker-compose.yml",
        &HEALTH.replace("  app:", "  other:\n    image: x:1\n  app:"),
    );
    bench.run("adopt web --yes").code(0);
    bench.change_container("web-db-1", |one| one.healthy_at = None);
    bench.forget_requests();
    bench.fails(
        "restore web",
        "Portainer cannot deploy the stack: web-db-1 is unhealthy\n",
    );
    assert!(bench.nothing_was_changed());
}

/// It may be a container that the restore itself has created.
#[test]
fn b20_a_restore_looks_again_before_it_sends_a_deployment() {
    let optional = HEALTH.replace("healthy}}", "healthy, required: false}}");
    for text in [HEALTH, &optional] {
        let bench = Bench::adopted(text);
        let text = text.replace("  db:", "  db:\n    stop_signal: SIGINT");
        bench.write("web", "docker-compose.yml", &text);
        bench.run("adopt web --yes").code(0);
        bench.world(|world| world.health.insert("web/db".to_owned(), None));
        bench.forget_requests();
        let why = "the Portainer stack is not restored: its deployment would fail, because web-db-1 is unhealthy\n";
        let run = bench.run("restore web").code(1);
        let is_needed = text.contains("healthy}}");
        assert_eq!(run.err.contains(why), is_needed, "{run:#?}");
        assert_eq!(bench.calls(Call::Update).is_empty(), is_needed);
    }
}
