use serde_json::json;

use crate::plan::{
    Refusal, Removal,
    tests::{World, container, other, world},
};
use crate::{
    model::{Change, ChangeKind, Changes},
    snapshot::Known,
};

const PLAIN: &str = "services:\n  web:\n    image: x\n";

/// The losses of one container `web-web-1` with `value` at a JSON pointer.
fn lost(compose: &str, pointer: &str, value: serde_json::Value) -> Vec<String> {
    let mut world = world(compose);
    set(&mut world, 0, pointer, value);
    world.losses()
}

/// Sets a member of an object, which may be new.
fn set(world: &mut World, index: usize, pointer: &str, value: serde_json::Value) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = world.containers[index].pointer_mut(parent);
    parent.expect("an object")[key.replace("~1", "/")] = value;
}

#[test]
fn b01_containers_that_are_killed() {
    let mut world = world(PLAIN);
    world.removal = Removal::Kill;
    assert_eq!(
        world.losses(),
        ["1 running container will be stopped with SIGKILL, without time to shut down"]
    );
    set(&mut world, 0, "/State/Running", json!(false));
    set(&mut world, 0, "/State/Status", json!("exited"));
    assert_eq!(
        world.losses(),
        ["web-web-1: it is stopped (exited) and will be started"]
    );
}

#[test]
fn b01_anonymous_volumes() {
    let volume = "0a".repeat(32);
    let mounts = json!([
        {"Type": "volume", "Name": volume, "Destination": "/data"},
        {"Type": "volume", "Name": "web_named", "Destination": "/named"},
        {"Type": "bind", "Source": "/s", "Destination": "/bind"},
    ]);
    let compose = "
services:
  web:
    image: x
    volumes: ['named:/named', '/s:/bind', /data]
volumes: {named: {}}
";
    let mut world = world(compose);
    set(&mut world, 0, "/Mounts", mounts);
    assert_eq!(
        world.losses(),
        [format!(
            "web-web-1: the anonymous volume at /data will be replaced by an empty one; its data stays in volume {volume}"
        )]
    );
    set(&mut world, 0, "/HostConfig/AutoRemove", json!(true));
    assert_eq!(
        world.losses(),
        [
            "web-web-1: the anonymous volume at /data may be deleted with its data: the container was started with --rm"
        ]
    );
}

#[test]
fn b01_files_in_the_containers_own_layer() {
    let compose = "
services:
  web:
    image: x
    configs: [{source: site, target: /etc/site}]
    volumes: ['/s:/mnt/dir']
configs:
  site: {content: x}
";
    let mut world = world(compose);
    set(
        &mut world,
        0,
        "/Mounts",
        json!([{"Type": "bind", "Source": "/s", "Destination": "/mnt/dir"}]),
    );
    let mut changes = Changes::default();
    let names = ["a", "b", "c", "d", "e", "f"].map(|name| format!("/var/db/{name}"));
    let made = ["/var", "/var/db", "/mnt", "/mnt/dir", "/etc", "/etc/site"].map(str::to_owned);
    for path in made.into_iter().chain(names) {
        changes.add(Change {
            path,
            kind: ChangeKind::Added,
        });
    }
    let id = world.containers[0]["Id"]
        .as_str()
        .expect("an ID")
        .to_owned();
    world.changes.insert(id.clone(), Known::Known(changes));
    assert_eq!(
        world.losses(),
        [
            "web-web-1: files written inside the container: /var/db/a, /var/db/b, /var/db/c, /var/db/d, /var/db/e and 1 more"
        ]
    );
    world
        .changes
        .insert(id, Known::Unknown("timed out".to_owned()));
    assert_eq!(
        world.plan().warnings,
        ["cannot list the files written inside web-web-1: they will be lost (timed out)"]
    );
}

