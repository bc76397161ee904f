//! B01: a migration of an unedited file names no loss of a setting, whatever the engine calls it.

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

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b01_no_mount_port_or_setting_of_an_unedited_file_is_named() {
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
    let run = stack.run(&["migrate", &stack.host.project]);
    let (known, others): (Vec<&str>, Vec<&str>) = run
        .output
        .lines()
        .filter(|line| line.starts_with("  - "))
        .partition(|line| line.contains("SIGKILL") || line.contains("anonymous volume at"));
    assert!(known.len() > 2, "{}", run.output);
    let is_unexpected = |line: &&str| !line.contains("privileged-1: it is stopped");
    assert_eq!(others.into_iter().find(is_unexpected), None);
}
