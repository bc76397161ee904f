use serde_json::json;

use crate::{
    model::{Change, ChangeKind, Changes},
    plan::tests::{World, container, other, world},
    snapshot::Known,
};

const PLAIN: &str = "services:\n  web:\n    image: x\n";

/// One container `web-web-1` with `value` at a JSON pointer.
fn with(compose: &str, pointer: &str, value: serde_json::Value) -> World {
    let mut world = world(compose);
    world.set(0, pointer, value);
    world
}

#[test]
fn b01_containers_that_are_killed() {
    let mut world = world(PLAIN);
    let says = "1 running container will be stopped with SIGKILL, without time to shut down (to avoid this, run `docker compose stop` first)";
    let plan = world.with_facts(crate::plan::migration);
    assert_eq!(plan.losses[0].to_string(), says);
    world.set(0, "/State/Running", json!(false));
    world.set(0, "/State/Status", json!("exited"));
    world.loses(["web-web-1: is stopped and will be started"]);
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
    world.set(0, "/Mounts", mounts);
    world.loses([format!(
        "web-web-1: the anonymous volume at /data is replaced with an empty one; its data stays in volume {volume}"
    )]);
    world.set(0, "/HostConfig/AutoRemove", json!(true));
    world.loses([
        "web-web-1: the anonymous volume at /data may be deleted with its data: the container was started with --rm",
    ]);
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
    let mount = json!({"Type": "bind", "Source": "/s", "Destination": "/mnt/dir"});
    world.set(0, "/Mounts", json!([mount]));
    let mut changes = Changes::default();
    let names = ["a", "b", "c", "d", "e", "f"].map(|name| format!("/var/db/{name}"));
    let made = ["/var", "/var/db", "/mnt", "/mnt/dir", "/etc", "/etc/site"].map(str::to_owned);
    for path in made.into_iter().chain(names) {
        changes.add(Change {
            path,
            kind: ChangeKind::Added,
        });
    }
    let id = format!("{:0<64}", "web-web-1");
    world.changes.insert(id.clone(), Known::Known(changes));
    world.loses([
        "web-web-1: files written inside the container: /var/db/a, /var/db/b, /var/db/c, /var/db/d, /var/db/e and 1 more",
    ]);
    let mut deleted = Changes::default();
    let kinds = [
        ("/bin/nc", ChangeKind::Deleted),
        ("/own", ChangeKind::Added),
    ];
    for (path, kind) in kinds {
        let path = path.to_owned();
        deleted.add(Change { path, kind });
    }
    world.changes.insert(id.clone(), Known::Known(deleted));
    world.loses([
        "web-web-1: files written inside the container: /own; the deletion of files of the image: /bin/nc",
    ]);
    let unknown = Known::Unknown("timed out".to_owned());
    world.changes.insert(id, unknown);
    world.warns(["cannot list the files written inside web-web-1: they will be lost (timed out)"]);
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
    let env = "PATH=/bin VERSION=2 KEPT=yes TAG=secret-1 BARE=secret-2 NUMBER=1000 HERE=/root SHELL_ONLY=secret-3";
    world.set(0, "/Config/Env", env.split(' ').collect());
    world.loses([
        "web-web-1: variables no longer set: BARE, SHELL_ONLY",
        "web-web-1: variables with another value: VERSION, TAG",
        "service web: variables with another value: HERE",
    ]);
    world.images.clear();
    let expected = "web-web-1: variables with another value: TAG";
    assert_eq!(world.losses()[0], expected);
    world.warns([
        "cannot inspect the image of web-web-1: the variables that it will lose are unknown",
    ]);
}

#[test]
fn b01_variables_of_an_env_file_are_named_once() {
    let compose = "services:\n  web:\n    image: x\n    env_file: .env\n";
    let mut world = world(compose);
    world.env = Some("A=1\n".to_owned());
    let env = json!(["PATH=/bin", "VERSION=1", "A=1", "B=2"]);
    world.set(0, "/Config/Env", env);
    world.loses([
        "web-web-1: variables no longer set: B",
        "service web: variables no longer set: A",
    ]);
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
    world.set(5, pointer, json!("True"));
    // A container that is not recreated is not compared.
    world.set(2, "/HostConfig/Memory", json!(1));
    world.loses([
        "service web: 3 containers will be reduced to 1",
        "web-gone-1: removed and not recreated: the Compose file has no service gone",
        "web-tool-1: removed and not recreated: no profile of service tool is active in Portainer",
        "web-web-run-1: removed and not recreated: it was started by `compose run`",
    ]);
    world.env = Some("COMPOSE_PROFILES=tools\n".to_owned());
    world.compose = compose.replacen("image: x\n", "image: x\n    deploy: {replicas: 3}\n", 1);
    world.containers.truncate(4);
    world.set(2, "/HostConfig/Memory", json!(0));
    world.loses([""; 0]);
}