#[test]
fn b01_variables_of_another_shell() {
    let compose = "
services:
  web:
    image: x
    environment:
      KEPT: ${KEPT}
      TAG: ${TAG:-none}
      BARE:
      NUMBER: 1e3
      HERE: ${HOME}
";
    let mut world = world(compose);
    world.env = Some("KEPT=yes\n".to_owned());
    let env = json!([
        "PATH=/bin",
        "VERSION=2",
        "KEPT=yes",
        "TAG=secret-1",
        "BARE=secret-2",
        "NUMBER=1000",
        "HERE=/root",
        "SHELL_ONLY=secret-3"
    ]);
    set(&mut world, 0, "/Config/Env", env);
    let losses = world.losses();
    assert_eq!(
        losses,
        [
            "web-web-1: these variables will no longer be set: BARE, SHELL_ONLY",
            "web-web-1: these variables will have different values: VERSION, TAG",
            "service web: services.web.environment.HERE will have a different value, because of HOME",
        ]
    );
    world.images.clear();
    assert_eq!(
        world.losses()[0],
        "web-web-1: these variables will have different values: TAG"
    );
    assert_eq!(
        world.plan().warnings,
        ["cannot inspect the image of web-web-1: the variables that it will lose are unknown"]
    );
}

#[test]
fn b01_variables_of_an_env_file_are_named_once() {
    let compose = "services:\n  web:\n    image: x\n    env_file: .env\n";
    let mut world = world(compose);
    world.env = Some("A=1\n".to_owned());
    set(
        &mut world,
        0,
        "/Config/Env",
        json!(["PATH=/bin", "VERSION=1", "A=1", "B=2"]),
    );
    assert_eq!(
        world.losses(),
        [
            "web-web-1: these variables will no longer be set: B",
            "service web: these variables of .env will no longer be set: A",
        ]
    );
}

#[test]
fn b01_containers_that_the_text_does_not_start() {
    let compose = "
services:
  web:
    image: x
  tool:
    image: x
    profiles: [tools]
";
    let mut world = world(compose);
    world.containers.extend([
        container("web-web-2", "web"),
        container("web-web-10", "web"),
        container("web-tool-1", "tool"),
        container("web-gone-1", "gone"),
        container("web-web-run-1", "web"),
    ]);
    let pointer = "/Config/Labels/com.docker.compose.oneoff";
    set(&mut world, 5, pointer, json!("True"));
    // A container that is not recreated is not compared.
    set(&mut world, 2, "/HostConfig/Memory", json!(1));
    assert_eq!(
        world.losses(),
        [
            "service web: 3 containers will be reduced to 1",
            "web-gone-1: it will be removed and not recreated: the Compose file has no service gone",
            "web-tool-1: it will be removed and not recreated: no profile of service tool is active in Portainer",
            "web-web-run-1: it will be removed and not recreated: it is a one-off container of `compose run`",
        ]
    );
    world.env = Some("COMPOSE_PROFILES=tools\n".to_owned());
    world.compose = compose.replacen("image: x\n", "image: x\n    deploy: {replicas: 3}\n", 1);
    world.containers.truncate(4);
    set(&mut world, 2, "/HostConfig/Memory", json!(0));
    assert_eq!(world.losses(), [""; 0]);
}

#[test]
fn b01_networks_and_aliases() {
    let networks = json!({
        "web_default": {"Aliases": ["web-web-1", "web", "extra"]},
        "monitoring": {"Aliases": []},
    });
    assert_eq!(
        lost(PLAIN, "/NetworkSettings/Networks", networks.clone()),
        [
            "web-web-1: it will no longer have these aliases in network web_default: extra",
            "web-web-1: it will no longer be connected to network monitoring",
        ]
    );
    let compose = "
services:
  web:
    image: x
    networks:
      default: {aliases: [extra]}
      outer:
networks:
  outer: {external: true, name: monitoring}
";
    let lost = lost(compose, "/NetworkSettings/Networks", networks);
    assert_eq!(lost, [""; 0]);
}

#[test]
fn b01_a_container_with_another_name_than_its_successor() {
    let told = |compose: &str, name: &str| {
        let mut losses = lost(compose, "/Name", json!(name));
        losses.retain(|loss| loss.contains("name will be"));
        losses
    };
    let named = format!("{PLAIN}    container_name: front\n");
    for (compose, name) in [(PLAIN, "/web-web-1"), (&named, "/front")] {
        assert_eq!(told(compose, name), [""; 0]);
    }
    assert_eq!(
        told(PLAIN, "/web_web_1"),
        ["web_web_1: its name will be web-web-1"]
    );
    assert_eq!(
        lost(PLAIN, "/Name", json!("/web_web_1")).len(),
        1,
        "the alias stays"
    );
    assert_eq!(
        told(&named, "/web-web-1"),
        ["web-web-1: its name will be front"]
    );
}

