//! B08, B28: what a restore says that it keeps, and what it says that it interrupts.

use std::fs;

use serde_json::json;
use testbed::{Call, Era, Status, World};

use crate::{
    bench::{Bench, PLAIN, instead},
    confirming::on_terminal,
};

const VOLUME: &str = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n";

/// A stack whose only container, which Portainer created, has `--rm`. Returns the bench and the name of its volume.
fn with_rm() -> (Bench, String) {
    let bench = Bench::migrated(VOLUME);
    bench.change_container("web-a-1", |one| one.host_config["AutoRemove"] = true.into());
    let volume = volume_of(&bench);
    (bench, volume)
}

/// The name of its volume.
fn volume_of(bench: &Bench) -> String {
    let mount = bench.container("web-a-1").mounts.remove(0);
    mount["Name"].as_str().expect("a volume").to_owned()
}

fn exists(bench: &Bench, volume: &str) -> bool {
    bench.world(|world| world.volume(volume).is_some())
}

#[test]
fn b28_the_volume_of_a_container_with_rm_is_kept_or_named() {
    let (bench, volume) = with_rm();
    let kept = "(/cache of web-a-1) is kept, but no restored container uses it";
    let says = [&format!("  the volume {volume} {kept}"), "restored web"];
    bench.succeeds("restore web --yes", &says);
    assert!(exists(&bench, &volume));
    // Nothing remains of what kept it.
    assert_eq!(bench.world(|world| world.containers.len()), 1);

    let (bench, volume) = with_rm();
    // The engine does not create what would keep it.
    let created = instead(201, r#"{"Id":"0123456789ab"}"#);
    bench.once(Call::EngineCreate, created);
    let says = ["was to be kept, but no longer exists", &volume];
    let run = bench.fails("restore web --yes", &says);
    run.hides("restored web");
    assert!(!exists(&bench, &volume));
}

#[test]
fn volumes_that_an_adoption_named_are_mounted_again_if_the_containers_were_removed() {
    let bench = Bench::web(VOLUME);
    let volume = || volume_of(&bench);
    let before = volume();
    bench.run("adopt web --yes").code(0);
    assert_eq!(volume(), before);
    for is_deleted in [false, true, true] {
        bench.world(|world| {
            world.containers.clear();
            if is_deleted {
                world.records.clear();
            }
        });
        bench.run("adopt web --yes").code(0);
        assert_eq!(volume(), before, "{is_deleted}");
    }
    bench.world(|world| world.containers.clear());
    bench.started("web", VOLUME, None);
    let lost =
        format!("nothing mounts the volume {before} any more, which was named for /cache of a");
    let left = format!("Adopting it loses:\n  stack  {lost}");
    bench.run("plan web").says(&left);
    // A service of another name gets another volume, too.
    bench.world(|world| world.containers.clear());
    bench.stack("web", &VOLUME.replace("  a:", "  b:"), None);
    bench.run("plan web --leave-orphans").says(&left);
    // Without a state directory, only Portainer's copy tells.
    bench.stack("web", VOLUME, None);
    fs::remove_dir_all(bench.state()).expect("a directory");
    bench.succeeds("adopt web --overwrite", &lost);
}

#[test]
fn no_service_that_an_adoption_starts_has_an_anonymous_volume() {
    let bench = Bench::new();
    let forget = |world: &mut World| {
        world.containers.clear();
        world.volumes.clear();
    };
    bench.started("web", VOLUME, None);
    bench.world(forget);
    let start = "  +  a  has no container yet and will be started";
    bench.run("plan web").says(&[start, "in 3 lines"]);
    bench.succeeds("adopt web", "a was started");
    let volumes = || bench.world(|world| world.volumes.clone());
    let created = volumes();
    let name = created[0]["Name"].as_str().expect("a name");
    bench.run("plan web").says("web is up to date in Portainer");
    // A stop in Portainer removes the container.
    bench.world(|world| world.containers.clear());
    let again = format!("{start}, with the existing volume {name:.12} at /cache");
    bench.run("plan web").says(&[&again, "loses nothing"]);
    bench.run("adopt web").code(0);
    assert_eq!(volumes(), created);
    // What cannot be named blocks nothing, and stops no other service. Compose writes out a shared list.
    let two = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n    scale: 2\n  b:\n    image: busybox:1.36\n    volumes: &all [/one]\n  c:\n    image: busybox:1.36\n    volumes: *all\n  d:\n    image: busybox:1.36\n    volumes: [/own]\n";
    bench.started("two", two, None);
    bench.world(forget);
    let unnamed = "the anonymous volumes of a get no names";
    bench.succeeds("adopt two", unnamed);
    let says = ["two is up to date in Portainer", unnamed];
    bench.succeeds("plan two", &says);
    let sent = bench.world(|world| world.records.values().last().map(|one| one.text.clone()));
    let sent = sent.expect("a record");
    assert!(
        ["b-one", "c-one", "d-own"]
            .iter()
            .all(|volume| sent.contains(volume)),
        "{sent}"
    );
}

#[test]
fn a_volume_of_volumes_from_that_gets_no_name_is_not_named_later() {
    let scaled = "[/cache]\n    scale: 2\n";
    let shared = "&all [/cache]\n  c:\n    image: busybox:1.36\n    volumes: *all\n";
    for volumes in [scaled, shared] {
        let bench = Bench::new();
        let heir = "  b:\n    image: busybox:1.36\n    volumes_from: [a]\n";
        let text =
            format!("services:\n  a:\n    image: busybox:1.36\n    volumes: {volumes}{heir}");
        bench.stack("web", &text, None);
        bench.world(|world| world.add_image("busybox:1.36"));
        bench.run("adopt web").code(0);
        bench.succeeds("plan web", "web is up to date in Portainer");
    }
}

#[test]
fn a_mount_that_was_removed_stays_until_it_is_removed_in_portainer_too() {
    let bench = Bench::new();
    let of = |volumes: &str| {
        format!("services:\n  a:\n    image: busybox:1.36\n    volumes:\n{volumes}")
    };
    bench.started("web", &of("      - /a\n      - /b\n"), None);
    bench.run("adopt web").code(0);
    bench.stack("web", &of("      - /a\n"), None);
    bench.run("adopt web").code(0);
    let mut record = bench.first_record();
    assert!(record.text.contains("\"a-b:/b\""), "{}", record.text);
    let lines = record.text.lines().filter(|line| !line.contains("\"a-b"));
    record.text = lines.collect::<Vec<_>>().join("\n") + "\n";
    bench.update_in_portainer(&record);
    bench.succeeds("plan web", "web is up to date in Portainer");
}

#[test]
fn b16_a_volume_that_only_the_old_portainer_stack_names_must_exist() {
    let bench = Bench::new();
    let with = "services:\n  a: {image: 'busybox:1.36', volumes: ['cache:/cache']}\nvolumes:\n  cache: {external: true, name: old}\n";
    bench.started("other", &with.replace("external: true, ", ""), None);
    bench.started("web", with, None);
    bench.run("adopt web").code(0);
    bench.world(|world| world.containers.clear());
    bench.started("web", PLAIN, None);
    bench.run("adopt web --yes").code(0);
    bench.world(|world| world.volumes.clear());
    bench.forget_requests();
    let says = "Portainer's Compose file in the snapshot needs volume old, which no longer exists";
    bench.stops("restore web --yes", says);
    let created = "warning: volume old was created empty";
    bench.succeeds("restore web --force", &[created, "restored web"]);
}

/// Nobody asked for the restore: what ran comes back, although Portainer cannot deploy its old Compose file.
#[test]
fn b16_what_a_failed_adoption_changed_is_restored_without_such_a_volume() {
    let bench = Bench::of(Era::Async);
    let external =
        "    volumes: ['cache:/cache']\nvolumes:\n  cache: {external: true, name: old}\n";
    let other = external.replace("external: true, ", "");
    bench.started("other", &format!("{PLAIN}{other}"), None);
    bench.started("web", &format!("{PLAIN}{external}"), None);
    bench.run("adopt web").code(0);
    bench.world(|world| world.containers.clear());
    bench.started("web", PLAIN, None);
    bench.stack("web", &format!("{PLAIN}    hostname: new\n"), None);
    bench.world(|world| {
        world.volumes.clear();
        world.exits.insert("web/a".to_owned(), 127)
    });
    // What the restore creates runs.
    bench.world_with(Call::EngineCreate, |world| world.exits.clear());
    bench.fails("adopt web", "external volume \"old\" not found");
    assert_eq!(bench.container("web-a-1").state, "running");
}

#[test]
fn b08_a_restore_that_lets_portainer_deploy_does_not_say_that_containers_match() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: busybox:1.36\n    environment: {A: '${A}'}\n";
    bench.started("web", text, Some("A=1\n"));
    bench.run("adopt web").code(0);
    bench.started("web", text, Some("A=2\n"));
    bench.run("adopt web --yes").code(0);
    let ids = bench.containers("web");
    bench.forget_requests();
    let said = "a may be recreated, when Portainer deploys the stack";
    on_terminal(&bench, "restore web", "n\n")
        .fails(&[said, "[y/N]", "Canceled"])
        .hides("matches the snapshot");
    assert!(bench.nothing_was_changed());
    assert_eq!(bench.containers("web"), ids);
    let says = [said, "restored web: 1 container matches the snapshot"];
    bench.succeeds("restore web --yes", &says);
    assert_ne!(bench.containers("web"), ids);
}