#[test]
fn b01_networks_and_aliases() {
    let networks = json!({
        // One is the short ID of the container before *Recreate* in Portainer.
        "web_default": {"Aliases": ["web-web-1", "web", "extra", "0a1b2c3d4e5f"]},
        "monitoring": {"Aliases": []},
    });
    let pointer = "/NetworkSettings/Networks";
    with(PLAIN, pointer, networks.clone()).loses([
        "web-web-1: no longer has these aliases in network web_default: extra",
        "web-web-1: no longer connected to network monitoring",
    ]);
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
    with(compose, pointer, networks).loses([""; 0]);
}

#[test]
fn b01_a_container_with_another_name_than_its_successor() {
    let told = |compose: &str, name: &str| {
        let mut losses = with(compose, "/Name", json!(name)).losses();
        losses.retain(|loss| loss.contains("renamed to"));
        losses
    };
    let named = format!("{PLAIN}    container_name: front\n");
    for (compose, name) in [(PLAIN, "/web-web-1"), (&named, "/front")] {
        assert_eq!(told(compose, name), [""; 0]);
    }
    let renamed = with(PLAIN, "/Name", json!("/web_web_1"));
    renamed.loses(["web_web_1: renamed to web-web-1"]);
    let told = told(&named, "/web-web-1");
    assert_eq!(told, ["web-web-1: renamed to front"]);
}

#[test]
fn b01_a_hostname_is_no_lost_alias() {
    let mut world = world(&format!("{PLAIN}    hostname: front\n"));
    world.set(0, "/Config/Hostname", json!("front"));
    let pointer = "/NetworkSettings/Networks/web_default/Aliases";
    world.set(0, pointer, json!(["web-web-1", "web", "front"]));
    world.loses([""; 0]);
}

#[test]
fn b01_limits_of_docker_update() {
    let host = json!({
        "Memory": 536_870_912, "MemorySwap": 1_073_741_824_u64, "NanoCpus": 500_000_000,
        "PidsLimit": 100, "CpuShares": 0, "CpusetCpus": "", "CpusetMems": "0",
        "KernelMemory": 0, "CpuRealtimePeriod": 0, "CpuRealtimeRuntime": 1000,
        "RestartPolicy": {"Name": "always", "MaximumRetryCount": 0},
    });
    with(PLAIN, "/HostConfig", host.clone()).loses([
        "web-web-1: settings reset to those of the Compose file: memory limit, CPU limit, memory nodes, CPU real-time runtime, process limit, restart policy",
    ]);
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
    with(same, "/HostConfig", host.clone()).loses([""; 0]);
    let other = same.replace("512m", "1g").replace("always", "'no'");
    with(&other, "/HostConfig", host).loses([
        "web-web-1: settings reset to those of the Compose file: memory limit, restart policy",
    ]);
}

#[test]
fn b01_logging_swappiness_and_ipc_mode() {
    let host = |driver: &str, ipc: &str| json!({ "LogConfig": {"Type": driver}, "MemorySwappiness": 10, "IpcMode": ipc });
    let says = |settings: &str| {
        format!("web-web-1: settings reset to those of the Compose file: {settings}")
    };
    let of = |compose, driver, ipc| with(compose, "/HostConfig", host(driver, ipc));
    of(PLAIN, "none", "host").loses([says("memory swappiness, logging, IPC mode")]);
    // The default log driver is not known.
    of(PLAIN, "local", "shareable").loses([says("memory swappiness")]);
    let other = format!("{PLAIN}    logging: {{driver: syslog}}\n    mem_swappiness: 10\n");
    let mut world = of(&other, "local", "shareable");
    world.loses([says("logging")]);
    // Another container shows the default IPC mode.
    world.compose.push_str("  db: {image: x}\n");
    world.containers.push(container("web-db-1", "db"));
    world.set(1, "/HostConfig/IpcMode", json!("private"));
    world.loses([says("logging, IPC mode")]);
    let same = other.replace("image: x", "image: x\n    ipc: shareable");
    of(&same, "syslog", "shareable").loses([""; 0]);
}

#[test]
fn b01_restart_policies() {
    let any = "deploy: {restart_policy: {condition: any}}";
    let on_failure = "deploy: {restart_policy: {condition: on-failure, max_attempts: 3}}";
    for (given, name, attempts, is_lost) in [
        ("restart: on-failure:3", "on-failure", 3, false),
        ("restart: on-failure", "on-failure", 3, true),
        ("restart: unless-stopped", "unless-stopped", 0, false),
        ("restart: ${UNSET:-always}", "always", 0, false),
        (any, "always", 0, false),
        (any, "no", 0, true),
        (on_failure, "on-failure", 3, false),
        ("deploy: {restart_policy: {delay: 5s}}", "any", 0, false),
        ("tty: true", "always", 0, true),
    ] {
        let compose = format!("{PLAIN}    {given}\n");
        let policy = json!({"Name": name, "MaximumRetryCount": attempts});
        let losses = with(&compose, "/HostConfig/RestartPolicy", policy).losses();
        let found = losses.iter().any(|loss| loss.ends_with("restart policy"));
        assert_eq!(found, is_lost, "{given} {name}: {losses:?}");
    }
}

