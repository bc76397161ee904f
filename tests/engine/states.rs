//! Restores stopped containers, and containers that share resources with others.

use std::fs;

use super::{
    bench::Stack,
    sameness::{assert_same, ids},
};
use crate::host::docker;

const STATES: &str = "services:
  runs:
    $SLEEP
  stopped:
    $SLEEP
    restart: always
    volumes: [/anonymous]
  job:
    image: $IMAGE
    command: /bin/sh -c 'echo ran >> /data/log'
    volumes: [data:/data]
  failed:
    image: $IMAGE
    command: /bin/false
  paused:
    $SLEEP
  created:
    image: $IMAGE
    command: /bin/sleep 600
    privileged: true
    profiles: [never]
  after:
    $SLEEP
    depends_on:
      job: {condition: service_completed_successfully}
volumes: {data: {}}
";

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn states_are_restored_and_jobs_are_not_rerun() {
    let stack = Stack::new().running(STATES, &[]);
    stack.compose(&["create", "created"]);
    docker(&["stop", "-t1", &stack.name("stopped")]);
    docker(&["pause", &stack.name("paused")]);
    let before = stack.containers();

    stack.migrate();
    let run = stack.restore();
    run.says("7 containers match the snapshot (3 running; failed and job were not run again)");

    let after = stack.containers();
    assert_same(&before, &after);
    let data = stack.host.project.clone() + "_data";
    assert_eq!(stack.in_volume(&data, "log").unwrap(), "ran");

    docker(&["unpause", &stack.name("paused")]);
    docker(&["pause", &stack.name("runs")]);
    docker(&["start", &stack.name("stopped")]);
    docker(&["pause", &stack.name("stopped")]);
    docker(&["kill", &stack.name("after")]);
    stack.restore();
    let again = stack.containers();
    assert_same(&before, &again);
    assert_eq!(ids(&after), ids(&again));

    // `up` starts exited and stopped containers as always (N08), but recreates none.
    docker(&["unpause", &stack.name("paused")]);
    stack.up();
    assert_eq!(ids(&stack.containers()), ids(&after));
}

/// Compose 2 gives the first network by its ID if it is external.
#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn external_networks_are_restored_with_the_names_of_the_services() {
    let stack = Stack::new();
    let [proxy, second] = ["proxy", "second"].map(|name| stack.name(name));
    for network in [&proxy, &second] {
        docker(&["network", "create", "--label", &stack.host.mark(), network]);
    }
    let service = "$SLEEP";
    stack.write(&format!(
        "services:
  web:
    {service}
    networks: [proxy]
  both:
    {service}
    networks: {{proxy: {{aliases: [www]}}, second: {{}}}}
  unnamed:
    {service}
networks:
  proxy: {{external: true, name: {proxy}}}
  second: {{external: true, name: {second}}}
  default: {{external: true, name: {proxy}}}
"
    ));
    let (project, dir) = (&stack.host.project, stack.dir());
    let dir = dir.to_str().unwrap();
    let added = stack
        .rehearsal
        .world(|world| world.add_external(project, dir, &[&format!("{dir}/docker-compose.yml")]));
    added.expect("external networks");
    stack.up();
    let before = stack.containers();
    stack.migrate();
    stack.restore().says("3 containers match the snapshot");
    let after = stack.containers();
    assert_same(&before, &after);
    let aliases = &after[&stack.name("both")]["NetworkSettings"]["Networks"][&proxy]["Aliases"];
    for alias in ["both", "www"] {
        assert!(
            aliases.as_array().unwrap().contains(&alias.into()),
            "{aliases}"
        );
    }
    let output = stack.up();
    assert!(!output.contains("Recreate"), "{output}");
    assert_eq!(ids(&stack.containers()), ids(&after));
}

const SHARED: &str = r#"services:
  vpn:
    $SLEEP
    ipc: shareable
    volumes: [/anonymous, data:/data]
    ports: ["127.0.0.1:$PORT:80"]
  torrent:
    $SLEEP
    network_mode: service:vpn
    volumes: [/anonymous]
  inspector:
    $SLEEP
    pid: service:vpn
    ipc: service:vpn
  backup:
    $OWN_SLEEP
    volumes_from: ["vpn:ro"]
    volumes: [/own]
  chain:
    $SLEEP
    network_mode: service:torrent
volumes: {data: {}}
"#;

/// The configuration hash of a container includes the ID of the container that it shares with, and the engine chooses
/// the ID of a new container. So the first `up` after a restore recreates the sharing containers once.
#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn sharing_containers_share_with_the_restored_container() {
    let stack = Stack::new().running(SHARED, &[]);
    stack.sh(
        "vpn",
        "for v in anonymous data; do echo $v > /$v/file; done",
    );
    stack.sh("torrent", "echo torrent > /anonymous/file");
    stack.sh("backup", "for v in own imgvol; do echo $v > /$v/file; done");
    let before = stack.containers();

    stack.migrate();
    stack.restore().says("5 containers match the snapshot");

    let after = stack.containers();
    assert_same(&before, &after);
    let read = "cat /anonymous/file /data/file";
    assert_eq!(stack.sh("vpn", read), "anonymous\ndata");
    assert_eq!(stack.sh("backup", read), "anonymous\ndata");
    let expected = "own\nimgvol";
    assert_eq!(stack.sh("backup", "cat /own/file /imgvol/file"), expected);
    assert_eq!(stack.sh("torrent", "cat /anonymous/file"), "torrent");

    let output = stack.up();
    let up = stack.containers();
    let (vpn, after, up) = (stack.name("vpn"), ids(&after), ids(&up));
    assert!(output.contains(&format!("{vpn}  Running")), "{output}");
    assert_eq!(after[vpn.as_str()], up[vpn.as_str()]);
    for name in ["torrent", "inspector", "backup", "chain"] {
        let name = stack.name(name);
        assert!(output.contains(&format!("{name}  Recreated")), "{output}");
    }
    assert_eq!(stack.sh("torrent", "cat /anonymous/file"), "torrent");
    let output = stack.up();
    assert!(
        !output.contains("Recreate") && !output.contains("Started"),
        "{output}"
    );
}

/// A restore waits for what had completed, but not for a restart loop. A container that did not loop before must not loop.
#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b28_a_restart_loop_is_restored_and_a_new_one_is_a_difference() {
    let text = "services:
  never: {image: $IMAGE, command: /bin/false, restart: always}
  web:
    image: $IMAGE
    command: /bin/sh -c 'test -e /conf/ok && exec /bin/sleep 600'
    init: true
    restart: always
    stop_signal: SIGKILL
    volumes: ['./conf:/conf:ro']
  after:
    $SLEEP
    depends_on: [never, web]
";
    let stack = Stack::new().running(text, &[("conf/ok", "")]);
    stack.wait_for_restarts(&[stack.name("never")], 5);
    stack.migrate();
    stack.restore().says("3 containers match the snapshot");

    stack.remove_all();
    let ok = stack.dir().join("conf/ok");
    fs::remove_file(&ok).unwrap();
    let restore = || stack.run("restore $PROJECT --timeout=5s");
    // It may be compared before it ends for the first time.
    restore();
    stack.wait_for_restarts(&[stack.name("web")], 5);
    let difference = format!("{} differs: it restarts again and again", stack.name("web"));
    restore()
        .fails(&difference)
        .hides(&format!("{} differs", stack.name("never")));
    fs::write(&ok, "").unwrap();
    stack.restore().says("3 containers match the snapshot");
}
