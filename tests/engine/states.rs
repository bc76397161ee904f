//! What did not run, and what shares with others.

use super::{
    bench::Stack,
    sameness::{assert_same, ids},
};
use crate::host::docker;

const STATES: &str = "services:
  runs:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
  stopped:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
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
    image: $IMAGE
    command: /bin/sleep 600
    init: true
  created:
    image: $IMAGE
    command: /bin/sleep 600
    privileged: true
    profiles: [never]
  after:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    depends_on:
      job: {condition: service_completed_successfully}
networks:
  default:
    ipam: {config: [{subnet: $SUBNET.0/24}]}
volumes:
  data: {}
";

#[test]
fn what_did_not_run_does_not_run_and_jobs_are_not_run_again() {
    let Some(stack) = Stack::find() else { return };
    stack.write(STATES);
    stack.up();
    stack.compose(&["create", "created"]);
    docker(&["stop", "-t1", &stack.name("stopped")]);
    docker(&["pause", &stack.name("paused")]);
    let before = stack.containers();

    stack.migrate();
    let run = stack.restore();
    run.says(&["7 containers match the snapshot, 3 running"]);

    let after = stack.containers();
    assert_same(&before, &after);
    let data = stack.host.project.clone() + "_data";
    assert_eq!(stack.in_volume(&data, "log").unwrap(), "ran");

    // `up` starts what has ended and what is stopped, as it always does (N08); it makes none anew.
    docker(&["unpause", &stack.name("paused")]);
    let said = stack.up();
    assert!(
        !said.contains("Recreate") && !said.contains("Created"),
        "{said}"
    );
    assert_eq!(ids(&stack.containers()), ids(&after));
}

#[test]
fn a_state_that_has_changed_since_is_brought_back() {
    let Some(stack) = Stack::find() else { return };
    stack.write(STATES);
    stack.up();
    stack.compose(&["create", "created"]);
    docker(&["stop", "-t1", &stack.name("stopped")]);
    docker(&["pause", &stack.name("paused")]);
    let before = stack.containers();
    stack.migrate();
    stack.restore();
    let restored = stack.containers();

    docker(&["unpause", &stack.name("paused")]);
    docker(&["pause", &stack.name("runs")]);
    docker(&["start", &stack.name("stopped")]);
    docker(&["pause", &stack.name("stopped")]);
    docker(&["kill", &stack.name("after")]);
    stack.restore();

    let after = stack.containers();
    assert_same(&before, &after);
    assert_eq!(ids(&restored), ids(&after));
}

const SHARED: &str = r#"services:
  vpn:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    ipc: shareable
    volumes: [/anonymous, data:/data]
    ports: ["127.0.0.1:$PORT:80"]
  torrent:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    network_mode: service:vpn
    volumes: [/anonymous]
  inspector:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    pid: service:vpn
    ipc: service:vpn
  backup:
    image: $PROJECT
    command: /bin/sleep 600
    init: true
    volumes_from: ["vpn:ro"]
    volumes: [/own]
  chain:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    network_mode: service:torrent
networks:
  default:
    ipam: {config: [{subnet: $SUBNET.0/24}]}
volumes:
  data: {}
"#;

/// Compose puts the id of the container that another one shares with into the other's configuration hash,
/// and the engine chooses the id of a new container: the hash that the label of `torrent` holds is one of
/// an id that is gone for good. So the first `up` after a restore makes exactly these anew, once.
#[test]
fn what_shares_with_another_container_shares_with_the_one_that_came_back() {
    let Some(stack) = Stack::find() else { return };
    stack.image();
    stack.write(SHARED);
    stack.up();
    stack.sh(
        "vpn",
        "for v in anonymous data; do echo $v > /$v/file; done",
    );
    stack.sh("torrent", "echo torrent > /anonymous/file");
    stack.sh("backup", "for v in own imgvol; do echo $v > /$v/file; done");
    let before = stack.containers();

    stack.migrate();
    stack
        .restore()
        .says(&["verified 5 containers match the snapshot"]);

    let after = stack.containers();
    assert_same(&before, &after);
    let read = "cat /anonymous/file /data/file";
    assert_eq!(stack.sh("vpn", read), "anonymous\ndata");
    assert_eq!(stack.sh("backup", read), "anonymous\ndata");
    assert_eq!(
        stack.sh("backup", "cat /own/file /imgvol/file"),
        "own\nimgvol"
    );
    assert_eq!(stack.sh("torrent", "cat /anonymous/file"), "torrent");

    let said = stack.up();
    let up = stack.containers();
    let (vpn, after, up) = (stack.name("vpn"), ids(&after), ids(&up));
    assert!(said.contains(&format!("{vpn}  Running")), "{said}");
    assert_eq!(after[vpn.as_str()], up[vpn.as_str()]);
    for name in ["torrent", "inspector", "backup", "chain"] {
        let name = stack.name(name);
        assert!(said.contains(&format!("{name}  Recreated")), "{said}");
    }
    assert_eq!(stack.sh("torrent", "cat /anonymous/file"), "torrent");
    let said = stack.up();
    assert!(
        !said.contains("Recreate") && !said.contains("Started"),
        "{said}"
    );
}