#[test]
fn b01_a_hostname_is_no_lost_alias() {
    let mut world = world(&format!("{PLAIN}    hostname: front\n"));
    set(&mut world, 0, "/Config/Hostname", json!("front"));
    set(
        &mut world,
        0,
        "/NetworkSettings/Networks/web_default/Aliases",
        json!(["web-web-1", "web", "front"]),
    );
    assert_eq!(world.losses(), [""; 0]);
}

#[test]
fn b01_limits_of_docker_update() {
    let host = json!({
        "Memory": 536_870_912, "MemorySwap": 1_073_741_824_u64, "NanoCpus": 500_000_000,
        "PidsLimit": 100, "CpuShares": 0, "CpusetCpus": "", "CpusetMems": "0",
        "KernelMemory": 0, "CpuRealtimePeriod": 0, "CpuRealtimeRuntime": 1000,
        "RestartPolicy": {"Name": "always", "MaximumRetryCount": 0},
    });
    assert_eq!(
        lost(PLAIN, "/HostConfig", host.clone()),
        [
            "web-web-1: these settings differ from the Compose file and will be reset: memory limit, CPU limit, memory nodes, CPU real-time runtime, process limit, restart policy"
        ]
    );
    let same = "
services:
  web:
    image: x
    restart: always
    mem_limit: 512m
    cpu_rt_runtime: 1000
    deploy: {resources: {limits: {cpus: '0.5', pids: 100}}}
";
    let mut host = host;
    host["CpusetMems"] = json!("");
    assert_eq!(lost(same, "/HostConfig", host.clone()), [""; 0]);
    let other = same.replace("512m", "1g").replace("always", "'no'");
    assert_eq!(
        lost(&other, "/HostConfig", host),
        [
            "web-web-1: these settings differ from the Compose file and will be reset: memory limit, restart policy"
        ]
    );
}

#[test]
fn b01_restart_policies() {
    for (given, name, attempts, is_lost) in [
        ("restart: on-failure:3", "on-failure", 3, false),
        ("restart: on-failure", "on-failure", 3, true),
        ("restart: unless-stopped", "unless-stopped", 0, false),
        ("restart: ${UNSET:-always}", "always", 0, false),
        ("restart: ${HOSTNAME}", "always", 0, false),
        (
            "deploy: {restart_policy: {condition: any}}",
            "always",
            0,
            false,
        ),
        ("deploy: {restart_policy: {condition: any}}", "no", 0, true),
        (
            "deploy: {restart_policy: {condition: on-failure, max_attempts: 3}}",
            "on-failure",
            3,
            false,
        ),
        ("deploy: {restart_policy: {delay: 5s}}", "any", 0, false),
        ("tty: true", "always", 0, true),
    ] {
        let compose = format!("{PLAIN}    {given}\n");
        let policy = json!({"Name": name, "MaximumRetryCount": attempts});
        let losses = lost(&compose, "/HostConfig/RestartPolicy", policy);
        assert_eq!(
            losses.iter().any(|loss| loss.ends_with("restart policy")),
            is_lost,
            "{given} {name}: {losses:?}"
        );
    }
}

#[test]
fn b01_paused_containers_and_other_images() {
    let mut world = world(PLAIN);
    set(&mut world, 0, "/State/Paused", json!(true));
    set(&mut world, 0, "/Image", json!("sha256:old"));
    let old = world.images["sha256:x"].clone();
    world.images.insert("sha256:old".to_owned(), old);
    assert_eq!(
        world.losses(),
        [
            "web-web-1: it is paused and will run afterwards",
            "web-web-1: it will be recreated from a different image: x no longer refers to the image that it runs",
        ]
    );
}