#[test]
fn a_restore_of_an_update_keeps_what_portainer_deployed() {
    let two = format!("{PLAIN}  b:\n    image: busybox:1.36\n");
    let bench = Bench::adopted(&two);
    bench.stack("web", &two.replace("1000", "1"), None);
    bench.run("adopt web --yes").code(0);
    let said = "a is removed and recreated (down for up to 10 s, plus its start); b is kept, unless Portainer was updated since then\n";
    bench.succeeds("restore web --dry-run", said);
}

#[test]
fn b42_a_restore_says_that_it_starts_what_was_stopped_since() {
    let two = "services:\n  a:\n    image: busybox:1.36\n    command: sleep 1000\n  b:\n    image: busybox:1.36\n    command: sleep 1000\n";
    let bench = Bench::adopted(two);
    bench.stack("web", &two.replace("1000", "1"), None);
    bench.run("adopt web --yes").code(0);
    bench.world(|world| world.stop_by_hand("web-b-1"));
    let said = "a and b are removed and recreated (down for up to 10 s, plus their start); b is stopped now, and will be started\n";
    bench.succeeds("restore web --dry-run", said);
}

#[test]
fn b08_a_restore_names_the_containers_that_it_only_stops_or_starts() {
    let two = "services:\n  a:\n    image: busybox:1.36\n  b:\n    image: busybox:1.36\n";
    let bench = Bench::web(two);
    bench.world(|world| world.stop_by_hand("web-b-1"));
    bench.run("web").code(0);
    bench.run("restore web --yes").code(0);
    bench.change_container("web-b-1", |one| "running".clone_into(&mut one.state));
    let stops = "  b is stopped\n  1 container matches the snapshot\n";
    on_terminal(&bench, "restore web", "n\n").fails(&[stops, "[y/N]"]);
    on_terminal(&bench, "restore web", "y\n")
        .succeeds("restored web: 2 containers match the snapshot (1 running)");
    on_terminal(&bench, "restore web", "")
        .succeeds("web is as it was: 2 containers match the snapshot (1 running)")
        .hides("[y/N]");
}

#[test]
fn b08_an_update_of_a_portainer_stack_in_error_says_that_it_removes_every_container() {
    let bench = Bench::of(Era::Async);
    bench.started("web", PLAIN, None);
    bench.run("adopt web").code(0);
    bench.write("web", "docker-compose.yml", &format!("# changed\n{PLAIN}"));
    bench.run("adopt web --yes").code(0);
    bench.change_record(|record| record.status = Status::Error);
    let says = "  the Portainer stack gets its Compose file and variables back; a is removed and recreated";
    let run = bench.succeeds("restore web --yes", &[says, "restored web"]);
    run.hides("\n  1 container matches");
}

#[test]
fn b17_a_restore_names_what_the_portainer_stack_loses() {
    let bench = Bench::adopted(PLAIN);
    let update = json!({"Interval": "5m", "Webhook": "0d0b5d5e"});
    bench.change_record(|record| record.auto_update = Some(update));
    let lost =
        "  lost: the Portainer stack's automatic update\n  lost: the Portainer stack's webhook\n";
    bench.succeeds("restore web --yes", lost);
}
