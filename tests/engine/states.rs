//! Restores stopped containers, and containers that share resources with others.

use std::fs;

use super::{bench::Stack, state::Happened};

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
    stack.docker("stop -t1 $PROJECT-stopped-1");
    stack.docker("pause $PROJECT-paused-1");
    let before = stack.state();

    stack.migrate();
    let run = stack.restore();
    run.says("7 containers match the snapshot (3 running; failed and job were not run again)");
    // The data shows that the job ran once.
    stack.assert_is(&before);
    let ids = stack.ids();

    stack.docker("unpause $PROJECT-paused-1");
    stack.docker("pause $PROJECT-runs-1");
    stack.docker("start $PROJECT-stopped-1");
    stack.docker("pause $PROJECT-stopped-1");
    stack.docker("kill $PROJECT-after-1");
    stack.restore();
    stack.assert_is(&before);
    assert_eq!(stack.ids(), ids);

    // `up` starts exited and stopped containers as always (N08), but recreates none.
    stack.docker("unpause $PROJECT-paused-1");
    stack.up();
    assert_eq!(stack.ids(), ids);
}

/// Compose 2 gives the first network by its ID if it is external.
#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn external_networks_are_restored_with_the_names_of_the_services() {
    let stack = Stack::new();
    for network in ["$PROJECT-proxy", "$PROJECT-second"] {
        stack.docker(&format!("network create --label $MARK {network}"));
    }
    stack.write(
        "services:
  web:
    $SLEEP
    networks: [proxy]
  both:
    $SLEEP
    networks: {proxy: {aliases: [www]}, second: {}}
  unnamed:
    $SLEEP
networks:
  proxy: {external: true, name: $PROJECT-proxy}
  second: {external: true, name: $PROJECT-second}
  default: {external: true, name: $PROJECT-proxy}
",
    );
    let (project, dir) = (&stack.host.project, stack.dir());
    let (dir, file) = (dir.to_str().unwrap(), dir.join("docker-compose.yml"));
    let world = &stack.rehearsal;
    let added = world.world(|world| world.add_external(project, dir, &[file.to_str().unwrap()]));
    added.expect("external networks");
    stack.start();
    let before = stack.state();
    stack.migrate();
    let run = stack.comes_back(&before);
    run.says("3 containers match the snapshot");
    let both = &stack.containers()["both"]["NetworkSettings"]["Networks"]["$PROJECT-proxy"];
    let aliases = both["Aliases"].as_array().unwrap();
    for alias in ["both", "www"] {
        assert!(aliases.contains(&alias.into()), "{aliases:?}");
    }
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
    let before = stack.state();
    stack.migrate();
    stack.restore().says("5 containers match the snapshot");
    stack.assert_is(&before);

    let restored = stack.containers();
    stack.up();
    let happened = restored.happened(&stack.containers());
    for (service, happened) in happened {
        let expected = match service.as_str() {
            "vpn" => Happened::Untouched,
            _ => Happened::Recreated,
        };
        assert_eq!(happened, expected, "{service}");
    }
    let now = stack.state();
    assert_eq!(now.data, before.data);
    stack.up();
    now.containers.assert_untouched(&stack.containers());
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
    stack.wait_for_restarts(&["never"], 5);
    stack.migrate();
    stack.restore().says("3 containers match the snapshot");

    stack.remove_all();
    let ok = stack.dir().join("conf/ok");
    fs::remove_file(&ok).unwrap();
    let restore = || stack.run("restore $PROJECT --timeout=5s");
    // It may be compared before it ends for the first time.
    restore();
    stack.wait_for_restarts(&["web"], 5);
    restore()
        .fails("$PROJECT-web-1 differs: it restarts again and again")
        .hides("$PROJECT-never-1 differs");
    fs::write(&ok, "").unwrap();
    stack.restore().says("3 containers match the snapshot");
}