#[test]
fn b01_directories_and_projects() {
    let mut world = world(PLAIN);
    let label = "/Config/Labels/com.docker.compose.project.working_dir";
    set(&mut world, 0, label, json!("/srv/web"));
    let mut beside = other("prod-web-1", "x", &[]);
    for (name, value) in [("project", "prod"), ("project.working_dir", "/s/web/")] {
        let label = format!("com.docker.compose.{name}");
        beside.labels.insert(label, value.to_owned());
    }
    let mut stopped = beside.clone();
    stopped.state = "exited".to_owned();
    world.others = vec![beside, stopped];
    assert_eq!(
        world.losses(),
        [
            "web-web-1: it was started from another directory: /srv/web",
            "project prod was started from this directory and will keep running next to the new containers: prod-web-1",
        ]
    );
    // A symbolic link to the stack's directory.
    set(&mut world, 0, label, json!("/link"));
    assert_eq!(world.losses().len(), 1);
    world.others[0].labels.insert(
        "com.docker.compose.project.working_dir".to_owned(),
        "/link".to_owned(),
    );
    assert_eq!(world.losses().len(), 1);
}

#[test]
fn b10_containers_that_portainer_adopts_are_not_removed_here() {
    let mut world = world("services:\n  web:\n    image: x\n");
    world.name = "Web";
    world.removal = Removal::Kill;
    let volume = "0a".repeat(32);
    let mounts = json!([{"Type": "volume", "Name": volume, "Destination": "/data"}]);
    set(&mut world, 0, "/Mounts", mounts);
    set(&mut world, 0, "/HostConfig/Memory", json!(1));
    world.containers.extend([
        container("web-web-2", "web"),
        container("web-gone-1", "gone"),
        container("web-web-run-1", "web"),
    ]);
    let pointer = "/Config/Labels/com.docker.compose.oneoff";
    set(&mut world, 3, pointer, json!("True"));
    assert_eq!(
        world.losses(),
        [
            "project web has 4 containers, which Portainer adopts: it recreates each one whose configuration differs, and may remove all of them if the create fails".to_owned(),
            "service web: 2 containers will be reduced to 1".to_owned(),
            "web-gone-1: it is kept as an orphan: the Compose file has no service gone".to_owned(),
            "web-web-1: if it is recreated: these settings differ from the Compose file and will be reset: memory limit".to_owned(),
            format!("web-web-1: if it is recreated, a newer Portainer (2.45) replaces the anonymous volume at /data by an empty one; its data stays in volume {volume}"),
            "web-web-run-1: it is kept: it is a one-off container of `compose run`".to_owned(),
        ]
    );
    // Compose cannot start a paused container: the create would fail.
    set(&mut world, 0, "/State/Paused", json!(true));
    let refusals = world.plan().refusals;
    assert!(
        matches!(&refusals[..], [Refusal::Paused(names)] if names == &["web-web-1"]),
        "{refusals:?}"
    );
    // One of the stack's own name is removed as always.
    let pointer = "/Config/Labels/com.docker.compose.project";
    set(&mut world, 1, pointer, json!("Web"));
    assert_eq!(
        world.losses()[0],
        "1 running container will be stopped with SIGKILL, without time to shut down"
    );
}

#[test]
fn b06_what_does_not_start_or_is_not_healthy_now_may_fail_again() {
    let compose = "
services:
  web:
    image: x
  a:
    image: x
    depends_on: {web: {condition: service_healthy}}
  b:
    image: x
    depends_on: {web: {condition: service_completed_successfully}}
  c:
    image: x
    depends_on: {web: {condition: service_healthy, required: false}}
  d:
    image: x
    depends_on: [web]
";
    let mut world = world(compose);
    let none: [String; 0] = [];
    assert_eq!(world.plan().warnings, none);
    set(
        &mut world,
        0,
        "/State/Health",
        json!({"Status": "unhealthy"}),
    );
    assert_eq!(
        world.plan().warnings,
        ["the create may fail: service a depends on web-web-1, which is unhealthy"]
    );
    for (pointer, value) in [
        ("/State/Health", json!(null)),
        ("/State/Running", json!(false)),
        ("/State/Status", json!("exited")),
        ("/State/ExitCode", json!(128)),
        ("/State/Error", json!("port is already allocated")),
    ] {
        set(&mut world, 0, pointer, value);
    }
    assert_eq!(
        world.plan().warnings,
        [
            "the create may fail: web-web-1 failed to start the last time",
            "the create may fail: service b depends on web-web-1, which exited with code 128",
        ]
    );
}
