//! B01: what a migration loses of containers that were changed after they were started.

use super::bench::Stack;

/// A service of its own for each group of settings, so that a loss is found by its container.
const RICH: &str = "x-run: &run
  image: $PROJECT
  command: /bin/sleep 600
  init: true
services:
  mounts:
    <<: *run
    tmpfs: [/scratch:size=1m]
    volumes:
      - data:/data
      - ./files:/files
      - ./static:/static:ro
      - /anonymous
      - {type: volume, source: named, target: /named/, read_only: true}
      - {type: bind, source: ./long, target: /long, bind: {create_host_path: true}}
      - {type: tmpfs, target: /cache}
      - '${MORE:-./more}:/more'
    secrets: [token]
    configs: [{source: site, target: /etc/site}]
  from:
    <<: *run
    volumes_from: ['base:ro']
    volumes: ['own:/files']
  base:
    <<: *run
    volumes: ['data:/data', './files:/files', './static:/static:ro']
  ports:
    <<: *run
    ports: ['127.0.0.1:$PORT:80', '127.0.0.1::81/udp', '82']
  many:
    <<: *run
    deploy: {replicas: 2}
  settings:
    image: $IMAGE
    entrypoint: ['/bin/sh', '-c']
    command: ['sleep 600; echo $$0', '1']
    user: '1:1'
    working_dir: /tmp/
    hostname: front
    domainname: example.test
    read_only: true
    tty: true
    stdin_open: true
    stop_signal: SIGKILL
    restart: on-failure:3
    cap_add: [CHOWN]
    cap_drop: [CAP_MKNOD]
    group_add: ['7']
    dns: 127.0.0.1
    dns_search: [example.test]
    devices: [/dev/null:/dev/other]
    labels: {number: 1, bare: , text: 'a=b', path: '/a/$$x'}
  quoted:
    image: $IMAGE
    command: /bin/sh -c 'echo \"a b\"; exec sleep 600'
    labels: [listed=1, alone]
  vpn:
    <<: *run
    ipc: shareable
  privileged:
    <<: *run
    privileged: true
    cap_add: [NET_ADMIN, CAP_SYS_TIME]
  shares:
    <<: *run
    network_mode: service:vpn
    pid: service:vpn
    ipc: service:vpn
  host:
    <<: *run
    network_mode: host
    pid: host
    uts: host
    ipc: host
  extends:
    extends: mounts
    volumes: ['other:/data']
networks:
  default: {ipam: {config: [{subnet: $SUBNET.0/24}]}}
volumes:
  data: {}
  own: {}
  other: {}
  named: {name: '${COMPOSE_PROJECT_NAME}-named'}
secrets:
  token: {file: ./token}
configs:
  site: {file: ./site}
";

/// The losses that a migration reports, without those of a file that was not edited.
fn losses_of(stack: &Stack) -> Vec<String> {
    let run = stack.run(&["migrate", &stack.host.project]);
    let is_known = |line: &&str| {
        [
            "SIGKILL",
            "anonymous volume at",
            "privileged-1: it is stopped",
        ]
        .iter()
        .any(|one| line.contains(one))
    };
    let losses = run.output.lines().filter(|line| line.starts_with("  - "));
    losses
        .filter(|line| !is_known(line))
        .map(str::to_owned)
        .collect()
}

fn rich() -> Stack {
    let stack = Stack::new();
    stack.image();
    for file in ["token", "site", "files/x", "static/x", "long/x"] {
        stack.file(file, "content");
    }
    stack.write(RICH);
    // Not every host may start a privileged container.
    stack.compose(&["create"]);
    let services = RICH
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    let services = services.filter(|name| !name.contains([' ', '&']) && *name != "privileged");
    let arguments = ["up", "-d", "--no-deps"].into_iter().chain(services);
    stack.compose(&arguments.collect::<Vec<_>>());
    stack
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b01_no_mount_port_or_setting_of_an_unedited_file_is_named() {
    let stack = rich();
    assert_eq!(losses_of(&stack), [""; 0]);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b01_what_an_edited_file_changes_is_named() {
    let stack = rich();
    let text = std::fs::read_to_string(stack.dir().join("docker-compose.yml")).unwrap();
    let mut edited = text.clone();
    for (old, new) in [
        ("      - data:/data\n", "      - own:/data\n"),
        ("./files:/files", "./elsewhere:/files"),
        ("/static:ro", "/static"),
        (", target: /long", ", target: /length"),
        ("'127.0.0.1::81/udp', ", ""),
        ("127.0.0.1:", "127.0.0.2:"),
        ("sleep 600; echo", "sleep 601; echo"),
        ("'1:1'", "'2:2'"),
        ("[CHOWN]", "[]"),
        ("number: 1", "number: 2"),
        ("on-failure:3", "always"),
        ("\"a b\"", "\"a c\""),
        (
            "    network_mode: service:vpn\n",
            "    network_mode: service:from\n",
        ),
        ("    pid: host\n", ""),
        (
            "  from:\n    <<: *run\n",
            "  from:\n    <<: *run\n    image: $IMAGE\n",
        ),
    ] {
        assert!(edited.contains(old), "{old}");
        edited = edited.replacen(old, new, 1);
    }
    stack.write(&edited);

    let losses = losses_of(&stack).join("\n");
    let (project, dir) = (&stack.host.project, stack.dir());
    let dir = dir.display();
    let detached = "the volume keeps its data";
    for expected in [
        format!(
            "mounts-1: volume {project}_own is mounted at /data instead of volume {project}_data; {detached}"
        ),
        format!("mounts-1: {dir}/elsewhere is mounted at /files instead of {dir}/files"),
        "mounts-1: /static becomes writable".to_owned(),
        format!("mounts-1: {dir}/long is no longer mounted at /long"),
        "ports-1: ports no longer published: ".to_owned(),
        "->80/tcp".to_owned(),
        "81/udp".to_owned(),
        "settings-1: settings reset to those of the Compose file: restart policy".to_owned(),
        format!("from-1: image {} instead of {project}", crate::host::IMAGE),
    ] {
        assert!(losses.contains(&expected), "{expected}\n{losses}");
    }
    assert!(!losses.contains("sleep"), "{losses}");
}