#[test]
fn b01_paused_containers_and_other_images() {
    let mut world = world(PLAIN);
    world.set(0, "/State/Paused", json!(true));
    world.set(0, "/Image", json!("sha256:old"));
    let old = world.images["sha256:x"].clone();
    world.images.insert("sha256:old".to_owned(), old);
    world.loses([
        "web-web-1: is paused and will run afterwards",
        "web-web-1: x is now a different image",
    ]);
}

#[test]
fn b01_directories_and_projects() {
    let mut world = world(PLAIN);
    let label = "/Config/Labels/com.docker.compose.project.working_dir";
    world.set(0, label, json!("/srv/web"));
    let mut beside = other("prod-web-1", "x", &[]);
    for (name, value) in [("project", "prod"), ("project.working_dir", "/s/web/")] {
        beside["Config"]["Labels"][format!("com.docker.compose.{name}")] = json!(value);
    }
    let mut stopped = beside.clone();
    stopped["State"] = json!({"Status": "exited"});
    world.others = vec![beside, stopped];
    world.loses([
        "web-web-1: it was started from another directory: /srv/web",
        "project prod was started from this directory and will keep running next to the new containers: prod-web-1",
    ]);
    // A symbolic link to the stack's directory.
    let of_other = label.trim_start_matches("/Config/Labels/");
    world.others[0]["Config"]["Labels"][of_other] = json!("/link");
    assert_eq!(world.losses().len(), 2);
    // Both projects are from there.
    world.set(0, label, json!("/link"));
    assert_eq!(world.losses().len(), 0);
}

#[test]
fn b10_containers_that_portainer_adopts_are_not_removed_here() {
    let mut world = world("services:\n  web:\n    image: x\n");
    world.name = "Web";
    let volume = "0a".repeat(32);
    let mounts = json!([{"Type": "volume", "Name": volume, "Destination": "/data"}]);
    world.set(0, "/Mounts", mounts);
    world.set(0, "/HostConfig/Memory", json!(1));
    world.containers.extend([
        container("web-web-2", "web"),
        container("web-gone-1", "gone"),
        container("web-web-run-1", "web"),
    ]);
    let pointer = "/Config/Labels/com.docker.compose.oneoff";
    world.set(3, pointer, json!("True"));
    world.loses([
        "project web has 4 containers, which Portainer adopts: it recreates each one whose configuration differs, and may remove all of them if the deployment fails",
        "service web: 2 containers will be reduced to 1",
        "web-gone-1: stays as an orphan: the Compose file has no service gone",
        "web-web-1: if it is recreated: settings reset to those of the Compose file: memory limit",
        &format!("web-web-1: if it is recreated, Portainer 2.45 replaces the anonymous volume at /data with an empty one; its data stays in volume {volume}"),
        "web-web-run-1: stays: it was started by `compose run`",
    ]);
    // Compose cannot start a paused container: the create would fail.
    world.set(0, "/State/Paused", json!(true));
    let refusals = world.plan().blockers.into_iter();
    assert_eq!(
        refusals.map(|refusal| refusal.details).collect::<Vec<_>>(),
        [["web-web-1"]]
    );
    // One of the stack's own name is removed as always.
    let pointer = "/Config/Labels/com.docker.compose.project";
    world.set(1, pointer, json!("Web"));
    let says = "1 running container will be stopped with SIGKILL, without time to shut down (to avoid this, run `docker compose stop` first)";
    let plan = world.with_facts(crate::plan::migration);
    assert!(plan.losses.iter().any(|loss| loss.to_string() == says));
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
    world.warns([""; 0]);
    let unhealthy = json!({"Status": "unhealthy"});
    world.set(0, "/State/Health", unhealthy);
    world.warns(["the deployment may fail: a depends on web-web-1, which is unhealthy"]);
    let error = "port is already allocated";
    let exited = json!({"Running": false, "Status": "exited", "ExitCode": 128, "Error": error});
    world.set(0, "/State", exited);
    world.warns([
        "the deployment may fail: web-web-1 failed to start the last time: port is already allocated",
        "the deployment may fail: b depends on web-web-1, which exited with code 128",
    ]);
}

/// Compose 2.26 ignores `mac_address` on an engine before 25 if the network has settings; the library does not.
#[test]
fn n32_a_mac_address_that_the_container_does_not_have_yet() {
    let compose = "services:\n  web:\n    image: x\n    mac_address: 02:42:0A:d6:09:32\n";
    let mut world = world(compose);
    let loss = "web-web-1: settings reset to those of the Compose file: MAC address";
    world.loses([loss]);
    world.set(
        0,
        "/NetworkSettings/Networks/web_default/MacAddress",
        json!("02:42:0a:d6:09:32"),
    );
    world.loses([""; 0]);
    world.set(
        0,
        "/NetworkSettings/Networks/web_default/MacAddress",
        json!("02:42:0a:00:00:02"),
    );
    world.loses([loss]);
    world.set(0, "/Config/MacAddress", json!("02:42:0a:d6:09:32"));
    world.loses([""; 0]);
}
